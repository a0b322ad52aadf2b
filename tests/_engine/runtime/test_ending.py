"""The end of a process whose computations nobody waited for."""

import subprocess
import sys
import time

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.runtime import ending

CODE = """
import stretto as st, stretto.numpy as snp
from stretto._engine.runtime import ending
f = st.jit(lambda x: st.lax.fori_loop(0, 20, lambda i, y: y @ x / 700, x))
x = snp.ones((700, 700))
f(x).block_until_ready()
ending.wait_until_idle()
before = ending.busy()
result = f(x)
if {dropped}:
    del result
print(before)
"""


@pytest.mark.parametrize("dropped", [False, True])
def test_it_ends_well(dropped):
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(dropped=dropped)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_it_waits_for_xla():
    f = st.jit(lambda x: st.lax.fori_loop(0, 30, lambda i, y: y @ x / 700, x))
    x = snp.ones((700, 700))
    f(x).block_until_ready()
    result = f(x)
    seen = [ending.busy() for _ in range(50)]
    ending.wait_until_idle()
    assert result.is_ready() and any(seen)


def test_patience(monkeypatch):
    monkeypatch.setattr(ending, "busy", lambda: True)
    start = time.monotonic()
    ending.wait_until_idle(0.05)
    assert 0.05 <= time.monotonic() - start < 5


def test_systems_that_do_not_tell(monkeypatch):
    monkeypatch.setattr(ending, "_TASKS", "/nowhere")
    assert not ending.busy()
