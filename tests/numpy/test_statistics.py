from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

F = np.array([[1.5, -2.0, 0.5, 7.0], [3.0, 0.0, -1.0, 2.0], [2.0, 2.5, -0.5, 1.0]], np.float32)
INTS = np.array([[3, -1, 4, 1], [1, 5, -9, 2]], np.int32)
HOLES = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan], [4.0, 5.0, 0.5]], np.float32)
COMPLEX = np.array([1 + 2j, -3j, 0.5], np.complex64)


@pytest.mark.parametrize("name", ["mean", "var", "std", "median"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_moments(agree, name, axis, keepdims):
    agree(name, F, axis=axis, keepdims=keepdims, dtype="float32", rtol=1e-5)
    agree(name, INTS, axis=axis, keepdims=keepdims, dtype="float32", rtol=1e-5)


def test_complex_moments(agree):
    agree("mean", COMPLEX, dtype="complex64", rtol=1e-5)
    agree("var", COMPLEX, dtype="float32", rtol=1e-5)


def test_ddof(agree):
    agree("var", F, axis=0, ddof=1, rtol=1e-5)
    agree("std", F, ddof=2, rtol=1e-5)
    assert float(snp.var(snp.array(F), correction=1)) == pytest.approx(F.var(ddof=1), rel=1e-5)
    assert np.isnan(float(snp.var(snp.ones(1), ddof=1)))
    with pytest.raises(ValueError, match="not both"):
        snp.var(snp.ones(2), ddof=1, correction=1)


def test_where(agree):
    mask = F > 0
    for name in ("mean", "var", "std"):
        agree(name, F, where=mask, rtol=1e-5)
        agree(name, F, axis=1, where=mask[:1], rtol=1e-5)
    assert np.isnan(float(snp.mean(snp.ones(2), where=np.array([False, False]))))


def test_low_precision_means_keep_their_dtype():
    for dtype in (snp.float16, snp.bfloat16):
        x = snp.array(F, dtype)
        for f in (snp.mean, snp.var, snp.std, snp.median):
            assert f(x).dtype == dtype
            assert st.jit(f)(x).dtype == dtype
    assert float(snp.var(snp.array([1000.0, 1002.0], snp.float16))) == 1


def test_mean_of_given_dtype():
    assert snp.mean(snp.array(INTS), dtype=snp.float16).dtype == snp.float16
    assert np.isnan(float(snp.mean(snp.zeros(0))))


def test_mean_in_integers_converts_before_it_adds():
    x = np.array([[2.5, 2.5], [1.5, 257.0]], np.float32)
    with np.errstate(invalid="ignore"):
        for f in (snp.mean, st.jit(snp.mean, static_argnames=("axis", "dtype"))):
            for dtype in ("int8", "uint8", "int32", "bool"):
                got = f(x.astype(np.int32), axis=1, dtype=dtype)
                np.testing.assert_array_equal(got, np.mean(x.astype(np.int32), 1, dtype))
    assert snp.mean(snp.array(x[0]), dtype=int).tolist() == 2


@pytest.mark.parametrize("f", [snp.var, snp.std, snp.nanvar, snp.nanstd], ids=lambda f: f.__name__)
def test_spread_has_no_integer_dtype(f):
    with pytest.raises(TypeError, match="dtype must be a float or complex dtype, got int8; leave"):
        f(snp.ones(3), dtype=snp.int8)


def test_traced_ddof():
    x = np.array([1.0, 2.0, 4.0], np.float32)
    for name in ("var", "std", "nanvar"):
        f = st.jit(lambda x, ddof, name=name: getattr(snp, name)(x, ddof=ddof))
        for ddof in (0, 1, 1.5):
            want = getattr(np, name)(x, ddof=ddof)
            np.testing.assert_allclose(f(x, ddof), want, rtol=1e-6)
        assert np.isnan(f(x, 3))
    with pytest.raises(ValueError, match="not both"):
        st.jit(lambda k: snp.var(snp.ones(2), ddof=k, correction=1))(1)


def test_average(agree):
    agree("average", F, rtol=1e-5)
    agree("average", F, axis=0, rtol=1e-5)
    weights = np.array([0.5, 1.0, 2.0], np.float32)
    agree("average", F, axis=0, weights=weights, returned=True, rtol=1e-5)
    agree("average", INTS, weights=np.abs(INTS), rtol=1e-5)
    with pytest.raises(ValueError, match="weights must have the shape"):
        snp.average(snp.array(F), weights=weights)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0])
def test_quantile(agree, method, q):
    agree("quantile", F, q, method=method, dtype="float32", rtol=1e-5)
    agree("quantile", F, q, axis=1, method=method, keepdims=True, dtype="float32", rtol=1e-5)


def test_quantiles(agree):
    q = np.array([0.1, 0.9], np.float32)
    agree("quantile", F, q, axis=0, rtol=1e-5)
    agree("quantile", F, q, axis=(0, 1), keepdims=True, rtol=1e-5)
    agree("percentile", F, 25, rtol=1e-5)
    agree("percentile", INTS, q * 100, axis=1, rtol=1e-4)
    agree("quantile", HOLES, 0.5, axis=1)
    with pytest.raises(ValueError, match="method"):
        snp.quantile(snp.array(F), 0.5, method="cubic")
    with pytest.raises(ValueError, match="a quantile of an empty array is undefined"):
        snp.median(snp.zeros(0))


def test_the_derivative_of_a_deviation_of_zero_is_zero():
    for f in (snp.std, snp.nanstd, lambda x: snp.sum(snp.std(x, axis=0, where=x >= 0))):
        for x in (snp.ones(3), snp.zeros(3)):
            np.testing.assert_array_equal(st.grad(f)(x), np.zeros(3))


@pytest.mark.parametrize("bad", [3e38, np.inf, np.nan])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min"])
def test_what_a_mask_leaves_out_has_no_part_in_derivatives(name, bad):
    mask, x = np.array([True, True, False]), np.array([1.0, 2.5, 0.5], np.float32)
    other = np.where(mask, x, np.float32(bad))
    options = {"initial": 2.0} if name in ("max", "min") else {}
    f = lambda x: getattr(snp, name)(x, where=mask, **options)
    for g in (st.grad(f), st.jit(st.grad(f)), st.hessian(f)):
        np.testing.assert_allclose(g(other), g(x), rtol=1e-6)
    assert st.grad(f)(other)[2] == 0


def test_lists_are_refused():
    with pytest.raises(TypeError, match="array"):
        snp.mean([1, 2])
