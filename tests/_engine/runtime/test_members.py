"""A process's view of those that it works with."""

import socket
import threading
import time

import pytest

from stretto._engine.runtime.members import Members
from tests.processes import coordinated


def member(at, index, count, heartbeat=10.0):
    connection = socket.create_connection(("127.0.0.1", at.port), timeout=60)
    return Members(connection, index, count, heartbeat)


def joined(at, count, heartbeat=10.0):
    """All of them, each with as many devices as its number, and one more."""
    every = [member(at, i, count, heartbeat) for i in range(count)]
    results = {}

    def join(one):
        results[one.index] = one.join(one.index + 1, time.monotonic() + 60)

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
        first, second = [member(at, i, 2, 0.5) for i in range(2)]
        second._connection.sendall(b'{"join": 1, "of": 2, "devices": 1}\n')
        first.join(1, time.monotonic() + 60)
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
        first = member(at, 0, 3, 0.5)
        with pytest.raises(TimeoutError, match="of 3 processes these have not come: 1, 2"):
            first.join(1, time.monotonic() + 0.2)
        first.close()
        wrong = member(at, 1, 2)
        with pytest.raises(ConnectionError, match="num_processes is 3 in process 0"):
            wrong.join(1, time.monotonic() + 60)
        wrong.close()
