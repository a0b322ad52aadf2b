"""Schedules of several pieces; their values are in ``test_schedules``."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim


def test_one_cycle_goes_up_and_down():
    for make in (optim.linear_onecycle_schedule, optim.cosine_onecycle_schedule):
        values = [float(make(100, 2.0)(t)) for t in range(101)]
        peak = int(np.argmax(values))
        assert peak == 30 and values[peak] == 2
        assert np.all(np.diff(values[: peak + 1]) > 0) and np.all(np.diff(values[peak:]) < 0)


def test_restarts():
    one = {"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 2, "decay_steps": 4}
    schedule = optim.sgdr_schedule([one, one, one])
    values = [float(schedule(t)) for t in range(12)]
    np.testing.assert_allclose(values, values[:4] * 3, atol=1e-6)


def test_chains_explore_without_noise_and_then_sample():
    steps, cycles = 10, 3
    warmth = optim.cyclical_temperature_schedule(2.0, steps, exploration=0.7)
    counts = np.arange(steps * cycles)
    part = counts % steps / steps
    np.testing.assert_array_equal(st.jit(st.vmap(warmth))(counts), np.where(part < 0.7, 0.0, 2.0))

    def moves(key):
        rate = optim.cyclical_schedule(0.2, steps)
        tx = optim.sgld(rate, data_size=1, temperature=warmth, key=key)
        step = lambda state, _: tx.update(snp.zeros(()), state, snp.zeros(()))[::-1]
        return st.lax.scan(step, tx.init(snp.zeros(())), None, length=len(counts))[1]

    np.testing.assert_array_equal(np.asarray(st.jit(moves)(st.random.key(0))) == 0, part < 0.7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.piecewise_interpolate_schedule("cubic", 1.0), "'linear' or 'cosine', got"),
        (lambda: optim.piecewise_interpolate_schedule("linear", 1.0, {2: -1}), "scale at 2 must"),
        (lambda: optim.linear_onecycle_schedule(0, 1.0), "transition_steps must be above 0"),
        (lambda: optim.cosine_onecycle_schedule(-1, 1.0), "transition_steps must be above 0"),
        (lambda: optim.sgdr_schedule([]), "at least one cosine, got none"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_messages_of_cycles():
    for cycle in (optim.linear_onecycle_schedule, optim.cosine_onecycle_schedule):
        with pytest.raises(ValueError, match=f"^{cycle.__name__}: div_factor must be above 0"):
            cycle(10, 1.0, div_factor=0)
    with pytest.raises(TypeError, match="decay_steps"):
        optim.sgdr_schedule([{"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 1}])
