"""``MultiSteps``: values of optax, which batches count, what is skipped."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from tests.optim.figures import gradients, start
from tests.optim.running import assert_figures, assert_stable, flat, run, run_scan


def test_values_of_optax():
    assert_figures("multi_steps", optim.MultiSteps(optim.adam(0.1), 2).gradient_transformation())
    growing = optim.MultiSteps(optim.adam(0.1), lambda n: 1 + n, use_grad_mean=False)
    assert_figures("multi_steps sum", growing.gradient_transformation())


def test_mean_of_batches_is_one_step():
    tx, inner = optim.MultiSteps(optim.adamw(0.1), 3), optim.adamw(0.1)
    params = start(np.float32)
    grads = [gradients(t, np.float32) for t in range(3)]
    state = tx.init(params)
    for t, g in enumerate(grads):
        updates, state = tx.update(g, state, params)
        assert bool(tx.has_updated(state)) == (t == 2)
        assert t == 2 or not flat(updates).any()
    expected, own = inner.update(st.tree.mean(grads), inner.init(params), params)
    np.testing.assert_allclose(flat(updates), flat(expected), rtol=1e-5)
    np.testing.assert_allclose(flat(state.inner_opt_state), flat(own), rtol=1e-5)
    assert tx.inner_opt is not None and int(state.gradient_step) == 1


def test_sums_are_kept_in_float32():
    tx = optim.MultiSteps(optim.sgd(1.0), 300, use_grad_mean=False)
    g = snp.ones((), snp.bfloat16)
    state = tx.init(g)
    update = st.jit(tx.update)
    for _ in range(300):
        updates, state = update(g, state)
    # 256 + 1 is 256 in bfloat16, whose sum would stop there.
    assert updates.dtype == ml_dtypes.bfloat16 and float(updates) == -300
    assert_stable(tx, ml_dtypes.bfloat16)


def test_batches_that_are_not_finite_are_left_out():
    tx = optim.MultiSteps(optim.sgd(1.0), 2, should_skip_update_fn=optim.skip_not_finite)
    batches = [1.0, np.nan, 3.0, np.inf, 5.0, 7.0]
    for update in (tx.update, st.jit(tx.update)):
        state, seen = tx.init(snp.zeros(1)), []
        for b in batches:
            updates, state = update(snp.array([b]), state)
            seen.append((float(updates[0]), bool(state.skip_state["should_skip"])))
        assert seen == [(0, False), (0, True), (-2, False), (0, True), (0, False), (-6, False)]


def test_members_may_be_within_or_without():
    within = optim.MultiSteps(optim.per_member(optim.lamb(0.1)), 2).gradient_transformation()
    without = optim.per_member(optim.MultiSteps(optim.lamb(0.1), 2).gradient_transformation())
    results = []
    for tx in (within, without):
        params = st.stack([start(np.float32), st.tree.map(lambda x: 2 * x, start(np.float32))])
        state, update = tx.init(params), st.jit(tx.update)
        for t in range(4):
            g = st.stack([gradients(t, np.float32), gradients(t + 1, np.float32)])
            updates, state = update(g, state, params)
            params = optim.apply_updates(params, updates)
        results.append(flat(params))
    np.testing.assert_allclose(*results, rtol=1e-5)


def test_each_batch_its_step():
    tx = optim.MultiSteps(optim.adam(0.1), 1).gradient_transformation()
    expected = flat(run(optim.adam(0.1))[0])
    np.testing.assert_allclose(flat(run_scan(tx)[0]), expected, rtol=0, atol=3e-6)


def test_what_is_refused():
    with pytest.raises(ValueError, match="MultiSteps: every_k_schedule must be at least 1, got 0"):
        optim.MultiSteps(optim.sgd(0.1), 0)
