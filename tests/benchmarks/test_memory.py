"""The memory of a call: temporaries and results count, what was there before does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import memory
from benchmarks.process import ROOT

PROGRAM = """
import numpy as np
from benchmarks.memory import peak_growth
kept = np.ones(2**22)
halves = lambda: [np.ones(2**19), np.ones(2**19)]
for call in (lambda: None, lambda: np.ones(2**20), lambda: np.stack(halves())[0, 0]):
    call()
    print(peak_growth(call), peak_growth(call))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell")
def test_growth_counts_temporaries_and_results_each_time_anew():
    """Nothing; 8 MB of results; 4 + 4 + 8 MB of temporaries. Freed memory goes back at once."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=True,
        cwd=ROOT,
        env=memory.ALLOCATOR,
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = done.stdout.splitlines()
    nothing, one, two = ([int(x) / 2**20 for x in line.split()] for line in lines)
    assert max(nothing) < 1
    assert one == pytest.approx([8, 8], abs=1)
    assert two == pytest.approx([16, 16], abs=1)


def test_without_the_system_s_count_there_is_no_figure(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_PROCESS", tmp_path)
    calls = []
    assert memory.peak_growth(lambda: calls.append(None)) is None
