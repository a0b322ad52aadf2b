"""SWAG: its moments are NumPy's, and its samples have them."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble import SWA, SWAG

RNG = np.random.default_rng(0)
PATH = RNG.normal(size=(9, 4)).astype(np.float32)
TREES = [
    {"w": snp.array(x[:3]), "b": [snp.array(x[3], snp.float16)], "n": snp.array(i)}
    for i, x in enumerate(PATH)
]
ROUNDED = np.concatenate([PATH[:, :3], PATH[:, 3:].astype(np.float16)], 1)


def run(swag, trees):
    state = swag.init(trees[0])
    for tree in trees:
        state = swag.update(state, tree)
    return state


def flat(tree):
    return np.concatenate([np.asarray(tree["w"]), np.asarray(tree["b"][0])[None]])


def expected(path, rank):
    """Mean, diagonal variance, and the last deviations, by the paper's formulas."""
    means = np.cumsum(path, 0) / np.arange(1, len(path) + 1)[:, None]
    variance = (path**2).mean(0) - path.mean(0) ** 2
    return means[-1], variance, (path - means)[-rank:]


@pytest.mark.parametrize("count", [1, 2, 4, 9])
def test_moments(count):
    swag = SWAG(rank=4)
    state = run(swag, TREES[:count])
    mean, variance, deviations = expected(ROUNDED[:count].astype(np.float64), 4)
    np.testing.assert_allclose(flat(swag.mean(state)), mean, rtol=2e-3)
    np.testing.assert_allclose(state.mean["w"], mean[:3], rtol=1e-4)
    np.testing.assert_allclose(flat(swag.variance(state)), variance, rtol=1e-4, atol=1e-6)
    kept = np.asarray(state.deviations[1])
    used = [row for row in kept if row.any()]
    want = [row[:3] for row in deviations if np.abs(row).max() > 1e-9]
    assert len(used) == len(want)
    np.testing.assert_allclose(sorted(map(tuple, used)), sorted(map(tuple, want)), rtol=1e-3)
    assert int(swag.mean(state)["n"]) == count - 1 and swag.mean(state)["b"][0].dtype == np.float16
    np.testing.assert_allclose(
        flat(swag.mean(state)), flat(SWA().value(run(SWA(), TREES[:count]))), rtol=1e-3
    )


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_samples_have_the_covariance(scale):
    swag = SWAG(rank=4)
    state = run(swag, [{"w": snp.array(x)} for x in PATH])
    keys = st.random.split(st.random.PRNGKey(1), 20_000)
    drawn = np.asarray(st.jit(st.vmap(lambda k: swag.sample(state, k, scale)))(keys)["w"])
    mean, variance, deviations = expected(PATH.astype(np.float64), 4)
    want = scale * (np.diag(variance) + deviations.T @ deviations / 3) / 2
    # Of 20,000 draws a mean is off by 0.007, a variance by a hundredth of itself (one deviation).
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(drawn.T), want, atol=0.04 * want.max())


def test_one_tree_has_no_spread():
    swag = SWAG(rank=2)
    state = run(swag, TREES[:1])
    sample = swag.sample(state, st.random.PRNGKey(0))
    np.testing.assert_array_equal(flat(sample), flat(TREES[0]))


def test_transformations():
    swag = SWAG(rank=3)
    want = run(swag, TREES)
    stacked = st.stack(TREES)
    step = lambda s, t: (swag.update(s, t), None)
    begin = swag.init(TREES[0])
    state = begin
    for tree in TREES:
        state = st.jit(swag.update)(state, tree)
    scanned = st.jit(lambda s, t: st.lax.scan(step, s, t)[0])(begin, stacked)
    for other in (state, scanned):
        for a, b in zip(st.tree.leaves(other), st.tree.leaves(want), strict=True):
            assert a.type is b.type
            np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float), atol=1e-5)
    key = st.random.PRNGKey(3)
    one = swag.sample(want, key)
    np.testing.assert_allclose(flat(st.jit(swag.sample)(want, key)), flat(one), rtol=1e-3)
    assert [x.dtype for x in st.tree.leaves(one)] == [x.dtype for x in st.tree.leaves(TREES[0])]
    members = st.vmap(lambda k: swag.sample(want, k))(st.random.split(key, 5))
    np.testing.assert_allclose(
        flat(st.take(members, 2)), flat(swag.sample(want, st.random.split(key, 5)[2])), rtol=1e-3
    )


def test_samples_are_an_ensemble():
    model = nn.Linear(3, 2, key=st.random.PRNGKey(0))
    swag = SWAG(rank=2)
    state = swag.init(model)
    for i in range(3):
        state = swag.update(state, st.tree.map(lambda x, i=i: x + i, model))
    keys = st.random.split(st.random.PRNGKey(1), 4)
    ensemble = st.Ensemble(st.vmap(lambda k: swag.sample(state, k))(keys))
    assert len(ensemble) == 4 and ensemble(snp.ones((5, 3))).shape == (4, 5, 2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: SWAG(rank=1), ValueError, "rank must be at least 2, got 1"),
        (
            lambda: SWAG().init({"w": snp.ones(1, snp.complex64)}),
            TypeError,
            r"tree\['w'\] is complex",
        ),
        (
            lambda: SWAG().update(SWAG().init({"w": snp.ones(1)}), {"w": snp.ones(2)}),
            ValueError,
            r"SWAG.update: member 1 differs from member 0 at member\['w'\]",
        ),
    ],
    ids=["rank", "complex", "shape"],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
