"""Uncertainties against their definitions in NumPy and SciPy, in float64."""

import itertools

import numpy as np
import pytest
from scipy import special, stats
from scipy.spatial import distance

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import uncertainty

MEMBERS, EXAMPLES, CLASSES = 4, 30, 5
RNG = np.random.default_rng(0)
LOGITS = (2 * RNG.normal(size=(MEMBERS, EXAMPLES, CLASSES))).astype(np.float32)
PROBS = special.softmax(LOGITS, axis=-1)


def entropy(p):
    return stats.entropy(p, axis=-1)


def votes(p):
    return p.argmax(-1)


def plain_disagreement(p):
    pairs = itertools.combinations(votes(p), 2)
    return np.mean([a != b for a, b in pairs], axis=0)


def plain_variation_ratio(p):
    modal = np.max([np.sum(votes(p) == c, axis=0) for c in range(CLASSES)], axis=0)
    return 1 - modal / len(p)


def plain_margin(p):
    ordered = np.sort(p.mean(0), axis=-1)
    return ordered[..., -1] - ordered[..., -2]


def pairwise(divergence):
    return lambda p: np.array([[divergence(a, b) for b in p] for a in p])


PAIRS = {
    "predictive_entropy": (uncertainty.predictive_entropy, lambda p: entropy(p.mean(0))),
    "expected_entropy": (uncertainty.expected_entropy, lambda p: entropy(p).mean(0)),
    "mutual_information": (
        uncertainty.mutual_information,
        lambda p: entropy(p.mean(0)) - entropy(p).mean(0),
    ),
    "confidence": (uncertainty.confidence, lambda p: p.mean(0).max(-1)),
    "margin": (uncertainty.margin, plain_margin),
    "variance": (uncertainty.variance, lambda p: p.var(0)),
    "pairwise_kl": (uncertainty.pairwise_kl, pairwise(lambda a, b: stats.entropy(a, b, axis=-1))),
    "pairwise_js": (
        uncertainty.pairwise_js,
        pairwise(lambda a, b: distance.jensenshannon(a, b, axis=-1) ** 2),
    ),
    "energy_score": (
        lambda p: uncertainty.energy_score(snp.log(p) + 2, temperature=1.5),
        lambda p: -1.5 * special.logsumexp((np.log(p) + 2) / 1.5, axis=-1),
    ),
    "variation_ratio": (uncertainty.variation_ratio, plain_variation_ratio),
    "disagreement": (uncertainty.disagreement, plain_disagreement),
}
SMOOTH = [name for name in PAIRS if name not in ("variation_ratio", "disagreement")]


@pytest.mark.parametrize("name", PAIRS)
def test_the_definition_eagerly_and_jitted(name):
    measure, plain = PAIRS[name]
    expected = plain(PROBS.astype(np.float64))
    # Differences of numbers of order 1 in float32.
    np.testing.assert_allclose(measure(PROBS), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(st.jit(measure)(PROBS), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PAIRS)
def test_vmapped_over_examples(name):
    measure, _ = PAIRS[name]
    where = -1 if name.startswith("pairwise") else 1 if name == "energy_score" else 0
    mapped = st.jit(st.vmap(measure, in_axes=1, out_axes=where))(PROBS)
    np.testing.assert_allclose(mapped, measure(PROBS), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_the_limits_of_differences(name):
    measure, _ = PAIRS[name]
    with st.enable_x64():
        p = snp.asarray(PROBS[:, :3].astype(np.float64))
        towards = p * np.random.default_rng(1).normal(size=p.shape)  # small where p is
        ct = snp.asarray(np.random.default_rng(2).normal(size=measure(p).shape))
        f = lambda p: snp.sum(measure(p) * ct)
        slope = snp.sum(st.jit(st.grad(f))(p) * towards)
        step = 1e-6
        expected = (f(p + step * towards) - f(p - step * towards)) / (2 * step)
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    "measure",
    [
        uncertainty.predictive_entropy,
        uncertainty.expected_entropy,
        uncertainty.mutual_information,
        uncertainty.pairwise_kl,
        uncertainty.pairwise_js,
    ],
)
def test_certainty_has_finite_values_and_derivatives(measure):
    probs = snp.asarray(np.eye(2, dtype=np.float32)[:, None])  # two sure members that disagree
    assert np.isfinite(np.asarray(measure(probs))).all()
    slope = st.grad(lambda p: measure(p).sum())(probs)
    assert np.isfinite(np.asarray(slope)).all()


def test_divergences_of_certainties():
    probs = np.eye(2, dtype=np.float32)
    np.testing.assert_allclose(uncertainty.mutual_information(probs), np.log(2), rtol=1e-6)
    np.testing.assert_allclose(uncertainty.pairwise_js(probs)[0, 1], np.log(2), rtol=1e-6)
    least = -np.log(np.finfo(np.float32).tiny)
    np.testing.assert_allclose(uncertainty.pairwise_kl(probs), [[0, least], [least, 0]], rtol=1e-6)


def test_equal_members_do_not_disagree():
    probs = np.repeat(PROBS[:1], 4, axis=0)
    for name in ("mutual_information", "pairwise_kl", "pairwise_js", "disagreement", "variance"):
        found = np.asarray(PAIRS[name][0](probs))
        assert (found >= 0).all(), name
        np.testing.assert_allclose(found, 0, atol=1e-6, err_msg=name)


def test_one_member():
    one = PROBS[:1]
    for name in ("mutual_information", "variance", "variation_ratio", "disagreement"):
        np.testing.assert_allclose(PAIRS[name][0](one), 0, atol=1e-6, err_msg=name)


def test_nan_stays_nan():
    probs = PROBS.copy()
    probs[0, 3] = np.nan
    for name in ("predictive_entropy", "expected_entropy", "mutual_information", "confidence"):
        missing = np.isnan(np.asarray(PAIRS[name][0](probs)))
        np.testing.assert_array_equal(missing, np.arange(EXAMPLES) == 3, err_msg=name)


@pytest.mark.parametrize("name", ["mutual_information", "pairwise_js", "pairwise_kl"])
def test_derivatives_mapped_twice_and_in_a_loop(name):
    f = lambda p: snp.sum(PAIRS[name][0](p))
    with st.enable_x64():
        p = snp.asarray(PROBS[:, :3].astype(np.float64))
        each = st.jit(st.vmap(st.grad(f), in_axes=1, out_axes=1))(p)
        np.testing.assert_allclose(each, st.grad(f)(p), rtol=1e-9, atol=1e-12)
        sweep = lambda c, one: (c + f(one), st.grad(f)(one))
        total, looped = st.jit(lambda p: st.lax.scan(sweep, 0.0, snp.moveaxis(p, 1, 0)))(p)
        np.testing.assert_allclose(total, f(p), rtol=1e-9)
        np.testing.assert_allclose(snp.moveaxis(looped, 0, 1), each, rtol=1e-9, atol=1e-12)
        towards = p * np.random.default_rng(1).normal(size=p.shape)
        slope = lambda p: snp.sum(st.grad(f)(p) * towards)
        second = snp.sum(st.jit(st.grad(slope))(p) * towards)
        step = 1e-5
        expected = (slope(p + step * towards) - slope(p - step * towards)) / (2 * step)
        np.testing.assert_allclose(second, expected, rtol=1e-5)


def test_total_variance_is_that_of_the_mixture():
    means, variances = np.float32([[0, 1], [2, 5]]), np.float32([[1, 0.5], [3, 0]])
    parts = st.jit(uncertainty.total_variance)(means, variances)
    # E[y²] − E[y]² of the mixture.
    second = (variances + means**2).mean(0)
    np.testing.assert_allclose(parts.total, second - means.mean(0) ** 2, rtol=1e-6)
    np.testing.assert_allclose(parts.mean, [1, 3])
    np.testing.assert_allclose(parts.aleatoric, [2, 0.25])
    np.testing.assert_allclose(parts.epistemic, [1, 4])


def test_misuse():
    with pytest.raises(ValueError, match="mutual_information: expected probs of shape"):
        uncertainty.mutual_information(np.ones(3, np.float32))
    with pytest.raises(ValueError, match="margin: expected at least 2 classes"):
        uncertainty.margin(np.ones((3, 1), np.float32))
    with pytest.raises(ValueError, match=r"variances of the shape of means, \(2,\); got \(3,\)"):
        uncertainty.total_variance(np.ones(2, np.float32), np.ones(3, np.float32))
    with pytest.raises(ValueError, match=r"must not be negative, got -1.0; if a head"):
        uncertainty.total_variance(np.ones(2, np.float32), np.float32([1, -1]))
    with pytest.raises(ValueError, match=r"energy_score: expected logits of shape"):
        uncertainty.energy_score(1.0)


@pytest.mark.parametrize("combine", [st.ensemble.mean, st.ensemble.median, st.ensemble.maximum,
                                     st.ensemble.geometric_mean,
                                     st.ensemble.product_of_experts])  # fmt: skip
def test_what_is_averaged_already_is_refused(combine):
    average = combine(PROBS)
    for measure in (uncertainty.confidence, uncertainty.margin, uncertainty.mutual_information,
                    uncertainty.predictive_entropy, uncertainty.pairwise_kl):  # fmt: skip
        with pytest.raises(ValueError, match=r"combined of the members' already.*probs\.max\(-1\)"):
            measure(average)
    one = PROBS[:, 0]  # an example of members, of the same rank
    assert uncertainty.confidence(one).shape == ()
    groups = st.ensemble.mean(np.stack([PROBS, PROBS]))  # which leaves the members
    np.testing.assert_allclose(uncertainty.confidence(groups), uncertainty.confidence(PROBS))
