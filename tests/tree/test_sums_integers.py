"""Integer leaves keep their dtype in sums, means, interpolation and soups: one rule for all."""

from fractions import Fraction

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn

KINDS = ["bool", "int8", "uint8", "int16", "int32", "uint32"]


def nearest(column, weights):
    """The weighted sum in rational numbers, rounded half to even."""
    flat = [np.asarray(x).reshape(-1).tolist() for x in column]
    weights = [Fraction(w) for w in weights]
    sums = [round(sum(w * int(v) for w, v in zip(weights, row))) for row in zip(*flat)]
    return np.reshape([int(s) for s in sums], np.shape(column[0]))


def forms(trees, weights):
    """The sum in every way that it can be had."""
    call = st.tree.weighted_sum
    yield call(trees, weights)
    yield call(iter(trees), weights)
    yield call(st.stack(trees), weights, stacked=True)
    yield st.jit(lambda t: call(t, weights))(trees)
    yield st.jit(lambda t: call(iter(t), weights))(trees)
    yield st.jit(lambda t: call(t, weights, stacked=True))(st.stack(trees))
    yield st.jit(call)(trees, snp.array(weights))


@pytest.mark.parametrize("weights", [[0.5, 0.25, 0.25], [1 / 3] * 3, [-0.5, 2.0, 0.25], [2, -1, 1]])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_rounded_to_the_nearest(kind, weights):
    rng = np.random.default_rng(3)
    low = 0 if kind in ("bool", "uint8", "uint32") else -30
    trees = [{"n": snp.array(rng.integers(low, 2 if kind == "bool" else 40, 50).astype(kind))}
             for _ in range(3)]  # fmt: skip
    want = nearest([t["n"] for t in trees], weights).astype(kind)  # wraps as integers do
    for total in forms(trees, weights):
        assert total["n"].dtype == kind and not total["n"].weak_type
        np.testing.assert_array_equal(total["n"], want)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "bool"])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 300])
def test_means_are_exact_over_the_whole_range(kind, count):
    info = np.iinfo(kind)
    rng = np.random.default_rng(count)
    members = [{"n": snp.array(rng.integers(info.min, info.max, 9, endpoint=True, dtype=kind))}
               for _ in range(count)]  # fmt: skip
    want = nearest([m["n"] for m in members], [Fraction(1, count)] * count)
    stacked = st.stack(members)
    for mean in (
        st.tree.mean(members),
        st.tree.mean(iter(members)),
        st.tree.mean(stacked),
        st.jit(st.tree.mean)(stacked),
        st.ensemble.uniform_soup(members),
    ):
        assert mean["n"].dtype == kind and not mean["n"].weak_type
        np.testing.assert_array_equal(mean["n"], want)


@pytest.mark.parametrize("weights", [[1 / 3] * 3, [0.1, 0.2, 0.7], [1, 0, 0]])
def test_leaves_in_which_all_agree_are_kept_whatever_their_size(weights):
    counter = snp.array([1_000_000_007, -(2**31), 2**31 - 1, 0])
    for total in list(forms([{"n": counter}] * 3, weights))[:-1]:  # traced weights sum to about 1
        np.testing.assert_array_equal(total["n"], counter)
    for t in (0.0, 0.3, 1.0):
        for between in (st.tree.lerp, st.jit(st.tree.lerp), st.tree.slerp):
            np.testing.assert_array_equal(between([counter], [counter], t)[0], counter)


def test_64_bits():
    with st.enable_x64():
        trees = [{"n": snp.array([2**62 + i, -i])} for i in range(3)]
        for mean in (st.tree.mean(trees), st.jit(st.tree.mean)(trees), st.tree.mean(iter(trees))):
            assert mean["n"].dtype == np.int64 and mean["n"].tolist() == [2**62 + 1, -1]


def test_python_numbers_are_no_longer_weak():
    for f in (
        lambda: st.tree.weighted_sum([{"n": 3}, {"n": 4}], [2, 1]),
        lambda: st.tree.weighted_sum([{"n": 3}, {"n": 4}], [2.0, 1.0]),
        lambda: st.tree.mean([{"n": 9}, {"n": 10}, {"n": 11}]),
        lambda: st.tree.axpy(2.0, {"n": 3}, {"n": 4}),
        lambda: st.tree.lerp({"n": 0}, {"n": 20}, 0.5),
    ):
        for n in (f()["n"], st.jit(f)()["n"]):
            assert n.dtype == np.int32 and not n.weak_type and int(n) == 10
    total = st.tree.weighted_sum([{"w": 1.0}, {"w": 2.0}], [1.0, 1.0])["w"]
    assert total.dtype == np.float32 and not total.weak_type


def test_halves_go_to_even_in_any_order():
    for pair, want in (((3, 4), 4), ((4, 5), 4), ((-3, -4), -4), ((-5, -4), -4)):
        for a, b in (pair, pair[::-1]):
            trees = [{"n": np.array([a])}, {"n": np.array([b])}]
            for mean in (
                st.tree.mean(trees),
                st.tree.mean(iter(trees)),
                st.jit(st.tree.mean)(trees),
                st.tree.lerp(*trees, 0.5),
                st.jit(st.tree.lerp)(*trees, 0.5),
                st.ensemble.uniform_soup(trees),
                st.ensemble.greedy_soup(trees, lambda t: 0).params,
            ):
                assert mean["n"].tolist() == [want]


def test_floats_after_integers():
    trees = [{"n": snp.array([3])}, {"n": snp.array([0.5])}]
    for total in (
        st.tree.weighted_sum(trees, [0.5, 1.0]),
        st.tree.weighted_sum(iter(trees), [0.5, 1.0]),
        st.jit(lambda t: st.tree.weighted_sum(iter(t), [0.5, 1.0]))(trees),
    ):
        assert total["n"].dtype == np.float32 and total["n"].tolist() == [2.0]
    assert st.tree.weighted_sum([{"n": 3}], [1j])["n"].dtype == np.complex64


def test_counters_of_models_stay_integers():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    models = [nn.stateful_call(model, snp.ones((4, 2)))[1] for _ in range(2)]
    ensemble = st.Ensemble(models)
    named = lambda m: m.state_dict()["1.num_batches_tracked"]
    for made in (
        st.tree.mean(models),
        st.tree.mean(ensemble),
        st.tree.weighted_sum(ensemble, [0.3, 0.7]),
        st.tree.lerp(*models, 0.25),
        st.tree.slerp(*models, 0.25),
        st.ensemble.uniform_soup(ensemble),
        st.ensemble.greedy_soup(ensemble, lambda m: 0).params,
        st.ensemble.fisher_average(models, [st.tree.map(snp.ones_like, m) for m in models]),
        st.ensemble.add_task_vectors(models[0], [st.ensemble.task_vector(models[1], models[0])]),
    ):
        counter = named(made)
        assert counter.dtype == np.int32 and not counter.weak_type and int(counter) == 1


def test_counters_have_no_part_in_the_angle_of_slerp():
    one, other = {"w": snp.array([1.0, 0.0])}, {"w": snp.array([0.0, 1.0])}
    for by_leaf in (False, True):
        made = st.tree.slerp({**one, "n": 10_000}, {**other, "n": 10_000}, 0.5, by_leaf=by_leaf)
        np.testing.assert_allclose(made["w"], [0.70710677] * 2, rtol=1e-6)
        assert int(made["n"]) == 10_000


def test_a_counter_is_an_array_for_numpy():
    found = st.tree.mean([{"n": 3}, {"n": 6}])["n"]
    assert np.asarray(found).shape == ()
    assert (int(found), found.dtype) == (4, np.int32)
