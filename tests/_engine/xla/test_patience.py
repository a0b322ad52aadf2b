"""Ctrl-C while a compiled loop runs that never ends, and what goes on after it."""

import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla import patience

BEGINNING = """
import os, signal, sys, threading, time
import numpy as np
import stretto as st, stretto.numpy as snp
import stretto._engine.core.machine
from stretto._engine.api.jit import entry
st.config.compile_in_background, entry._LONG = {background}, 0

def endless(x):
    return st.lax.while_loop(lambda c: c[0] > 0, lambda c: c * 1.5 + 1, x)

def interrupt(after=0.5):
    threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

def interrupted(work):
    interrupt()
    try:
        work()
    except KeyboardInterrupt as error:
        print("interrupted", *error.__notes__)

f = st.jit(endless)
x = snp.ones({size})
st.jit(endless)(-x).block_until_ready()  # so that nothing is being loaded when the signal comes
"""

NOTE = "goes on in vain"
LEFT = "a compiled program was still running when the process ended"


def run(code, background=False, size=4):
    code = BEGINNING.format(background=background, size=size) + textwrap.dedent(code)
    # A process that does not hear of it would run for ever.
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100
    )


@pytest.mark.parametrize("background", [False, True], ids=["waiting", "later"])
@pytest.mark.parametrize("size", [4, 100_000], ids=["small", "large"])
def test_it_gives_way(background, size):
    done = run("interrupted(lambda: np.asarray(f(x)))", background, size)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("interrupted") and LEFT in done.stderr


READS = [
    "f(x).block_until_ready()",
    "st.block_until_ready([f(x), f(x)])",
    "float(f(x)[0])",
    "print(f(x))",
    "(f(x) + 1).block_until_ready()",
    "np.asarray(st.jit(lambda y: y @ y)(f(x)))",
    "[f(x) for _ in range(50)]",
    "st.device_get(f(x))",
]


def test_however_one_waits():
    """Also where XLA has no thread left for what is begun: those of other calls have them all."""
    code = "".join(f"interrupted(lambda: {read})\n" for read in READS)
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(NOTE) == len(READS)


def test_other_programs_run_after_it():
    done = run(
        """
        interrupted(lambda: np.asarray(f(x)))
        g = st.jit(lambda x: snp.sin(x) @ x)
        y = snp.ones((40, 40))
        for _ in range(5):
            print(float(g(y)[0, 0]) == float(g(y)[1, 1]))
        print(float(st.jit(lambda x: x @ x)(y)[0, 0]))
        print(np.asarray(st.vmap(endless)(snp.full((2, 3), -2.0)))[0, 0])
        """
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert NOTE in lines[0] and lines[1:] == ["True"] * 5 + ["40.0", "-2.0"]


def test_no_thread_is_left():
    """Interrupts are heard all the same, and what to do is said."""
    done = run(
        """
        for _ in range(st._engine.core.machine.cores()):
            interrupted(lambda: np.asarray(f(x)))
        """
    )
    assert done.returncode == 0, done.stderr
    assert "start the process anew" in done.stdout.splitlines()[-1]


def test_long_loops_with_a_known_number_of_steps():
    done = run(
        """
        g = st.jit(lambda x: st.lax.fori_loop(0, 2**31 - 1, lambda i, c: c * 1.5 + 1, x))
        interrupted(lambda: np.asarray(g(x)))
        """
    )
    assert done.returncode == 0 and NOTE in done.stdout, done.stderr


def test_a_process_that_ends_does_not_wait_for_ever():
    done = run("f(x)")
    assert done.returncode == 0 and LEFT in done.stderr


def test_an_interrupt_that_nobody_catches():
    done = run("interrupt(); np.asarray(f(x))")
    assert done.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in done.stderr and NOTE in done.stderr


def test_what_ends_is_forgotten():
    f = st.jit(lambda x: st.lax.while_loop(lambda c: c < 5, lambda c: c + 1, x))
    with st.config(interpret_small=False):
        for _ in range(20):
            assert float(f(snp.asarray(0.0))) == 5
    assert not patience.count_unfinished() and not patience.unusual


@pytest.mark.parametrize("error", [ValueError, IndexError, KeyError, RuntimeError])
def test_what_a_signal_handler_raises_while_it_looks_is_not_lost(error):
    class Buffer:
        def is_deleted(self):
            return False

        def is_ready(self):
            raise error("planted")

    patience._unfinished[0] = Buffer()
    try:
        with pytest.raises(error, match="planted"):
            patience.count_unfinished()
    finally:
        del patience._unfinished[0]


@pytest.mark.parametrize("begun", [False, True])
def test_an_error_of_a_handler_while_a_thread_starts_is_raised(begun):
    """Python looks for a thread that has begun among those that begin, and finds none."""
    thread = threading.Thread(target=int)
    planted = TypeError("a handler's")

    def start():
        try:
            raise planted
        except TypeError:
            if begun:
                raise KeyError(thread)  # noqa: B904 (as Python does)
            raise

    thread.start = start
    with pytest.raises(TypeError) as caught:
        patience.start_thread(thread)
    assert caught.value is planted


def test_another_key_that_is_missing_is_raised():
    thread = threading.Thread(target=int)
    thread.start = lambda: {}["key"]
    with pytest.raises(KeyError, match="key"):
        patience.start_thread(thread)
