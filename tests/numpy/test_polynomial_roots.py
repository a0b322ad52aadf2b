"""Roots of polynomials, and polynomials of roots."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import TracedValueError


@pytest.mark.parametrize("zeros", [(0, 0), (2, 3)], ids=["none", "both"])
def test_zeros_at_the_ends_of_roots(zeros):
    p = np.array([0] * zeros[0] + [1, -3, 2] + [0] * zeros[1], np.float32)
    got, want = np.asarray(snp.roots(snp.array(p))), np.roots(p)
    assert got.shape == want.shape
    np.testing.assert_allclose(np.sort(got.real), np.sort(want), atol=1e-5)
    assert snp.roots(snp.zeros(3)).shape == (0,)


def test_roots_while_tracing():
    p = snp.array([1.0, -3.0, 2.0])
    found = st.jit(lambda p: snp.roots(p, strip_zeros=False))(p)
    np.testing.assert_allclose(np.sort(np.asarray(found).real), [1, 2], rtol=1e-5)
    with pytest.raises(TracedValueError, match="strip_zeros=False"):
        st.jit(snp.roots)(p)


def test_the_polynomial_of_a_real_matrix_is_real():
    matrix = np.array([[0.0, 1.0], [-1.0, 0.0]], np.float32)
    got = snp.poly(snp.array(matrix))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, np.poly(matrix), atol=1e-6)
