"""Unique elements: NumPy's parts, static sizes, NaN and zeros, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import TracedValueError
from stretto.numpy.unique import starts_of_runs

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


def test_unique_parts_at_a_static_size():
    rows = np.array([[1, 2], [1, 2], [0, 3]], np.int32)
    asked = {"return_index": True, "return_inverse": True, "return_counts": True}

    def sized(x):
        return (
            snp.unique(x, axis=0, size=4, **asked),
            snp.unique(x, axis=0, size=1, **asked),
            snp.unique(x, axis=0, size=4, fill_value=9),
            snp.unique(x.T, axis=1, size=3),
            snp.unique(x, size=2, **asked),
        )

    wanted = (
        ([[0, 3], [1, 2], [0, 3], [0, 3]], [2, 0, 2, 2], [1, 1, 0], [1, 2, 0, 0]),
        ([[0, 3]], [2], [1, 1, 0], [1]),
        [[0, 3], [1, 2], [9, 9], [9, 9]],
        [[0, 1, 0], [3, 2, 3]],
        ([0, 1], [4, 0], [[1, 2], [1, 2], [0, 3]], [1, 2]),
    )
    for out in (sized(snp.array(rows)), st.jit(sized)(rows)):
        assert st.tree.map(lambda x: x.tolist(), out) == wanted
    assert snp.unique(snp.zeros(0), size=2, fill_value=3).tolist() == [3, 3]
    assert snp.unique(snp.zeros((3, 0)), axis=0, size=2).shape == (2, 0)
    with pytest.raises(ValueError, match="no elements to fill 2 places with; give fill_value="):
        snp.unique(snp.zeros(0), size=2)


def test_nan_are_one_or_each_its_own():
    x = np.array([np.nan, 1.0, np.nan], np.float32)
    for equal in (True, False):
        got = snp.unique(x, return_counts=True, equal_nan=equal)
        want = np.unique(x, return_counts=True, equal_nan=equal)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


def test_zeros_of_both_signs_are_one():
    assert snp.unique(np.array([0.0, -0.0], np.float32)).size == 1


def test_complex_numbers_and_none():
    z = np.array([1j, 1, 1j, 0], np.complex64)
    np.testing.assert_array_equal(snp.unique(z), np.unique(z))
    assert snp.unique(snp.zeros((0, 3))).shape == (0,)
    found = snp.unique(snp.zeros(0), True, True, True)
    assert [v.shape for v in found] == [(0,)] * 4


def test_where_runs_start():
    line = snp.array([1.0, 1.0, 2.0, np.nan, np.nan])
    assert starts_of_runs(line, True).tolist() == [True, False, True, True, False]
    assert starts_of_runs(line, False).tolist() == [True, False, True, True, True]


def test_under_jit_a_size_is_needed():
    with pytest.raises(TracedValueError, match="size"):
        st.jit(snp.unique)(INTS)
    assert st.jit(lambda x: snp.unique_values(x, size=6))(INTS).shape == (6,)
