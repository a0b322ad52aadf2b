"""What a process does to join, to wait for the others and to leave, without any others."""

import contextlib
import os
import socket
import threading
from types import SimpleNamespace

import pytest

from stretto._engine.core.errors import LostProcessError
from stretto._engine.xla import coordinator, processes
from stretto._engine.xla.processes import NotAnswered, Refused
from tests.children import in_a_child
from tests.processes import SECRET


class Clock:
    """A clock that goes on while one sleeps, and only then."""

    def __init__(self, monkeypatch):
        self.now, self.pauses = 1000.0, []
        monkeypatch.setattr(processes.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(processes.time, "sleep", self.sleep)

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def waited(monkeypatch):
    """The buffers that the runtime was asked to wait for."""
    asked = []
    monkeypatch.setattr(processes.pjrt, "wait", asked.append)
    return asked


@pytest.fixture
def job(monkeypatch):
    """A job of three processes, of which this is one; nobody is gone."""
    members = SimpleNamespace(index=1, count=3, gone={}, silent={}, lost=False, asked=[])
    members.losses = lambda: "process 2 died"
    members.lost_for = members.wait_for_loss = lambda s: members.asked.append(s) or members.lost
    launcher = SimpleNamespace(call=lambda start, watch: (watch(), start()))
    now = SimpleNamespace(members=members, launcher=launcher)
    monkeypatch.setattr(processes, "_now", now)
    return members


class Buffer:
    """A result that is there, or deleted, at a time."""

    def __init__(self, clock, at, deleted=float("inf")):
        self.clock, self.at, self.deleted = clock, at, deleted

    def is_ready(self):
        return self.clock.now >= self.at

    def is_deleted(self):
        return self.clock.now >= self.deleted


LOST = "process 1 of 3 cannot compute with the others: process 2 died"


def test_pauses_while_a_result_is_waited_for(clock, waited, job):
    """Of 20 µs at least, an eighth of the time waited, and 5 ms at most."""
    buffer = Buffer(clock, 1000.2)
    processes.finish(buffer)
    assert waited == [buffer]
    expected, total = [], 0.0
    while total < 0.2 - 1e-9:
        expected.append(min(max(total / 8, 2e-5), 5e-3))
        total += expected[-1]
    assert clock.pauses == pytest.approx(expected)
    assert clock.pauses[0] == 2e-5 and clock.pauses[-1] == 5e-3
    assert {*job.asked} == {0.5}  # for so long the runtime may say itself what failed


def test_results_that_are_there_or_were_given_away(clock, waited):
    processes.finish(Buffer(clock, 0))
    assert len(waited) == 1 and not clock.pauses
    processes.finish(Buffer(clock, 2000, deleted=1000.01))
    assert len(waited) == 1


def test_a_result_that_will_not_come(clock, waited, job, monkeypatch):
    job.lost = True
    with pytest.raises(LostProcessError, match=LOST):
        processes.finish(Buffer(clock, 2000))
    monkeypatch.setattr(processes, "_now", None)
    start = clock.now
    with pytest.raises(LostProcessError, match="work together no more"):
        processes.finish(Buffer(clock, 2000))
    assert 0.5 <= clock.now - start <= 0.5051
    assert not waited


class Failure(RuntimeError):
    """An error of the runtime's."""


@pytest.mark.parametrize(
    ("error", "lost", "raised"),
    [
        (Failure("connection reset"), True, LostProcessError),
        (Failure("computed badly"), False, Failure),
        (RuntimeError("of a handler"), True, RuntimeError),
        (ValueError("another"), True, ValueError),
    ],
)
def test_why_a_program_failed(job, clock, monkeypatch, error, lost, raised):
    """It is the loss of a process where the runtime says so, and one is gone soon."""

    def fail(*_):
        raise error

    monkeypatch.setattr(processes.pjrt, "is_failure", lambda found: type(found) is Failure)
    monkeypatch.setattr(processes.pjrt, "wait", fail)
    job.wait_for_loss = lambda seconds: lost and seconds == 0.5
    for run in (lambda: processes.finish(Buffer(clock, 0)), lambda: processes.launch(fail)):
        with pytest.raises(raised) as caught:
            run()
        assert caught.type is raised
        assert (caught.value.__cause__ is error) if lost and raised is LostProcessError else True


def test_programs_are_launched_while_the_others_are_watched(job):
    assert processes.launch(lambda: "results") == (None, "results")
    job.lost = True
    with pytest.raises(LostProcessError, match=LOST):
        processes.launch(lambda: "results")


@pytest.mark.parametrize(
    ("gone", "silent", "lost"),
    [({}, {}, False), ({2: "ended"}, {}, False), ({0: "ended", 2: "died"}, {}, True),
     ({}, {2: 5.0}, True)],
)  # fmt: skip
def test_before_a_program_begins(job, monkeypatch, gone, silent, lost):
    """One that ended well may have done its part."""
    job.gone, job.silent = gone, silent
    with pytest.raises(LostProcessError, match=LOST) if lost else contextlib.nullcontext():
        processes.check()
    monkeypatch.setattr(processes, "_now", None)
    processes.check()


# Joining


class Connection:
    """A socket as far as joining uses one."""

    def __init__(self, here="127.0.0.1", there="127.0.0.1"):
        self.here, self.there, self.closed, self.options = here, there, False, []

    def getsockname(self):
        return self.here, 1

    def getpeername(self):
        return self.there, 2

    def settimeout(self, seconds):
        self.options.append(seconds)

    def setsockopt(self, *option):
        self.options.append(option)

    def close(self):
        self.closed = True


@pytest.fixture
def meeting(monkeypatch, clock):
    """Answers of the coordinator, each an error or None, and what was tried."""
    at = SimpleNamespace(answers=[], tried=[], seconds=[])

    def connect(there, timeout):
        connection = Connection()
        at.tried.append(connection)
        if isinstance(at.answers[0], OSError) and not isinstance(at.answers[0], ConnectionError):
            clock.now += timeout
            raise at.answers.pop(0)
        return connection

    def introduce(self, devices, secret, seconds):
        at.seconds.append(seconds)
        error = at.answers.pop(0)
        if error is not None:
            raise error

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr(processes.Members, "introduce", introduce)
    return at


def introduce(clock, seconds):
    return processes._introduce(("host", 1), 3, 1, 10.0, SECRET, clock.now + seconds)


def test_the_coordinator_is_tried_again(clock, meeting):
    meeting.answers = [OSError("refused"), NotAnswered("full"), None]
    connection, members = introduce(clock, 30)
    assert [one.closed for one in meeting.tried] == [False, True, False]
    assert connection is meeting.tried[-1] and (members.index, members.count) == (1, 3)
    assert clock.pauses == [0.1, 0.1]
    # What is sent goes at once, and nothing but the deadline ends a wait.
    assert connection.options == [None, (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
    assert meeting.seconds == [10, 10]


@pytest.mark.parametrize(("left", "given"), [(7, 7), (0.5, 1), (40, 10)])
def test_how_long_the_coordinator_may_take_to_answer(clock, meeting, left, given):
    meeting.answers = [None]
    introduce(clock, left)
    assert meeting.seconds == [given]


@pytest.mark.parametrize(
    ("error", "message"),
    [(OSError("no route"), "process 0 has not come: no route"), (NotAnswered("full"), "full")],
)
def test_until_the_deadline(clock, meeting, error, message):
    meeting.answers = [error] * 100
    with pytest.raises(OSError, match=f"^{message}$") as caught:
        introduce(clock, 1)
    assert isinstance(caught.value, TimeoutError if type(error) is OSError else NotAnswered)
    assert len(meeting.tried) in ([1] if type(error) is OSError else [11, 12])


def test_at_the_deadline_itself_it_is_tried_once_more(clock, meeting):
    meeting.answers = [OSError("no route"), None]  # the first takes five seconds
    assert introduce(clock, 5)[0] is meeting.tried[-1]


def test_who_is_refused_tries_no_more(clock, meeting):
    meeting.answers = [Refused("another secret"), None]
    with pytest.raises(Refused, match="another secret"):
        introduce(clock, 30)
    assert [one.closed for one in meeting.tried] == [True] and not clock.pauses


@pytest.mark.parametrize(
    ("service", "there", "address"),
    [(7, "127.0.0.1", "127.0.0.1:7"), (7, "::1", "[::1]:7"), ("unix:{tmp}", "", "unix:{tmp}")],
)
def test_where_the_runtime_meets(clock, tmp_path, monkeypatch, service, there, address):
    asked = []
    monkeypatch.setattr(processes.clients, "coordination_client", lambda *how: asked.append(how))
    if isinstance(service, str):
        service, address = (text.format(tmp=tmp_path) for text in (service, address))
    for left, patience in [(60, 60), (2, 5)]:
        asked.clear()
        connection = Connection(there=there)
        processes._coordination(connection, service, 1, 10.0, clock.now + left)
        assert asked == [(address, 1, patience, 10.0)]


def test_no_folder_in_common(clock, tmp_path):
    with pytest.raises(RuntimeError, match=r"do not share a folder .*/nowhere would be: set TMPD"):
        processes._coordination(Connection(), f"unix:{tmp_path}/nowhere", 1, 10.0, clock.now)


@pytest.fixture
def joining(monkeypatch):
    """What joining does, in its order; each part gives what is set here, or raises it."""
    at = SimpleNamespace(done=[], listens="127.0.0.1", joins=([1, 2], 7))

    class Members:
        def join(self, deadline):
            if isinstance(at.joins, Exception):
                raise at.joins
            return at.joins

        def listen(self):
            at.done.append("listen")

        def close(self):
            at.done.append("close")

    class Pipe:
        def close(self):
            at.done.append("end the coordinator")

    def start(*how):
        at.done.append(("start", *how[:4]))
        processes._coordinators.append(SimpleNamespace(stdin=Pipe()))
        return at.listens

    def introduced(there, *how):
        at.done.append(("introduce", *there))
        return Connection("127.0.0.9"), Members()

    def joined(job, coordination, address):
        at.done.append(("join", job.index, job.counts, coordination, address))

    for name, value in [("_now", None), ("_past", False), ("_coordinators", [])]:
        monkeypatch.setattr(processes, name, value)
    monkeypatch.setattr(processes, "_start_coordinator", start)
    monkeypatch.setattr(processes, "_introduce", introduced)
    monkeypatch.setattr(processes, "_coordination", lambda *how: "coordination")
    monkeypatch.setattr(processes.clients, "join", joined)
    monkeypatch.setattr(processes, "job_secret", lambda caller, at, local: SECRET)
    monkeypatch.setattr(processes, "Launcher", lambda: "a launcher")
    return at


JOINED = ["listen", ("join", 0, (1, 2), "coordination", "127.0.0.9")]


def test_process_0_starts_the_coordinator(joining):
    processes.join("localhost", 5, 2, 0, 60, 10.0)
    start = ("start", "localhost", 5, 2, 10.0)
    assert joining.done == [start, ("introduce", "127.0.0.1", 5), *JOINED]
    assert processes.takes_part() and not processes.took_part()
    processes._now.members.listen()
    assert joining.done[-1] == "listen"
    assert (processes._now.coordination, processes._now.launcher) == ("coordination", "a launcher")


def test_process_0_listens_at_another_address(joining):
    """It goes where it listens, and by the name of the others where that is everywhere."""
    processes.join("name", 5, 2, 0, 60, 10.0, ("0.0.0.0", 6))
    joining.listens = "0.0.0.0"
    processes.join("name", 5, 2, 0, 60, 10.0, ("0.0.0.0", 6))
    assert [how for how in joining.done if how[0] in ("start", "introduce")] == [
        ("start", "0.0.0.0", 6, 2, 10.0),
        ("introduce", "127.0.0.1", 6),
        ("start", "0.0.0.0", 6, 2, 10.0),
        ("introduce", "name", 5),
    ]


def test_the_others_start_nothing(joining):
    processes.join("name", 5, 2, 1, 60, 10.0, ("0.0.0.0", 6))
    listen, (_, _, *rest) = JOINED
    assert joining.done == [("introduce", "name", 5), listen, ("join", 1, *rest)]


@pytest.mark.parametrize(
    ("host", "index", "error", "message"),
    [
        ("name", 0, TimeoutError("1 has not come"), "1 has not come; process 0 listens at 127"),
        ("localhost", 0, TimeoutError("1 has not come"), "1 has not come$"),
        ("127.0.0.1", 0, TimeoutError("1 has not come"), "1 has not come$"),
        ("name", 1, TimeoutError("0 has not come"), "0 has not come$"),
        ("name", 1, RuntimeError("gone"), "gone$"),
    ],
)
def test_joining_that_fails(joining, monkeypatch, host, index, error, message):
    joining.joins = error
    monkeypatch.setattr(processes, "is_local", lambda host: True)
    who = f"distributed.initialize: process {index} of 2 could not join the others at {host}:5: "
    with pytest.raises(RuntimeError, match=who + message):
        processes.join(host, 5, 2, index, 60, 10.0)
    assert joining.done[-1 - (not index) :] == ["close"] + ["end the coordinator"] * (not index)
    assert not processes.takes_part()


def test_other_errors_while_joining_stay_as_they_are(joining):
    joining.joins = ValueError("of a handler")
    with pytest.raises(ValueError, match=r"^of a handler$"):
        processes.join("name", 5, 2, 1, 60, 10.0)
    assert joining.done[-1] == "close"


def test_a_coordinator_that_starts_and_ends(monkeypatch):
    monkeypatch.setattr(processes, "_coordinators", [])
    start = lambda port: processes._start_coordinator("127.0.0.1", port, 1, 10.0, SECRET, True)
    assert start(coordinator.free_port()) == "127.0.0.1"
    (process,) = processes._coordinators
    assert os.getpgid(process.pid) == process.pid != os.getpgrp()
    process.stdin.close()
    assert process.wait(60) == 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(
            RuntimeError, match=rf"process 0 cannot listen at 127.0.0.1:{port}: .*in"
        ):
            start(port)
    assert processes._coordinators == [process]


# Leaving


class Parts:
    """What a process has of a job; it says what is done with it."""

    def __init__(self, done, ended=()):
        self.done = done
        self.members = SimpleNamespace(
            leave=lambda: done.append("say goodbye"), close=lambda: done.append("close")
        )
        self.launcher = SimpleNamespace(end=lambda: done.append("end the launcher"))
        self.coordination = SimpleNamespace(shutdown=self.shutdown)
        self.coordinators = [self.coordinator(code) for code in ended]

    def shutdown(self):
        self.done.append("shut down")
        raise RuntimeError("the service is gone")

    def coordinator(self, code):
        pipe = SimpleNamespace(close=lambda: self.done.append("close a pipe"))
        return SimpleNamespace(stdin=pipe, poll=lambda: code, returncode=None)


@pytest.fixture
def parts(monkeypatch):
    found = Parts([], ended=(0, None))
    monkeypatch.setattr(processes, "_now", found)
    monkeypatch.setattr(processes, "_past", False)
    monkeypatch.setattr(processes, "_launchers", [])
    monkeypatch.setattr(processes, "_coordinators", [*found.coordinators])
    monkeypatch.setattr(processes.clients, "leave", lambda: found.done.append("be alone"))
    return found


def test_leaving(parts):
    processes.leave()
    order = ["be alone", "shut down", "say goodbye", "end the launcher", *["close a pipe"] * 2]
    assert parts.done == order
    assert not processes.takes_part() and processes.took_part()
    assert processes._coordinators == parts.coordinators[1:]  # one that has not ended yet
    frozen = []
    parts.launcher.freeze = lambda: frozen.append(1)
    processes.freeze()
    assert frozen == [1]
    processes.leave()
    assert parts.done == order


def test_a_forked_child_is_in_no_job(parts):
    def state():
        codes = [one.returncode for one in parts.coordinators]
        return parts.done, codes, processes._now, processes._coordinators, processes._launchers

    processes._launchers.append("of the parent")
    assert in_a_child(state) == (["close", *["close a pipe"] * 2], [0, 0], None, [], [])
    assert processes.takes_part() and not parts.done


def test_a_call_that_is_being_made_at_the_end_is_kept_from_returning(monkeypatch):
    held, begun, go_on = [], threading.Event(), threading.Event()
    monkeypatch.setattr(processes.system, "hold_thread", held.append)
    launcher = processes.Launcher()
    launcher.freeze()
    assert held == []  # there is none

    def give_up():
        raise TimeoutError

    with pytest.raises(TimeoutError):
        launcher.call(lambda: (begun.set(), go_on.wait(60)), give_up)
    assert begun.wait(60)
    launcher.freeze()
    assert held == [launcher._thread.ident]
    go_on.set()
    launcher.end()
    launcher._thread.join(60)
