"""Locks: taken again by their thread, and open in a forked child."""

import os
import threading

import pytest

from stretto._engine.core.forks import in_child, lock
from tests.children import in_a_child

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
]


def test_its_thread_may_take_it_again():
    one = lock()
    with one, one:
        pass
    assert one.acquire(blocking=False)
    one.release()


def test_a_lock_of_another_thread_is_open_in_a_child():
    one, held, done = lock(), threading.Event(), threading.Event()

    def hold():
        with one:
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    assert in_a_child(lambda: one.acquire(timeout=0))
    assert not one.acquire(blocking=False)  # in the parent it is held as before
    done.set()
    thread.join()


def test_a_lock_of_the_thread_that_forks_stays_its_own():
    one = lock()

    def work():
        assert one._is_owned()
        one.release()
        return 7

    with one:
        assert in_a_child(work) == 7


def test_a_child_calls_what_was_asked_for():
    called = []
    in_child(lambda: called.append(1))
    assert in_a_child(lambda: len(called)) == 1
    assert not called
