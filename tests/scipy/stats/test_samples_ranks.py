"""Ranks, modes and standard errors: ties, NaN, axes, empty arrays, refusals."""

import numpy as np
import pytest
from scipy import stats

import stretto.numpy as snp
from stretto.scipy import stats as ours

X = np.array([[3.0, 1, 3, 2], [0, 0, 0, -1], [5, 6, 7, 8]], np.float32)


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_ranks(method, axis):
    got = ours.rankdata(X, method, axis=axis)
    np.testing.assert_array_equal(got, stats.rankdata(X, method, axis=axis))


def test_ranks_beside_nan_are_unknown():
    x = np.array([[2.0, np.nan, 1], [3, 1, 2]], np.float32)
    np.testing.assert_array_equal(ours.rankdata(x, axis=1), [[np.nan] * 3, [3, 1, 2]])
    assert np.isnan(np.asarray(ours.rankdata(x))).all()


def test_ranks_of_nothing_and_of_whole_numbers():
    assert ours.rankdata(snp.zeros(0)).shape == (0,)
    np.testing.assert_array_equal(ours.rankdata(np.array([2, 2, -1]), "min"), [2, 2, 1])


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_modes(axis, keepdims):
    x = np.array([[3, 1, 3, 1], [2, 2, 0, 1]])
    got, want = (f.mode(x, axis=axis, keepdims=keepdims) for f in (ours, stats))
    np.testing.assert_array_equal(got.mode, want.mode)
    np.testing.assert_array_equal(got.count, want.count)
    assert got.mode.shape == np.shape(want.mode)


def test_the_mode_of_nan_and_of_nothing():
    result = ours.mode(np.array([np.nan, 1.0, np.nan], np.float32))
    assert np.isnan(float(result.mode)) and int(result.count) == 2
    with pytest.raises(ValueError, match=r"mode: float32\[0\] has no elements"):
        ours.mode(snp.zeros(0))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_standard_errors(axis):
    for ddof in (0, 1):
        got = ours.sem(X, axis=axis, ddof=ddof)
        np.testing.assert_allclose(got, stats.sem(X, axis=axis, ddof=ddof), rtol=1e-6)
    holes = np.where(X == 3, np.nan, X)
    got = ours.sem(holes, axis=axis, nan_policy="omit")
    np.testing.assert_allclose(got, stats.sem(holes, axis=axis, nan_policy="omit"), rtol=1e-6)
    assert ours.sem(X, axis=axis, keepdims=True).ndim == 2
    assert np.isnan(np.asarray(ours.sem(holes, axis=None)))


def test_refusals():
    with pytest.raises(ValueError, match=r"rankdata: method must be 'average', .* got 'mean'"):
        ours.rankdata(X, "mean")
    with pytest.raises(
        NotImplementedError, match="mode: nan_policy must be 'propagate', got 'omit'"
    ):
        ours.mode(X, nan_policy="omit")
    with pytest.raises(NotImplementedError, match="sem: nan_policy must be 'propagate' or 'omit'"):
        ours.sem(X, nan_policy="raise")
    with pytest.raises(ValueError, match="rankdata: axis"):
        ours.rankdata(X, axis=2)
