"""The overheads in Stretto: that what is said to be done in each call is done in each call."""

from __future__ import annotations

import pytest

import stretto as st
from benchmarks import workloads
from benchmarks.stretto_worker import cases
from benchmarks.worker import run_once, time_batch
from benchmarks.workloads import OVERHEAD_ROWS
from stretto._engine.xla import cache
from tests.compilations import texts_compiled


@pytest.fixture
def compiled(monkeypatch):
    """The texts compiled, with nothing on disk."""
    with st.config(disk_cache=False):
        yield texts_compiled(monkeypatch, cache)


def test_every_overhead_that_a_worker_times_has_a_case():
    names = {row.name for row in OVERHEAD_ROWS if row.timed_by == "worker"}
    assert names <= {workload for workload, _ in cases.names()}


def test_the_chain_is_compiled_in_every_call(compiled):
    case = cases.make("compile-chain", "")
    time_batch(case, 1)
    time_batch(case, 1)
    assert len(compiled) == 2


@pytest.mark.parametrize("name", ["jitted-affine-compiled", "jitted-dict"])
def test_what_is_to_be_compiled_is_compiled_once(compiled, name):
    st.clear_caches()
    case = cases.make(name, "")
    run_once(case)
    time_batch(case, 3)
    assert len(compiled) == 1


def test_lengths_begin_with_no_program_in_memory(compiled, monkeypatch):
    """Each time is like the first, whichever of them are compiled."""
    few = workloads.lengths_inputs()[:3]
    monkeypatch.setattr(workloads, "lengths_inputs", lambda: few)
    with st.config(interpret_small=False):
        case = cases.make("lengths", "")
        time_batch(case, 1)
        time_batch(case, 1)
    assert len(compiled) == 6
