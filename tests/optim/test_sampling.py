"""Samplers against the stationary law of their own linear maps, and IVON against 1/diag(P)."""

from typing import Any

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from stretto.optim import sampling
from tests.optim.running import assert_stable, types

SAMPLERS = {
    "sgld": lambda **kw: optim.sgld(**{"learning_rate": 0.05, "data_size": 8} | kw),
    "sghmc": lambda **kw: optim.sghmc(
        **{"learning_rate": 0.1, "data_size": 8, "friction": 2.0} | kw
    ),
    "psgld": lambda **kw: optim.psgld(**{"learning_rate": 0.05, "data_size": 8} | kw),
}
each_sampler = pytest.mark.parametrize("name", SAMPLERS)


def linear_map(monkeypatch, tx, hessian):
    """A and B of one step on a mean loss θᵀHθ/2, as Jacobians of the optimizer's own update."""
    d = len(hessian)
    first = tx.init(snp.zeros(d, np.float64))
    has_velocity = hasattr(first, "velocity")

    def step(z, noise):
        monkeypatch.setattr(sampling, "_noise", lambda caller, state, updates: iter([noise]))
        theta = z[:d]
        state = first._replace(velocity=z[d:]) if has_velocity else first
        updates, state = tx.update(hessian @ theta, state, theta)
        theta = optim.apply_updates(theta, updates)
        return snp.concatenate([theta, state.velocity]) if has_velocity else theta

    z, noise = snp.zeros(d * (1 + has_velocity), np.float64), snp.zeros(d, np.float64)
    out = [np.asarray(st.jacfwd(step, argnums=i)(z, noise)) for i in (0, 1)]
    monkeypatch.undo()
    return out


def stationary(a, b):
    """Σ = AΣAᵀ + BBᵀ, solved as a linear system."""
    n = len(a)
    return np.linalg.solve(np.eye(n * n) - np.kron(a, a), (b @ b.T).ravel()).reshape(n, n)


H = np.array([[0.5, 0.2], [0.2, 0.4]])
EIGENVALUES, VECTORS = np.linalg.eigh(8 * H + 0.7 * np.eye(2))


def test_sgld_has_the_covariance_of_its_discrete_step(monkeypatch):
    h, t = 0.05, 0.3
    with st.enable_x64():
        tx = optim.sgld(h, data_size=8, prior_precision=0.7, temperature=t, key=0)
        a, b = linear_map(monkeypatch, tx, H)
    expected = VECTORS @ np.diag(t / (EIGENVALUES * (1 - h * EIGENVALUES / 2))) @ VECTORS.T
    np.testing.assert_allclose(stationary(a, b), expected, rtol=1e-12, atol=1e-14)


def test_sghmc_has_the_covariance_of_its_discrete_step(monkeypatch):
    h, alpha, t = 0.1, 2.0, 0.3
    with st.enable_x64():
        tx = optim.sghmc(h, data_size=8, prior_precision=0.7, friction=alpha, temperature=t, key=0)
        a, b = linear_map(monkeypatch, tx, H)
    # θ alone is an autoregression of order 2, whose variance is known.
    c = 1 - alpha * h
    expected = t / EIGENVALUES / (1 - h * h * EIGENVALUES / (2 * (1 + c)))
    expected = VECTORS @ np.diag(expected) @ VECTORS.T
    np.testing.assert_allclose(stationary(a, b)[:2, :2], expected, rtol=1e-12, atol=1e-14)


def test_sghmc_is_nearer_than_plain_euler_and_stable_where_that_diverges(monkeypatch):
    h, alpha, curvature = 0.1, 2.0, 4.0
    with st.enable_x64():
        make = lambda h, friction: optim.sghmc(
            h, data_size=4, prior_precision=0.0, friction=friction, key=0
        )
        one = np.eye(1)
        ours = stationary(*linear_map(monkeypatch, make(h, alpha), one))[0, 0]
        large, _ = linear_map(monkeypatch, make(0.5, 1.0), one)
    euler = lambda h, friction: np.array([[1, h], [-h * curvature, 1 - friction * h]])
    plain = stationary(euler(h, alpha), np.array([[0], [(2 * alpha * h) ** 0.5]]))[0, 0]
    assert [round(x, 4) for x in (ours, plain)] == [0.2528, 0.3159]
    radius = lambda a: abs(np.linalg.eigvals(a)).max()
    assert radius(large) < 1 < radius(euler(0.5, 1.0))


@pytest.mark.parametrize("name", ["sgld", "sghmc"])
def test_many_chains_in_one_program_have_that_covariance(monkeypatch, name):
    chains, steps = 4000, 120
    with st.enable_x64():
        tx = SAMPLERS[name](prior_precision=0.7, key=0)
        expected = stationary(*linear_map(monkeypatch, tx, H))[:2, :2]
        many = optim.per_member(tx)

        @st.jit
        def run(theta):
            def step(carry, _):
                theta, state = carry
                updates, state = many.update(theta @ H, state, theta)
                return (optim.apply_updates(theta, updates), state), None

            return st.lax.scan(step, (theta, many.init(theta)), None, length=steps)[0][0]

        theta = np.asarray(run(snp.zeros((chains, 2), np.float64)))
    assert theta.dtype == np.float64
    # Of independent chains; an entry's standard error is at most √(2/4000) of the variances.
    error = np.sqrt(2 / chains) * np.max(np.diag(expected))
    np.testing.assert_allclose(np.cov(theta.T), expected, rtol=0, atol=4.5 * error)
    np.testing.assert_allclose(
        theta.mean(0), 0, atol=4.5 * np.sqrt(np.max(np.diag(expected)) / chains)
    )


def test_psgld_is_the_sgld_of_its_metric(monkeypatch):
    g, p, h = np.array([0.3, -2.0]), np.array([1.0, 0.5]), 0.01
    with st.enable_x64():
        tx = optim.psgld(h, data_size=8, prior_precision=0.7, decay=0.9, eps=1e-3, key=0)
        noise = snp.asarray([0.4, -1.2])
        monkeypatch.setattr(sampling, "_noise", lambda *args: iter([noise]))
        updates, state = tx.update(snp.asarray(g), tx.init(snp.asarray(p)), snp.asarray(p))
    s = 0.1 * g**2
    metric = 1 / (np.sqrt(s) + 1e-3)
    expected = -h * metric * (8 * g + 0.7 * p) + np.sqrt(2 * h * metric) * np.asarray(noise)
    np.testing.assert_allclose(updates, expected, rtol=1e-12)
    np.testing.assert_allclose(state.nu, s, rtol=1e-12)


@each_sampler
def test_a_state_keeps_its_types(name):
    assert_stable(SAMPLERS[name](key=0))


@each_sampler
def test_noise_depends_on_key_and_count_alone(name):
    params = {"a": snp.zeros(3), "b": snp.zeros((2, 2))}
    make = lambda key: SAMPLERS[name](key=key)
    runs = []
    for key in (st.random.PRNGKey(5), st.random.key(5), 5):
        tx = make(key)
        state = tx.init(params)
        seen = []
        for _ in range(2):
            updates, state = tx.update(params, state, params)
            seen.append(np.concatenate([np.ravel(x) for x in st.tree.leaves(updates)]))
        assert len(set(np.concatenate(seen).tolist())) == 14
        runs.append(seen)
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


@each_sampler
def test_members_move_apart_and_each_as_alone(name):
    params = {"w": snp.ones((3, 4))}
    grads = {"w": snp.full((3, 4), 0.1)}
    tx = optim.per_member(SAMPLERS[name](key=7))
    state = tx.init(params)
    together, _ = tx.update(grads, state, params)
    for i in range(3):
        alone = SAMPLERS[name](key=st.random.fold_in(st.random.PRNGKey(7), i))
        updates, _ = alone.update(
            {"w": grads["w"][i]}, alone.init({"w": params["w"][i]}), {"w": params["w"][i]}
        )
        np.testing.assert_array_equal(together["w"][i], updates["w"])
    assert len(set(np.asarray(together["w"]).ravel().tolist())) == 12


def test_members_with_keys_of_their_own_use_these():
    keys = st.random.split(st.random.key(0), 3)
    params = snp.zeros((3, 4))
    make = lambda key: optim.sgld(0.1, data_size=5, key=key)
    tx = optim.per_member(optim.sgld, learning_rate=0.1, data_size=5, key=keys)
    together, _ = tx.update(params, tx.init(params), params)
    for i in range(3):
        alone = make(keys[i])
        updates, _ = alone.update(params[i], alone.init(params[i]), params[i])
        np.testing.assert_array_equal(together[i], updates)


@each_sampler
def test_temperature_may_be_a_schedule(name):
    hot = optim.cyclical_temperature_schedule(1.0, 2, exploration=0.5)
    tx, cold = SAMPLERS[name](key=0, temperature=hot), SAMPLERS[name](key=0, temperature=0.0)
    params = snp.ones(3)
    state, still = tx.init(params), cold.init(params)
    for t in range(4):
        updates, state = tx.update(params, state, params)
        calm, _ = cold.update(params, still, params)
        _, still = cold.update(params, state._replace(rng_key=still.rng_key), params)
        if t == 0:
            np.testing.assert_array_equal(updates, calm)
        if t == 1:
            assert (np.asarray(updates) != np.asarray(calm)).all()
    assert types(state) == types(tx.init(params))


def test_cycles():
    rate = optim.cyclical_schedule(0.2, 5)
    t = np.arange(12)
    expected = 0.2 * (1 + np.cos(np.pi * (t % 5) / 5)) / 2
    np.testing.assert_allclose([float(rate(i)) for i in t], expected, rtol=2e-6)
    np.testing.assert_allclose(st.jit(st.vmap(rate))(snp.arange(12)), expected, rtol=2e-6)
    share = optim.cyclical_temperature_schedule(2.0, 10, exploration=0.8)
    assert [float(share(i)) for i in range(10)] == [0.0] * 8 + [2.0] * 2
    with pytest.raises(ValueError, match="exploration must be at least 0 and below 1, got 1"):
        optim.cyclical_temperature_schedule(1.0, 10, 1)
    with pytest.raises(ValueError, match="period must be at least 1, got 0"):
        optim.cyclical_schedule(1.0, 0)


@pytest.mark.parametrize("name", [*SAMPLERS, "ivon"])
@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"data_size": 0}, r"{}: data_size must be above 0, got 0"),
        ({"prior_precision": -1.0}, r"{}: prior_precision must be at least 0, got -1"),
        ({"learning_rate": -1.0}, r"{}: learning_rate must be at least 0, got -1"),
        ({"temperature": -0.5}, r"{}: temperature must be at least 0, got -0.5"),
    ],
)
def test_refused_numbers(name, arguments, message):
    make = SAMPLERS.get(name, lambda **kw: optim.ivon(**{"learning_rate": 0.1} | kw))
    if name == "ivon" and "temperature" in arguments:
        return
    with pytest.raises(ValueError, match=message.format(name)):
        make(**{"data_size": 4} | arguments)


def test_friction_that_takes_more_than_all_momentum_is_refused():
    with pytest.raises(ValueError, match=r"friction times learning_rate must be at most 1.* = 1.2"):
        optim.sghmc(0.4, data_size=1, friction=3.0)
    with pytest.raises(ValueError, match="friction must be above 0"):
        optim.sghmc(0.4, data_size=1, friction=0)
    with pytest.raises(ValueError, match="friction times learning_rate"):
        optim.per_member(optim.sghmc, learning_rate=[0.1, 0.4], data_size=1, friction=3.0)
    tx = optim.sghmc(lambda count: 0.4 * count, data_size=1, friction=3.0, key=0)
    params = snp.ones(2)
    state, finite = tx.init(params), []
    for _ in range(2):
        updates, state = tx.update(params, state, params)
        finite.append(bool(snp.all(snp.isfinite(updates))))
    assert finite == [True, False]


def test_the_number_of_examples_is_needed():
    for make in (optim.sgld, optim.sghmc, optim.psgld, optim.ivon):
        with pytest.raises(TypeError, match="data_size"):
            make(0.1)  # pyright: ignore[reportCallIssue]


@each_sampler
def test_keys_of_another_generator(name):
    params = snp.zeros(3)
    updates = lambda tx: np.asarray(tx.update(params, tx.init(params), params)[0])
    usual, other = [
        updates(SAMPLERS[name](key=st.random.key(7, impl=impl))) for impl in ("threefry2x32", "rbg")
    ]
    assert np.isfinite(other).all() and not np.isclose(usual, other).any()


@each_sampler
def test_updates_need_parameters_and_real_ones(name):
    tx = SAMPLERS[name](key=0)
    with pytest.raises(ValueError, match=f"{name}: its update needs the parameters"):
        tx.update(snp.ones(2), tx.init(snp.ones(2)))
    z = snp.ones(2, np.complex64)
    with pytest.raises(TypeError, match=f"{name}: a complex parameter"):
        tx.update(z, tx.init(z), z)


# IVON


def ivon_step(m, mu, hess, g, at, t, *, rate, n, delta, b1, b2):
    """One step of algorithm 1 in NumPy."""
    variance = 1 / (n * (hess + delta))
    estimate = g * (at - m) / variance
    mu = b1 * mu + (1 - b1) * g
    bend = 0.5 * (1 - b2) ** 2 * (hess - estimate) ** 2 / (hess + delta)
    hess = b2 * hess + (1 - b2) * estimate + bend
    m = m - rate * (mu / (1 - b1**t) + delta * m) / (hess + delta)
    return m, mu, hess


def test_ivon_is_the_algorithm_of_the_paper():
    rng = np.random.default_rng(0)
    n, precision, b1, b2, rate = 7, 0.3, 0.8, 0.9, 0.05
    m, mu, hess = np.array([1.0, -2.0]), np.zeros(2), np.full(2, 0.5)
    with st.enable_x64():
        tx = optim.ivon(rate, data_size=n, prior_precision=precision, b1=b1, b2=b2, hess_init=0.5)
        params = snp.asarray(m)
        state = tx.init(params)
        for t in range(1, 5):
            at, g = m + 0.1 * rng.normal(size=2), rng.normal(size=2)
            updates, state = tx.update(snp.asarray(g), state, params, at=snp.asarray(at))
            params = optim.apply_updates(params, updates)
            m, mu, hess = ivon_step(
                m, mu, hess, g, at, t, rate=rate, n=n, delta=precision / n, b1=b1, b2=b2
            )
            np.testing.assert_allclose(params, m, rtol=1e-12)
            np.testing.assert_allclose(state.hess, hess, rtol=1e-12)
    assert types(state) == types(tx.update(params, state, params, at=params)[1])


def test_ivon_converges_to_the_inverse_of_the_diagonal_of_the_precision():
    n, prior = 40, 2.0
    x = np.random.default_rng(1).normal(size=(n, 3)) * [1.0, 0.5, 2.0]
    y = x @ [1.0, -1.0, 0.5] + 0.3
    precision = x.T @ x + prior * np.eye(3)
    mean = np.linalg.solve(precision, x.T @ y)
    with st.enable_x64():
        tx = optim.ivon(lambda t: 0.1 / (1 + t / 300), data_size=n, prior_precision=prior, b2=0.999)
        loss = lambda w: snp.mean((x @ w - y) ** 2) / 2

        @st.jit
        def run(key):
            params = snp.zeros(3, np.float64)

            def step(carry, key):
                params, state = carry
                drawn = tx.sample(state, params, key)
                updates, state = tx.update(st.grad(loss)(drawn), state, params, at=drawn)
                params = optim.apply_updates(params, updates)
                return (params, state), (params, state.hess)

            keys = st.random.split(key, 20_000)
            _, (means, hess) = st.lax.scan(step, (params, tx.init(params)), keys)
            return means[-5000:].mean(0), (n * hess[-5000:] + prior).mean(0)

        means, precisions = run(st.random.PRNGKey(3))
    # hess is a moving mean of 1,000 noisy estimates of standard deviation about √2 of itself, here
    # averaged over five such: 0.03; and the mean's noise is a small part of the posterior's.
    np.testing.assert_allclose(precisions, np.diag(precision), rtol=0.1)
    assert (abs(np.asarray(means) - mean) < 0.3 / np.sqrt(np.diag(precision))).all()


def test_ivon_draws_with_the_variance_of_its_state():
    tx = optim.ivon(0.1, data_size=10, prior_precision=2.0, hess_init=0.4)
    params = {"w": snp.full(40_000, 3.0), "b": snp.zeros(2)}
    state = tx.init(params)
    drawn = tx.sample(state, params, st.random.key(0))
    assert st.tree.structure(drawn) == st.tree.structure(params)
    np.testing.assert_allclose(np.std(drawn["w"]), (1 / 6) ** 0.5, rtol=5 / np.sqrt(80_000))
    np.testing.assert_allclose(np.mean(drawn["w"]), 3, atol=5 * (1 / 6) ** 0.5 / 200)
    again = tx.sample(state, params, st.random.PRNGKey(0))
    np.testing.assert_array_equal(drawn["w"], again["w"])


def test_ivon_without_its_draw_is_refused():
    tx = optim.ivon(0.1, data_size=10)
    params = snp.ones(2)
    with pytest.raises(ValueError, match=r"ivon: its update needs at=.*tx\.sample"):
        tx.update(params, tx.init(params), params)
    chained = optim.chain(optim.clip(1.0), tx)
    with pytest.raises(ValueError, match=r"ivon: its update needs at="):
        chained.update(params, chained.init(params), params)


def test_ivon_of_members_and_of_modules():
    tx: Any = optim.per_member(optim.ivon(0.1, data_size=10))
    params = snp.ones((3, 4))
    state = tx.init(params)
    keys = st.random.split(st.random.key(0), 3)
    drawn = tx.sample(state, params, keys)
    updates, _ = tx.update(params, state, params, at=drawn)
    one = optim.ivon(0.1, data_size=10)
    for i in range(3):
        at = one.sample(one.init(params[i]), params[i], keys[i])
        np.testing.assert_array_equal(drawn[i], at)
        alone, _ = one.update(params[i], one.init(params[i]), params[i], at=at)
        np.testing.assert_array_equal(updates[i], alone)

    model = st.nn.BatchNorm1d(3)
    state = one.init(model)
    drawn = one.sample(state, model, keys[0])
    buffers = lambda m: [np.asarray(b) for b in m.buffers()]
    for x, y in zip(buffers(drawn), buffers(model), strict=True):
        np.testing.assert_array_equal(x, y)
    updates, _ = one.update(model, state, model, at=drawn)
    optim.apply_updates(model, updates)


def test_precisions_of_ivon_stay_positive_whatever_the_gradients():
    tx = optim.ivon(0.0, data_size=50, prior_precision=3.0, b2=0.5)
    params = snp.zeros(1_000)

    def step(state, key):
        at = tx.sample(state, params, key)
        g = -10.0 * at + st.random.normal(key, at.shape)  # of a Hessian that is negative
        return tx.update(g, state, params, at=at)[1], (50 * state.hess + 3.0).min()

    least = st.lax.scan(step, tx.init(params), st.random.split(st.random.key(1), 20))[1]
    assert (np.asarray(least) > 0).all()


def test_ivon_draws_in_the_dtype_of_the_weights():
    tx = optim.ivon(0.1, data_size=50, prior_precision=3.0, hess_init=0.25)
    params = {"a": snp.full(20_000, 2.0), "b": snp.full(20_000, 2.0, snp.bfloat16)}
    state = tx.init(params)
    at = tx.sample(state, params, st.random.key(0))
    assert at["b"].dtype == snp.bfloat16
    deviation = (50 * 0.25 + 3.0) ** -0.5
    # 20,000 draws: the mean is known to σ/141, the deviation to σ/200; here within five times.
    for x in at.values():
        noise = np.asarray(x, np.float64) - 2
        assert abs(noise.mean()) < deviation * 5 / 141
        assert abs(noise.std() - deviation) < deviation * 5 / 200
