"""Arguments that scores share: clamping, right predictions, normalizing.

What every score says of arguments that do not fit.
"""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import ensemble
from stretto.ensemble import score_arguments


def test_clamped_keeps_all_but_what_underflowed():
    p = np.float32([0, 1e-30, 0.5])
    tiny = np.finfo(np.float32).tiny
    np.testing.assert_array_equal(score_arguments.clamped(snp.asarray(p)), [tiny, *p[1:]])
    with st.enable_x64():
        assert float(score_arguments.clamped(snp.zeros(1, np.float64))[0]) == np.finfo(float).tiny


def test_a_prediction_with_nan_is_neither_right_nor_wrong():
    p = snp.array([[0.9, 0.1], [0.9, 0.1], [np.nan, 0.1]])
    found = st.jit(score_arguments.correct)(p, snp.array([0, 1, 0]))
    np.testing.assert_array_equal(found, [1, 0, np.nan])


def test_zeros_are_shared_equally():
    values = snp.array([[1.0, 3.0], [0.0, 0.0]])
    np.testing.assert_array_equal(score_arguments.to_sum_one(values), [[0.25, 0.75], [0.5, 0.5]])
    slope = st.jit(st.grad(lambda v: score_arguments.to_sum_one(v)[1, 0]))(values)
    assert np.isfinite(np.asarray(slope)).all()


PROBS = np.full((4, 2), 0.5, np.float32)
LABELS = np.array([0, 1, 0, 1], np.int32)
SCORES = [
    ensemble.accuracy,
    ensemble.balanced_accuracy,
    ensemble.brier,
    ensemble.brier_decomposition,
    ensemble.classwise_ece,
    ensemble.confusion_matrix,
    ensemble.ece,
    ensemble.f1,
    ensemble.mce,
    ensemble.nll,
    ensemble.reliability,
    lambda p, y: ensemble.top_k_accuracy(p, y, k=1),
]
FITS = [ensemble.fit_conformal, ensemble.fit_histogram_binning, ensemble.fit_isotonic]
FROM_LOGITS = [ensemble.nll_from_logits, ensemble.fit_temperature, ensemble.fit_vector_scaling]
ids = lambda f: f.__name__.strip("<>")


@pytest.mark.parametrize("score", SCORES + FITS + FROM_LOGITS, ids=ids)
def test_shapes_and_types_that_do_not_fit(score):
    with pytest.raises(ValueError, match=r"labels of shape \(examples,\), got \(4, 2\) and \(3,\)"):
        score(PROBS, LABELS[:3])
    with pytest.raises(TypeError, match="expected labels of an integer dtype, got float32"):
        score(PROBS, LABELS.astype(np.float32))
    with pytest.raises(TypeError, match="labels must be an array or a number; got a list"):
        score(PROBS, [0, 1, 0, 1])


@pytest.mark.parametrize("score", SCORES + FROM_LOGITS, ids=ids)
def test_no_axis_of_examples(score):
    with pytest.raises(ValueError, match=r"expected (probs|logits) of shape \(..., examples, cl"):
        score(PROBS[0], np.int32(0))


@pytest.mark.parametrize("score", SCORES + FITS + FROM_LOGITS, ids=ids)
@pytest.mark.parametrize("wrong", [-1, 2])
def test_labels_out_of_range(score, wrong):
    labels = LABELS.copy()
    labels[2] = wrong
    with pytest.raises(ValueError, match=rf"expected labels from 0 to 1, .*got {wrong} at 2"):
        score(PROBS, labels)


def test_the_place_of_a_member_s_label():
    with pytest.raises(ValueError, match=r"got 5 at \(1, 3\)"):
        ensemble.nll(np.stack([PROBS] * 2), np.array([[0, 1, 0, 1], [0, 1, 0, 5]]))


def test_labels_of_two_classes():
    with pytest.raises(ValueError, match="expected labels from 0 to 1, as logits of shape"):
        ensemble.fit_platt(np.zeros(4, np.float32), np.array([0, 1, 2, 0]))
    with pytest.raises(ValueError, match=r"expected logits of shape \(..., examples\) and"):
        ensemble.fit_platt(np.zeros(4, np.float32), np.array([0, 1]))


def test_a_traced_label_out_of_range_is_of_no_class():
    probs = np.float32([[1, 0], [0, 1]])
    labels = snp.array([0, 7])
    assert float(st.jit(ensemble.accuracy)(probs, labels)) == 0.5
    np.testing.assert_array_equal(
        st.jit(ensemble.confusion_matrix)(probs, snp.array([0, -1])), [[1, 0], [0, 0]]
    )


@pytest.mark.parametrize(
    "score",
    [ensemble.reliability, ensemble.ece, ensemble.mce, ensemble.classwise_ece,
     ensemble.brier_decomposition, ensemble.fit_histogram_binning],
    ids=ids,
)  # fmt: skip
def test_bins(score):
    with pytest.raises(ValueError, match="at least 1 bin, got 0"):
        score(PROBS, LABELS, bins=0)
    with pytest.raises(ValueError, match="binning must be 'width' or 'mass', got 'equal'"):
        score(PROBS, LABELS, binning="equal")
