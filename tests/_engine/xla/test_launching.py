"""The thread in which programs of several processes are started."""

import ctypes
import subprocess
import sys
import threading

import pytest

from stretto._engine.xla.launching import Launcher


def nothing():
    """There is no reason to give up."""


def test_calls_one_after_the_other():
    launcher = Launcher()
    here = []
    for i in range(3):
        assert launcher.call(lambda i=i: here.append(threading.get_ident()) or i, nothing) == i
    assert len({*here}) == 1 and threading.get_ident() not in here
    with pytest.raises(ZeroDivisionError):
        launcher.call(lambda: 1 / 0, nothing)
    assert launcher.call(lambda: "still there", nothing) == "still there"
    launcher.freeze()  # no call is being made
    assert launcher.call(lambda: "as before", nothing) == "as before"
    launcher.end()
    launcher._thread.join(60)
    assert not launcher._thread.is_alive()


def test_a_call_that_does_not_return():
    launcher, go_on = Launcher(), threading.Event()

    def give_up():
        raise TimeoutError

    for _ in range(2):  # the second waits for the first
        with pytest.raises(TimeoutError):
            launcher.call(lambda: go_on.wait(60), give_up)
    go_on.set()
    assert launcher.call(lambda: "again", nothing) == "again"
    launcher.end()


def test_python_ends_while_a_call_is_being_made():
    """It would return half a second later, in the midst of the end."""
    code = """
import ctypes, time
from stretto._engine.xla.launching import Launcher
launcher = Launcher()
def give_up():
    raise TimeoutError
try:
    launcher.call(lambda: ctypes.CDLL(None).usleep(500_000), give_up)
except TimeoutError:
    launcher.freeze()
time.sleep(1)
print(launcher._task is not None)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    frozen = "True" if hasattr(ctypes.CDLL(None), "pause") else "False"
    assert (done.returncode, done.stdout.strip()) == (0, frozen), done.stderr
