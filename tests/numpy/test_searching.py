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


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(agree, side):
    line = np.array([-1.0, 0.0, 2.0, 2.0, 5.0, np.nan], np.float32)
    v = np.array([[-9.0, -1.0, 1.0], [2.0, 6.0, np.nan]], np.float32)
    agree("searchsorted", line, v, side=side, dtype="int32")
    agree("searchsorted", line[:5], 2, side=side, dtype="int32")
    agree("searchsorted", np.array([1, 3, 5], np.int32), np.array([0, 3, 9], np.int32), side=side)
    agree("searchsorted", np.zeros(0, np.float32), v, side=side)
    order = np.array([2, 0, 1])
    got = snp.searchsorted(snp.array([3.0, 5.0, 1.0]), 4.0, side, sorter=snp.array(order))
    assert got.item() == 2
    halves = st.jit(lambda a, v: snp.searchsorted(a, v, side))(line.astype(snp.bfloat16), v)
    np.testing.assert_array_equal(halves, np.searchsorted(line, v, side))


def test_searchsorted_errors():
    with pytest.raises(ValueError, match="side"):
        snp.searchsorted(snp.ones(2), 1.0, "middle")
    with pytest.raises(ValueError, match="rank 1"):
        snp.searchsorted(snp.ones((2, 2)), 1.0)


def test_where(agree):
    mask = np.array([True, False, True, False])
    agree("where", mask, F, -F, dtype="float32")
    agree("where", mask, F, 0.0, dtype="float32")
    agree("where", mask, 1, INTS, dtype="int32")
    agree("where", INTS, F, 2, dtype="float32")
    agree("where", mask, INTS, F, dtype="float32")
    agree("where", mask, F[0], F[:, :1], dtype="float32")
    agree("where", True, F, 0.0, dtype="float32")
    assert snp.where(snp.array(mask), 1, 2).weak_type
    assert snp.where(snp.array(mask), 1, 2.0).dtype == snp.float32
    with pytest.raises(ValueError, match="both x and y"):
        snp.where(mask, 1)
    with pytest.raises(ValueError, match="broadcast"):
        snp.where(snp.array(mask), snp.ones(3), snp.ones(3))


def test_where_keeps_nan_of_the_other_choice_out_of_derivatives():
    def f(x):
        return snp.where(x > 0, snp.log(snp.where(x > 0, x, 1.0)), 0.0).sum()

    assert st.grad(f)(snp.array([-1.0, 2.0])).tolist() == [0, 0.5]


def test_nonzero(agree):
    for x in (INTS, F, INTS[0], np.zeros((2, 0), np.float32)):
        for got, want in zip(snp.nonzero(snp.array(x)), np.nonzero(x), strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == snp.int32
    assert [i.tolist() for i in snp.where(snp.array(INTS) > 2)] == [[0, 1], [0, 1]]
    np.testing.assert_array_equal(snp.argwhere(snp.array(INTS)), np.argwhere(INTS))
    np.testing.assert_array_equal(snp.flatnonzero(snp.array(INTS)), np.flatnonzero(INTS))
    with pytest.raises(ValueError, match="rank 0"):
        snp.nonzero(snp.array(1))


@pytest.mark.parametrize("size", [0, 3, 5, 10])
def test_nonzero_of_a_size(size):
    found = np.nonzero(INTS)
    for f in (snp.nonzero, st.jit(snp.nonzero, static_argnames=("size", "fill_value"))):
        got = f(snp.array(INTS), size=size, fill_value=-1)
        for g, w in zip(got, found, strict=True):
            want = np.concatenate([w, np.full(10, -1)])[:size]
            np.testing.assert_array_equal(g, want)
    got = snp.argwhere(snp.array(INTS), size=size)
    assert got.shape == (size, 2)


def test_lengths_that_depend_on_traced_values_are_refused():
    for f in (snp.nonzero, snp.flatnonzero, snp.unique, snp.argwhere):
        with pytest.raises(TypeError, match=r"size="):
            st.jit(f)(INTS)
    assert st.grad(lambda x: x[snp.nonzero(x)[0]].sum())(snp.array([0.0, 2.0])).tolist() == [0, 1]


def test_extract():
    x, mask = snp.array(INTS), snp.array(INTS) > 1
    assert snp.extract(mask, x).tolist() == [3, 2, 2, 5]
    got = st.jit(lambda m, x: snp.extract(m, x, size=5, fill_value=-1))(mask, x)
    assert got.tolist() == [3, 2, 2, 5, -1]


def test_take_along_axis(agree):
    order = np.argsort(INTS, axis=1).astype(np.int32)
    agree("take_along_axis", INTS, order, axis=1, dtype="int32")
    agree("take_along_axis", INTS, order.ravel() - 4, axis=None, dtype="int32")


def test_options_of_places_along_an_axis():
    x, at = snp.arange(3.0), snp.array([-1, 7])
    got = snp.take_along_axis(x, at, 0, "fill", 5.0, wrap_negative_indices=False)
    np.testing.assert_array_equal(got, [5, 5])
    np.testing.assert_array_equal(snp.take_along_axis(x, at, 0, "fill", 5.0), [2, 5])
    assert snp.argsort(x, dtype="int8").dtype == snp.int8


def test_negative_indices_are_in_bounds_where_that_is_promised():
    x, at = snp.arange(6.0).reshape(2, 3), snp.array([[-1, 0], [-3, -2]])
    want = [[2.0, 0.0], [3.0, 4.0]]
    take = lambda x, at: snp.take_along_axis(x, at, 1, mode="promise_in_bounds")
    mapped = st.vmap(lambda x, at: take(x[None], at[None])[0])
    for found in (take(x, at), st.jit(take)(x, at), mapped(x, at)):
        np.testing.assert_array_equal(found, want)
