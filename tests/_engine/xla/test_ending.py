"""The end of a process whose computations nobody waited for."""

import os
import signal
import subprocess
import sys
import time

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core import machine
from stretto._engine.xla import ending

CODE = """
import stretto as st, stretto.numpy as snp
from stretto._engine.xla import ending
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
    monkeypatch.setattr(machine, "_TASKS", "/nowhere")
    assert not ending.busy()


DAEMONS = """
import sys, threading, time
import numpy as np
import stretto as st, stretto.numpy as snp
st.config.interpret_small = False
f = st.jit(lambda x: snp.sum(snp.sin(x) @ x))
x = snp.ones((100, 100))
f(x), f(x), f(x)

def work(k):
    while True:
        if k % 2:
            float(f(x))
        else:
            np.asarray(snp.sin(x)), st.jit(lambda x: x @ x + time.time())(x)

for k in range(4):
    threading.Thread(target=work, args=(k,), daemon=True).start()
time.sleep(0.2)
print("end")
sys.exit(3)
"""


@pytest.mark.parametrize("native", ["0", "1"], ids=["Python", "C"])
def test_daemon_threads_end_quietly(native):
    for _ in range(3):  # without care, most processes are aborted
        done = subprocess.run(
            [sys.executable, "-c", DAEMONS],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "STRETTO_NATIVE": native},
        )
        assert (done.returncode, done.stdout, done.stderr) == (3, "end\n", "")


def test_a_result_on_its_way_is_there_for_handlers():
    """First calls run to their end before other threads may begin nothing more."""
    code = """
import atexit
atexit.register(lambda: print(float(y[0, 0])))
import stretto as st, stretto.numpy as snp
from stretto._engine.api.jit import entry
entry._LONG = 0
x = snp.ones((300, 300))
y = st.jit(lambda x: st.lax.fori_loop(0, 20, lambda i, y: y @ x / 300, x))(x)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1.0\n", "")


@pytest.mark.parametrize("tiers", ["0", "1"])
def test_an_interrupt_while_a_thread_compiles(tiers):
    code = """
import os, signal, threading
import stretto as st, stretto.numpy as snp
def f(x):
    for i in range(300):
        x = snp.sin(x @ x) + snp.cos(x * i)
    return x
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
st.jit(f)(snp.ones((8, 8)))
print("called", flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "STRETTO_TIERS": tiers, "STRETTO_DISK_CACHE": "0"},
    )
    assert done.returncode in (0, 1, -signal.SIGINT), done  # and not aborted


GOES_ON = """
import atexit, sys
import stretto as st, stretto.numpy as snp
from stretto._engine.xla import patience
atexit.register(print, "last words")
x = snp.ones((700, 700)) / 700
step = lambda i, y: y @ x
f = st.jit(lambda y: st.lax.fori_loop(0, 400, step, y))
f(x).block_until_ready()
_ = f(x)
patience._abandon(KeyboardInterrupt())  # as an interrupt does while somebody waits for it
sys.exit(3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other C libraries have no on_exit")
def test_programs_that_go_on_do_not_end_it_by_a_signal():
    """Without care libraries destroy what the loop's products use; handlers and status stay."""
    done = subprocess.run(
        [sys.executable, "-c", GOES_ON], capture_output=True, text=True, check=False, timeout=100
    )
    assert (done.returncode, done.stdout) == (3, "last words\n"), done.stderr[-2000:]
    assert "still running when the process ended" in done.stderr


COMES_BACK = """
import sys, threading, time
import stretto as st, stretto.numpy as snp
from stretto._engine.xla import ending
ending._wait_for_threads.__defaults__ = (0.1,)
ending._PATIENCE = 0.1
class Late:
    def __del__(self):
        time.sleep(3)
late = Late()  # destroyed once threads that come back to Python are ended
x = snp.ones((500, 500)) / 500
f = st.jit(lambda y, n: st.lax.fori_loop(0, n, lambda i, y: y @ x, y))
f(x, 1).block_until_ready()
start = time.perf_counter()
f(x, 100).block_until_ready()
n = int(100 * 1.2 / (time.perf_counter() - start))  # some 1.2 seconds
threading.Thread(target=lambda: f(x, n).block_until_ready(), daemon=True).start()
time.sleep(0.1)
sys.exit(3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other C++ libraries are asked otherwise")
def test_a_thread_that_comes_back_too_late_does_not_abort_it():
    done = subprocess.run(
        [sys.executable, "-c", COMES_BACK], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 3, done.stderr[-2000:]
    assert "still running when the process ended" in done.stderr
