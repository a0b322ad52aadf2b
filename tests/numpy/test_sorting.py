"""Sorted arrays, and the indices that sort."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

F = np.array([[3.0, -1.0, 2.0, 2.0], [np.nan, 0.5, -0.0, 7.0]], np.float32)


INTS = np.array([[3, 0, 2, 2], [0, 5, -9, 0]], np.int32)


@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_sort(agree, name, axis):
    agree(name, INTS, axis=axis, dtype="int32", numpy=lambda x, axis: getattr(np, name)(
        x, axis, kind="stable"))  # fmt: skip
    agree(name, F, axis=axis, numpy=lambda x, axis: getattr(np, name)(x, axis, kind="stable"))


def test_sort_settings():
    x = snp.array([3, 1, 3, 2])
    assert snp.sort(x, descending=True).tolist() == [3, 3, 2, 1]
    assert snp.argsort(x, descending=True).tolist() == [0, 2, 3, 1]
    with pytest.raises(NotImplementedError, match="order"):
        snp.sort(x, order="name")
    slope = st.grad(lambda x: (snp.sort(x) * snp.arange(3.0)).sum())(snp.array([3.0, 1.0, 2.0]))
    assert slope.tolist() == [2, 0, 1]


def test_lexsort(agree):
    keys = (np.array([2, 1, 3, 1]), np.array([1, 1, 0, 1]))
    want = np.lexsort(keys)
    np.testing.assert_array_equal(snp.lexsort([snp.array(k) for k in keys]), want)
    np.testing.assert_array_equal(st.jit(lambda *k: snp.lexsort(k))(*keys), want)
