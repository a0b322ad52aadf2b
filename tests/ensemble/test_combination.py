"""Combinations against their definitions in NumPy and SciPy, in float64."""

import numpy as np
import pytest
from scipy import special, stats

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import combination

MEMBERS, EXAMPLES, CLASSES = 5, 40, 4
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(MEMBERS, EXAMPLES, CLASSES)).astype(np.float32) * 2
PROBS = special.softmax(LOGITS, axis=-1)
WEIGHTS = np.float32([1, 0, 2, 0.5, 3])
SHARES = WEIGHTS.astype(np.float64) / WEIGHTS.sum()
OWN = RNG.uniform(0.1, 1, (MEMBERS, CLASSES)).astype(np.float32)


def normalized(x):
    return x / x.sum(-1, keepdims=True)


def plain_votes(p, weights):
    shares = np.zeros(p.shape[1:])
    for member, weight in zip(p, weights):
        for i, row in enumerate(member):
            shares[i, row.argmax()] += weight
    return shares / np.sum(weights)


PAIRS = {
    "mean": (combination.mean, lambda p: p.mean(0)),
    "weighted_mean": (
        lambda p: combination.weighted_mean(p, WEIGHTS),
        lambda p: np.average(p, axis=0, weights=WEIGHTS),
    ),
    "own_weights": (
        lambda p: combination.weighted_mean(p, OWN),
        lambda p: (p * OWN[:, None]).sum(0) / OWN.sum(0),
    ),
    "own_weights_normalized": (
        lambda p: combination.weighted_mean(p, OWN, normalize=True),
        lambda p: normalized((p * OWN[:, None]).sum(0) / OWN.sum(0)),
    ),
    "median": (combination.median, lambda p: np.median(p, axis=0)),
    "median_normalized": (
        lambda p: combination.median(p, normalize=True),
        lambda p: normalized(np.median(p, axis=0)),
    ),
    "trimmed_mean": (
        lambda p: combination.trimmed_mean(p, 0.25),
        lambda p: stats.trim_mean(p, 0.25, axis=0),
    ),
    "maximum": (combination.maximum, lambda p: p.max(0)),
    "geometric_mean": (combination.geometric_mean, lambda p: normalized(stats.gmean(p, axis=0))),
    "weighted_geometric_mean": (
        lambda p: combination.geometric_mean(p, WEIGHTS),
        lambda p: normalized(stats.gmean(p, axis=0, weights=WEIGHTS[:, None, None])),
    ),
    "product_of_experts": (combination.product_of_experts, lambda p: normalized(p.prod(0))),
    "logit_mean": (
        lambda p: combination.logit_mean(snp.log(p) + 3, WEIGHTS),
        lambda p: normalized(stats.gmean(p, axis=0, weights=WEIGHTS[:, None, None])),
    ),
    "log_mean": (
        lambda p: combination.log_mean(snp.log(p) - 3, WEIGHTS),
        lambda p: np.log(np.tensordot(SHARES, p, 1)),
    ),
    "vote_shares": (combination.vote_shares, lambda p: plain_votes(p, np.ones(MEMBERS))),
    "weighted_votes": (
        lambda p: combination.vote_shares(p, WEIGHTS),
        lambda p: plain_votes(p, WEIGHTS),
    ),
    "majority_vote": (
        combination.majority_vote,
        lambda p: plain_votes(p, np.ones(MEMBERS)).argmax(-1),
    ),
}
SMOOTH = [name for name in PAIRS if "vote" not in name]


@pytest.mark.parametrize("name", PAIRS)
def test_the_definition_eagerly_and_jitted(name):
    combine, plain = PAIRS[name]
    expected = plain(PROBS.astype(np.float64))
    np.testing.assert_allclose(combine(PROBS), expected, rtol=2e-5)
    np.testing.assert_allclose(st.jit(combine)(PROBS), expected, rtol=2e-5)


@pytest.mark.parametrize("name", PAIRS)
def test_vmapped_over_examples(name):
    combine, plain = PAIRS[name]
    if name.startswith("own"):
        combine = lambda p: PAIRS[name][0](p[:, None])[0]
    mapped = st.jit(st.vmap(combine, in_axes=1))(PROBS)
    np.testing.assert_allclose(mapped, plain(PROBS.astype(np.float64)), rtol=2e-5)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_the_limits_of_differences(name):
    combine, _ = PAIRS[name]
    with st.enable_x64():
        p = snp.asarray(PROBS[:, :3].astype(np.float64))
        towards = p * np.random.default_rng(1).normal(size=p.shape)  # small where p is
        out = combine(p)
        ct = snp.asarray(np.random.default_rng(2).normal(size=out.shape))
        f = lambda p: snp.sum(combine(p) * ct)
        slope = snp.sum(st.jit(st.grad(f))(p) * towards)
        step = 1e-5
        expected = (f(p + step * towards) - f(p - step * towards)) / (2 * step)
        np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-9)


def test_gradients_by_the_weights():
    f = lambda w: combination.weighted_mean(PROBS, w)[0, 0]
    slope = st.jit(st.grad(f))(snp.asarray(WEIGHTS))
    # d (Σ w p / Σ w) / dw_m = (p_m − mean) / Σ w
    expected = (PROBS[:, 0, 0] - SHARES @ PROBS[:, 0, 0]) / WEIGHTS.sum()
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-7)


def test_gradients_by_a_weight_of_zero():
    z = np.float32([[0, -300], [0, 0]])
    f = lambda w: combination.log_mean(z, w)
    p = special.softmax(z.astype(np.float64), axis=-1)
    slope = np.asarray(st.jit(st.jacrev(f))(snp.array([1.0, 0.0])))
    # d log Σ w p / Σ w = p_m / Σ w p − 1
    np.testing.assert_allclose(slope[0], p[:, 0] / p[0, 0] - 1, atol=1e-6)
    assert np.isfinite(slope).all()
    assert slope[1, 1] > 1e30


def test_one_member_is_itself():
    one = PROBS[:1]
    for name in SMOOTH:
        if "weight" in name or name.startswith("log"):
            continue
        np.testing.assert_allclose(PAIRS[name][0](one), one[0], rtol=1e-5, err_msg=name)
    np.testing.assert_array_equal(combination.majority_vote(one), one[0].argmax(-1))


def test_ties_go_to_the_first_class():
    predictions = np.float32([[0.1, 0.2, 0.7], [0.1, 0.7, 0.2], [0.4, 0.4, 0.2]])
    assert int(combination.majority_vote(predictions)) == 0
    assert int(combination.majority_vote(predictions[:2])) == 1
    assert int(combination.majority_vote(predictions[:2], [1, 2])) == 1
    assert int(combination.majority_vote(predictions[:2], [2, 1])) == 2


def test_a_member_with_nan_does_not_vote():
    predictions = np.float32([[np.nan, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]])
    np.testing.assert_allclose(combination.vote_shares(predictions), [0, 1 / 3, 2 / 3], rtol=1e-6)
    np.testing.assert_array_equal(combination.vote_shares(predictions[:1]), np.zeros(3))


def test_nan_is_not_trimmed_away():
    predictions = np.float32([[0, np.nan], [1, 1], [2, 2], [3, 3]])
    for combine in (combination.median, lambda p: combination.trimmed_mean(p, 0.25)):
        np.testing.assert_array_equal(combine(predictions), [1.5, np.nan])


def test_zeros_are_vetoes_of_finite_strength():
    certain = np.float32([[1, 0], [0, 1], [0, 1]])
    for combine in (combination.geometric_mean, combination.product_of_experts):
        np.testing.assert_allclose(combine(certain), [0, 1], atol=1e-12)
        slope = np.asarray(st.grad(lambda p, c=combine: c(p)[1])(snp.asarray(certain)))
        assert np.isfinite(slope).all()
    disjoint = np.float32([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(combination.median(disjoint, normalize=True), [1 / 3] * 3)


def test_log_mean_of_what_underflows():
    logits = np.float32([[0, -300], [0, -np.inf]])
    np.testing.assert_allclose(combination.log_mean(logits), [0, -300 - np.log(2)], rtol=1e-6)
    only = combination.log_mean(np.float32([[0, -300], [0, 0]]), [1, 0])
    np.testing.assert_allclose(only, [0, -300], rtol=1e-6)
    ruled_out = snp.array([[0.0, -np.inf], [0.0, -np.inf]])
    np.testing.assert_array_equal(combination.log_mean(ruled_out), [0, -np.inf])
    slope = st.grad(lambda z: combination.log_mean(z)[0])(ruled_out)
    np.testing.assert_array_equal(slope, np.zeros((2, 2)))


def test_numbers_are_combined_too():
    np.testing.assert_allclose(combination.mean(np.float32([1, 3])), 2)
    np.testing.assert_allclose(combination.weighted_mean(np.float32([1, 3]), [1, 3]), 2.5)


def test_low_precision_is_raised():
    half = snp.asarray(PROBS).astype(snp.bfloat16)
    assert combination.mean(half).dtype == np.float32
    assert combination.weighted_mean(half, WEIGHTS).dtype == np.float32


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"expected 5 weights, one a member.*got shape \(2,\)"),
        (1.0, r"expected 5 weights.*got shape \(\)"),
        (np.ones((MEMBERS, 3), np.float32), r"got shape \(5, 3\) for predictions of shape"),
        ([1, 1, -1, 1, 1], r"not negative; got -1.0 for member 2"),
        ([1, 1, 1, np.nan, 1], r"finite and not negative; got nan for member 3"),
        ([1, np.inf, 1, 1, 1], r"got inf for member 1"),
        ([0, 0, 0, 0, 0], "add up to 0"),
    ],
    ids=["few", "number", "outputs", "negative", "nan", "inf", "zero"],
)
def test_weights_that_do_not_fit(weights, message):
    with pytest.raises(ValueError, match="weighted_mean: .*" + message):
        combination.weighted_mean(PROBS, weights)
    if np.ndim(weights) == 1:
        with pytest.raises(ValueError, match="majority_vote: .*" + message):
            combination.majority_vote(PROBS, weights)


def test_other_misuse():
    with pytest.raises(ValueError, match=r"cut must be in \[0, 0.5\)"):
        combination.trimmed_mean(PROBS, 0.5)
    with pytest.raises(ValueError, match=r"mean: expected predictions of shape \(members, ...\)"):
        combination.mean(np.float32(1))
    with pytest.raises(ValueError, match="at least one member"):
        combination.mean(np.zeros((0, 3), np.float32))
    with pytest.raises(ValueError, match=r"logits of shape \(members, ..., classes\)"):
        combination.log_mean(np.zeros(3, np.float32))
    with pytest.raises(TypeError, match=r"predictions must be an array.*got a list"):
        combination.mean([[0.5, 0.5]])
