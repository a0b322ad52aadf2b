from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X, Y = np.array([1, 2], np.int32), np.array([3.0, 4.0], np.float32)
M = np.ones((2, 2), np.float32)
JOINED = [
    np.s_[1:4, 0, 4],
    np.s_[0:1:3j],
    np.s_[X, Y],
    np.s_["0,2", X, X],
    np.s_["-1,2,0", X, X],
    np.s_["0,2,0", X, X],
    np.s_["1,3,1", X, X],
    np.s_[1:2:0.25, 5],
    np.s_[[5, 6], 7],
]


def same(got, want):
    assert got.shape == want.shape
    assert got.dtype.kind == want.dtype.kind
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("key", JOINED, ids=range(len(JOINED)))
def test_rows(key):
    same(snp.r_[key], np.r_[key])


def test_rows_and_columns_as_matrices():
    np.testing.assert_array_equal(snp.r_["r", X, 0], [[1, 2, 0]])
    np.testing.assert_array_equal(snp.r_["c", X, 1:3], [[1], [2], [1], [2]])


@pytest.mark.parametrize(
    "key", [np.s_[X, Y], np.s_[1:3, 5:7], np.s_[M, X], np.s_[1, 2]], ids=range(4)
)
def test_columns(key):
    same(snp.c_[key], np.c_[key])


def test_numbers_take_the_dtype_of_arrays_and_arrays_may_be_traced():
    assert snp.r_[snp.ones(2, "bfloat16"), 2.5].dtype == snp.bfloat16
    np.testing.assert_array_equal(st.jit(lambda x: snp.r_[x, 0, x[::-1]])(X), [1, 2, 0, 2, 1])


@pytest.mark.parametrize(
    "key", [np.s_[0:2, 0:3], np.s_[0:2, 0:1:3j], np.s_[0:2], np.s_[0:1:0.5, 1:2]], ids=range(4)
)
def test_grids(key):
    same(snp.mgrid[key], np.mgrid[key])
    got, want = snp.ogrid[key], np.ogrid[key]
    if isinstance(key, slice):
        got, want = [got], [want]
    for a, b in zip(got, want, strict=True):
        same(a, b)


def test_indices_themselves():
    assert snp.s_[1:3, ...] == (slice(1, 3), ...)
    assert snp.index_exp[0] == (0,)


def test_from_a_function_of_indices():
    same(snp.fromfunction(lambda i, j: i - j, (2, 3)),
         np.fromfunction(lambda i, j: i - j, (2, 3)))  # fmt: skip
    np.testing.assert_array_equal(snp.fromfunction(lambda i, by: i * by, 3, by=2), [0, 2, 4])
    np.testing.assert_array_equal(snp.fromfunction(lambda i: 1, (2,)), [1, 1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: snp.r_["x", 1], "a directive is"),
        (lambda: snp.r_[1, "r"], "comes first"),
        (lambda: snp.r_["r"], "something to join"),
        (lambda: snp.mgrid[1:, 2:3], "needs its stop"),
    ],
    ids=range(4),
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_grids_of_no_axes():
    assert snp.mgrid[()].shape == np.mgrid[()].shape == (0,)
    assert snp.mgrid[()].dtype == snp.int32
    assert list(snp.ogrid[()]) == []
    assert snp.indices(()).shape == np.indices(()).shape
