"""The elements that differ."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

F = np.array([[3.0, -1.0, 2.0, 2.0], [np.nan, 0.5, -0.0, 7.0]], np.float32)


INTS = np.array([[3, 0, 2, 2], [0, 5, -9, 0]], np.int32)


@pytest.mark.parametrize("x", [INTS, F, np.array([2, 2, 2], np.uint8), INTS.astype(bool)])
def test_unique(x):
    got = snp.unique(snp.array(x), True, True, True)
    for g, w in zip(got, np.unique(x, True, True, True), strict=True):
        np.testing.assert_array_equal(g, w)
    assert got[0].dtype == x.dtype


@pytest.mark.parametrize("x", [INTS, F])
@pytest.mark.parametrize("size", [2, 5, 9])
def test_unique_of_a_size(x, size):
    found = np.unique(x, True, True, True)
    f = st.jit(lambda x: snp.unique(x, True, True, True, size=size, fill_value=-7))
    values, index, inverse, counts = f(x)
    n = len(found[0])
    np.testing.assert_array_equal(values, np.concatenate([found[0], np.full(9, -7)])[:size])
    np.testing.assert_array_equal(index[:n], found[1][:size])
    np.testing.assert_array_equal(inverse, found[2])
    if size >= n:
        np.testing.assert_array_equal(counts[:n], found[3])
        assert counts[n:].tolist() == [0] * (size - n)


def test_unique_by_axis_and_as_in_the_standard():
    rows = np.array([[1, 2], [3, 4], [1, 2]], np.int32)
    np.testing.assert_array_equal(snp.unique(snp.array(rows), axis=0), [[1, 2], [3, 4]])
    everything = snp.unique_all(snp.array([2, 1, 2]))
    assert everything.values.tolist() == [1, 2]
    assert everything.indices.tolist() == [1, 0]
    assert everything.inverse_indices.tolist() == [1, 0, 1]
    assert everything.counts.tolist() == [1, 2]
    assert snp.unique_values(snp.array([np.nan, np.nan])).size == 2
    assert snp.unique_counts(snp.array([1, 1])).counts.tolist() == [2]
    assert snp.unique_inverse(snp.array([1, 0])).inverse_indices.tolist() == [1, 0]
