"""What is done at the end of a process, in which order, and for whom it waits."""

import os
import signal
import sys
from types import SimpleNamespace

import pytest

from stretto._engine.xla import ending


@pytest.fixture
def end(monkeypatch):
    """What is done at the end, in its order; how much goes on, and whether threads are busy."""
    at = SimpleNamespace(done=[], abandoned=0, unfinished=0, busy=False)
    note = lambda word: lambda *how: at.done.append((word, *how) if how else word)
    monkeypatch.setattr(ending, "_waits", [note("first calls"), note("work")])
    monkeypatch.setattr(ending, "close", note("close"))
    monkeypatch.setattr(ending._Asked, "ended", False)
    monkeypatch.setattr(ending.clients, "keep", note("keep"))
    monkeypatch.setattr(ending, "_wait_for_threads", note("threads"))
    monkeypatch.setattr(ending, "wait_until_idle", note("idle"))
    monkeypatch.setattr(ending, "count_abandoned", lambda: at.abandoned)
    monkeypatch.setattr(ending, "count_unfinished", lambda: at.unfinished)
    monkeypatch.setattr(ending, "busy", lambda: at.busy)
    monkeypatch.setattr(ending.system, "leave_libraries_alone", note("leave"))
    return at


BEFORE = ["first calls", "work", "close", "keep", "threads"]


@pytest.mark.parametrize(
    ("abandoned", "unfinished", "busy", "seconds", "is_said", "leaves"),
    [
        (0, 0, False, 5.0, False, False),
        (0, 0, True, 5.0, False, True),
        (0, 1, False, 5.0, True, True),
        (1, 0, False, 0.1, True, True),
        (2, 1, True, 0.1, True, True),
    ],
)
def test_the_order(end, capsys, abandoned, unfinished, busy, seconds, is_said, leaves):
    """What goes on in vain is not waited for, and the libraries that it uses are left alone."""
    end.abandoned, end.unfinished, end.busy = abandoned, unfinished, busy
    for _ in range(2):  # the second is for an interrupt as the first begins
        ending._end()
    assert end.done == [*BEFORE, ("idle", seconds), *["leave"] * leaves]
    said = capsys.readouterr().err
    assert said.startswith("stretto: a compiled program was still running") is is_said
    assert bool(said) is is_said


def test_an_interrupt_meanwhile_ends_the_process(end, monkeypatch):
    done = []

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(ending, "_waits", [interrupted])
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "flush", lambda: done.append("flush"))
    monkeypatch.setattr(signal, "signal", lambda *how: done.append(how))
    monkeypatch.setattr(os, "kill", lambda *how: done.append(how))
    ending._end()
    own = (os.getpid(), signal.SIGINT)
    assert done == ["flush", "flush", (signal.SIGINT, signal.SIG_DFL), own]
    assert end.done == []


def test_it_is_asked_for_once(monkeypatch):
    registered, waits = [], []
    monkeypatch.setattr(ending._Asked, "once", False)
    monkeypatch.setattr(ending.atexit, "register", registered.append)
    monkeypatch.setattr(ending, "_waits", waits)
    ending.wait_at_end()
    ending.wait_for(int)
    ending.wait_for(str)
    assert registered == [ending._end] * 2 and waits == [int, str]


@pytest.fixture
def threads(monkeypatch):
    """Who is in XLA at each look: how many threads by the extension, and in which files others."""
    at = SimpleNamespace(looks=[], pauses=[], now=0.0)

    def look():
        at.here = at.looks.pop(0) if len(at.looks) > 1 else at.looks[0]
        return at.here[0]

    def sleep(seconds):
        at.pauses.append(seconds)
        at.now += seconds

    frames = lambda: {
        k: SimpleNamespace(f_code=SimpleNamespace(co_filename=name))
        for k, name in enumerate(at.here[1])
    }
    monkeypatch.setattr(ending, "native", SimpleNamespace(running=look))
    monkeypatch.setattr(ending.sys, "_current_frames", frames)
    monkeypatch.setattr(ending.threading, "get_ident", lambda: 0)
    monkeypatch.setattr(ending.time, "sleep", sleep)
    monkeypatch.setattr(ending.time, "monotonic", lambda: at.now)
    return at


PJRT = ending._IN_XLA[0]


@pytest.mark.parametrize(
    ("looks", "pauses"),
    [
        ([(0, ["here.py", "there.py"])], 0),
        ([(1, []), (2, []), (0, [])], 2),
        ([(0, ["here.py", PJRT]), (0, ["here.py", "there.py"])], 1),
        ([(0, [PJRT, "there.py"])], 0),  # the thread that looks
        ([(0, ["", os.path.join(os.sep, "lib", "jaxlib", "xla_client.py")]), (0, [])], 1),
        ([(0, ["", os.path.join(os.sep, "lib", "jaxlib.py")])], 0),
        ([(0, ["", PJRT.replace("pjrt", "disk")])], 0),
    ],
)
def test_threads_that_are_in_xla_are_waited_for(threads, looks, pauses):
    threads.looks = looks
    ending._wait_for_threads()
    assert threads.pauses == [0.001] * pauses


def test_they_are_waited_for_five_seconds(threads):
    threads.looks = [(1, [])]
    ending._wait_for_threads()
    assert 5.0 <= threads.now <= 5.0015
    threads.now = 0.0
    ending._wait_for_threads(0.1)
    assert 0.1 <= threads.now <= 0.1015


def test_threads_rest_twice_in_a_row(threads, monkeypatch):
    seen = iter([True, False, True, False, False, True])
    monkeypatch.setattr(ending, "busy", lambda: next(seen))
    ending.wait_until_idle()
    assert threads.pauses == [0.001] * 5
    monkeypatch.setattr(ending, "busy", lambda: True)
    threads.now = 0.0
    ending.wait_until_idle()
    assert 5.0 <= threads.now <= 5.0015
