from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

V = np.linspace(-2, 2, 5).astype(np.float32)


def test_pieces_as_numpy():
    x = snp.array(V)

    def pieces(namespace, v):
        return namespace.piecewise(v, [v < 0, v > 0], [-1, lambda t, by: t * by, 9], 3)

    np.testing.assert_array_equal(pieces(snp, x), pieces(np, V))
    np.testing.assert_array_equal(st.jit(lambda x: pieces(snp, x))(x), pieces(np, V))
    np.testing.assert_array_equal(snp.piecewise(x, x > 0, [1]), np.piecewise(V, V > 0, [1]))
    assert float(snp.piecewise(3.0, [True], [4])) == 4


def test_the_derivative_knows_the_piece_that_was_taken():
    slope = st.grad(lambda x: snp.piecewise(x, [x <= 0, x > 0], [0, snp.log]).sum())
    np.testing.assert_array_equal(slope(snp.array([0.0, 2.0])), [0, 0.5])


def test_a_piece_for_each_condition_and_one_for_the_rest():
    with pytest.raises(ValueError, match="1 or 2 functions"):
        snp.piecewise(V, [V < 0], [1, 2, 3])


def test_the_function_over_axes_must_keep_the_rank():
    with pytest.raises(ValueError, match="keep the axis or remove it"):
        snp.apply_over_axes(lambda x, axis: x.sum(), snp.ones((2, 3, 4)), 0)
