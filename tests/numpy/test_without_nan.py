"""Reductions that pass over NaN: NumPy's values, masks, places, derivatives, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

INTS = np.array([[3, -1, 4, 1], [1, 5, -9, 2]], np.int32)
HOLES = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan], [4.0, 5.0, 0.5]], np.float32)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanmedian"]
)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_without_nan(agree, name, axis):
    agree(name, HOLES, axis=axis, dtype="float32", rtol=1e-5)
    agree(name, INTS, axis=axis)


@pytest.mark.filterwarnings("ignore")
def test_nan_quantile_and_places(agree):
    agree("nanquantile", HOLES, 0.25, axis=1, rtol=1e-5)
    agree("nanargmax", HOLES[[0, 2]], axis=1, dtype="int32")
    agree("nanargmin", HOLES[[0, 2]], axis=1, dtype="int32")
    assert snp.nanargmax(snp.array(HOLES), axis=1).tolist() == [2, -1, 1]


def test_derivatives_pass_over_nan():
    slope = st.grad(snp.nanmean)(snp.array([1.0, np.nan, 3.0]))
    np.testing.assert_allclose(slope, [0.5, 0, 0.5])
    slope = st.grad(snp.nanvar)(snp.array([1.0, np.nan, 3.0]))
    np.testing.assert_allclose(slope, [-1, 0, 1])
    slope = st.grad(lambda x: snp.quantile(x, 0.25))(snp.array([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(slope, [0.5, 0.5, 0])


@pytest.mark.parametrize(
    "name", ["sum", "prod", "mean", "var", "std", "max", "min", "median", "cumsum", "cumprod"]
)
def test_functions_without_nan_have_derivatives_without_it(name):
    f = lambda x: snp.sum(getattr(snp, f"nan{name}")(x) * 2)
    plain = lambda x: snp.sum(getattr(snp, name)(x) * 2)
    x = snp.array([1.0, np.nan, 2.5, 4.0])
    rest = st.grad(plain)(x[np.array([0, 2, 3])])
    if name.startswith("cum"):
        rest = st.grad(lambda x: plain(x) + 2 * getattr(snp, name)(x)[0])(x[np.array([0, 2, 3])])
    want = np.insert(np.asarray(rest), 1, 0)
    for g in (st.grad(f), st.jit(st.grad(f))):
        np.testing.assert_allclose(g(x), want, rtol=1e-6)


def test_nothing_but_nan():
    nothing = snp.array([np.nan, np.nan])
    assert float(snp.nansum(nothing)) == 0 and float(snp.nanprod(nothing)) == 1
    for f in (snp.nanmean, snp.nanvar, snp.nanstd, snp.nanmax, snp.nanmin):
        assert np.isnan(float(f(nothing)))
    np.testing.assert_array_equal(snp.nancumsum(nothing), [0, 0])
    np.testing.assert_array_equal(snp.nancumprod(nothing), [1, 1])


def test_infinities_are_numbers():
    x = snp.array([np.inf, np.nan, 1.0])
    assert float(snp.nansum(x)) == float(snp.nanmax(x)) == np.inf
    assert float(snp.nanmin(x)) == 1
    assert int(snp.nanargmax(x)) == 0 and int(snp.nanargmin(x)) == 2


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd"])
def test_masks(agree, name):
    mask = np.array([[True, True, False], [True, False, True], [False, True, True]])
    kept = HOLES[[0, 2]], mask[[0, 2]]
    agree(name, kept[0], axis=1, where=kept[1], rtol=1e-5)


@pytest.mark.parametrize("name", ["nancumsum", "nancumprod"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_running_sums_and_products(agree, name, axis):
    agree(name, HOLES, axis=axis, dtype="float32")
    agree(name, INTS, axis=axis, dtype="int32")


def test_initial_values_and_kept_axes():
    x = snp.array(HOLES)
    assert float(snp.nansum(x[0], initial=10.0)) == 14
    assert float(snp.nanmax(x[0], initial=10.0)) == 10
    assert snp.nanmean(x, axis=(0, 1), keepdims=True).shape == (1, 1)
    assert float(snp.nanvar(x[0], ddof=1)) == 2


def test_refusals():
    with pytest.raises(TypeError, match="nansum"):
        snp.nansum([1.0])
    with pytest.raises(NotImplementedError, match="arrays are immutable, so there is no out="):
        snp.nanmean(snp.ones(2), out=np.ones(()))
    with pytest.raises(ValueError, match="max"):
        snp.nanmax(snp.zeros((0,)))


@pytest.mark.parametrize(
    "name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nancumsum", "nancumprod"]
)
def test_refusals_name_the_function(name):
    function, x = getattr(snp, name), snp.asarray(np.array([[1, np.nan]], np.float32))
    for value in (x, x[:, :1]):  # with and without NaN
        with pytest.raises(ValueError, match=rf"^{name}: .*out of bounds"):
            function(value, axis=5)
        with pytest.raises(NotImplementedError, match=rf"^{name}"):
            function(value, out=x)
        if not name.startswith("nancum"):
            with pytest.raises(TypeError, match=rf"^{name}: where"):
                function(value, where=x)


X = np.array([[3.0, np.nan, -1.0], [np.nan, np.nan, 4.0]], np.float32)


@pytest.mark.parametrize("name", ["nanmax", "nanmin", "nanargmax", "nanargmin"])
@pytest.mark.parametrize("axis", [None, 1])
def test_nan_does_not_count(name, axis):
    want = getattr(np, name)(X, axis)
    ours = getattr(snp, name)
    np.testing.assert_array_equal(ours(snp.asarray(X), axis), want)
    np.testing.assert_array_equal(st.jit(lambda x: ours(x, axis))(X), want)


def test_nothing_but_nan_of_extrema_without_nan():
    missing = snp.asarray(X)[:, 1]
    for function in (snp.nanmax, st.jit(snp.nanmax), snp.nanmin, st.jit(snp.nanmin)):
        assert np.isnan(function(missing))
    for function in (snp.nanargmax, st.jit(snp.nanargmax)):
        assert function(missing) == -1


def test_an_initial_value_counts():
    assert snp.nanmax(snp.asarray(X), initial=9.0) == 9.0
    assert snp.nanmin(snp.asarray(X), where=X > 0, initial=9.0) == 3.0


def test_slopes_go_to_the_extremum():
    slope = st.grad(snp.nanmax)(snp.asarray(X))
    np.testing.assert_array_equal(slope, [[0, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("name", ["nanmax", "nanmin", "nanargmax", "nanargmin"])
def test_refusals_name_the_function_of_extrema_without_nan(name):
    function = getattr(snp, name)
    with pytest.raises(ValueError, match=rf"^{name}: .*out of bounds"):
        function(snp.asarray(X), axis=5)
    with pytest.raises(NotImplementedError, match=rf"^{name}"):
        function(snp.asarray(X), out=X)
    with pytest.raises(ValueError, match=rf"^{name}: {name} of an empty array"):
        function(snp.ones((0, 3)))
    assert function(snp.ones((0, 3)), axis=1).shape == (0,)


def test_a_mask_needs_an_initial_value():
    with pytest.raises(ValueError, match=r"^nanmax: where= may leave no element"):
        snp.nanmax(snp.asarray(X), where=X > 0)
