"""The worker's loop, and the process around it, with NumPy as the framework."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

from benchmarks import wire, workloads
from benchmarks.process import Worker, WorkerContestant, WorkerError
from benchmarks.worker import Case, Training, calibrate, time_batch


@pytest.mark.parametrize("array", [np.float32([[1, np.nan]]), np.int8(3), np.zeros((0, 2), bool)])
def test_arrays_survive_the_wire(array):
    copy = wire.decode(wire.encode(array))
    assert (copy.dtype, copy.shape) == (array.dtype, np.shape(array))
    np.testing.assert_array_equal(copy, array)


def test_each_call_gets_a_fresh_item_and_the_first_is_not_counted():
    numbers = itertools.count()
    used: list[int] = []
    assert time_batch(Case(used.append, fresh=lambda: next(numbers)), 3) >= 0
    assert used == [0, 1, 2, 3]


def test_each_item_is_made_when_the_call_before_is_over():
    """So that it may clear what that call left in a cache; and not on the clock."""
    log: list[str] = []

    def fresh():
        log.append("made")
        time.sleep(0.005)

    case = Case(lambda _: log.append("used"), fresh=fresh)
    assert time_batch(case, 2) < 0.004
    assert log == ["made", "used"] * 3


def test_a_context_holds_while_the_case_runs():
    inside: list[bool] = []

    @contextmanager
    def context():
        inside.append(True)
        yield
        inside.pop()

    results: list[list[bool]] = []
    case = Case(lambda: results.append(list(inside)), within=context)
    time_batch(case, 2)
    assert results == [[True]] * 3
    assert inside == []


def test_calibration_fills_the_time_asked_for():
    iterations = calibrate(Case(lambda: sum(range(1000))), seconds=0.02)
    assert iterations > 10


def test_a_long_call_is_repeated_once_after_one_that_is_not_counted():
    calls: list[None] = []

    def call():
        time.sleep(0.002)
        calls.append(None)

    assert calibrate(Case(call), seconds=0.001) == 1
    assert len(calls) == 1
    assert time_batch(Case(call), 1) > 0.001
    assert len(calls) == 3


def test_a_step_starts_from_where_the_step_before_ended():
    training = Training(lambda state: (state + 1, 10 * state), 5)
    assert [training(), training()] == [(6, 50), (7, 60)]


@pytest.fixture
def worker():
    worker = Worker("numpy", sys.executable)
    yield worker
    worker.close()


def test_a_case_from_start_to_end(worker):
    assert ("eager-add", "") in worker.cases
    contestant = WorkerContestant(worker, "eager-add", "")
    x, y = workloads.eager_add_inputs()
    np.testing.assert_array_equal(contestant.prepare()[0], x + y)
    contestant.warm_up(0.001)
    assert contestant.details["iterations"] >= 1
    assert 0 < contestant.time() < 1e-3
    contestant.release()


def test_an_error_is_reported_and_the_worker_lives_on(worker):
    with pytest.raises(WorkerError, match="KeyError"):
        WorkerContestant(worker, "no-such-workload", "").prepare()
    assert worker.alive
    assert WorkerContestant(worker, "eager-add", "").prepare()


def test_a_death_is_reported_and_the_next_case_has_a_new_process(worker):
    contestant = WorkerContestant(worker, "eager-add", "")
    contestant.prepare()
    os.kill(worker.about["pid"], signal.SIGKILL)
    with pytest.raises(WorkerError, match="died"):
        contestant.warm_up(0.001)
    assert not worker.alive
    contestant.release()
    with pytest.raises(WorkerError, match="not prepared"):
        contestant.warm_up(0.001)
    assert contestant.prepare()


def test_silence_is_ended(worker):
    worker._patience = 0.5
    os.kill(worker.about["pid"], signal.SIGSTOP)
    with pytest.raises(WorkerError, match=r"did not answer within 0\.5 s"):
        WorkerContestant(worker, "eager-add", "").prepare()


@pytest.mark.parametrize(
    ("framework", "python", "message"),
    [
        ("missing", sys.executable, "No module named benchmarks.missing_worker"),
        ("numpy", "/no/such/python", "cannot start /no/such/python"),
    ],
)
def test_a_worker_that_cannot_start_says_why(framework, python, message):
    with pytest.raises(WorkerError, match=message):
        Worker(framework, python)
