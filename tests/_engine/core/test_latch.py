"""Latches: who waits goes on once they are open, and an interrupted wait leaves nothing behind."""

import signal
import threading
import time

import pytest

from stretto._engine.core.latch import Latch


def test_all_who_wait_go_on():
    latch, gone = Latch(), []
    threads = [threading.Thread(target=lambda: gone.append(latch.wait())) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.02)
    assert not latch.is_open()
    assert gone == []
    latch.open()
    for thread in threads:
        thread.join()
    assert gone == [True] * 4
    assert latch.wait()


def test_a_wait_ends_after_its_seconds():
    latch = Latch()
    assert not latch.wait(0.01)
    latch.open()
    assert latch.wait(0.01)


def _interrupted(latch, seconds):
    signal.setitimer(signal.ITIMER_REAL, seconds)
    while True:
        latch.wait(1e-5)


def test_an_interrupted_wait_is_the_handlers_error_and_others_go_on():
    latch = Latch()

    def handler(*_):
        raise KeyError("planted")

    former = signal.signal(signal.SIGALRM, handler)
    try:
        for i in range(200):
            with pytest.raises(KeyError, match="planted"):
                _interrupted(latch, 1e-5 * (i % 20 + 1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    latch.open()
    assert latch.wait()
