"""What the coordinator tells the processes that come, and what strangers can do: nothing."""

import contextlib
import errno
import json
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from stretto._engine.xla import coordinator, handshake
from tests.processes import SECRET, coordinated

OTHER = b"another secret of 16"


class Peer:
    """A process, or a stranger, as far as the coordinator sees one."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rwb")
        self.challenge = self.hear()["challenge"]

    def say(self, **message):
        self.send(handshake.line(**message))

    def send(self, data):
        self.file.write(data)
        self.file.flush()

    def hear(self):
        try:
            line = self.file.readline()
        except ConnectionResetError:
            return None
        return json.loads(line) if line else None

    def end(self):
        with contextlib.suppress(OSError):
            self.file.close()
        self.socket.close()


def joining(peer, index, of, devices=1, secret=SECRET):
    """What a process says first."""
    own = "1" * 64
    shown = handshake.proof(secret, "process", peer.challenge, own, index, of, devices)
    return {"join": index, "of": of, "devices": devices, "challenge": own, "proof": shown}


def process(port, index, of, devices=1):
    """One that has joined, and knows that the coordinator is of the job, too."""
    peer = Peer(port)
    peer.say(**joining(peer, index, of, devices))
    expected = handshake.proof(SECRET, "coordinator", peer.challenge, "1" * 64)
    assert peer.hear() == {"proof": expected}
    return peer


def test_all_learn_of_all_and_of_each_that_goes():
    with coordinated(3) as at:
        last = process(at.port, 2, 3, 4)
        assert last.hear() == {"here": [2]}
        first = process(at.port, 0, 3)
        assert last.hear() == first.hear() == {"here": [0, 2]}
        other = process(at.port, 1, 3, 2)
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


def test_the_port_is_free_once_all_have_come_and_no_stranger_is_left():
    with coordinated(1) as at:
        stranger = Peer(at.port)
        peer = process(at.port, 0, 1)
        assert peer.hear() == {"here": [0]} and "all" in peer.hear()
        assert stranger.hear() is None
        coordinator.listening("127.0.0.1", at.port).close()
        peer.end()
        stranger.end()


def test_who_is_refused():
    with coordinated(2) as at:
        first = process(at.port, 0, 2)
        assert first.hear() == {"here": [0]}
        wrong = [
            ((0, 2), {}, "another process has come as process 0"),
            ((1, 3), {}, "num_processes is 2 in process 0"),
            ((2, 2), {}, "there is no process 2 of 2"),
            ((1, 2), {"secret": OTHER}, "its secret is another one than that of process 0"),
        ]
        for about, how, why in wrong:
            peer = Peer(at.port)
            peer.say(**joining(peer, *about, **how))
            assert peer.hear() == {"refused": why} and peer.hear() is None
            peer.end()
        first.end()  # before all are there, its place is free again
        again = process(at.port, 0, 2)
        assert again.hear() == {"here": [0]}
        again.end()


def test_a_proof_is_of_one_connection_and_of_what_is_said():
    """What was heard on another connection is worth nothing, and neither are other numbers."""
    with coordinated(3) as at:
        first = process(at.port, 0, 3)
        assert first.hear() == {"here": [0]}
        overheard = Peer(at.port)
        said = joining(overheard, 1, 3)
        for other in (said, {**joining(overheard, 1, 3), "join": 2}, {**said, "devices": 5}):
            peer = Peer(at.port)
            peer.say(**other)
            assert peer.hear() == {"refused": "its secret is another one than that of process 0"}
            peer.end()
        overheard.say(**said)
        assert "proof" in overheard.hear() and first.hear() == {"here": [0, 1]}
        overheard.end()
        first.end()


def test_one_that_gives_no_sign_of_life_and_comes_back():
    with coordinated(2, heartbeat=0.5) as at:
        quiet, lively = [process(at.port, i, 2) for i in range(2)]
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


# Strangers

NOISE = [
    b"5\n",
    b"null\n",
    b"[]\n",
    b'"join"\n',
    b"\n",
    b"{}\n",
    b'{"join": 0}\n',
    b'{"bye": 0}\n',
    b'{"ping": 0}\n',
    b"[" * 3000 + b"\n",
    b"[" * 900 + b"\n",
    b'{"a":' * 180 + b"\n",
    b"9" * 5000 + b"\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n",
    b"\xff\xfe{\x00}\x00\n",
    b"\0" * 100_000,
    b"x" * 100_000,
]


def bad_joins(peer):
    """The first message of a process, wrong in one place."""
    right = joining(peer, 1, 2)
    for name, values in {
        "join": [-1, 2, 1.0, True, None, "1", [1], {}, 10**400, 1 << 63],
        "of": [0, -2, 3, 2.0, "2", None, [2], 1 << 40],
        "devices": [0, -1, 1.5, True, None, "1", [1], 10**300],
        "challenge": [None, 1, "", "1" * 63, "1" * 65, "g" * 64, ["1" * 64], "é" * 64],
        "proof": [None, 1, "", "0" * 64, "0" * 63, right["proof"].upper(), [right["proof"]]],
    }.items():
        for value in values:
            yield {**right, name: value}
        yield {key: value for key, value in right.items() if key != name}
    yield {**right, "more": 1}


def test_nothing_that_a_stranger_says_ends_the_job():
    with coordinated(2) as at:
        first = process(at.port, 0, 2)
        assert first.hear() == {"here": [0]}
        for noise in NOISE:
            stranger = Peer(at.port)
            with contextlib.suppress(ConnectionError):
                stranger.send(noise)
            assert stranger.hear() is None, noise
            stranger.end()
        probe = Peer(at.port)
        for message in bad_joins(probe):
            stranger = Peer(at.port)
            stranger.say(**message)
            heard = stranger.hear()
            assert heard is None or set(heard) == {"refused"}, message
            stranger.end()
        text = handshake.line(**joining(probe, 1, 2)).decode()
        twice = Peer(at.port)  # a field given twice
        twice.send(text.replace('{"join"', '{"join": 1, "join"').encode())
        assert twice.hear() is None
        probe.say(**joining(probe, 1, 2))  # the right one is still welcome
        assert "proof" in probe.hear()
        assert first.hear() == {"here": [0, 1]} and "all" in first.hear()
        for peer in (first, probe, twice):
            peer.end()


def test_ten_thousand_messages_and_a_thousand_connections():
    """All at once, beside a process that comes late: it is let in."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    try:
        with coordinated(2) as at:
            first = process(at.port, 0, 2)
            assert first.hear() == {"here": [0]}
            flood = [
                socket.create_connection(("127.0.0.1", at.port), timeout=60) for _ in range(1100)
            ]
            assert len(at.meeting.strangers) <= coordinator._STRANGERS + 2 + 1
            for n in range(10_000):
                with contextlib.suppress(OSError):
                    flood[n % len(flood)].send(NOISE[n % 13])
            second = process(at.port, 1, 2)
            assert first.hear() == {"here": [0, 1]} and "all" in first.hear()
            for one in flood:
                one.close()
            second.say(bye=1)
            assert first.hear() == {"gone": 1, "how": "ended"}
            second.end()
            first.end()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_oldest_stranger_goes_where_there_are_too_many():
    with coordinated(2) as at:
        first = Peer(at.port)
        rest = [Peer(at.port) for _ in range(coordinator._STRANGERS + 2)]
        assert first.hear() is None and len(at.meeting.strangers) == coordinator._STRANGERS + 2
        rest[0].say(**joining(rest[0], 0, 2))  # others stay
        assert "proof" in rest[0].hear()
        for peer in (first, *rest):
            peer.end()


def test_no_descriptors_left(monkeypatch):
    """A connection that cannot be taken costs the oldest stranger its place, and nothing else."""
    real, left = socket.socket.accept, []

    def accept(server):
        if left:
            raise OSError(errno.EMFILE, left.pop())
        return real(server)

    monkeypatch.setattr(socket.socket, "accept", accept)
    with coordinated(2) as at:
        first, stranger = process(at.port, 0, 2), Peer(at.port)
        left += ["full"] * 3
        second = process(at.port, 1, 2)
        assert left == [] and stranger.hear() is None
        assert [first.hear() for _ in range(2)] == [{"here": [0]}, {"here": [0, 1]}]
        for peer in (first, second, stranger):
            peer.end()


def test_slow_ones_are_let_go(monkeypatch):
    """One that sends a byte now and then, and one that sends nothing."""
    monkeypatch.setattr(coordinator, "_PATIENCE", 0.6)
    with coordinated(2, heartbeat=0.4) as at:
        silent, slow, first = Peer(at.port), Peer(at.port), process(at.port, 0, 2)
        start = time.monotonic()
        for byte in handshake.line(**joining(slow, 1, 2)):
            try:
                slow.send(bytes([byte]))
            except OSError:
                break
            time.sleep(0.05)
        else:
            pytest.fail("it was listened to for as long as it liked")
        assert silent.hear() is None and slow.hear() is None and time.monotonic() - start < 30
        assert list(at.meeting.joined) == [0]  # one that has joined may be as slow as it likes
        for peer in (silent, slow, first):
            peer.end()


def test_halves_of_connections_and_of_lines():
    with coordinated(2) as at:
        first = process(at.port, 0, 2)
        assert first.hear() == {"here": [0]}
        half = Peer(at.port)
        half.socket.shutdown(socket.SHUT_WR)
        assert half.hear() is None
        reset = Peer(at.port)
        linger = (1).to_bytes(4, sys.byteorder) + bytes(4)
        reset.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        reset.end()  # with a reset
        part = Peer(at.port)
        part.send(handshake.line(**joining(part, 1, 2))[:-20])
        part.end()
        second = Peer(at.port)  # in two parts, with what follows in the second
        said = handshake.line(**joining(second, 1, 2))
        second.send(said[:50])
        time.sleep(0.05)
        second.send(said[50:] + handshake.line(ping=1) * 3)
        assert "proof" in second.hear()
        assert first.hear() == {"here": [0, 1]}
        for peer in (first, second, half):
            peer.end()


@pytest.mark.parametrize(
    "noise", [b"5\n", b"null\n", b'{"ping": 0}\n', b'{"bye": 7000000}\n', b"[" * 3000, b"x" * 2000]
)
def test_a_process_that_talks_nonsense_has_died(noise):
    with coordinated(2) as at:
        first, second = process(at.port, 0, 2), process(at.port, 1, 2)
        second.send(noise)
        heard = [first.hear() for _ in range(4)]
        assert heard[-1] == {"gone": 1, "how": "died"}
        first.end()
        second.end()


def test_a_process_does_not_join_twice():
    with coordinated(2) as at:
        first, second = process(at.port, 0, 2), process(at.port, 1, 2)
        second.say(**joining(second, 1, 2))
        assert [first.hear() for _ in range(4)][-1] == {"gone": 1, "how": "died"}
        first.end()
        second.end()


def test_one_that_does_not_read_is_let_go(monkeypatch):
    """What waits for it is bounded; the others go on."""
    monkeypatch.setattr(coordinator, "_UNREAD", 10_000)
    with coordinated(2) as at:
        first, second = process(at.port, 0, 2), process(at.port, 1, 2)
        heard = [first.hear() for _ in range(3)]
        assert "all" in heard[-1]
        size = 0
        while 1 in at.meeting.joined and size < 1 << 28:
            message = handshake.line(here=list(range(10_000)))
            at.meeting._tell(at.meeting.joined[1], message)
            size += len(message)
        assert 1 not in at.meeting.joined
        assert first.hear() == {"gone": 1, "how": "died"}
        first.end()
        second.end()


MESSAGES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
    max_leaves=5,
)
FIELDS = some.sampled_from(
    ["join", "of", "devices", "challenge", "proof", "ping", "bye", "here", "all", "service"]
)


@settings(max_examples=200)
@given(
    data=some.binary(max_size=300)
    | MESSAGES.map(lambda x: json.dumps(x).encode())
    | some.dictionaries(FIELDS, MESSAGES | some.just("0" * 64)).map(
        lambda x: json.dumps(x).encode()
    )
)
def test_the_reader_of_messages(data):
    """Whatever comes, it gives a message of a known kind, or a ``ValueError``."""
    for kinds in (handshake.FROM_PROCESS, handshake.FROM_COORDINATOR):
        try:
            found = handshake.read(data, kinds)
        except ValueError:
            continue
        assert any(found.keys() == kind.keys() for kind in kinds)
        kind = next(kind for kind in kinds if kind.keys() == found.keys())
        assert all(kind[name](value) for name, value in found.items())
        assert json.loads(data) == found


@settings(max_examples=300)
@given(
    some.dictionaries(FIELDS, some.integers() | some.text() | some.booleans() | some.none()),
    some.integers(0, 5),
    some.binary(max_size=4),
)
def test_what_is_near_a_message(change, place, bytes_between):
    """A right message, with fields changed and bytes put in."""
    right = {"join": 1, "of": 2, "devices": 3, "challenge": "0" * 64, "proof": "f" * 64}
    line = json.dumps({**right, **change}).encode()
    at = place * len(line) // 5
    line = line[:at] + bytes_between + line[at:]
    try:
        found = handshake.read(line, handshake.FROM_PROCESS)
    except ValueError:
        return
    assert found.keys() in ({"ping"}, {"bye"}, right.keys())
    for name in ("join", "of", "devices", "ping", "bye"):
        value = found.get(name, 1)
        assert type(value) is int and 0 <= value <= 1 << 20


# Where it listens


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            coordinator.listening("127.0.0.1", port)


def started(host, port=0, local=True):
    """A coordinator in a process of its own, and what it says first."""
    code = f"from {coordinator.MARK} import main; main({host!r}, {port}, 1, 10, {local})"
    started = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    started.stdin.write(SECRET.hex() + "\n")
    started.stdin.flush()
    return started, started.stdout.readline().strip()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_it_listens_at_the_address_asked_for_and_at_no_other(host):
    port = coordinator.free_port(host)
    at, said = started(host, port)
    with at:
        try:
            address = "127.0.0.1" if host == "localhost" else host
            assert said == f"ready {address}"
            socket.create_connection((address, port), timeout=60).close()
            for other in {"127.0.0.1", "127.0.0.2", "::1"} - {address}:
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection((other, port), timeout=60)
        finally:
            at.stdin.close()
        assert at.wait(60) == 0


def test_it_says_what_is_wrong():
    with socket.create_server(("127.0.0.1", 0)) as server:
        at, said = started("127.0.0.1", server.getsockname()[1])
        with at:
            assert "in use" in said and at.wait(60) == 0
    at, said = started("192.0.2.77", 4567, False)  # an address for examples
    with at:
        assert "assign requested address" in said and at.wait(60) == 0


def test_addresses_of_this_machine_alone():
    assert all(map(handshake.is_local, ["127.0.0.1", "127.3.2.1", "::1", "localhost"]))
    for host in ("0.0.0.0", "::", "192.0.2.77", "fe80::1", "::ffff:127.0.0.1", "no.such.invalid"):
        assert not handshake.is_local(host), host
    assert not handshake.is_local("x" * 300)


def test_a_folder_for_the_service_goes_with_it(monkeypatch, request):
    # A short path, as a socket's may have 107 characters; tmp_path's is too long for it at times.
    tmp_path = pathlib.Path(tempfile.mkdtemp())
    request.addfinalizer(lambda: shutil.rmtree(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    at, said = started("127.0.0.1", coordinator.free_port())
    with at:
        assert said.startswith("ready")
        (folder,) = os.listdir(tmp_path)
        assert os.stat(tmp_path / folder).st_mode & 0o777 == 0o700
        at.terminate()
        at.wait(60)
    assert os.listdir(tmp_path) == []
