"""The threads of the package: how many there are, and what becomes of them."""

import threading
import time
from types import SimpleNamespace

import pytest

import stretto as st
from stretto._engine.xla import background
from stretto._engine.xla.background import _Call, _Compilation
from tests.children import in_a_child


@pytest.mark.parametrize(
    ("cores", "busy", "begins"),
    [(100, 7, True), (100, 8, False), (2, 1, True), (2, 2, False)],
)
def test_as_many_calls_as_processors_and_at_most_eight(monkeypatch, cores, busy, begins):
    monkeypatch.setattr(background, "cores", lambda: cores)
    here = threading.current_thread()
    monkeypatch.setattr(background, "_at_work", [(here, None)] * busy)
    compiled = lambda: lambda buffers: ["buffer"]
    out = st.numpy.ones(2)
    found = background.begin("f", compiled, [], [out.type])
    if begins:
        (result,) = found
        assert result.type == out.type and result.to_buffer() == "buffer"
        *_, (thread, _) = background._at_work
        thread.join(30)
    else:
        assert found is None and len(background._at_work) == busy


def test_threads_that_have_ended_are_not_counted(monkeypatch):
    ended = threading.Thread(target=int)
    ended.start()
    ended.join()
    monkeypatch.setattr(background, "_at_work", [(ended, None)] * 9)
    assert background.begin("f", lambda: lambda buffers: [], [], []) == []
    ((thread, _),) = background._at_work
    thread.join(30)


def test_a_call_of_the_parent_process():
    """Nobody makes it in the child, unless it has been made."""
    call = _Call("about it")
    call._process = -1
    with pytest.raises(st.errors.ForkedProcessError, match="was forked"):
        call.wait()
    call.run(lambda: lambda buffers: [], [], [])
    call.wait()


def test_where_a_fork_left_the_runtime(monkeypatch):
    monkeypatch.setattr(background, "left_behind", ["the parent's"])
    with pytest.raises(st.errors.ForkedProcessError):
        background.begin("f", lambda: None, [], [])


@pytest.fixture
def worker(monkeypatch):
    """No work is waiting, and no thread is at it."""
    for thread in threading.enumerate():
        if thread.name == "stretto-background":
            thread.join(30)
    monkeypatch.setattr(background._Worker, "running", False)
    monkeypatch.setattr(background._Worker, "ended", False)
    assert not background._waiting
    yield background._Worker
    background._waiting.clear()


def test_work_for_which_no_thread_can_be_started_is_dropped(worker, monkeypatch):
    tried = []
    monkeypatch.setattr(background, "start_thread", tried.append)
    background.in_background(lambda: pytest.fail("it is done"))
    assert not background._waiting and not worker.running
    assert [t.daemon for t in tried] == [True], "the end waits for it by itself"


def test_the_end_waits_for_the_piece_at_hand(worker):
    begun, ended, done = threading.Event(), threading.Event(), []
    background.in_background(lambda: (begun.set(), ended.wait(30), done.append("first")))
    background.in_background(lambda: done.append("second"))
    assert begun.wait(30)
    threading.Timer(0.02, ended.set).start()
    background._end_work()
    assert done == ["first"] and not background._waiting
    assert worker.ended and not worker.running
    background.in_background(lambda: done.append("third"))
    assert done == ["first"] and not worker.running


def test_a_forked_child_has_none_of_them(worker, monkeypatch):
    before, begun = [*background._at_work], (threading.current_thread(), None)
    background._at_work.append(begun)
    monkeypatch.setattr(background, "_compilations", [_Compilation("f", None, 1)])
    monkeypatch.setattr(background._Watch, "running", True)
    worker.running = True
    background._waiting.append(int)

    def state():
        kept = background._at_work, background._compilations, [*background._waiting]
        return (*map(len, kept), background._Watch.running, background._Worker.running)

    try:
        assert in_a_child(state) == (0, 0, 0, False, False)
    finally:
        background._at_work[:] = before


def test_compilations_are_looked_at_once_a_second(monkeypatch):
    pauses = []
    monkeypatch.setattr(background, "_compilations", [])
    monkeypatch.setattr(background._Watch, "running", True)
    monkeypatch.setattr(time, "sleep", pauses.append)
    background._watch_compilations()
    assert pauses == [1.0] and not background._Watch.running


def test_a_compilation_takes_the_seconds_since_it_began(monkeypatch):
    ticks = iter([5.0, 7.5, 9.0])
    monkeypatch.setattr(background, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    one = _Compilation("f", None, 1)
    assert [one.seconds(), one.seconds()] == [2.5, 4.0]
