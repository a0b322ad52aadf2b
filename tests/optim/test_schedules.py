"""Schedules: values of optax, in and out of programs, what is refused."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from tests.optim.figures import COUNTS, SCHEDULES, numbers

IDS = [f"{name}-{i}" for i, (name, *_) in enumerate(SCHEDULES)]


@pytest.mark.parametrize("case", SCHEDULES, ids=IDS)
def test_values_of_optax(case):
    name, args, kwargs, line = case
    schedule = getattr(optim, name)(*args, **kwargs)
    # Figures in float32, of a few operations.
    close = {"rtol": 1e-5, "atol": 2e-7}
    np.testing.assert_allclose([float(schedule(c)) for c in COUNTS], numbers(line), **close)
    arrays = [float(schedule(snp.array(c))) for c in COUNTS]
    np.testing.assert_allclose(arrays, numbers(line), **close)
    values = st.jit(st.vmap(lambda c: snp.asarray(schedule(c))))(snp.array(COUNTS))
    np.testing.assert_allclose(values, numbers(line), **close)


@pytest.mark.parametrize("case", SCHEDULES, ids=IDS)
def test_as_a_learning_rate(case):
    name, args, kwargs, line = case
    tx = optim.sgd(getattr(optim, name)(*args, **kwargs))
    state, seen = tx.init(snp.zeros(1)), []
    for _ in range(4):
        updates, state = tx.update(snp.ones(1), state)
        seen.append(-float(updates[0]))
        assert updates.dtype == np.float32
    np.testing.assert_allclose(seen, numbers(line)[:4], rtol=1e-5, atol=2e-7)


def test_numbers_of_a_schedule_may_be_traced():
    def at_five(peak):
        return optim.warmup_cosine_decay_schedule(0.0, peak, 4, 12, end_value=0.1)(5)

    for f in (at_five, st.jit(at_five)):
        np.testing.assert_allclose(
            st.vmap(f)(snp.array([1.0, 2.0])), [at_five(1.0), at_five(2.0)], rtol=1e-6
        )
        assert np.isfinite(float(st.grad(f)(1.0)))
    assert np.isfinite(float(at_five(snp.array(0.0))))


def test_negative_counts_do_not_matter_after_a_join():
    # A schedule is computed at all counts, also before its turn: no derivative may meet a NaN.
    def value(rate):
        schedule = optim.join_schedules(
            [optim.constant_schedule(rate), optim.exponential_decay(rate, 2, 0.5)], [5]
        )
        return schedule(snp.array(2))

    np.testing.assert_allclose(st.grad(value)(0.3), 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.polynomial_schedule(1, 0, 1, -3), "transition_steps must be at least 0"),
        (lambda: optim.linear_schedule(1, 0, 3, -1), "transition_begin must be at least 0"),
        (lambda: optim.exponential_decay(1, 0, 0.5), "transition_steps must be above 0"),
        (lambda: optim.exponential_decay(1, 5, 0), "decay_rate must be above 0, got 0"),
        (lambda: optim.cosine_decay_schedule(1, 0), "decay_steps must be above 0, got 0"),
        (lambda: optim.piecewise_constant_schedule(1, {3: -1}), "the scale at 3 must be at least"),
        (lambda: optim.warmup_cosine_decay_schedule(0, 1, 5, 5), "must be more; got 5 and warmup"),
        (lambda: optim.join_schedules([lambda c: 1], [2]), "got 1 boundaries for 1 schedules"),
        (
            lambda: optim.join_schedules([lambda c: 1] * 3, [5, 2]),
            r"boundaries must not decrease, got \[5, 2\]",
        ),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_message_names_the_function_that_was_called():
    cases = [
        (lambda: optim.linear_schedule(1, 0, -1), "linear_schedule: transition_steps"),
        (lambda: optim.warmup_constant_schedule(0, 1, -1), "warmup_constant_schedule: warmup_"),
        (lambda: optim.warmup_cosine_decay_schedule(0, 1, -1, 9), "warmup_cosine_decay_schedule: "),
        (
            lambda: optim.warmup_exponential_decay_schedule(0, 1, -1, 9, 0.5),
            "warmup_exponential_decay_schedule: warmup_steps",
        ),
        (
            lambda: optim.warmup_exponential_decay_schedule(0, 1, 1, -9, 0.5),
            "warmup_exponential_decay_schedule: transition_steps",
        ),
    ]
    for call, words in cases:
        with pytest.raises(ValueError, match=f"^{words}"):
            call()
