"""What the coordinator tells the processes that come."""

import json
import socket

import pytest

from stretto._engine.runtime import coordinator
from tests.processes import coordinated


class Peer:
    """A process, as far as the coordinator sees one."""

    def __init__(self, port, **message):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rwb")
        self.say(**message)

    def say(self, **message):
        self.file.write(coordinator.line(**message))
        self.file.flush()

    def hear(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def end(self):
        self.file.close()
        self.socket.close()


def test_all_learn_of_all_and_of_each_that_goes():
    with coordinated(3) as at:
        last = Peer(at.port, join=2, of=3, devices=4)
        assert last.hear() == {"here": [2]}
        first = Peer(at.port, join=0, of=3, devices=1)
        assert last.hear() == first.hear() == {"here": [0, 2]}
        other = Peer(at.port, join=1, of=3, devices=2)
        for peer in (first, other, last):
            assert peer.hear() == {"here": [0, 1, 2]}
            assert peer.hear() == {"all": [1, 2, 4], "service": 7}
        first.say(bye=0)
        assert first.hear() is None
        assert other.hear() == last.hear() == {"gone": 0, "how": "ended"}
        last.end()
        assert other.hear() == {"gone": 2, "how": "died"}
        first.end()
        assert at.thread.is_alive()  # while one is there
        other.end()


def test_the_port_is_free_once_all_have_come():
    with coordinated(1) as at:
        peer = Peer(at.port, join=0, of=1, devices=1)
        assert peer.hear() == {"here": [0]} and "all" in peer.hear()
        coordinator._listening("127.0.0.1", at.port).close()
        peer.end()


def test_who_is_refused():
    with coordinated(2) as at:
        first = Peer(at.port, join=0, of=2, devices=1)
        assert first.hear() == {"here": [0]}
        same = Peer(at.port, join=0, of=2, devices=1)
        assert same.hear() == {"refused": "another process has come as process 0"}
        many = Peer(at.port, join=1, of=3, devices=1)
        assert many.hear() == {"refused": "num_processes is 2 in process 0"}
        noise = Peer(at.port)
        noise.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert noise.hear() is None
        first.end()  # before all are there, its place is free again
        again = Peer(at.port, join=0, of=2, devices=1)
        assert again.hear() == {"here": [0]}
        for peer in (again, same, many, noise):
            peer.end()


def test_one_that_gives_no_sign_of_life_and_comes_back():
    with coordinated(2, heartbeat=0.5) as at:
        quiet, lively = [Peer(at.port, join=i, of=2, devices=1) for i in range(2)]
        messages = []
        while {"silent": 0, "whether": True} not in messages:
            lively.say(ping=1)
            messages.append(lively.hear())
        quiet.say(ping=0)
        while messages[-1] != {"silent": 0, "whether": False}:
            lively.say(ping=1)
            messages.append(lively.hear())
        quiet.end()
        lively.end()


def test_a_port_that_is_taken(capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            coordinator._listening("127.0.0.1", port)
        coordinator.main("127.0.0.1", port, 1, 10)
    assert "in use" in capsys.readouterr().out
