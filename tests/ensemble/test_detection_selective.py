"""The area under the risk-coverage curve, by its definition, over all orders where scores tie."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import stretto as st
from stretto.ensemble import aurc, excess_aurc


def area(losses):
    """The mean over k of the mean loss of the first k."""
    return np.mean([np.mean(losses[:k]) for k in range(1, len(losses) + 1)])


RNG = np.random.default_rng(0)
SCORES, LOSSES = RNG.normal(size=(2, 40)), RNG.uniform(size=40)


def test_the_definition_eagerly_jitted_and_vmapped():
    with st.enable_x64():
        expected = [area(LOSSES[np.argsort(s)]) for s in SCORES]
        for run in (aurc, st.jit(aurc), st.vmap(aurc, (0, None))):
            np.testing.assert_allclose(run(SCORES, LOSSES), expected, rtol=1e-13)
        best = area(np.sort(LOSSES))
        np.testing.assert_allclose(excess_aurc(SCORES, LOSSES), np.array(expected) - best)
        np.testing.assert_allclose(excess_aurc(LOSSES, LOSSES), 0, atol=1e-15)


@given(some.lists(some.tuples(some.integers(0, 2), some.integers(0, 1)), min_size=5, max_size=5))
def test_equal_scores_count_as_in_every_order(examples):
    """The mean over all orders that the scores allow."""
    scores, losses = np.float64(examples).T
    allowed = [
        area(losses[list(order)])
        for order in itertools.permutations(range(5))
        if (np.diff(scores[list(order)]) >= 0).all()
    ]
    np.testing.assert_allclose(aurc(scores, losses), np.mean(allowed), rtol=1e-6, atol=1e-7)


def test_a_score_that_says_nothing_gives_the_mean_loss():
    np.testing.assert_allclose(aurc(np.zeros(40), LOSSES), LOSSES.mean(), rtol=1e-6)


def test_gradients_by_losses_are_the_weights():
    with st.enable_x64():
        slopes = st.grad(lambda losses: aurc(SCORES[0], losses))(st.numpy.asarray(LOSSES))
        weights = np.cumsum(1 / np.arange(40, 0, -1.0))[::-1] / 40
        np.testing.assert_allclose(np.asarray(slopes)[np.argsort(SCORES[0])], weights, rtol=1e-13)


def test_nan_and_misuse():
    scores = SCORES.copy()
    scores[1, 3] = np.nan
    assert np.isnan(np.asarray(aurc(scores, LOSSES))).tolist() == [False, True]
    with pytest.raises(ValueError, match=r"aurc: expected scores of shape .* \(2, 40\) and \(3,\)"):
        aurc(SCORES, LOSSES[:3])
    with pytest.raises(ValueError, match=r"excess_aurc: .* at least one example"):
        excess_aurc(np.zeros(0), np.zeros(0))
