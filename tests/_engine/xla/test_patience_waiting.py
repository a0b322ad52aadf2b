"""How the main thread waits for what takes long, and what it does after an interrupt."""

import threading
from types import SimpleNamespace

import pytest

from stretto._engine.xla import patience
from stretto._engine.xla.patience import Begun, LongRun, elsewhere, patient
from tests.children import in_a_child


@pytest.fixture(autouse=True)
def unused(monkeypatch):
    """Nothing is running, and what a test leaves running is forgotten."""
    for name, empty in [("_unfinished", {}), ("_abandoned", []), ("_other", []), ("unusual", [])]:
        monkeypatch.setattr(patience, name, empty)


class Buffer:
    """A result that is there once it was asked for so many times."""

    def __init__(self, times=0, deleted=False):
        self.times, self.deleted, self.asked = times, deleted, 0

    def is_deleted(self):
        return self.deleted

    def is_ready(self):
        self.asked += 1
        return self.asked > self.times


class Clock:
    """A clock that goes on while one sleeps, and a little whenever it is looked at."""

    def __init__(self, monkeypatch):
        self.now, self.pauses = 100.0, []
        monkeypatch.setattr(patience.time, "perf_counter", self.read)
        monkeypatch.setattr(patience.time, "sleep", self.sleep)

    def read(self):
        self.now += 1e-6
        return self.now

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


def begun(*buffers):
    """Programs with these results, which have begun."""
    for buffer in buffers:
        patience._unfinished[id(buffer)] = buffer


def in_thread(work):
    """What a function gives in another thread, or its error."""
    said = []

    def run():
        try:
            said.append(work())
        except BaseException as error:
            said.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    return said[0]


def test_pauses_grow_with_the_time_waited(monkeypatch):
    """None for 0.1 ms, then a 128th of the time waited so far, at most 5 ms."""
    clock = Clock(monkeypatch)
    buffer = Buffer(3000)
    begun(buffer)
    patient([buffer])
    first = next(k for k, pause in enumerate(clock.pauses) if pause)
    assert 99 <= first <= 100
    assert clock.pauses[first] == pytest.approx(1e-4 / 128, rel=0.02)
    waited = sum(clock.pauses[:600]) + 600e-6
    assert clock.pauses[600] == pytest.approx(waited / 128, rel=0.01)
    assert max(clock.pauses) == clock.pauses[-1] == 5e-3


def test_nobody_waits_where_nothing_runs_or_in_other_threads():
    buffer = Buffer(5)
    patient([buffer])
    assert not buffer.asked
    begun(buffer)
    assert in_thread(lambda: patient([buffer])) is None
    assert not buffer.asked
    patient([Buffer(2), buffer])
    assert buffer.asked == 6


@pytest.mark.parametrize(("count", "waits"), [(7, False), (8, True), (9, True)])
def test_eight_programs_at_a_time(count, waits):
    """The ninth begins once the oldest has ended; in other threads it waits in the runtime."""
    buffers = [Buffer(3) for _ in range(count)]
    begun(*buffers)
    run = LongRun(lambda buffers: "results", 0)
    assert isinstance(in_thread(lambda: run([])), Begun)
    assert [b.asked for b in buffers] == [1] + [0] * (count - 1)
    run([])
    assert buffers[0].asked == (4 if waits else 2)
    assert not any(b.asked for b in buffers[1:])


def test_the_smallest_result_stands_for_a_program():
    class Results:
        def consume_with_handlers(self, handlers):
            return handlers

    large, small = Buffer(5), Buffer(2)
    assert Begun(Results(), 1).consume_with_handlers([large, small]) == [large, small]
    assert patience.count_unfinished() == 1 and not large.asked
    Begun(Results(), 0).consume_with_handlers([Buffer(), small])  # it is there already
    assert patience.count_unfinished() == 0
    begun(Buffer(9, deleted=True))
    assert patience.count_unfinished() == 0


def test_programs_are_looked_at_from_the_oldest_on():
    oldest, later = Buffer(1), Buffer()
    begun(oldest, later)
    assert patience.count_unfinished() == 2 and not later.asked
    assert patience.count_unfinished() == 0


def test_what_ends_while_it_is_looked_at():
    class GivenAway(Buffer):
        """Another thread gives it to a program between the two questions."""

        def is_ready(self):
            self.deleted = True
            raise RuntimeError("Array has been deleted")

    class Forgetting(dict):
        """Another thread forgets the first of them meanwhile."""

        def get(self, key):
            self.pop(min(self), None)
            return super().get(key)

    begun(GivenAway())
    assert patience.count_unfinished() == 0
    patience._unfinished = Forgetting({0: Buffer(9), 1: Buffer()})
    assert patience.count_unfinished() == 0


def test_nobody_waits_once_all_have_ended():
    begun(Buffer())
    buffer = Buffer(1)
    patient([buffer])
    assert not buffer.asked


def interrupted(monkeypatch, *buffers):
    """The error of a wait for these that is interrupted while it pauses."""

    def sleep(seconds):
        raise KeyboardInterrupt

    begun(*buffers)
    with monkeypatch.context() as patch:
        patch.setattr(patience.time, "sleep", sleep)
        with pytest.raises(KeyboardInterrupt) as caught:
            patient(buffers)
    return caught.value


@pytest.mark.parametrize("cores", [2, 3])
def test_an_interrupt_leaves_what_runs_to_itself(monkeypatch, cores):
    """Where each processor's thread has such a program, no thread is left."""
    monkeypatch.setattr(patience, "cores", lambda: cores)
    told = []
    monkeypatch.setattr(patience, "watch", [lambda: told.append([*patience.unusual])])
    error = interrupted(monkeypatch, Buffer(9), Buffer(9))
    (note,) = error.__notes__
    assert "goes on in vain" in note
    assert ("start the process anew" in note) is (cores == 2)
    assert patience.unusual == ["abandoned"] and told == [["abandoned"]]
    assert patience.count_abandoned() == 2 and patience.count_unfinished() == 0
    interrupted(monkeypatch, Buffer(9))
    assert patience.count_abandoned() == 3 and patience.unusual == ["abandoned"]


def where(buffers):
    return [threading.get_ident(), *buffers]


def test_programs_begin_elsewhere_until_what_was_left_has_ended(monkeypatch):
    here = threading.get_ident()
    assert elsewhere(where, [1]) == [here, 1]
    left = Buffer(9)
    interrupted(monkeypatch, left)
    there, *given = elsewhere(where, [1, 2])
    assert there != here and given == [1, 2]
    (thread,) = [t for t in threading.enumerate() if t.ident == there]
    assert thread.daemon, "no process waits for it"
    assert elsewhere(where, [])[0] == there  # one thread for all of them
    assert in_thread(lambda: elsewhere(where, [])[0]) not in (here, there)
    left.deleted = True
    assert elsewhere(where, []) == [here] and not patience.unusual


def test_a_second_interrupt_takes_another_thread(monkeypatch):
    """The first one may have begun what was interrupted, and would wait for it."""
    interrupted(monkeypatch, Buffer(1000))
    first = elsewhere(where, [])[0]
    interrupted(monkeypatch, Buffer(1000))
    assert elsewhere(where, [])[0] not in (first, threading.get_ident())


def test_errors_come_back_from_elsewhere(monkeypatch):
    interrupted(monkeypatch, Buffer(1000))

    def fail(buffers):
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no") as caught:
            elsewhere(fail, [])
        assert not hasattr(caught.value, "__notes__")  # nothing more is left to itself
        assert elsewhere(where, [])[0] != threading.get_ident()


def test_an_interrupt_while_another_thread_begins_a_program(monkeypatch):
    """That thread has perhaps begun it, and would wait for it: another one takes its place."""
    interrupted(monkeypatch, Buffer(1000))
    first = elsewhere(where, [])[0]

    def interrupt():
        raise KeyboardInterrupt

    done = SimpleNamespace(acquire=interrupt, release=lambda: None)
    monkeypatch.setattr(patience._other[0], "_done", done)
    with pytest.raises(KeyboardInterrupt) as caught:
        elsewhere(where, [])
    assert "goes on in vain" in caught.value.__notes__[0]
    assert elsewhere(where, [])[0] not in (first, threading.get_ident())


def test_where_no_thread_can_be_started(monkeypatch):
    """As where the interpreter is ending: programs begin in the main thread."""
    interrupted(monkeypatch, Buffer(1000))

    def start(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert elsewhere(where, []) == [threading.get_ident()]
    assert not patience._other


def test_other_errors_while_a_thread_starts():
    thread = threading.Thread(target=int)
    planted = ValueError("a handler's")

    def mixed_up():
        try:
            raise planted
        except ValueError:
            raise RuntimeError("release unlocked lock")  # noqa: B904 (as Python does)

    def fail():
        raise RuntimeError("a handler's own")

    thread.start = mixed_up
    with pytest.raises(ValueError, match="a handler's") as caught:
        patience.start_thread(thread)
    assert caught.value is planted
    thread.start = fail
    with pytest.raises(RuntimeError, match="own"):
        patience.start_thread(thread)


def test_threads_end_once_the_process_ends():
    patience.close()
    assert patience.unusual == ["ended"]
    patience.end_threads()
    assert elsewhere(where, [3]) == [threading.get_ident(), 3]
    assert isinstance(in_thread(lambda: elsewhere(where, [])), SystemExit)
    assert isinstance(in_thread(patience.end_threads), SystemExit)
    patience.close()
    assert patience.unusual == ["ended"]


def test_a_forked_child_has_nothing_running(monkeypatch):
    interrupted(monkeypatch, Buffer(1000))
    elsewhere(where, [])
    begun(Buffer(1000))
    patience.unusual.append("ended")
    for module, name in [(patience, n) for n in ("_unfinished", "_abandoned", "_other", "unusual")]:
        assert getattr(module, name)

    def counts():
        return [len(getattr(patience, n)) for n in ("_unfinished", "_abandoned", "_other")] + [
            *patience.unusual
        ]

    assert in_a_child(counts) == [0, 0, 0]
