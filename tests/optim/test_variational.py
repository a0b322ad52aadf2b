"""IVON: its steps against algorithm 1 in NumPy, and the posterior that it finds."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from tests.optim.running import flat, types

SIZE, PRIOR = 50, 3.0


def algorithm(tx, grads, draws, *, rate, beta1, beta2, hess, start):
    """Algorithm 1 as it is written there, with λ = N and its weight decay δ/N; means and h."""
    m, h, g, delta = start.copy(), np.full_like(start, hess), np.zeros_like(start), PRIOR / SIZE
    for t, (grad, theta) in enumerate(zip(grads, draws, strict=True), 1):
        variance = 1 / (SIZE * (h + delta))
        estimate = grad * (theta - m) / variance
        g = beta1 * g + (1 - beta1) * grad
        h = (
            beta2 * h
            + (1 - beta2) * estimate
            + (1 - beta2) ** 2 * (h - estimate) ** 2 / (h + delta) / 2
        )
        m = m - rate * (g / (1 - beta1**t) + delta * m) / (h + delta)
    return m, h


def test_steps_are_those_of_the_algorithm():
    rng = np.random.default_rng(0)
    grads, noise = rng.normal(size=(2, 7, 4))
    start = rng.normal(size=4)
    arguments = {"beta1": 0.8, "beta2": 0.7}
    with st.enable_x64():
        tx = optim.ivon(0.05, data_size=SIZE, prior_precision=PRIOR, hess_init=0.5, **arguments)
        params, state, draws = snp.asarray(start), tx.init(snp.asarray(start)), []
        for g, e in zip(grads, noise, strict=True):
            draws.append(np.asarray(params + e * snp.sqrt(tx.variance(state))))
            updates, state = tx.update(g, state, params, draw=draws[-1])
            params = optim.apply_updates(params, updates)
        m, h = algorithm(tx, grads, draws, rate=0.05, hess=0.5, start=start, **arguments)
        np.testing.assert_allclose(params, m, 1e-12)
        np.testing.assert_allclose(state.precision, SIZE * h + PRIOR, 1e-12)
        np.testing.assert_allclose(tx.variance(state), 1 / (SIZE * h + PRIOR), 1e-12)
    assert int(state.count) == 7


def quadratic():
    """The Hessian of a mean loss, its mode, and the precision and mode of the posterior."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(3, 3))
    hessian, mode = root @ root.T + np.diag([0.1, 1.0, 10.0]), np.array([1.0, -2.0, 0.5])
    precision = SIZE * hessian + PRIOR * np.eye(3)
    return hessian, mode, precision, np.linalg.solve(precision, SIZE * hessian @ mode)


def chains(tx, loss, keys, steps, start):
    """Means and variances over the second half of the steps, averaged; of each chain."""

    def chain(key):
        def step(carry, key):
            params, state = carry
            draw = tx.sample(state, params, key)
            updates, state = tx.update(st.grad(loss)(draw), state, params, draw=draw)
            params = optim.apply_updates(params, updates)
            return (params, state), (params, tx.variance(state))

        carry = start, tx.init(start)
        seen = st.lax.scan(step, carry, st.random.split(key, steps))[1]
        return [x[steps // 2 :].mean(0) for x in seen]

    return [np.asarray(x) for x in st.jit(st.vmap(chain))(keys)]


def test_a_quadratic_has_its_mode_and_the_inverse_diagonal_of_its_precision():
    hessian, mode, precision, posterior_mode = quadratic()
    loss = lambda w: (w - mode) @ hessian @ (w - mode) / 2
    with st.enable_x64():
        tx = optim.ivon(0.05, data_size=SIZE, prior_precision=PRIOR, beta2=0.995)
        keys = st.random.split(st.random.key(0), 100)
        means, variances = chains(tx, loss, keys, 6_000, snp.zeros(3))
    for found, expected in (
        (means, posterior_mode),
        (variances, 1 / np.diag(precision)),
    ):
        error = found.std(0) / np.sqrt(len(found))
        assert (error < 0.02 * np.abs(expected)).all()
        assert (np.abs(found.mean(0) - expected) < 4 * error).all()


def test_precisions_stay_positive_whatever_the_gradients():
    tx = optim.ivon(0.0, data_size=SIZE, prior_precision=PRIOR, beta2=0.5)
    params = snp.zeros(1_000)

    def step(state, key):
        draw = tx.sample(state, params, key)
        g = -10.0 * draw + st.random.normal(key, draw.shape)  # of a Hessian that is negative
        return tx.update(g, state, params, draw=draw)[1], state.precision.min()

    least = st.lax.scan(step, tx.init(params), st.random.split(st.random.key(1), 20))[1]
    assert (np.asarray(least) > 0).all()


def test_members_are_as_each_alone():
    hessian, mode, *_ = quadratic()
    loss = lambda w: (w - mode) @ hessian @ (w - mode) / 2
    tx = optim.ivon(0.05, data_size=SIZE, prior_precision=PRIOR, beta2=0.99)
    keys = st.random.split(st.random.key(2), 3)
    together = chains(tx, loss, keys, 50, snp.zeros(3))
    for i in range(3):
        for all_of, own in zip(
            together, chains(tx, loss, keys[i : i + 1], 50, snp.zeros(3)), strict=True
        ):
            np.testing.assert_allclose(all_of[i], own[0], 1e-4)
    assert not np.isclose(together[0][0], together[0][1]).any()


def test_per_member_takes_a_draw_of_each():
    tx = optim.per_member(
        optim.ivon, learning_rate=[0.1, 0.2], data_size=SIZE, prior_precision=PRIOR
    )
    params = snp.array([[1.0, 2.0], [1.0, 2.0]])
    updates, _ = tx.update(params, tx.init(params), params, draw=params + 0.5)
    np.testing.assert_allclose(updates[1], 2 * updates[0], 1e-6)


def test_modules_keep_what_is_not_trained():
    model = nn.Sequential(nn.Linear(2, 3, key=st.random.key(0)), nn.BatchNorm1d(3)).eval()
    tx = optim.ivon(0.1, data_size=SIZE, prior_precision=PRIOR)
    x, state = snp.ones((4, 2)), tx.init(model)
    draw = tx.sample(state, model, st.random.key(1))
    assert type(draw) is type(model)
    np.testing.assert_array_equal(draw[1].running_mean, model[1].running_mean)
    assert not np.isclose(np.asarray(draw[0].weight), np.asarray(model[0].weight)).any()
    grads = st.grad(lambda m: (m(x) ** 2).mean())(draw)
    updates, state = tx.update(grads, state, model, draw=draw)
    after = optim.apply_updates(model, updates)
    np.testing.assert_array_equal(after[1].running_var, model[1].running_var)
    assert not np.isclose(np.asarray(after[0].weight), np.asarray(model[0].weight)).all()


def test_draws_have_the_variance_and_dtype():
    tx = optim.ivon(0.1, data_size=SIZE, prior_precision=PRIOR, hess_init=0.25)
    params = {"a": snp.full(20_000, 2.0), "b": snp.full(20_000, 2.0, snp.bfloat16)}
    state = tx.init(params)
    assert {x.dtype.name for x in st.tree.leaves(state.precision)} == {"float32"}
    draw = tx.sample(state, params, st.random.PRNGKey(0))
    assert draw["b"].dtype == snp.bfloat16
    deviation = (SIZE * 0.25 + PRIOR) ** -0.5
    # 20,000 draws: the mean is known to σ/141, the deviation to σ/200; here within five times.
    for x in draw.values():
        noise = np.asarray(x, np.float64) - 2
        assert abs(noise.mean()) < deviation * 5 / 141
        assert abs(noise.std() - deviation) < deviation * 5 / 200
    assert not np.isclose(flat(draw["a"]), flat(draw["b"]), atol=0.01).all()
    again = tx.sample(state, params, st.random.key(0))
    np.testing.assert_array_equal(again["a"], draw["a"])


def test_the_state_keeps_its_types_and_schedules_are_of_the_count():
    tx = optim.ivon(lambda n: 0.1 / (1 + n), data_size=SIZE, prior_precision=PRIOR, beta2=0.0)
    params = {"w": snp.zeros(2, snp.bfloat16)}
    state = tx.init(params)
    draw, g = {"w": snp.ones(2)}, {"w": snp.ones(2)}
    first, after = tx.update(g, state, params, draw=draw)
    assert types(state) == types(after)
    second, _ = tx.update(g, state._replace(count=snp.array(1, snp.int32)), params, draw=draw)
    ratio = 0.5 * (1 - 0.9) / (1 - 0.9**2)  # the rate, and the correction of the mean
    np.testing.assert_allclose(second["w"], ratio * first["w"], 1e-5)


@pytest.mark.parametrize("hyperparams", [None, {"learning_rate": [0.1, 0.2]}])
def test_fit_is_refused(hyperparams):
    numbers = {"data_size": 8, "prior_precision": 1.0}
    if hyperparams is None:
        tx = optim.ivon(0.1, **numbers)
    else:
        tx, hyperparams = optim.ivon, hyperparams | numbers
    ensemble = st.Ensemble(lambda w, x: w * x, snp.ones(2))
    with pytest.raises(ValueError, match=r"ivon: its update needs draw=.* fit takes gradients at"):
        ensemble.fit(
            lambda m, x: (m(x) ** 2).mean(), snp.ones(8), tx, steps=1, hyperparams=hyperparams
        )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"learning_rate": -0.1}, "ivon: learning_rate must be at least 0, got -0.1"),
        ({"data_size": 0}, "ivon: data_size must be at least 1, got 0"),
        ({"prior_precision": 0.0}, "ivon: prior_precision must be above 0, got 0.0"),
        ({"beta1": 1.0}, "ivon: beta1 must be at least 0 and below 1, got 1.0"),
        ({"beta2": -0.1}, "ivon: beta2 must be at least 0 and below 1, got -0.1"),
        ({"hess_init": 0.0}, "ivon: hess_init must be above 0, got 0.0"),
    ],
)
def test_numbers_out_of_range(changed, message):
    with pytest.raises(ValueError, match=message):
        optim.ivon(**({"learning_rate": 0.1, "data_size": 5, "prior_precision": 1.0} | changed))


def test_what_does_not_fit():
    tx = optim.ivon(0.1, data_size=5, prior_precision=1.0)
    params = {"w": snp.ones(2)}
    state = tx.init(params)
    with pytest.raises(TypeError, match=r"ivon: params\['n'\] must be of real floats, got int32"):
        tx.init({"n": snp.array([1])})
    with pytest.raises(ValueError, match="ivon: its update needs the parameters"):
        tx.update(params, state)
    with pytest.raises(ValueError, match=r"draw\['w'\] has shape \(3,\)"):
        tx.update(params, state, params, draw={"w": snp.ones(3)})
    with pytest.raises(ValueError, match=r"params and state\.precision differ"):
        tx.sample(state, {"v": snp.ones(2)}, st.random.key(0))
    with pytest.raises(TypeError, match=r"random\.ivon\.sample: expected a key"):
        tx.sample(state, params, snp.ones(2))
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'data_size'"):
        optim.ivon(0.1, prior_precision=1.0)  # pyright: ignore[reportCallIssue]
