"""What runs on a worker: errors in words, threads, and the order of its members."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import stretto as st
from stretto._engine.core import machine
from stretto.ensemble.training.executors import worker
from stretto.ensemble.training.training_data import DataOrder


def test_errors_come_back_in_words(tmp_path):
    ended = worker.train_part({"folder": str(tmp_path), "part": "none"})
    assert ended["end"] == "failed" and not ended["again"]
    pickle.dumps(ended)

    (tmp_path / "training.json").mkdir()  # what cannot be read may be so elsewhere
    ended = worker.train_part({"folder": str(tmp_path), "part": "none"})
    assert ended["end"] == "failed" and ended["again"] and "Is a directory" in ended["error"]


@pytest.mark.parametrize("order", ["own", "bootstrap", "same", "given"])
@pytest.mark.parametrize("examples", [12, (9, 12, 7, 10)])
def test_members_of_a_part_see_what_they_see_in_the_whole(order, examples):
    if order == "same" and isinstance(examples, tuple):
        pytest.skip("members with data of their own see no examples of others")
    whole = DataOrder(examples, 3, order, members=4, drop_last=False)
    part, key = worker.PartOrder(whole, (2, 0)), st.random.key(0)
    assert (part.steps, part.batch_size, part.each) == (whole.steps, 3, whole.each)
    assert part.uneven == whole.uneven and part.counts == (whole.counts[2], whole.counts[0])
    assert [part.batch_size_of(i) for i in range(part.steps)] == [
        whole.batch_size_of(i) for i in range(part.steps)
    ]
    found, expected = np.asarray(part.epoch(key, 1)), np.asarray(whole.epoch(key, 1))
    np.testing.assert_array_equal(found, expected[[2, 0]] if whole.each else expected)


THREADS = """
from stretto.ensemble.training.executors import worker
import os, sys
worker.train_part({"folder": ".", "part": "none", "threads": eval(sys.argv[1])})
print(os.environ.get("NPROC"))
"""


@pytest.mark.parametrize(
    ("threads", "environment", "expected"),
    [
        (3, {}, "3"),
        (None, {"SLURM_CPUS_PER_TASK": "2"}, "2"),
        (None, {"OMP_NUM_THREADS": "1"}, "1"),
        (None, {}, None),
        (3, {"NPROC": "5"}, "5"),
    ],
)
def test_threads_are_those_that_the_engine_gave(threads, environment, expected):
    known = {"NPROC", "SLURM_CPUS_PER_TASK", "OMP_NUM_THREADS"}
    kept = {name: x for name, x in os.environ.items() if name not in known}
    done = subprocess.run(
        [sys.executable, "-c", THREADS, repr(threads)],
        env={**kept, **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    granted = machine.cores_of_groups()  # of a container, in which these tests may run
    limit = None if granted is None else min(granted, machine.cores())
    assert done.stdout.strip() == (expected or str(limit))


def test_a_container_has_as_many_threads_as_it_may_use(monkeypatch):
    for name in ("NPROC", "SLURM_CPUS_PER_TASK", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(worker.clients, "has_runtime", lambda: False)
    monkeypatch.setattr(worker, "cores", lambda: 8)
    for granted, expected in ((2, "2"), (64, "8")):
        monkeypatch.setattr(worker, "cores_of_groups", lambda n=granted: n)
        monkeypatch.setenv("NPROC", "")
        monkeypatch.delenv("NPROC")
        worker._use_threads(None)
        assert os.environ["NPROC"] == expected
