"""Scaling by numbers and schedules, decayed weights."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from tests.optim.running import assert_figures


@pytest.mark.parametrize(
    ("name", "tx"),
    [
        (
            "add_decayed_weights schedule",
            optim.add_decayed_weights(optim.linear_schedule(0.1, 0.5, 4)),
        ),
        ("scale_by_schedule", optim.scale_by_schedule(optim.exponential_decay(0.5, 2, 0.3))),
    ],
)
def test_values_of_optax(name, tx):
    assert_figures(name, tx, atol=1e-5)


def test_a_learning_rate_may_be_a_traced_number():
    def first(rate):
        tx = optim.sgd(rate)
        return tx.update(snp.ones(2), tx.init(snp.ones(2)))[0]

    for f in (first, st.jit(first)):
        np.testing.assert_allclose(f(0.5), [-0.5, -0.5])
        np.testing.assert_allclose(st.jvp(f, (0.5,), (1.0,))[1], [-1, -1])
        np.testing.assert_allclose(st.vmap(f)(snp.array([0.1, 1.0])), [[-0.1] * 2, [-1] * 2])


def test_a_strong_learning_rate_leaves_bfloat16_as_it_is():
    tx = optim.sgd(snp.array(0.5))
    g = snp.ones(2, snp.bfloat16)
    assert tx.update(g, tx.init(g))[0].dtype == snp.bfloat16


def test_sign_may_stay():
    tx = optim.scale_by_learning_rate(0.5, flip_sign=False)
    assert tx.update(snp.array(1.0), tx.init(None))[0] == 0.5
    scheduled = optim.scale_by_learning_rate(lambda count: 0.5, flip_sign=False)
    assert scheduled.update(snp.array(1.0), scheduled.init(None))[0] == 0.5


def test_decayed_weights_of_some_leaves():
    tx = optim.add_decayed_weights(0.5, {"b": False, "w": True})
    params = {"b": snp.ones(1), "w": snp.ones(1)}
    updates, _ = tx.update({"b": snp.zeros(1), "w": snp.zeros(1)}, tx.init(params), params)
    assert updates["b"][0] == 0 and updates["w"][0] == 0.5


def test_what_is_refused():
    with pytest.raises(TypeError, match="scale: step_size must be a number or an array, got '2'"):
        optim.scale("2")
    with pytest.raises(ValueError, match="learning_rate must be at least 0, got -2"):
        optim.scale_by_learning_rate(-2)
    with pytest.raises(ValueError, match="add_decayed_weights: weight_decay must be at least 0"):
        optim.add_decayed_weights(-1e-4)
    with pytest.raises(ValueError, match=r"add_noise: gamma must be at least 0"):
        optim.add_noise(0.1, -1.0, key=0)
