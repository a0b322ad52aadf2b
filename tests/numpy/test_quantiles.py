"""Quantiles: traced fractions, slopes, precision of fractions, and messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.random.default_rng(0).normal(size=(3, 10)).astype(np.float32)
METHODS = [
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "hazen",
    "linear",
    "midpoint",
    "nearest",
]


def test_traced_fractions_fall_where_numpys_do():
    q = np.array([0.1, 0.3, 0.35, 0.5, 1.0], np.float32)
    fun = st.jit(lambda x, q: [snp.quantile(x, q, axis=1, method=m) for m in METHODS])
    for method, out in zip(METHODS, fun(X, q), strict=True):
        np.testing.assert_allclose(
            out, np.quantile(X, q, axis=1, method=method), rtol=1e-5, atol=1e-6, err_msg=method
        )


def test_slopes():
    x = X[0]
    slope = np.asarray(st.grad(lambda x: snp.quantile(x, 0.3))(x))
    order = np.argsort(x)
    np.testing.assert_allclose(slope[order], [0, 0, 0.3, 0.7, *[0] * 6], rtol=1e-5)
    rise = float(st.grad(lambda q: snp.quantile(x, q))(0.3))
    assert rise == pytest.approx(9 * (np.sort(x)[3] - np.sort(x)[2]), rel=1e-4)


def test_no_numbers_and_weights_without_nan():
    holes = X.copy()
    holes[0, :4] = np.nan
    holes[1] = np.nan
    w = np.arange(30, dtype=np.float32).reshape(3, 10)
    settings = {"axis": 1, "method": "inverted_cdf"}
    out = snp.nanquantile(snp.array(holes), 0.4, weights=snp.array(w), **settings)
    assert bool(snp.isnan(out[1]))
    np.testing.assert_array_equal(
        out[2], np.quantile(X[2], 0.4, weights=w[2], **settings | {"axis": 0})
    )
    np.testing.assert_array_equal(
        out[0], np.quantile(X[0, 4:], 0.4, weights=w[0, 4:], method="inverted_cdf")
    )
    assert snp.median(snp.array([1, 2], snp.bfloat16)).dtype == snp.bfloat16


def test_messages():
    x = snp.array(X)
    cases = [
        (lambda: snp.quantile(x, 1.5), ValueError, "q must be between 0 and 1, got 1.5"),
        (lambda: snp.percentile(x, 101), ValueError, "percentile: q must be between 0 and 100"),
        (lambda: snp.quantile(x, [0.5]), TypeError, "Wrap it"),
        (lambda: snp.quantile(x, 0.5, method="best"), ValueError, "method must be one of inverted"),
        (lambda: snp.quantile(x, 0.5, weights=x), ValueError, "weights need method='inverted_cdf'"),
        (
            lambda: snp.quantile(x, 0.5, method="inverted_cdf", weights=x),
            ValueError,
            "weights must not be negative",
        ),
        (
            lambda: snp.quantile(snp.zeros(0), 0.5),
            ValueError,
            "a quantile of an empty array is undefined",
        ),
        (lambda: snp.median(x * 1j), TypeError, "median: complex numbers have no order"),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()


X_MEDIANS = np.array([[3.0, np.nan, 1.0, 7.0], [2.0, 2.0, 8.0, 5.0]], np.float32)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_are_numpys(name, axis, keepdims):
    want = getattr(np, name)(X_MEDIANS, axis, keepdims=keepdims)
    ours = getattr(snp, name)
    np.testing.assert_allclose(ours(snp.asarray(X_MEDIANS), axis, keepdims=keepdims), want)
    compiled = st.jit(lambda x: ours(x, axis, keepdims=keepdims))
    np.testing.assert_allclose(compiled(X_MEDIANS), want)


def test_a_line_without_numbers_has_no_median():
    missing = snp.full((2, 3), np.nan)
    assert np.isnan(np.asarray(snp.nanmedian(missing, 1))).all()
    with pytest.raises(ValueError, match=r"median.* empty"):
        snp.median(snp.ones((0,)))


def test_the_slope_goes_to_the_elements_in_the_middle():
    slope = st.grad(snp.median)(snp.asarray([4.0, 1.0, 3.0, 9.0]))
    np.testing.assert_array_equal(slope, [0.5, 0.0, 0.5, 0.0])
