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


def spread(shuffled):
    """Variances of SWAG and of its samples over those of the posterior, at the rate 2 B / N.

    Bayesian regression with whitened inputs and unit noise, whose posterior is I / N.
    """
    n, batch, d = 1024, 32, 3
    keys = st.random.split(st.random.key(0), 4)
    raw = np.asarray(st.random.normal(keys[0], (n, d)), np.float64)
    raw -= raw.mean(0)
    inputs = snp.asarray((raw @ np.linalg.inv(np.linalg.cholesky(raw.T @ raw / n)).T).astype("f4"))
    targets = inputs @ snp.arange(1.0, d + 1) + st.random.normal(keys[1], (n,))
    swag, rate = SWAG(rank=100), 2 * batch / n

    def step(w, rows):
        error = inputs[rows] @ w - targets[rows]
        return w - rate * (error @ inputs[rows]) / batch, None

    def epoch(carry, key):
        w, state = carry
        rows = st.random.permutation(key, n) if shuffled else st.random.randint(key, (n,), 0, n)
        w, _ = st.lax.scan(step, w, rows.reshape(-1, batch))
        return (w, swag.update(state, w)), None

    run = st.jit(lambda w, keys: st.lax.scan(epoch, (w, swag.init(w)), keys)[0])
    w, _ = run(snp.zeros(d), st.random.split(keys[2], 50))
    _, state = run(w, st.random.split(keys[2], 1500))
    drawn = st.vmap(lambda key: swag.sample(state, key))(st.random.split(keys[3], 4000))
    return np.asarray(swag.variance(state)) * n, np.asarray(drawn).var(0) * n


def test_the_spread_is_that_of_a_known_posterior():
    """Allow 15 %: 1,500 trees tell a variance to 3.7 %, and the rate of 1/16 shifts it by 3 %."""
    for ratios in spread(shuffled=False):
        np.testing.assert_allclose(ratios, 1, atol=0.15)


def test_the_spread_at_the_ends_of_shuffled_epochs_is_too_small():
    """The batches of one shuffle make up for each other, as the guide says."""
    for ratios in spread(shuffled=True):
        assert (ratios < 0.4).all()
