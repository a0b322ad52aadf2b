"""The worked examples: what they compute is right, and what they say of themselves holds."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from examples import (
    gallery,
    gauss_newton,
    hmc,
    implicit,
    maml,
    model_ensembling,
    ode,
    per_sample_gradients,
    rnn,
)


def same_trees(got, want, rtol):
    for a, b in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * float(snp.max(snp.abs(b))))


def test_gauss_newton_recovers_the_curve():
    found, truth, history = gauss_newton.main()
    for name, value in truth.items():
        np.testing.assert_allclose(found[name], value, rtol=0.02)
    assert history[-1] < 60 * 0.02**2 * 1.5 < history[0]


def test_conjugate_gradients_solve():
    a = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
    x = gauss_newton.conjugate_gradients(lambda v: a @ v, snp.array([1.0, 2.0]), 2)
    np.testing.assert_allclose(a @ x, [1.0, 2.0], rtol=1e-5)


def test_maml_learns_to_learn():
    before, after = maml.main(300)
    assert after < before / 3


def test_maml_gradients_are_those_of_a_loop_over_tasks():
    params = maml.init(st.random.key(0), (1, 8, 1))
    tasks = maml.sample_tasks(st.random.key(1), 4)

    def one_by_one(params):
        return sum(maml.after_adapting(params, [x[i] for x in tasks]) for i in range(4)) / 4

    got = st.jit(st.grad(maml.mean_after_adapting))(params, tasks)
    same_trees(got, st.grad(one_by_one)(params), 1e-4)


def test_hmc_samples_the_density():
    mean, var, accepted = hmc.main(64, 300)
    np.testing.assert_allclose(mean, [0, 0.5], atol=0.06)
    np.testing.assert_allclose(var, [1, 0.75], atol=0.15)
    assert snp.mean(accepted) > 0.9


def test_hmc_chains_together_are_the_chains_alone():
    keys, starts = st.random.split(st.random.key(3), 4), np.ones((4, 2), np.float32)
    run = lambda key, start: hmc.sample_chain(key, hmc.banana, start, 5)[0]
    together = st.jit(st.vmap(run))(keys, starts)
    for i in range(4):
        np.testing.assert_allclose(together[i], run(keys[i], starts[i]), rtol=1e-4, atol=1e-5)


def test_rnn_learns_the_adding_problem():
    first, last = rnn.main(400)
    assert last < 0.1 < first


def test_rnn_gradients_are_those_of_the_loop_written_out():
    params = rnn.init(st.random.key(0), hidden=5)
    xs, y = rnn.sample(st.random.key(1), 7)

    def written_out(params):
        h = snp.zeros(5)
        for x in xs:
            h = rnn.cell(params, h, x)
        return (h @ params["out"] - y) ** 2

    scanned = lambda params: (rnn.predict(params, xs) - y) ** 2
    same_trees(st.jit(st.grad(scanned))(params), st.grad(written_out)(params), 1e-4)


def test_ode_gradients_are_those_of_steps_written_out():
    """The adjoint agrees with the derivative of many small fixed steps (RK4), in 64 bits."""

    def fixed(y, t1, p, steps=400):
        h = t1 / steps

        def step(y, i):
            t, f = i * h, lambda t, y: ode.pendulum(t, y, p)
            k1 = f(t, y)
            k2 = f(t + h / 2, y + h / 2 * k1)
            k3 = f(t + h / 2, y + h / 2 * k2)
            k4 = f(t + h, y + h * k3)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        return st.lax.scan(step, y, snp.arange(steps))[0]

    with st.enable_x64():
        y, p = snp.array([1.0, 0.5]), {"gravity": snp.array(9.81), "friction": snp.array(0.3)}
        by_adjoint = lambda y, t, p: snp.sum(ode.odeint(ode.pendulum, y, 0.0, t, p, 1e-9) ** 2)
        by_steps = lambda y, t, p: snp.sum(fixed(y, t, p) ** 2)
        got = st.jit(st.grad(by_adjoint, (0, 1, 2)))(y, 2.0, p)
        want = st.jit(st.grad(by_steps, (0, 1, 2)))(y, 2.0, p)
        same_trees(got, want, 1e-6)


def test_ode_finds_the_pendulum():
    found, truth = ode.main()
    for name, value in truth.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3)


def test_ode_takes_more_steps_where_more_is_asked():
    f = lambda t, y: ode.pendulum(t, y, {"gravity": 9.81, "friction": 0.3})
    coarse, fine = (
        int(ode.solve(f, snp.array([1.0, 0.0]), 0.0, 2.0, tolerance)[1])
        for tolerance in (1e-2, 1e-5)
    )
    assert coarse < fine / 3


def test_implicit_gradients_are_limits_of_differences():
    with st.enable_x64():
        x, y = implicit.data(40, features=5)
        x, y = x.astype(np.float64), y.astype(np.float64)
        f = lambda s: implicit.loss(implicit.fit(s, x, y), x, y)
        slope = st.grad(f)(-3.0)
        difference = (f(-3.0 + 1e-4) - f(-3.0 - 1e-4)) / 2e-4
        np.testing.assert_allclose(slope, difference, rtol=1e-3)


def test_implicit_differentiation_lowers_the_validation_loss():
    history, _ = implicit.main()
    assert history[-1] < history[0] - 0.05


def test_networks_together_are_those_in_a_loop(monkeypatch):
    monkeypatch.setattr(model_ensembling.importlib.util, "find_spec", lambda name: None)
    difference, theirs = model_ensembling.main(3)
    assert difference < 1e-5 and theirs is None  # logits are of size 0.1, with float32's rounding


def test_networks_of_pytorch_together_are_those_of_its_own_vmap():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    originals, models = model_ensembling.from_pytorch(3, width=16)
    st.random.manual_seed(0)
    minibatches = model_ensembling.fake_images(3)
    assert model_ensembling.largest_difference(models, minibatches) < 1e-5

    params, buffers = torch.func.stack_module_state(originals)
    call = lambda p, b, x: torch.func.functional_call(originals[0], (p, b), (x,))
    tensors = torch.tensor(np.array(minibatches))
    with torch.no_grad():
        own = torch.func.vmap(call)(params, buffers, tensors)
        shared = torch.func.vmap(call, in_dims=(0, 0, None))(params, buffers, tensors[0])
    got = model_ensembling.together(models, minibatches)
    for a, b in zip(got, (own, shared), strict=True):
        assert a.shape == tuple(b.shape) == (3, 64, 10)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_gradients_of_samples_together_are_those_in_a_loop():
    difference, norms = per_sample_gradients.main(4)
    assert difference < 1e-4 and norms.shape == (4,) and float(norms.min()) > 1


def test_gradients_of_samples_have_the_batchs_as_their_mean():
    st.random.manual_seed(1)
    model = per_sample_gradients.SimpleCNN(2)
    images, targets = per_sample_gradients.fake_batch(3)
    gradients = per_sample_gradients.together(model, images, targets)
    params, buffers = per_sample_gradients.arrays_of(model)

    def whole(params):
        out = st.func.functional_call(model, (params, buffers), (images,))
        return st.nn.functional.nll_loss(out, targets)

    mean = per_sample_gradients.clipped(gradients, snp.inf)
    same_trees(mean, st.grad(whole)(params), 1e-4)
    small = per_sample_gradients.clipped(gradients, 0.1)
    assert float(st.optim.global_norm(small)) <= 0.1 * (1 + 1e-5)


def test_networks_disagree_where_there_was_no_data():
    pytest.importorskip("matplotlib")
    figure, spread = gallery.sine(60)
    assert figure.axes and spread[0] > 2 * spread[100]  # far from the data, and among them
