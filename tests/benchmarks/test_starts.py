"""Starts of a process: results, and where compiled programs are between two of them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks import starts, workloads
from benchmarks.process import WorkerError
from benchmarks.starts import StartContestant


def test_a_second_start_finds_what_the_first_kept():
    contestant = StartContestant("stretto", sys.executable, again=True)
    (result,) = contestant.prepare()
    layers, x = workloads.start_inputs()
    hidden = x
    for weights, bias in layers[:-1]:
        hidden = np.maximum(hidden @ weights + bias[:, None], 0)
    np.testing.assert_allclose(result, hidden @ layers[-1][0] + layers[-1][1][:, None], atol=1e-4)
    folder = contestant._folder
    assert contestant.time() > 0
    assert contestant._folder is folder
    assert contestant.details["files"] >= 1
    contestant.release()
    assert contestant._folder is None


@pytest.fixture
def program(monkeypatch):
    """What runs in the place of a first program."""

    def stand_in(text):
        true_popen = starts.subprocess.Popen
        monkeypatch.setattr(
            starts.subprocess,
            "Popen",
            lambda command, **more: true_popen([command[0], "-c", text], **more),
        )

    return stand_in


READY = (
    "from benchmarks import wire; import numpy, time; time.sleep(3); print(wire.READY, flush=True)"
)
TELL = "from benchmarks.wire import tell; import numpy; tell(numpy.float32([1]))"
WRITE = "import os; open(os.environ['STRETTO_CACHE_DIR'] + '/kept', 'a').write('x')"


def test_a_first_start_finds_nothing(program):
    program(f"{WRITE}; {TELL}")
    contestant = StartContestant("stretto", sys.executable, again=False)
    contestant.prepare()
    folder = contestant._folder
    contestant.time()
    assert contestant._folder is not folder
    assert contestant.details == {"files": 1, "bytes": 1}
    contestant.release()


def test_one_that_keeps_nothing_is_refused(program):
    program(TELL)
    contestant = StartContestant("jax", sys.executable, again=True)
    with pytest.raises(WorkerError, match="no compiled program was kept"):
        contestant.prepare()
    contestant.release()


def test_one_that_fails_says_why(program):
    program("raise SystemExit('no space')")
    contestant = StartContestant("jax", sys.executable, again=False)
    with pytest.raises(WorkerError, match="exit status 1: no space"):
        contestant.prepare()
    contestant.release()


def test_the_clock_of_one_that_says_when_it_is_ready_starts_then(program):
    program(f"{READY}; {WRITE}; {TELL}")
    contestant = StartContestant("stretto", sys.executable, again=True)
    (result,) = contestant.prepare()
    assert result == 1
    assert contestant.time() < 3
    contestant.release()


def test_another_program_is_started_with_its_arguments():
    program = ["benchmarks.networks.start", "stretto", "tiny-ode-n1-step"]
    contestant = StartContestant("stretto", sys.executable, again=True, program=program)
    (result,) = contestant.prepare()
    assert np.isfinite(result).all()
    assert contestant.details["files"] >= 1
    contestant.release()
