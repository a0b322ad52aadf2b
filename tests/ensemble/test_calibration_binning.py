"""Isotonic regression against scikit-learn's, histogram binning against a loop."""

import numpy as np
import pytest
from scipy import special
from sklearn.isotonic import IsotonicRegression

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import TracedValueError
from stretto.ensemble import calibration

EXAMPLES, CLASSES = 200, 3
RNG = np.random.default_rng(0)
ONE = RNG.uniform(size=EXAMPLES).astype(np.float32).round(2)  # with ties
HAPPENED = (RNG.uniform(size=EXAMPLES) < ONE**2).astype(np.int32)
PROBS = special.softmax(2 * RNG.normal(size=(EXAMPLES, CLASSES)), axis=-1).astype(np.float32)
LABELS = np.int32([RNG.choice(CLASSES, p=p**2 / (p**2).sum()) for p in PROBS.astype(np.float64)])
NEW = np.float32([0, 0.004, 0.123, 0.5, 0.777, 0.995, 1])


def theirs(p, happened):
    return IsotonicRegression(out_of_bounds="clip").fit(p, happened)


def test_isotonic_regression_is_scikit_learn_s():
    found = calibration.fit_isotonic(ONE, HAPPENED)
    expected = theirs(ONE, HAPPENED)
    np.testing.assert_allclose(found(ONE), expected.predict(ONE), atol=1e-6)
    np.testing.assert_allclose(found(NEW), expected.predict(NEW), atol=1e-5)
    np.testing.assert_allclose(st.jit(lambda c, p: c(p))(found, NEW), found(NEW), atol=1e-6)
    np.testing.assert_allclose(st.vmap(found)(NEW), found(NEW), atol=1e-6)


def test_isotonic_regression_of_classes():
    found = calibration.fit_isotonic(PROBS, LABELS)
    each = [theirs(PROBS[:, c], c == LABELS).predict(PROBS[:, c]) for c in range(CLASSES)]
    expected = np.stack(each, -1) / np.sum(each, 0)[:, None]
    np.testing.assert_allclose(found(PROBS), expected, atol=1e-5)
    np.testing.assert_allclose(st.jit(found)(PROBS), expected, atol=1e-5)
    np.testing.assert_allclose(found(PROBS[0]), expected[0], atol=1e-5)
    members = np.stack([PROBS, PROBS[::-1]])
    np.testing.assert_allclose(found(members)[1], expected[::-1], atol=1e-5)


def test_isotonic_regression_with_a_class_of_no_examples():
    labels = np.where(LABELS == 2, 0, LABELS)
    calibrated = np.asarray(calibration.fit_isotonic(PROBS, labels)(PROBS))
    np.testing.assert_allclose(calibrated[:, 2], 0)
    np.testing.assert_allclose(calibrated.sum(-1), 1, rtol=1e-6)


def test_what_no_class_wants_is_shared():
    found = calibration.fit_isotonic(np.float32([[0, 1], [1, 0]]), np.array([1, 0]))
    np.testing.assert_allclose(found(np.float32([0, 0])), [0.5, 0.5])


def test_isotonic_regression_has_a_slope():
    found = calibration.fit_isotonic(np.float32([0, 1]), np.array([0, 1]))
    np.testing.assert_allclose(st.grad(found)(snp.float32(0.3)), 1)


def test_isotonic_regression_is_not_fitted_while_traced():
    with pytest.raises(TracedValueError, match="Fit outside jit, grad and vmap"):
        st.jit(calibration.fit_isotonic)(ONE, HAPPENED)


def plain_histogram(p, happened, bins, how):
    edges = np.quantile(p, np.arange(1, bins) / bins) if how == "mass" else (
        np.arange(1, bins) / bins
    )  # fmt: skip
    place = np.searchsorted(edges, p, side="left")
    ends = np.concatenate([[0], edges, [1]])
    values = [
        happened[place == b].mean() if (place == b).any() else (ends[b] + ends[b + 1]) / 2
        for b in range(bins)
    ]
    return np.array(values), place


@pytest.mark.parametrize("how", ["width", "mass"])
@pytest.mark.parametrize("bins", [1, 4, 15])
def test_histogram_binning_is_the_loop(how, bins):
    p = RNG.uniform(size=EXAMPLES).astype(np.float32)
    values, place = plain_histogram(p, HAPPENED, bins, how)
    fit = lambda p, y: calibration.fit_histogram_binning(p, y, bins, how)
    for found in (fit(p, HAPPENED), st.jit(fit)(p, HAPPENED)):
        np.testing.assert_allclose(found.values, values, rtol=1e-5)
        np.testing.assert_allclose(found(p), values[place], rtol=1e-5)


@pytest.mark.parametrize("how", ["width", "mass"])
def test_histogram_binning_of_classes_jitted_and_vmapped(how):
    fit = lambda p, y: calibration.fit_histogram_binning(p, y, 5, how)
    each = [plain_histogram(PROBS[:, c], c == LABELS, 5, how) for c in range(CLASSES)]
    expected = np.stack([values[place] for values, place in each], -1)
    expected = expected / expected.sum(-1, keepdims=True)
    found = st.jit(fit)(PROBS, LABELS)
    np.testing.assert_allclose(found(PROBS), expected, rtol=1e-5)
    members = np.stack([PROBS, PROBS[::-1]])
    labels = np.stack([LABELS, LABELS[::-1]])
    each = st.jit(st.vmap(fit))(members, labels)
    np.testing.assert_allclose(st.vmap(lambda c, p: c(p))(each, members)[0], expected, rtol=1e-5)


def test_a_bin_without_examples_has_its_middle():
    found = calibration.fit_histogram_binning(np.float32([0.1]), np.array([1]), 2, "width")
    np.testing.assert_allclose(found.values, [1, 0.75])


def test_nan():
    with pytest.raises(ValueError, match="probs hold a NaN"):
        calibration.fit_isotonic(np.float32([0.5, np.nan]), np.array([0, 1]))
    found = calibration.fit_histogram_binning(ONE, HAPPENED)
    assert np.isnan(np.asarray(found(np.float32([0.5, np.nan])))).tolist() == [False, True]
    found = calibration.fit_isotonic(ONE, HAPPENED)
    assert np.isnan(np.asarray(found(np.float32([0.5, np.nan])))).tolist() == [False, True]


@pytest.mark.parametrize("fit", [calibration.fit_isotonic, calibration.fit_histogram_binning])
def test_misuse(fit):
    with pytest.raises(ValueError, match=r"of shape \(examples,\) or \(examples, classes\)"):
        fit(np.stack([PROBS, PROBS]), LABELS)
    with pytest.raises(ValueError, match="of at least one example"):
        fit(np.zeros(0, np.float32), np.zeros(0, np.int32))
    with pytest.raises(ValueError, match="expected labels from 0 to 1"):
        fit(ONE, HAPPENED + 1)
