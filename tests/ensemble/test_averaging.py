"""Moving and plain averages of weights: their values, dtypes, and transformations."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble import EMA, SWA

RNG = np.random.default_rng(0)
PATH = RNG.normal(size=(12, 3)).astype(np.float32)
TREES = [{"w": snp.array(x), "deep": [snp.array(x[:1]), None], "n": i} for i, x in enumerate(PATH)]


def run(average, trees, begin):
    state = average.init(begin)
    for tree in trees:
        state = average.update(state, tree)
    return state


def moving(path, begin, decays):
    mean = begin
    for x, d in zip(path, decays, strict=True):
        mean = d * mean + (1 - d) * x
    return mean


def test_ema_is_the_recurrence():
    ema = EMA(0.9)
    made = ema.value(run(ema, TREES[1:], TREES[0]))
    np.testing.assert_allclose(made["w"], moving(PATH[1:], PATH[0], [0.9] * 11), rtol=1e-5)
    np.testing.assert_allclose(made["deep"][0], made["w"][:1], rtol=1e-6)
    assert made["deep"][1] is None and int(made["n"]) == 11


def test_bias_correction_divides_out_the_beginning():
    ema = EMA(0.9, bias_correction=True)
    state = ema.init(TREES[5])
    for k in range(1, 12):
        state = ema.update(state, TREES[k])
        weights = 0.1 * 0.9 ** np.arange(k - 1, -1, -1)
        want = weights @ PATH[1 : k + 1] / weights.sum()
        np.testing.assert_allclose(ema.value(state)["w"], want, rtol=1e-4)
    assert np.isfinite(ema.value(ema.init(TREES[0]))["w"]).all()


def test_warm_up_forgets_the_beginning():
    ema = EMA(0.5, warm_up=True)
    decays = [min(0.5, (1 + n) / (10 + n)) for n in range(11)]
    made = ema.value(run(ema, TREES[1:], TREES[0]))
    np.testing.assert_allclose(made["w"], moving(PATH[1:], PATH[0], decays), rtol=1e-5)
    both = EMA(0.5, bias_correction=True, warm_up=True)
    weights = [
        (1 - d) * np.prod(decays[i + 1 :]) for i, d in enumerate(decays)
    ]  # of each tree, before they are divided by their sum
    made = both.value(run(both, TREES[1:], TREES[0]))
    np.testing.assert_allclose(made["w"], weights @ PATH[1:] / np.sum(weights), rtol=1e-4)


def test_swa_is_the_mean():
    swa = SWA()
    state = run(swa, TREES, {"w": snp.full(3, np.inf), "deep": [snp.ones(1), None], "n": 0})
    assert int(state.count) == 12
    np.testing.assert_allclose(swa.value(state)["deep"][0], PATH.mean(0)[:1], rtol=1e-4)
    begun = swa.init(TREES[3])
    np.testing.assert_array_equal(swa.value(begun)["w"], PATH[3])


@pytest.mark.parametrize("average", [EMA(0.99), EMA(0.99, True, True), SWA()], ids=repr)
def test_low_precision_is_kept_in_float32(average):
    trees = [{"w": snp.array(x, snp.bfloat16)} for x in PATH]
    wide = [st.tree.cast(t, snp.float32) for t in trees]
    state, same = run(average, trees, trees[0]), run(average, wide, wide[0])
    assert state.average["w"].dtype == np.float32
    made = average.value(state)["w"]
    assert made.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(made, average.value(same)["w"].astype(snp.bfloat16))


@pytest.mark.parametrize("average", [EMA(0.9), EMA(0.9, True, True), SWA()], ids=repr)
def test_transformations(average):
    trees = [{"w": t["w"], "n": snp.array(t["n"])} for t in TREES]
    want = run(average, trees, trees[0])
    update = st.jit(average.update)
    state = st.jit(average.init)(trees[0])
    for tree in trees:
        state = update(state, tree)
    stacked = st.stack(trees)
    step = lambda s, t: (average.update(s, t), None)
    scanned, _ = st.lax.scan(step, average.init(trees[0]), stacked)
    inside = st.jit(lambda t: st.lax.scan(step, average.init(st.take(t, 0)), t)[0])(stacked)
    for other in (state, scanned, inside):
        assert st.tree.structure(other) == st.tree.structure(want)
        assert [x.type for x in st.tree.leaves(other)] == [x.type for x in st.tree.leaves(want)]
        np.testing.assert_allclose(average.value(other)["w"], average.value(want)["w"], rtol=1e-5)
    members = st.vmap(average.init)(stacked)
    members = st.vmap(average.update)(members, stacked)
    one = run(average, [trees[4]], trees[4])
    np.testing.assert_allclose(st.take(members, 4).average["w"], one.average["w"], rtol=1e-6)
    slope = st.grad(lambda x: average.value(average.update(want, {"w": x, "n": 1}))["w"].sum())
    assert (np.asarray(slope(trees[0]["w"])) > 0).all()


def test_each_member_has_its_own_decay():
    stacked, decays = st.stack(TREES[:2]), snp.array([0.0, 1.0])

    def step(decay, begin, tree):
        ema = EMA(decay)
        return ema.value(ema.update(ema.init(begin), tree))

    made = st.vmap(step)(decays, st.stack(TREES[2:4]), stacked)
    np.testing.assert_allclose(made["w"], [PATH[0], PATH[3]], rtol=1e-6)


def test_modules_and_files(tmp_path):
    model = nn.Linear(3, 2, key=st.random.PRNGKey(0))
    ema = EMA(0.5)
    state = ema.update(ema.init(model), st.tree.map(lambda x: x * 3, model))
    made = ema.value(state)
    assert isinstance(made, nn.Linear)
    np.testing.assert_allclose(made.weight, 2 * model.weight, rtol=1e-6)
    st.save(tmp_path / "ema", state)
    back = st.load(tmp_path / "ema", like=ema.init(model))
    assert st.tree.structure(back) == st.tree.structure(state)
    np.testing.assert_array_equal(ema.value(back).weight, made.weight)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: EMA(1.5), r"EMA: decay must be between 0 and 1, got 1\.5"),
        (
            lambda: EMA().update(EMA().init({"w": snp.ones(2)}), {"w": snp.ones(3)}),
            r"EMA.update: member 1 differs .* at member\['w'\]: shape \(3,\), expected \(2,\)",
        ),
        (
            lambda: SWA().update(SWA().init({"w": snp.ones(2)}), {"v": snp.ones(2)}),
            "SWA.update: member 1 differs in structure",
        ),
    ],
    ids=["decay", "shape", "structure"],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
