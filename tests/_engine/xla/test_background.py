"""The background thread: order, settings, errors, and processes that end or fork."""

import subprocess
import sys
import threading

import stretto as st
from stretto._engine.core.config import config
from stretto._engine.xla.background import in_background


def test_in_order_on_another_thread():
    done, end = [], threading.Event()
    for i in range(5):
        in_background(lambda i=i: done.append((i, threading.get_ident())))
    in_background(end.set)
    assert end.wait(10)
    assert [i for i, _ in done] == [0, 1, 2, 3, 4]
    assert threading.get_ident() not in {thread for _, thread in done}


def test_under_the_settings_of_the_caller():
    seen, end = [], threading.Event()
    with st.config(disk_cache=False):
        in_background(lambda: (seen.append(config.disk_cache), end.set()))
    assert end.wait(10)
    assert seen == [False]


def test_it_begins_again_after_it_ended():
    for _ in range(3):
        end = threading.Event()
        in_background(end.set)
        assert end.wait(10)
        for thread in threading.enumerate():
            if thread.name == "stretto-background":
                thread.join(10)


def test_an_error_does_not_end_it(monkeypatch):
    caught, end = [], threading.Event()
    monkeypatch.setattr(threading, "excepthook", caught.append)

    def fail():
        raise ValueError("no")

    in_background(fail)
    in_background(end.set)
    assert end.wait(10)
    assert [str(c.exc_value) for c in caught] == ["no"]


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    ).stdout.split()


def test_a_process_that_ends_drops_what_has_not_begun():
    code = """
import threading, time
from stretto._engine.xla.background import in_background
begun = threading.Event()
in_background(lambda: (begun.set(), time.sleep(0.5), print("first")))
in_background(lambda: print("second"))
begun.wait()
"""
    assert run(code) == ["first"]


def test_a_forked_child_starts_its_own():
    code = """
import os, threading, time
from stretto._engine.xla.background import in_background
begun = threading.Event()
in_background(lambda: (begun.set(), time.sleep(0.5)))
in_background(lambda: print("parent", flush=True))
begun.wait()
if os.fork() == 0:
    end = threading.Event()
    in_background(lambda: (print("child", flush=True), end.set()))
    end.wait(10)
    os._exit(0)
os.wait()
time.sleep(1)
"""
    assert sorted(run(code)) == ["child", "parent"]
