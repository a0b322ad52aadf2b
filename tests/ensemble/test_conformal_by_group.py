"""Mondrian conformal sets and intervals: each group's is the fit to its examples alone."""

import contextlib
import itertools
import math

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import fit_conformal, fit_conformal_intervals

RNG = np.random.default_rng(0)
EXAMPLES, CLASSES = 90, 4
PROBS = RNG.dirichlet(np.ones(CLASSES), (2, EXAMPLES)).astype(np.float32)
LABELS = RNG.integers(0, CLASSES, EXAMPLES).astype(np.int32)
GROUPS = np.int32(RNG.permutation(np.repeat([0, 1, 2], [50, 30, 10])))
MEANS = RNG.normal(size=(EXAMPLES, 2)).astype(np.float32)
DEVIATIONS = RNG.uniform(0.5, 2, (EXAMPLES, 2)).astype(np.float32)
TARGETS = RNG.normal(size=(EXAMPLES, 2)).astype(np.float32)


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_sets_are_those_of_each_group_alone(method):
    fit = lambda p, g: fit_conformal(p, LABELS, 0.8, method, groups=g, num_groups=3)
    for found in (fit(PROBS, GROUPS), st.jit(fit)(PROBS, GROUPS)):
        sets = np.asarray(found(PROBS, GROUPS))
        assert found.threshold.shape == (2, 3)
        for g in range(3):
            own = fit_conformal(PROBS[:, g == GROUPS], LABELS[g == GROUPS], 0.8, method)
            np.testing.assert_array_equal(found.threshold[:, g], own.threshold)
            np.testing.assert_array_equal(sets[:, g == GROUPS], own(PROBS[:, g == GROUPS]))
    one = fit_conformal(PROBS[1], LABELS, 0.8, method, groups=GROUPS)
    by_one = st.vmap(lambda p: fit(p, GROUPS))(PROBS)
    np.testing.assert_array_equal(by_one.threshold[1], one.threshold)


@pytest.mark.parametrize("shape", [(EXAMPLES,), (EXAMPLES, 2)])
def test_intervals_are_those_of_each_group_alone(shape):
    m, d, t = (
        x[:, : shape[-1]].reshape(shape) if len(shape) > 1 else x[:, 0]
        for x in (MEANS, DEVIATIONS, TARGETS)
    )
    fit = lambda m, d, t, g: fit_conformal_intervals(m, d, t, groups=g, num_groups=3)
    for found in (fit(m, d, t, GROUPS), st.jit(fit)(m, d, t, GROUPS)):
        ends = st.jit(lambda f: f(m, d, 0.8, GROUPS))(found)
        for g in range(3):
            in_it = g == GROUPS
            own = fit_conformal_intervals(m[in_it], d[in_it], t[in_it])(m[in_it], d[in_it], 0.8)
            for end, expected in zip(ends, own, strict=True):
                np.testing.assert_allclose(end[in_it], expected, rtol=1e-6)


@pytest.mark.parametrize("coverage", [0.5, 0.7, 0.8])
def test_coverage_within_a_group_is_exact_over_all_orders(coverage):
    """Of n + 1 examples of a group in every order the last is covered in ⌈(n + 1) c⌉ / (n + 1).

    The other group, of another distribution, plays no part.
    """
    values = np.float32([0.3, 1.1, 2.0, 0.7, 5.0])
    other = np.float32([100, 200, 300])
    groups = np.repeat([0, 1], [4, 3])

    def held(order):
        targets = snp.concatenate([order[:4], snp.asarray(other)])
        ones, zeros = snp.ones(7), snp.zeros(7)
        found = fit_conformal_intervals(zeros, ones, targets, groups=groups)
        return order[4] <= found(zeros[:1], ones[:1], coverage, np.array([0]))[1][0]

    orders = np.array(list(itertools.permutations(values)))
    with pytest.warns(UserWarning, match="takes") if coverage > 0.75 else contextlib.nullcontext():
        share = np.asarray(st.vmap(held)(orders)).mean()
    assert math.isclose(share, math.ceil(5 * coverage - 1e-9) / 5)
    assert share >= coverage


def test_coverage_within_each_group_where_one_threshold_for_all_fails():
    """Simulated: the noise of group 1 is 5 times that of group 0, unknown to the predictions."""
    rng = np.random.default_rng(1)
    runs, n = 300, 100
    groups = np.arange(2 * n) % 2
    targets = rng.normal(size=(runs, 2 * n)) * np.where(groups, 5, 1)
    new = rng.normal(size=(runs, 2)) * np.array([1, 5])
    zeros, ones = np.zeros(2 * n, np.float32), np.ones(2 * n, np.float32)

    def held(t, new):
        by_group = fit_conformal_intervals(zeros, ones, t, groups=groups)
        alike = fit_conformal_intervals(zeros, ones, t)
        ends = by_group(zeros[:2], ones[:2], 0.8, np.array([0, 1]))[1]
        return snp.abs(new) <= ends, snp.abs(new) <= alike(zeros[:2], ones[:2], 0.8)[1]

    own, alike = (np.asarray(x).mean(0) for x in st.jit(st.vmap(held))(targets, new))
    # ⌈101 × 0.8⌉ / 101 = 0.802, and a share of 300 has a deviation of 0.023.
    assert (abs(own - 0.802) < 0.08).all()
    assert alike[0] > 0.95 and alike[1] < 0.7


def test_too_few_examples_are_said():
    with pytest.warns(UserWarning, match=r"takes 19 held-out examples of a group; 2 has 10: there"):
        found = fit_conformal(PROBS[0], LABELS, 0.95, groups=GROUPS)
    sets = np.asarray(found(PROBS[0], GROUPS))
    assert sets[GROUPS == 2].all() and not sets[GROUPS == 0].all()
    found = fit_conformal_intervals(MEANS, DEVIATIONS, TARGETS, groups=GROUPS, num_groups=4)
    with pytest.warns(UserWarning, match=r"2 has 10, 3 has 0: there intervals are infinite"):
        lower, upper = found(MEANS, DEVIATIONS, 0.95, GROUPS)
    assert np.isinf(np.asarray(upper - lower)[GROUPS == 2]).all()
    assert np.isfinite(np.asarray(upper - lower)[GROUPS < 2]).all()


def test_names_and_groups_that_are_none():
    names = np.array(["b", "a", "c"])[GROUPS]
    found = fit_conformal(PROBS[0], LABELS, 0.8, groups=names)
    expected = fit_conformal(PROBS[0], LABELS, 0.8, groups=GROUPS)
    assert found.groups == ("a", "b", "c")
    np.testing.assert_array_equal(found(PROBS[0], names), expected(PROBS[0], GROUPS))
    with pytest.raises(ValueError, match="no group 'd'; there are 'a', 'b', 'c'"):
        found(PROBS[0, :1], ["d"])
    with pytest.raises(TypeError, match="groups by name, of 'a', 'b', 'c'; got int"):
        found(PROBS[0], GROUPS)
    sets = st.jit(lambda g: expected(PROBS[0, :2], g))(np.int32([7, -1]))  # of no group: all
    assert sets.all()


def test_nan_stays_in_its_group():
    probs = PROBS.copy()
    probs[1, np.flatnonzero(GROUPS == 1)[0]] = np.nan
    found = fit_conformal(probs, LABELS, 0.8, groups=GROUPS)
    assert np.isnan(np.asarray(found.threshold)).tolist() == [[False] * 3, [False, True, False]]


def test_misuse():
    by_group, alike = fit_conformal(PROBS, LABELS, 0.8, groups=GROUPS), fit_conformal(PROBS, LABELS)
    with pytest.raises(ValueError, match="it was fitted by group, 0, 1, 2: give groups="):
        by_group(PROBS)
    with pytest.raises(ValueError, match="it was fitted without groups=, and so takes none"):
        alike(PROBS, GROUPS)
    with pytest.raises(ValueError, match=r"expected groups from 0 to 2, got 5"):
        by_group(PROBS, GROUPS * 0 + 5)
    with pytest.raises(ValueError, match=r"groups of shape \(90,\)"):
        fit_conformal_intervals(MEANS, DEVIATIONS, TARGETS, groups=GROUPS[:3])
    with pytest.raises(ValueError, match="num_groups is of groups, which are not given"):
        fit_conformal_intervals(MEANS, DEVIATIONS, TARGETS, num_groups=3)
    with pytest.raises(ValueError, match="num_groups is of groups, which are not given"):
        fit_conformal(PROBS, LABELS, num_groups=3)
