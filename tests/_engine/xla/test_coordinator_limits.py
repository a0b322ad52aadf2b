"""How long the coordinator waits for a stranger, and how much for one that does not read."""

import socket
from types import SimpleNamespace

import pytest

from stretto._engine.xla import coordinator
from stretto._engine.xla.coordinator import Meeting, _Peer
from tests.processes import SECRET


@pytest.fixture
def meeting():
    with coordinator.listening("127.0.0.1", 0) as server:
        yield Meeting(server, 7, 3, 10.0, SECRET)


@pytest.fixture
def peer(meeting):
    """A connection that has said nothing yet."""
    here, there = socket.socketpair()
    here.setblocking(False)
    one = _Peer(here)
    meeting.strangers[one] = None
    meeting.selector.register(here, coordinator.selectors.EVENT_READ, one)
    with here, there:
        yield one


@pytest.mark.parametrize(("seconds", "stays"), [(9.95, True), (10.05, False)])
def test_ten_seconds_to_prove_that_it_is_of_the_job(meeting, peer, monkeypatch, seconds, stays):
    monkeypatch.setattr(coordinator.time, "monotonic", lambda: peer.since + seconds)
    meeting._drop_late()
    assert (peer in meeting.strangers) is stays is not peer.closed


@pytest.mark.parametrize(("count", "stays"), [((1 << 20) + 3 * 64, True), ((1 << 20) + 193, False)])
def test_a_mebibyte_waits_and_64_bytes_for_each_process(meeting, peer, count, stays):
    peer.connection = SimpleNamespace(send=lambda data: 0, close=peer.connection.close)
    meeting.selector = SimpleNamespace(modify=lambda *how: None, unregister=lambda one: None)
    peer.unsent = b"x" * count
    meeting._send(peer)
    assert peer.closed is not stays


@pytest.mark.parametrize(("seconds", "is_silent"), [(10.0, False), (10.1, True)])
def test_who_is_silent(meeting, peer, monkeypatch, seconds, is_silent):
    """A process that has given no sign of life for as long as the job's heartbeat says."""
    told = []
    monkeypatch.setattr(meeting, "tell_all", lambda **message: told.append(message))
    monkeypatch.setattr(coordinator.time, "monotonic", lambda: peer.heard + seconds)
    peer.index = 2
    meeting.joined[2] = peer
    for _ in range(2):
        meeting._look_for_silent()
    assert told == [{"silent": 2, "whether": True}] * is_silent
    monkeypatch.setattr(coordinator.time, "monotonic", lambda: peer.heard)
    meeting._look_for_silent()
    assert told[1:] == [{"silent": 2, "whether": False}] * is_silent


def test_addresses_in_turn(monkeypatch):
    """Of a name with several, the first of this machine, of version 4 before 6."""
    found = [(socket.AF_INET6, 0, 0, "", ("::1", 0)), (socket.AF_INET, 0, 0, "", ("127.0.0.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *how, **more: found)
    tried = []

    def create(address, **how):
        tried.append(address[0])
        if address[0] in refused:
            raise OSError(f"not {address[0]}")
        return "a server"

    monkeypatch.setattr(socket, "create_server", create)
    monkeypatch.setattr(coordinator, "_is_elsewhere", lambda address, family: True)
    refused = set()
    assert coordinator.listening("name", 1) == "a server" and tried == ["127.0.0.1"]
    refused = {"127.0.0.1"}
    assert coordinator.listening("name", 1) == "a server" and tried[1:] == ["127.0.0.1", "::1"]
    refused.add("::1")
    with pytest.raises(OSError, match=r"not 127\.0\.0\.1"):  # the first problem
        coordinator.listening("name", 1)
    monkeypatch.setattr(coordinator, "_is_elsewhere", lambda address, family: False)
    with pytest.raises(OSError, match=r"not 127\.0\.0\.1"):  # it is here: no other is tried
        coordinator.listening("name", 1)
    assert tried[-1] == "127.0.0.1"
    found.clear()
    with pytest.raises(OSError, match="name has no address"):
        coordinator.listening("name", 1)


@pytest.mark.parametrize(("there", "drops"), [(130, False), (131, True)])
def test_as_many_strangers_as_128_and_one_for_each_process(meeting, monkeypatch, there, drops):
    dropped = []
    monkeypatch.setattr(meeting, "_drop_oldest", lambda: dropped.append(1))
    meeting.strangers = dict.fromkeys(range(there))
    with socket.create_connection(meeting.server.getsockname(), timeout=60):
        while len(meeting.strangers) == there:
            dropped.clear()  # nobody was there yet
            meeting._accept()
    assert bool(dropped) is drops
    *_, peer = meeting.strangers
    peer.connection.close()


def test_a_connection_that_cannot_be_had_costs_the_oldest_stranger(meeting, peer, monkeypatch):
    def none():
        raise OSError("too many open files")

    paused = []
    monkeypatch.setattr(coordinator.time, "sleep", paused.append)
    meeting.server = SimpleNamespace(accept=none)
    meeting._accept()
    assert peer.closed and not meeting.strangers and not paused
    meeting._accept()
    assert paused == [0.01]  # else it would be tried again at once, for ever
    meeting.complete, meeting.server = True, None
    meeting._accept()


@pytest.mark.parametrize(
    ("parts", "lines", "rest"),
    [
        ([b"ab"], [[]], b"ab"),
        ([b"ab\n"], [[b"ab"]], b""),
        ([b"a", b"b\nc\nd"], [[], [b"ab", b"c"]], b"d"),
        ([b"\n\n"], [[b"", b""]], b""),
        ([b"x" * 1024], [[]], b"x" * 1024),
        ([b"x" * 1024 + b"\n"], [[b"x" * 1024]], b""),
        ([b"x" * 1025], [None], b"x" * 1025),
        ([b"x" * 1025 + b"\ny"], [None], b"y"),
        ([b"x" * 1024, b"y"], [[], None], b"x" * 1024 + b"y"),
    ],
    ids=str,
)
def test_lines_of_1024_bytes_in_any_parts(peer, parts, lines, rest):
    came = iter(parts)
    peer.connection.close()
    peer.connection = SimpleNamespace(recv=lambda most: next(came), close=lambda: None)
    assert [peer.lines() for _ in parts] == lines and peer.rest == rest


@pytest.mark.parametrize(
    ("error", "lines"), [(BlockingIOError, []), (ConnectionResetError, None), (None, None)]
)
def test_where_nothing_comes(peer, error, lines):
    def recv(most):
        if error is not None:
            raise error
        return b""

    peer.connection.close()
    peer.connection = SimpleNamespace(recv=recv, close=lambda: None)
    assert peer.lines() == lines


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_where_the_service_is(monkeypatch, host, shown):
    monkeypatch.setattr(coordinator, "coordination_service", lambda *how: how)
    monkeypatch.setattr(coordinator, "free_port", lambda host: 4321)
    server = SimpleNamespace(getsockname=lambda: (host, 7))
    start = coordinator._start_service
    assert start(server, 3, 9.5, None) == (4321, (f"{shown}:4321", 3, 9.5))
    assert start(server, 3, 9.5, "/a") == ("unix:/a/service", ("unix:/a/service", 3, 9.5))


def test_a_port_where_nobody_listens():
    port = coordinator.free_port()
    assert port > 0
    with coordinator.listening("127.0.0.1", port) as server:
        assert server.getsockname() == ("127.0.0.1", port)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs sockets of both versions")
def test_all_addresses_of_version_6_are_all_of_version_4_too():
    with coordinator.listening("::", 0) as server:
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, server.getsockname()[1]), timeout=60).close()
