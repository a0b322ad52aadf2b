"""How rows are measured: who is compared with whom, in which order, and who is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.measure import Row, disagreement, measure
from benchmarks.process import WorkerError
from benchmarks.workloads import Goal, Workload

WORKLOAD = Workload("doubling", "doubling", "us", rtol=1e-6)


class Fake:
    """A contestant that takes the given times and logs its turns."""

    def __init__(self, name, log, result=2.0, times=(1.0,), dies_at=None):
        self.name = name
        self.framework = name.partition(" ")[0]
        self.details: dict[str, Any] = {}
        self.released = False
        self._log, self._result, self._times, self._dies_at = log, result, list(times), dies_at

    def prepare(self):
        if self._dies_at == "prepare":
            raise WorkerError("out of memory")
        return [np.float32([self._result])]

    def warm_up(self, seconds):
        self.details = {"seconds": seconds}

    def time(self):
        if self._dies_at == "time":
            raise WorkerError("the worker died")
        self._log.append(self.name)
        return self._times[(self._log.count(self.name) - 1) % len(self._times)]

    def weigh(self):
        if self._dies_at == "weigh":
            raise WorkerError("killed")
        self.details["peak_bytes"] = self._log.count(self.name)

    def release(self):
        self.released = True


def test_rounds_alternate_and_the_first_is_dropped():
    log: list[str] = []
    times = [[100.0, 1.0, 2.0, 3.0], [100.0, 4.0, 4.0, 4.0]]
    ours, theirs = Fake("stretto", log, times=times[0]), Fake("jax", log, times=times[1])
    row = measure(WORKLOAD, [ours, theirs], rounds=3, seconds=0.5)
    assert log == ["stretto", "jax"] * 4
    assert row.rounds == {"stretto": [1.0, 2.0, 3.0], "jax": [4.0, 4.0, 4.0]}
    assert row.ratios("jax") == [0.25, 0.5, 0.75]
    assert row.outcome(Goal("jax", 1.0)) == 0.5
    # Weighed when the four rounds are over.
    assert row.details["jax"] == {"seconds": 0.5, "peak_bytes": 4}
    assert ours.released
    assert theirs.released


def test_where_each_time_is_like_the_first_no_round_is_dropped():
    log: list[str] = []
    cold = replace(WORKLOAD, warm_up=False)
    row = measure(cold, [Fake("jax", log, times=[3.0, 4.0])], rounds=2, seconds=0.5)
    assert row.rounds == {"jax": [3.0, 4.0]}


def test_one_that_computes_something_else_is_named_and_not_timed():
    log: list[str] = []
    wrong, right = Fake("stretto", log, result=2.1), Fake("jax", log)
    row = measure(WORKLOAD, [wrong, right], rounds=2, seconds=0.5)
    assert [(one.workload, one.contestant) for one in row.failures] == [("doubling", "stretto")]
    assert "differs from jax" in row.failures[0].message
    assert list(row.rounds) == ["jax"]
    assert row.outcome(Goal("jax", 1.0)) is None


@pytest.mark.parametrize("moment", ["prepare", "time"])
def test_one_that_dies_is_named_and_the_others_go_on(moment):
    log: list[str] = []
    row = measure(
        WORKLOAD, [Fake("stretto", log), Fake("jax", log, dies_at=moment)], rounds=2, seconds=0.5
    )
    assert [one.contestant for one in row.failures] == ["jax"]
    assert row.rounds == {"stretto": [1.0, 1.0]}


def test_one_that_cannot_be_weighed_keeps_its_times():
    row = measure(WORKLOAD, [Fake("jax", [], dies_at="weigh")], rounds=2, seconds=0.5)
    assert [one.message for one in row.failures] == ["killed"]
    assert row.rounds == {"jax": [1.0, 1.0]}
    assert row.details == {"jax": {"seconds": 0.5}}


def test_fastest_peer_is_the_best_formulation_of_all():
    row = Row(WORKLOAD, {"stretto": [2.0], "jax": [4.0], "jax unroll": [1.0], "torch": [3.0]})
    assert row.peers() == ["jax unroll", "torch", "jax"]
    assert row.outcome(Goal("fastest", 1.05)) == 2.0
    assert row.median("numpy") is None
    assert row.ratios("numpy") == []


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([np.zeros(2, np.float32)], None),
        ([], "expected 1 arrays, got 0"),
        ([np.zeros(2, np.float64)], "expected float32[2], got float64[2]"),
        ([np.zeros((2, 1), np.float32)], "expected float32[2], got float32[2,1]"),
        ([np.full(2, np.nan, np.float32)], "Not equal to tolerance"),
    ],
)
def test_disagreement(result, message):
    found = disagreement(WORKLOAD, result, "jax", [np.zeros(2, np.float32)])
    if message is None:
        assert found is None
    else:
        assert found is not None
        assert message in found


def test_without_rounds_results_are_compared_and_nothing_is_timed():
    log: list[str] = []
    ours, theirs = Fake("stretto", log, result=3.0), Fake("jax", log)
    row = measure(WORKLOAD, [ours, theirs], rounds=0, seconds=0.5)
    assert [failure.contestant for failure in row.failures] == ["stretto"]
    assert (log, row.rounds, ours.details) == ([], {}, {})
    assert ours.released
    assert theirs.released


def test_a_tolerance_may_be_relative_to_the_largest_number():
    workload = replace(WORKLOAD, of_largest=1e-3)
    expected = [np.float32([1000.0, 0.0])]
    assert disagreement(workload, [np.float32([1000.0, 0.9])], "jax", expected) is None
    assert disagreement(workload, [np.float32([1000.0, 1.1])], "jax", expected)
    assert disagreement(WORKLOAD, [np.float32([1000.0, 0.9])], "jax", expected)


def test_our_other_formulations_are_no_peers():
    rounds = {"stretto": [2.0], "stretto full": [1.0], "jax": [4.0], "numpy": [0.1]}
    row = Row(replace(WORKLOAD, goals=(Goal("stretto full", 1.3),)), rounds)
    assert row.peers() == ["jax"]
    assert row.own() == ["stretto full"]
    assert row.outcome(row.workload.goals[0]) == 2.0
    assert row.ratios("fastest") == [0.5]
