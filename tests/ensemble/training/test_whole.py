"""Ctrl-C during a step waits for its end; asked for twice, it does not."""

import signal
import threading

import pytest

from stretto.ensemble.training.whole import whole


def press():
    signal.raise_signal(signal.SIGINT)


def test_after_the_work():
    done = []
    with pytest.raises(KeyboardInterrupt):
        whole(lambda: (press(), done.append(1)))
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_time_at_once():
    done = []
    with pytest.raises(KeyboardInterrupt):
        whole(lambda: (press(), press(), done.append(1)))
    assert not done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nobody_asks():
    done = []
    whole(lambda: done.append(1))
    with pytest.raises(ZeroDivisionError):
        whole(lambda: 1 / 0)
    thread = threading.Thread(target=whole, args=(lambda: done.append(2),))
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        whole(lambda: (press(), done.append(3)))
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == [1, 2, 3]
