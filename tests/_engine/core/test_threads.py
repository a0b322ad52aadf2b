"""Locks after a fork, latches, attributes held for a call, and work done once."""

import contextlib
import os
import signal
import threading
import time
import types

import pytest

from stretto._engine.core import threads
from stretto._engine.core.threads import (
    Latch,
    Lock,
    RLock,
    _Process,
    _waits,
    holding,
    in_child,
    lock,
    once,
    restoring,
)
from tests.children import in_a_child
from tests.interrupts import EVENTS, interrupted, sites

PATIENCE = 30


def in_threads(*works):
    """Run these at once; their results, or errors, in order."""
    results = [None] * len(works)

    def run(n, work):
        try:
            results[n] = work()
        except Exception as error:
            results[n] = error

    threads = [threading.Thread(target=run, args=item, daemon=True) for item in enumerate(works)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE)
    assert not [t for t in threads if t.is_alive()], "threads wait for each other"
    return results


class Table:
    def __init__(self, keep=lambda thing: True):
        self.made, self.making, self.count, self.keep = {}, {}, 0, keep
        self.lock = threading.Lock()

    def get(self, key, make):
        def counted():
            with self.lock:
                self.count += 1
            return make()

        return once(self.made, self.making, key, counted, self.keep)


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    assert not _waits


def test_one_thread():
    table = Table()
    assert [table.get("a", lambda: 1), table.get("a", lambda: 2), table.get("b", lambda: 3)] == [
        1,
        1,
        3,
    ]
    assert table.count == 2 and not table.making


def test_many_threads_make_it_once():
    table, start = Table(), threading.Barrier(8)

    def make():
        time.sleep(0.05)
        return object()

    def work():
        start.wait()
        return table.get("a", make)

    assert len(set(in_threads(*[work] * 8))) == 1
    assert table.count == 1 and not table.making


def test_different_things_do_not_wait():
    table, both = Table(), threading.Barrier(2, timeout=PATIENCE)
    results = in_threads(
        lambda: table.get("a", lambda: both.wait() >= 0),
        lambda: table.get("b", lambda: both.wait() >= 0),
    )
    assert results == [True, True]


def test_errors_are_the_makers_own():
    table, inside = Table(), threading.Event()

    def fails():
        inside.set()
        time.sleep(0.05)
        raise KeyError("first")

    def waits():
        inside.wait(PATIENCE)
        return table.get("a", lambda: 2)

    first, second = in_threads(lambda: table.get("a", fails), waits)
    assert isinstance(first, KeyError) and second == 2
    assert table.made == {"a": 2} and not table.making


def test_what_is_not_kept_is_made_by_each():
    table, start = Table(keep=lambda thing: False), threading.Barrier(3)

    def work():
        start.wait()
        return table.get("a", object)

    assert len(set(in_threads(*[work] * 3))) == 3
    assert table.count == 3 and not table.made


def test_a_thing_that_needs_itself():
    table = Table()

    def make(depth):
        return table.get("a", lambda: make(depth - 1) + 1) if depth else 0

    assert make(3) == 1  # the innermost was made first, and is kept
    assert table.count == 3 and table.made == {"a": 1} and not table.making


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_ring_of_threads(size):
    """Each makes one thing and needs that of the next: one of them finds out, and makes it."""
    table, all_inside = Table(), threading.Barrier(size, timeout=PATIENCE)

    def work(n):
        def make():
            all_inside.wait()
            return table.get((n + 1) % size, lambda: "by another")

        return table.get(n, make)

    results = in_threads(*[lambda n=n: work(n) for n in range(size)])
    assert not [r for r in results if isinstance(r, Exception)]
    assert set(results) == {"by another"}
    assert table.count == size + 1 and not table.making


def test_waiting_for_one_who_has_just_finished_is_no_ring():
    """A waiter that has not woken yet is not taken to wait still."""
    for _ in range(50):
        table, inside = Table(), threading.Barrier(2, timeout=PATIENCE)

        def first(table=table, inside=inside):
            def make():
                inside.wait()
                time.sleep(0.001)
                return "a"

            table.get("a", make)
            return table.get("b", lambda: "b again")

        def second(table=table, inside=inside):
            def make():
                inside.wait()
                table.get("a", lambda: "a again")
                time.sleep(0.002)
                return "b"

            return table.get("b", make)

        assert in_threads(first, second) == ["b", "b"]
        assert table.count == 2


@pytest.fixture
def left_waits():
    """What an interrupt may leave noted, and does no harm."""
    yield
    _waits.clear()


ONCE = ("core/threads.py",)


# Not at each opcode: Python looks for signals at none of those between a block and its lock's exit.
@pytest.mark.parametrize("event", ["line", "signal"])
def test_an_interrupt_of_the_maker_anywhere(event, left_waits):
    """Those who wait, those who come later and the same thread get the thing."""
    at = sites(lambda: Table().get("a", lambda: 1), ONCE, event)
    assert len(at) > {"line": 25, "signal": 12}[event]
    for site in at:
        table = Table()
        waiter = threading.Thread(target=lambda table=table: table.get("a", lambda: 2), daemon=True)

        def make(waiter=waiter):
            waiter.start()
            while not _waits:
                time.sleep(0)
            return 1

        assert interrupted(lambda t=table, make=make: t.get("a", make), site, ONCE, event)
        mine = table.get("a", lambda: 3)
        (theirs,) = in_threads(lambda t=table: t.get("a", lambda: 4))
        assert mine == theirs == table.made["a"]
        assert not waiter.ident or (waiter.join(PATIENCE), waiter.is_alive())[1] is False
        table.get("b", lambda: 5)


@pytest.mark.parametrize("event", EVENTS)
def test_an_interrupt_of_one_who_waits_anywhere(event, left_waits):
    def new():
        table, inside = Table(), threading.Event()

        def make():
            inside.set()
            time.sleep(0.003)
            return 1

        maker = threading.Thread(target=lambda: table.get("a", make), daemon=True)

        def work():
            maker.start()
            inside.wait(PATIENCE)
            return table.get("a", lambda: 2)

        return table, maker, work

    at = sites(new()[2], ONCE, event)
    for site in at:
        table, maker, work = new()
        interrupted(work, site, ONCE, event)
        maker.join(PATIENCE)
        assert not maker.is_alive()
        results = [table.get("a", lambda: 3), *in_threads(lambda t=table: t.get("a", lambda: 4))]
        assert set(results) == {table.made["a"]}


def test_an_error_that_ends_iterations():
    table = Table()
    with pytest.raises(StopIteration):
        table.get("a", lambda: next(iter(())))
    assert table.get("a", lambda: 1) == 1 and not table.making


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


def test_a_child_knows_that_it_was_forked():
    before = _Process.forks
    assert in_a_child(lambda: _Process.forks) == before + 1
    assert _Process.forks == before


def test_a_child_makes_what_a_thread_of_its_parent_was_making():
    """That thread is not there to end; the one that forked may be at the same."""
    things, making, begun, done = {}, {}, threading.Event(), threading.Event()

    def make():
        begun.set()
        done.wait(30)
        return "the parent's"

    thread = threading.Thread(target=lambda: once(things, making, "key", make))
    thread.start()
    begun.wait(30)
    assert in_a_child(lambda: once(things, making, "key", lambda: "the child's")) == "the child's"
    done.set()
    thread.join()
    assert things == {"key": "the parent's"}


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


def test_where_locks_hear_of_no_signal_a_wait_is_of_short_ones(monkeypatch):
    tries = []

    class Slow:
        def acquire(self, timeout=-1):
            tries.append(timeout)
            if len(tries) == 3:
                raise KeyboardInterrupt
            return len(tries) == 1

    monkeypatch.setattr(threads, "threading", types.SimpleNamespace(Lock=Slow))
    with monkeypatch.context() as patch:
        patch.setattr(threads, "_IS_DEAF", True)
        with pytest.raises(KeyboardInterrupt):
            Latch().wait()
        assert tries == [-1, 0.1, 0.1]
        tries.clear()
        Latch().wait(7)  # by as many seconds as were asked for
        assert tries == [-1, 7]
    tries.clear()
    Latch().wait()  # here signals are heard of
    assert tries == [-1, -1]


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


@pytest.mark.parametrize("make", [Lock, RLock])
def test_interrupts_leave_a_lock_free(make):
    own = make()

    def planted(*_):
        raise KeyError("planted")

    def taking(seconds):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while True:
            with own:
                pass

    former = signal.signal(signal.SIGALRM, planted)
    try:
        for i in range(100):
            with pytest.raises(KeyError, match="planted"):
                taking(1e-5 * (i % 20 + 1))
            assert in_threads(lambda: own.acquire(blocking=False) and own.release()) == [None]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


FILES = ("core/threads",)


def test_for_the_call_alone():
    holder = types.SimpleNamespace(value=1)
    assert holding(holder, "value", 2, lambda x: (x, holder.value), 3) == (3, 2)
    with pytest.raises(ZeroDivisionError):
        holding(holder, "value", 2, lambda: 1 / 0)
    assert holder.value == 1


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("fails", [False, True])
def test_set_back_from_anywhere(event, fails):
    holder = types.SimpleNamespace(value=1)

    def work():
        with contextlib.suppress(ZeroDivisionError):
            holding(holder, "value", 2, lambda: 1 / (not fails))

    at = sites(work, FILES, event)
    assert len(at) > 2
    for site in at:
        assert interrupted(work, site, FILES, event)
        assert holder.value == 1, site


@pytest.mark.parametrize("event", EVENTS)
def test_restored_from_anywhere(event):
    now = []

    def work():
        restoring(now.clear, now.append, 1)

    for site in sites(work, FILES, event):
        interrupted(work, site, FILES, event)
        assert not now, site


def test_nobody_has_a_turn_that_was_taken():
    """Python 3.13 may give a lock to who waits without its being free between."""
    turn = threads.Turn()
    assert threads.in_turn(turn, lambda: turn.holder) == threading.get_ident()
    assert turn.holder == 0
    with pytest.raises(ZeroDivisionError):
        threads.in_turn(turn, lambda: 1 // 0)
    assert turn.holder == 0 and not turn.lock.locked()


def test_a_child_waits_for_no_turn(monkeypatch):
    """Those that its parent's threads wait for are another's."""
    monkeypatch.setattr(threads, "_waits", {threading.get_ident(): threads.Turn()})
    assert in_a_child(lambda: len(threads._waits)) == 0
    assert len(threads._waits) == 1
