"""A process's view of those that it works with."""

import json
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from stretto._engine.xla import processes
from stretto._engine.xla.handshake import line
from stretto._engine.xla.processes import Members, NotAnswered, Refused
from tests.processes import SECRET, coordinated


def member(at, index, count, heartbeat=10.0):
    connection = socket.create_connection(("127.0.0.1", at.port), timeout=60)
    return Members(connection, index, count, heartbeat)


def introduced(at, index, count, heartbeat=10.0):
    """One that has introduced itself."""
    one = member(at, index, count, heartbeat)
    one.introduce(index + 1, SECRET, 60)
    return one


def joined(at, count, heartbeat=10.0):
    """All of them, each with as many devices as its number, and one more."""
    every = [introduced(at, i, count, heartbeat) for i in range(count)]
    results = {}

    def join(one):
        results[one.index] = one.join(time.monotonic() + 60)

    threads = [threading.Thread(target=join, args=(one,)) for one in every]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: ([*range(1, count + 1)], 7) for i in range(count)}
    for one in every:
        one.listen()
    return every


def test_what_is_known_of_those_that_go():
    with coordinated(3) as at:
        first, second, third = joined(at, 3)
        assert not first.wait_for_loss(0) and not first.lost_for(0) and first.losses() == ""
        second.leave()
        assert first.wait_for_loss(60) and first.gone == {1: "ended"}
        assert first.lost_for(0) and not first.lost_for(60)
        third._connection.shutdown(socket.SHUT_RDWR)  # as the system does when a process ends
        end = time.monotonic() + 60
        while 2 not in first.gone and time.monotonic() < end:
            time.sleep(0.01)
        assert first.losses() == (
            "process 1 has ended; process 2 died (it was killed, or ended without shutdown)"
        )
        third.close()
        first.leave()


def test_one_that_does_not_answer():
    with coordinated(2, heartbeat=0.5) as at:
        first, second = [introduced(at, i, 2, 0.5) for i in range(2)]
        first.join(time.monotonic() + 60)
        first.listen()
        assert first.wait_for_loss(60) and first.losses() == "process 1 does not answer"
        assert first.lost_for(60)
        second.listen()  # which answers
        end = time.monotonic() + 60
        while first.silent and time.monotonic() < end:
            time.sleep(0.01)
        assert first.losses() == ""
        first.leave()
        second.leave()


def test_those_that_do_not_come():
    with coordinated(3) as at:
        first = introduced(at, 0, 3, 0.5)
        with pytest.raises(TimeoutError, match="of 3 processes these have not come: 1, 2"):
            first.join(time.monotonic() + 0.2)
        first.close()


def test_what_is_heard_at_the_deadline_itself(pair, monkeypatch):
    one, _ = pair
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=100.0)
    monkeypatch.setattr(processes, "time", clock)
    waits = []

    def received(seconds):
        waits.append(seconds)
        clock.now += seconds
        return [{"all": [1, 2, 3], "service": 7}] if len(waits) == 3 else []

    monkeypatch.setattr(one, "_received", received)
    assert one.join(103.0) == ([1, 2, 3], 7)
    assert waits == [2.0, 1.0, 0]


@pytest.mark.parametrize(
    ("index", "count", "secret", "why"),
    [
        (1, 2, SECRET, "num_processes is 3 in process 0"),
        (0, 3, SECRET, "another process has come as process 0"),
        (3, 3, SECRET, "there is no process 3 of 3"),
        (1, 3, SECRET + b"!", "its secret is another one than that of process 0"),
        (0, 2, b"", "its secret is another one than that of process 0"),
    ],
)
def test_those_that_are_refused(index, count, secret, why):
    with coordinated(3) as at:
        first = introduced(at, 0, 3)
        wrong = member(at, index, count)
        with pytest.raises(Refused, match=why):
            wrong.introduce(1, secret, 60)
        wrong.close()
        first.leave()


def pretended(*answers, ends=True):
    """A member whose coordinator is a stranger that says this; ``None`` has it wait for a line."""
    here, there = socket.socketpair()
    there.settimeout(60)

    def act():
        for answer in answers:
            there.sendall(answer) if answer is not None else there.recv(4096)
        if ends:
            there.close()

    thread = threading.Thread(target=act)
    thread.start()
    return Members(here, 0, 2, 10.0), there, thread


CHALLENGE = line(challenge="0" * 64)


@pytest.mark.parametrize(
    ("answers", "kind", "why"),
    [
        ((), NotAnswered, "has closed the connection"),
        ((b"SSH-2.0-OpenSSH_9.2\r\n",), NotAnswered, "what the coordinator sends cannot be read"),
        ((line(here=[0]),), NotAnswered, "does not answer as process 0 does"),
        ((CHALLENGE, None), NotAnswered, "closed"),
        ((CHALLENGE, None, line(proof="0" * 64)), Refused, "does not know the secret of this job"),
        # From 3.14 on Python goes as deep as that, and finds nothing there.
        (
            (CHALLENGE, None, b"[" * 3000 + b"\n"),
            NotAnswered,
            "cannot be read: (brackets|Expecting value)",
        ),
        ((line(refused="go away"),), Refused, "go away"),
    ],
)
def test_a_stranger_in_the_place_of_the_coordinator(answers, kind, why):
    one, _, thread = pretended(*answers)
    with pytest.raises(kind, match=why):
        one.introduce(1, SECRET, 60)
    thread.join()
    one.close()


def test_a_stranger_that_says_nothing_or_never_ends_a_line():
    one, there, thread = pretended(ends=False)
    with pytest.raises(NotAnswered, match="does not answer as process 0 does"):
        one.introduce(1, SECRET, 0.2)
    thread.join()
    one.close()
    there.close()
    one, there, thread = pretended(b"x" * 100_000)
    with pytest.raises(NotAnswered, match="lines without end"):
        one.introduce(1, SECRET, 60)
    one.close()
    thread.join()


def test_the_secret_does_not_travel():
    one, there, thread = pretended(CHALLENGE, ends=False)
    with pytest.raises(NotAnswered):
        one.introduce(1, SECRET, 0.2)
    sent = there.recv(4096)
    assert set(json.loads(sent)) == {"join", "of", "devices", "challenge", "proof"}
    assert SECRET not in sent and SECRET.hex().encode() not in sent
    thread.join()
    one.close()
    there.close()


def test_a_connection_that_breaks_before_it_is_introduced():
    here, there = socket.socketpair()
    with here, there:
        there.sendall(CHALLENGE)
        here.shutdown(socket.SHUT_WR)
        with pytest.raises(NotAnswered, match="Broken pipe"):
            Members(here, 0, 2, 10.0).introduce(1, SECRET, 60)


# What it does with what comes


@pytest.fixture
def pair():
    """A member with a heartbeat of ten seconds, and the other end of its connection."""
    here, there = socket.socketpair()
    there.settimeout(60)
    with here, there:
        yield Members(here, 1, 3, 10.0), there


def test_what_was_told_of_others_since_when(pair, monkeypatch):
    """The first that goes says since when one is gone; one that is gone is no longer silent."""
    one, _ = pair
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=100.0)
    monkeypatch.setattr(processes, "time", clock)
    notes = [
        (100.0, {"silent": 0, "whether": True}, {}, {0: 100.0}, True),
        (101.0, {"silent": 2, "whether": True}, {}, {0: 100.0, 2: 101.0}, True),
        (102.0, {"silent": 0, "whether": False}, {}, {2: 101.0}, True),
        (103.0, {"gone": 2, "how": "died"}, {2: "died"}, {}, False),
        (103.5, {"here": [0]}, {2: "died"}, {}, False),
        (104.0, {"gone": 0, "how": "ended"}, {2: "died", 0: "ended"}, {}, True),
    ]
    for clock.now, message, gone, silent, is_lost in notes:
        one._note(message)
        assert (one.gone, one.silent, one.lost_for(0.9)) == (gone, silent, is_lost)
    assert one._gone_since == 103.0 and one.lost_for(0.99) and not one.lost_for(1.0)


def test_who_waits_for_a_loss_is_woken_by_one(pair):
    one, _ = pair
    assert not one.wait_for_loss(0.01)
    found = []
    thread = threading.Thread(target=lambda: found.append(one.wait_for_loss(60)))
    thread.start()
    one._note({"silent": 0, "whether": True})
    thread.join(60)
    assert found == [True] and one.wait_for_loss(0)


def test_a_sign_of_life_where_nothing_comes(pair):
    one, there = pair
    assert one._interval == 2.0  # five in each heartbeat
    assert one._received(0) == [] and there.recv(4096) == line(ping=1)
    there.sendall(line(here=[0, 1]) + line(silent=2, whether=True) + b'{"gone"')
    assert one._received(60) == [{"here": [0, 1]}, {"silent": 2, "whether": True}]
    there.sendall(b': 0, "how": "died"}\n')
    assert one._received(60) == [{"gone": 0, "how": "died"}]
    one._messages = [{"here": [1]}]
    assert one._received(60) == [{"here": [1]}] and one._messages == []


@pytest.mark.parametrize("longest", [1024, 1 << 12])
def test_how_long_a_line_may_be_before_it_ends(pair, longest):
    one, there = pair
    assert one._longest == 1024  # until the coordinator has proved what it is
    one._longest = longest
    there.sendall(b" " * longest)
    assert one._read() == []
    there.sendall(b" ")
    with pytest.raises(ConnectionError, match="lines without end"):
        one._read()


def test_goodbye(pair):
    one, there = pair
    one.leave()
    assert there.makefile("rb").read() == line(bye=1)
    one.leave()  # it is closed already
