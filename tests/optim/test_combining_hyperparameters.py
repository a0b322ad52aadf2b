"""``inject_hyperparams``: values of optax, what is read, changed, scheduled, static, refused."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from tests.optim.figures import OPTIMISERS, gradients, start
from tests.optim.running import assert_figures, assert_stable, flat, run, run_scan, types

NAMES = sorted({name for name, _, _ in OPTIMISERS})


def test_values_of_optax():
    make = optim.inject_hyperparams(optim.adamw)
    tx = make(learning_rate=optim.linear_schedule(0.1, 0.0, 5), b1=0.8, weight_decay=0.2)
    # 1 − b2 of the float32 array is known to 2⁻¹⁴ of it.
    assert_figures("inject_hyperparams", tx, atol=1e-5)


def test_hyperparameters_are_arrays_of_the_state():
    tx = optim.inject_hyperparams(optim.adam)(0.1, b1=snp.array(0.8), nesterov=True)
    state = tx.init(start(np.float32))
    assert sorted(state.hyperparams) == ["b1", "b2", "eps", "eps_root", "learning_rate"]
    assert {(x.dtype.name, x.shape, x.weak_type) for x in state.hyperparams.values()} == {
        ("float32", (), False)
    }
    assert float(state.hyperparams["b1"]) == np.float32(0.8)


def test_changing_one_changes_the_next_update_and_compiles_nothing_anew():
    tx = optim.inject_hyperparams(optim.sgd)(learning_rate=0.1)
    traced = []

    @st.jit
    def update(grads, state):
        traced.append(1)
        return tx.update(grads, state)

    state = tx.init(snp.zeros(1))
    updates, state = update(snp.ones(1), state)
    np.testing.assert_allclose(updates, [-0.1])
    state.hyperparams["learning_rate"] = snp.float32(0.5)
    updates, state = update(snp.ones(1), state)
    np.testing.assert_allclose(updates, [-0.5])
    assert len(traced) == 1
    state.hyperparams["learning_rate"] = 0.25
    updates, after = update(snp.ones(1), state)
    np.testing.assert_allclose(updates, [-0.25])
    assert types(after) == types(tx.init(snp.zeros(1)))


def test_schedules_show_the_value_of_the_last_update():
    tx = optim.inject_hyperparams(optim.sgd)(
        learning_rate=optim.piecewise_constant_schedule(1.0, {2: 0.1}),
        momentum=optim.linear_schedule(0.0, 1.0, 4),
    )
    state = tx.init(snp.zeros(1))
    seen = []
    for _ in range(3):
        seen.append({k: float(v) for k, v in state.hyperparams.items()})
        _, state = tx.update(snp.ones(1), state)
    seen.append({k: float(v) for k, v in state.hyperparams.items()})
    assert [round(s["learning_rate"], 6) for s in seen] == [1, 1, 1, 0.1]
    assert [s["momentum"] for s in seen] == [0, 0, 0.25, 0.5]
    assert int(state.count) == 3
    assert_stable(tx)


@pytest.mark.parametrize("name", NAMES)
def test_same_as_with_numbers_of_its_own(name):
    plain = getattr(optim, name)(learning_rate=0.1)
    injected = optim.inject_hyperparams(getattr(optim, name))(learning_rate=0.1)
    # 1 − b2 differs by 2⁻¹⁴ of it where b2 is float32; RAdam's ρ by more.
    atol = 1e-2 if name == "radam" else 2e-5
    np.testing.assert_allclose(flat(run(injected)[0]), flat(run(plain)[0]), rtol=0, atol=atol)
    assert_stable(injected)


@pytest.mark.parametrize("name", NAMES)
def test_own_learning_rates_under_vmap_are_separate_runs(name):
    rates = np.array([0.01, 0.1, 0.3], np.float32)
    make = optim.inject_hyperparams(getattr(optim, name))

    def trained(rate):
        return run_scan(make(learning_rate=rate), compiled=False)[0]

    together = st.jit(st.vmap(trained))(rates)
    for i, rate in enumerate(rates):
        alone = run(make(learning_rate=rate))[0]
        atol = 1e-4 if name == "radam" else 3e-6
        np.testing.assert_allclose(flat(st.take(together, i)), flat(alone), rtol=0, atol=atol)


def test_masks_types_and_switches_stay_as_they_are():
    tx = optim.inject_hyperparams(optim.adamw)(
        0.1,
        mu_dtype=ml_dtypes.bfloat16,
        mask=lambda params: st.tree.map(lambda x: x.ndim > 1, params),
        nesterov=True,
    )
    assert_stable(tx)
    state = tx.init(start(np.float32))
    assert "mask" not in state.hyperparams and "mu_dtype" not in state.hyperparams
    factor = optim.inject_hyperparams(optim.adafactor)(0.1, min_dim_size_to_factor=2)
    assert "min_dim_size_to_factor" not in factor.init(start(np.float32)).hyperparams
    st.jit(factor.update)(
        gradients(0, np.float32), factor.init(start(np.float32)), start(np.float32)
    )


def test_static_args():
    make = optim.inject_hyperparams(optim.sgd, static_args="momentum")
    assert list(make(0.1, momentum=0.9).init(snp.zeros(1)).hyperparams) == ["learning_rate"]
    with pytest.raises(ValueError, match=r"static_args names \['mometum'\]; there are \['learn"):
        optim.inject_hyperparams(optim.sgd, static_args=["mometum"])


def test_dtype_of_hyperparameters():
    make = optim.inject_hyperparams(optim.sgd, hyperparam_dtype=ml_dtypes.bfloat16)
    assert make(0.1).init(snp.zeros(1)).hyperparams["learning_rate"].dtype == ml_dtypes.bfloat16
    kept = make(snp.float32(0.1)).init(snp.zeros(1)).hyperparams["learning_rate"]
    assert kept.dtype == np.float32


def test_numbers_are_refused_at_once():
    with pytest.raises(ValueError, match="learning_rate must be at least 0"):
        optim.inject_hyperparams(optim.adam)(-0.1)


def test_a_function_that_is_no_schedule():
    def factory(step_size, keep):
        return optim.scale(step_size)

    with pytest.raises(
        TypeError, match=r"keep was taken for a schedule, but keep\(count\) gave al"
    ):
        optim.inject_hyperparams(factory)(0.1, keep=lambda count: "all")
    with pytest.raises(TypeError, match="name it in static_args"):
        optim.inject_hyperparams(factory)(0.1, keep=lambda count: snp.ones(2))
    tx = optim.inject_hyperparams(factory, static_args="keep")(0.1, keep=lambda count: "all")
    assert list(tx.init(snp.zeros(1)).hyperparams) == ["step_size"]


def test_a_schedule_of_any_number():
    tx = optim.inject_hyperparams(optim.adam)(0.1, b1=lambda count: 0.5 / (count + 1))
    state = tx.init(snp.zeros(1))
    _, state = tx.update(snp.ones(1), tx.update(snp.ones(1), state)[1])
    assert float(state.hyperparams["b1"]) == 0.25
    with pytest.raises(TypeError, match=r"^adam: b1 must be a number or an array, got <function"):
        optim.adam(0.1, b1=lambda count: 0.5)
