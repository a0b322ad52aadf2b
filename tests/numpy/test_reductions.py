from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.numpy import normalized

F = np.array(
    [[[1.5, -2.0, 0.5], [3.0, 0.0, -1.0]], [[2.0, 2.5, -0.5], [1.0, -3.0, 4.0]]], np.float32
)
INTS = np.array([[3, -1, 4], [1, 5, -9]], np.int32)
BOOLS = np.array([[True, False, True], [True, True, True]])
COMPLEX = np.array([[1 + 2j, -3j, 0.5], [1 - 2j, 1j, 2]], np.complex64)
AXES = [None, 0, -1, (0, 2), (), [1]]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "amax", "amin", "ptp", "all", "any"])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_over_axes(agree, name, axis, keepdims):
    axis = tuple(axis) if isinstance(axis, list) else axis
    agree(name, F, axis=axis, keepdims=keepdims, rtol=1e-5)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_integers(agree, name, axis):
    agree(name, INTS, axis=axis, dtype="int32")
    agree(name, COMPLEX, axis=axis, dtype="complex64", rtol=1e-5)


def test_small_integers_widen_in_sums(agree):
    small = np.array([100, 100, 100], np.int8)
    agree("sum", small, dtype="int32")
    agree("sum", small.astype(np.uint8), dtype="uint32")
    agree("prod", small, dtype="int32")
    agree("sum", BOOLS, dtype="int32")
    assert snp.sum(snp.array(small), dtype=snp.int8).dtype == snp.int8
    assert snp.max(snp.array(small)).dtype == snp.int8
    with st.enable_x64():
        assert snp.sum(snp.array([1], snp.int32)).dtype == np.int64


def test_low_precision_adds_up_in_float32():
    ones = snp.ones(4096, snp.bfloat16)
    for total in (snp.sum(ones), st.jit(snp.sum)(ones)):
        assert (float(total), total.dtype) == (4096, snp.bfloat16)
    assert float(snp.mean(snp.full(4096, 3.0, snp.float16))) == 3


def test_sums_of_given_dtype(agree):
    got = snp.sum(snp.array(INTS), dtype=float)
    assert (got.dtype, float(got)) == (snp.float32, 3)
    got = snp.sum(snp.array(F), dtype=int)
    assert got.dtype == snp.int32


def test_where_and_initial(agree):
    mask = np.array([[True], [False]])
    for name, initial in (("sum", 10), ("prod", 2), ("max", -7), ("min", 7)):
        agree(name, INTS, where=mask, initial=initial, dtype="int32")
        agree(name, INTS, axis=1, initial=initial, dtype="int32")
    agree("all", BOOLS, axis=1, where=mask)
    agree("any", BOOLS, axis=1, where=mask)
    with pytest.raises(ValueError, match="initial"):
        snp.max(snp.array(INTS), where=mask)


def test_of_nothing():
    empty = snp.zeros((0, 3))
    assert snp.sum(empty, axis=0).tolist() == [0, 0, 0]
    assert float(snp.prod(empty)) == 1
    assert snp.max(empty, axis=1).shape == (0,)
    assert bool(snp.all(empty))
    assert not bool(snp.any(empty))
    for f in (snp.max, snp.min, snp.argmax, snp.argmin):
        with pytest.raises(ValueError, match="of an empty array is undefined"):
            f(empty, axis=0)
    assert float(snp.max(empty, initial=3.0)) == 3


def test_count_nonzero(agree):
    agree("count_nonzero", INTS, dtype="int32")
    agree("count_nonzero", F, axis=(0, 1), keepdims=True, dtype="int32")


def test_weak_types_end_in_reductions():
    x = snp.asarray(1.5)
    for f in (snp.sum, snp.max, snp.mean, snp.prod):
        assert not f(x).weak_type
        assert not st.jit(f)(x).weak_type


def test_errors():
    with pytest.raises(TypeError, match="array"):
        snp.sum([1, 2, 3])
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        snp.sum(snp.array(INTS), axis=2)
    with pytest.raises(ValueError, match="twice"):
        snp.sum(snp.array(INTS), axis=(0, -2))
    with pytest.raises(NotImplementedError, match="out="):
        snp.sum(snp.array(INTS), out=snp.zeros(()))


def test_numpy_functions_call_the_methods():
    assert isinstance(np.sum(snp.array(INTS)), st.Array)
    assert isinstance(np.max(snp.array(INTS), axis=0), st.Array)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std"])
def test_derivatives_and_vmap(name):
    f = getattr(snp, name)
    x = snp.array(F[0])
    slope = st.grad(lambda x: f(x, axis=1).sum())(x)
    eps = 1e-2
    for i in range(2):
        for j in range(3):
            step = snp.zeros((2, 3)).at[i, j].set(eps)
            numeric = (f(x + step, axis=1).sum() - f(x - step, axis=1).sum()) / (2 * eps)
            assert float(slope[i, j]) == pytest.approx(float(numeric), abs=5e-3)
    np.testing.assert_allclose(st.vmap(f)(x), f(x, axis=1), rtol=1e-6)


def test_small_integers_need_not_widen():
    x = snp.full(3, 100, "int8")
    assert snp.sum(x).dtype == snp.prod(x).dtype == snp.int32
    assert int(snp.sum(x, promote_integers=False)) == 300 - 256
    assert snp.prod(x, promote_integers=False).dtype == snp.int8
    assert snp.sum(snp.ones(3, bool), promote_integers=False).dtype == snp.int32


TRUTHS = [np.array([[0.5, 0, np.nan], [0, 0, 0]], np.float32), np.array([[256, 0], [1, -1]])]


@pytest.mark.parametrize("x", [*TRUTHS, TRUTHS[1].astype(bool)], ids=lambda x: x.dtype.name)
def test_sums_and_products_of_truth(x):
    """In bool NumPy's sum is any and its product all, also the running ones."""
    mask = np.array([[True], [False]])
    calls = [
        *[(name, settings) for name in ("sum", "prod", "nansum", "nanprod")
          for settings in ({}, {"axis": 0}, {"axis": (0, -1), "keepdims": True},
                           {"axis": 1, "initial": True}, {"axis": 1, "where": mask})],
        *[(name, {"axis": axis}) for name in ("cumsum", "cumprod", "nancumsum", "nancumprod")
          for axis in (None, 0, 1)],
        *[(name, {"axis": 1, "include_initial": begin}) for begin in (False, True)
          for name in ("cumulative_sum", "cumulative_prod")],
        ("trace", {}), ("mean", {"axis": 1}),
    ]  # fmt: skip

    def all_of(x):
        return [getattr(snp, name)(x, dtype=bool, **settings) for name, settings in calls]

    for of in (all_of, st.jit(all_of)):
        for got, (name, settings) in zip(of(snp.array(x)), calls, strict=True):
            if hasattr(np, name):  # some are newer than the oldest NumPy
                want = getattr(np, name)(x, dtype=bool, **settings)
                np.testing.assert_array_equal(got, want, err_msg=name)
            assert got.dtype == bool
    got = snp.cumulative_prod(snp.array(TRUTHS[1]), axis=1, dtype=bool, include_initial=True)
    assert got.tolist() == [[True, True, False], [True, True, True]]


def test_sums_and_products_of_no_truth():
    x = snp.zeros((0, 2))
    assert snp.sum(x, 0, bool).tolist() == [False, False]
    assert snp.prod(x, 0, bool).tolist() == [True, True]
    assert snp.cumsum(x, 0, bool).shape == (0, 2)


@pytest.mark.parametrize(
    "reduce",
    [snp.sum, snp.prod, snp.mean, snp.var, snp.std, snp.all, snp.any, snp.nansum, snp.nanmean]
    + [
        snp.nanstd,
        snp.nanprod,
        snp.add.reduce,
        normalized.softmax,
        normalized.log_softmax,
        normalized.logsumexp,
    ]
    + [lambda x, where: snp.max(x, where=where, initial=0)],
)
def test_where_is_boolean(reduce):
    x = snp.array([[1.0, snp.nan], [3.0, 4.0]])
    for mask in (x, 1, snp.ones(2, int)):
        with pytest.raises(TypeError, match="where must be boolean, got"):
            reduce(x, where=mask)
    assert reduce(x, where=True).ndim >= 0
