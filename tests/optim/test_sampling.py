"""Samplers: their steps, and what they sample, against the discrete Lyapunov equation."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim

CURVATURE = 4.0
"""Of a Gaussian target, U = 2 θ²: variance 1/4."""


def moved(sampler, theta, moment, count=0):
    """One step from there: the next position and what the state keeps."""
    state = sampler.init(snp.asarray(theta))
    if moment is not None:
        state = state._replace(moment=snp.asarray(moment))
    step, state = sampler.update(CURVATURE * theta, state, theta)
    return theta + step, state.moment


def linear_map(make):
    """A and B of (θ, v) ← A (θ, v) + B ξ, read off the sampler's own step."""
    at = lambda theta, v, t: np.array(moved(make(t), np.float64(theta), np.float64(v)), float)
    zero = at(0.0, 0.0, 0.0)
    a = np.stack([at(1.0, 0.0, 0.0) - zero, at(0.0, 1.0, 0.0) - zero], 1)
    noise = at(0.0, 0.0, 1.0)
    key = st.random.split(make(1.0).init(snp.float64(0.0)).rng_key)[1]
    drawn = float(st.random.normal(st.random.split(key, 1)[0], (), np.float64))
    return a, noise / drawn


def stationary(a, b):
    """Σ = A Σ Aᵀ + B Bᵀ."""
    size = len(a)
    left = np.eye(size**2) - np.kron(a, a)
    return np.linalg.solve(left, np.outer(b, b).ravel()).reshape(size, size)


def variance_of_chains(sampler_of, chains=400, steps=1_500):
    def chain(key):
        sampler = sampler_of(key)

        def step(carry, _):
            theta, state = carry
            update, state = sampler.update(CURVATURE * theta, state, theta)
            return (theta + update, state), theta

        theta = snp.zeros(())
        return st.lax.scan(step, (theta, sampler.init(theta)), None, length=steps)[1][200:]

    draws = np.asarray(st.jit(st.vmap(chain))(st.random.split(st.random.key(0), chains)))
    return draws.var()


@pytest.mark.parametrize(("h", "friction"), [(0.1, 1.0), (0.3, 2.0), (0.5, 0.5)])
def test_sghmc_samples_what_its_linear_map_does(h, friction):
    make = lambda t, key=3: optim.sghmc(h, data_size=1, friction=friction, temperature=t, key=key)
    with st.config(enable_x64=True):
        a, b = linear_map(make)
        alpha = friction * h
        root = np.sqrt(2 * friction * h)
        np.testing.assert_allclose(
            a, [[1 - h * h * CURVATURE, h * (1 - alpha)], [-h * CURVATURE, 1 - alpha]], atol=1e-12
        )
        np.testing.assert_allclose(b, [h * root, root], 1e-12)
        expected = stationary(a, b)[0, 0]
        found = variance_of_chains(lambda key: make(1.0, key))
    assert found == pytest.approx(expected, rel=0.03)
    if h == 0.1:  # near the target, which Euler's order of the two misses by a quarter
        assert expected == pytest.approx(0.2528, abs=5e-4)


@pytest.mark.parametrize("name", ["sgld", "sghmc"])
def test_chains_have_the_covariance_of_the_lyapunov_equation(name):
    """Of position and velocity together, for a target with correlations and a prior."""
    rng = np.random.default_rng(0)
    root, size, prior = rng.normal(size=(3, 3)), 20, 2.0
    mean_hessian = (root @ root.T + np.eye(3)) / 8
    target = size * mean_hessian + prior * np.eye(3)
    options = {"friction": 2.0} if name == "sghmc" else {}
    h = 0.15 if name == "sghmc" else 0.02

    def step(x, key, temperature=1.0):
        sampler = getattr(optim, name)(
            h, data_size=size, prior_precision=prior, temperature=temperature, key=key, **options
        )
        theta, state = x[:3], sampler.init(x[:3])
        state = state._replace(moment=x[3:]) if name == "sghmc" else state
        updates, state = sampler.update(mean_hessian @ theta, state, theta)
        parts = [theta + updates, state.moment] if name == "sghmc" else [theta + updates]
        return snp.concatenate(parts)

    with st.config(enable_x64=True):
        zero = snp.zeros(6 if name == "sghmc" else 3)
        a = np.asarray(st.jacfwd(lambda x: step(x, 0, 0.0))(zero))
        noise = st.random.normal(
            st.random.split(st.random.split(st.random.PRNGKey(0))[1], 1)[0], (3,), np.float64
        )
        drawn = (np.asarray(step(zero, 0)).reshape(-1, 3) / noise).mean(1)  # B = drawn ⊗ I
        b = np.kron(drawn[:, None], np.eye(3))
        np.testing.assert_allclose(b @ noise, step(zero, 0), atol=1e-12)
        left = np.eye(a.size) - np.kron(a, a)
        expected = np.linalg.solve(left, (b @ b.T).ravel()).reshape(a.shape)

        def chain(key):
            first, key = st.random.split(key)
            x = np.linalg.cholesky(expected) @ st.random.normal(first, zero.shape)
            return st.lax.scan(lambda x, key: (step(x, key), x), x, st.random.split(key, 1_000))[1]

        draws = np.asarray(st.jit(st.vmap(chain))(st.random.split(st.random.key(1), 200)))
    if name == "sgld":  # the closed form
        inverse = target @ (np.eye(3) - h * target / 2)
        np.testing.assert_allclose(expected, np.linalg.inv(inverse), atol=1e-12)
    else:  # velocities of temperature 1, but for the step; positions near the target's
        np.testing.assert_allclose(expected[:3, :3], np.linalg.inv(target), rtol=0, atol=0.02)
    moments = np.einsum("cti,ctj->cij", draws, draws) / draws.shape[1]
    error = moments.std(0) / np.sqrt(len(moments))
    scale = np.sqrt(np.outer(*[np.diag(expected)] * 2))
    assert (error < 0.01 * scale).all()
    assert (np.abs(moments.mean(0) - expected) < 4 * error).all()


@pytest.mark.parametrize("h", [0.02, 0.2])
def test_sgld_is_wider_by_the_step(h):
    """The variance is 1 / (λ (1 − h λ / 2))."""
    with st.config(enable_x64=True):
        found = variance_of_chains(lambda key: optim.sgld(h, data_size=1, key=key))
    assert found == pytest.approx(1 / (CURVATURE * (1 - h * CURVATURE / 2)), rel=0.05)


def test_the_temperature_scales_the_variance():
    with st.config(enable_x64=True):
        warm, cold = [
            variance_of_chains(
                lambda key, t=t: optim.sghmc(0.2, data_size=1, temperature=t, key=key)
            )
            for t in (2.0, 0.5)
        ]
    assert warm / cold == pytest.approx(4.0, rel=1e-6)


def test_the_mean_loss_counts_for_all_examples_and_the_prior_once():
    params = {"w": snp.array([2.0, -1.0])}
    gradient = {"w": snp.array([0.5, 0.25])}
    sampler = optim.sgld(0.01, data_size=100, prior_precision=3.0, temperature=0.0, key=0)
    updates, _ = sampler.update(gradient, sampler.init(params), params)
    expected = -0.01 * (100 * np.array([0.5, 0.25]) + 3.0 * np.array([2.0, -1.0]))
    np.testing.assert_allclose(updates["w"], expected, 1e-6)


def test_psgld_scales_step_and_noise_by_the_mean_square():
    params = {"w": snp.array([1.0, 1.0])}
    sampler = lambda t: optim.psgld(0.01, data_size=10, decay=0.9, eps=0.1, temperature=t, key=1)
    g = np.array([2.0, -4.0])
    state = sampler(0.0).init(params)._replace(moment={"w": snp.array([1.0, 0.5])})
    still, after = sampler(0.0).update({"w": snp.asarray(g)}, state, params)
    v = 0.9 * np.array([1.0, 0.5]) + 0.1 * g**2
    scale = 1 / (0.1 + np.sqrt(v))
    np.testing.assert_allclose(after.moment["w"], v, 1e-6)
    np.testing.assert_allclose(still["w"], -0.01 * scale * 10 * g, 1e-6)
    noisy, _ = sampler(1.0).update({"w": snp.asarray(g)}, state, params)
    own = st.random.split(state.rng_key)[1]
    drawn = np.asarray(st.random.normal(st.random.split(own, 1)[0], (2,)))
    expected = np.sqrt(2 * 0.01 * scale) * drawn
    np.testing.assert_allclose(noisy["w"] - still["w"], expected, 1e-4)


def test_schedules_are_of_the_count():
    params = snp.array(1.0)
    sampler = optim.sgld(lambda n: 0.1 / (1 + n), data_size=1, temperature=lambda n: 0.0 * n, key=0)
    state = sampler.init(params)
    steps = []
    for _ in range(3):
        update, state = sampler.update(snp.array(1.0), state, params)
        steps.append(float(update))
    np.testing.assert_allclose(steps, [-0.1, -0.05, -0.1 / 3], 1e-6)


@pytest.mark.parametrize("make", [optim.sgld, optim.sghmc, optim.psgld])
def test_keys_of_either_kind_and_seeds(make):
    params = snp.ones(3)
    updates = lambda tx: tx.update(params, tx.init(params), params)[0]
    found = [
        updates(make(0.1, data_size=1, key=key))
        for key in (7, st.random.PRNGKey(7), st.random.key(7))
    ]
    for one in found:
        np.testing.assert_array_equal(one, found[0])
    of_another_kind = updates(make(0.1, data_size=1, key=st.random.key(7, impl="rbg")))
    assert np.isfinite(of_another_kind).all() and not np.isclose(of_another_kind, found[0]).any()
    other = make(0.1, data_size=1, key=8)
    first, _ = other.update(params, other.init(params), params)
    again, _ = other.update(params, other.init(params), params)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("typed", [True, False])
def test_members_in_fit_draw_noise_of_their_own(typed):
    make = st.random.key if typed else st.random.PRNGKey
    ensemble = st.Ensemble(lambda w, x: w * x, snp.ones(3))
    x = snp.ones(8)
    fitted = ensemble.fit(
        lambda m, x: 0.5 * (m(x) ** 2).mean(), x, optim.sghmc, steps=5, batch_size=8,
        hyperparams={"learning_rate": 0.1, "data_size": 8,
                     "key": st.random.split(make(0), 3)},
    )  # fmt: skip
    weights = [float(m.params) for m in fitted.ensemble]
    assert len({round(w, 6) for w in weights}) == 3


@pytest.mark.parametrize(
    ("make", "changed", "message"),
    [
        (optim.sgld, {"learning_rate": 0.0}, "learning_rate must be above 0, got 0.0"),
        (optim.sgld, {"data_size": 0}, "data_size must be at least 1, got 0"),
        (optim.sgld, {"temperature": -1.0}, "temperature must be at least 0, got -1.0"),
        (optim.sghmc, {"prior_precision": -1.0}, "prior_precision must be at least 0"),
        (optim.sghmc, {"friction": 0.0}, "friction must be above 0, got 0.0"),
        (optim.sghmc, {"friction": 10.0}, "must be below 1, got 10.0 × 0.1"),
        (optim.psgld, {"decay": 1.0}, "decay must be at least 0 and below 1, got 1.0"),
        (optim.psgld, {"eps": 0.0}, "eps must be above 0, got 0.0"),
    ],
)  # fmt: skip
def test_what_is_out_of_range_is_refused(make, changed, message):
    with pytest.raises(ValueError, match=message):
        make(**({"learning_rate": 0.1, "data_size": 5} | changed))


def test_params_and_the_number_of_examples_are_needed():
    with pytest.raises(TypeError, match="data_size"):
        optim.sgld(0.1)  # pyright: ignore[reportCallIssue]
    sampler = optim.sgld(0.1, data_size=5, key=0)
    with pytest.raises(ValueError, match="params"):
        sampler.update(snp.ones(2), sampler.init(snp.ones(2)))
