"""The process in which several others meet: it says who is there, and who is gone.

The first of the processes starts it, and it outlives that one if need be: the runtime ends every
process that loses the coordination service, which runs here. Each of the others keeps a connection,
over which lines of JSON go both ways; the system closes it when a process ends, however it ends.
Anybody may reach the port: who does not prove to be of the job (``handshake``) gets a few seconds,
one message and a place among a few connections, and can end nothing.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
from typing import Any

from stretto._engine.core import system
from stretto._engine.xla import handshake
from stretto._engine.xla.clients import coordination_service
from stretto._engine.xla.handshake import FROM_PROCESS, LONGEST, line, proof, read, same

MARK = "stretto._engine.xla.coordinator"
"""A coordinator is known by this in its command line."""

_STRANGERS = 128
"""The most open connections, beside one for each process, that have not proved anything."""
_PATIENCE = 10.0
"""The seconds that a connection may take to prove that it is of the job."""
_UNREAD = 1 << 20
"""The most bytes that wait for a process that does not read, beside 64 for each process."""
_LONGEST_PATH = 90
"""A socket's path has 104 bytes at least on all systems."""


def listening(host: str, port: int) -> socket.socket:
    """Listen at this address of this machine, and at no other; raises ``OSError`` if that fails.

    Of a name with several addresses it is the first that this machine has, of version 4 before 6.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    problem: OSError | None = None
    for family, *_, address in sorted(found, key=lambda one: one[0] != socket.AF_INET):
        everywhere = str(address[0]) == "::" and socket.has_dualstack_ipv6()
        try:
            return socket.create_server(
                address, family=family, backlog=_STRANGERS, dualstack_ipv6=everywhere
            )
        except OSError as error:
            if not _is_elsewhere(address, family):
                raise
            problem = problem or error
    raise problem or OSError(f"{host} has no address")


def _is_elsewhere(address: Any, family: int) -> bool:
    """Say whether this machine does not have the address, so that another one may be meant."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.bind((address[0], 0, *address[2:]))
    except OSError:
        return True
    return False


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port on which nobody listens now."""
    with listening(host, 0) as server:
        return server.getsockname()[1]


class _Peer:
    """A connection to one of the processes, or to a stranger."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.challenge = handshake.new_challenge()
        self.rest = b""
        self.unsent = b""
        self.index = -1
        self.devices = 0
        self.heard = self.since = time.monotonic()
        self.silent = False
        self.closed = False

    def send(self) -> None:
        """Send what can be sent now; if that fails, it is closing, which is noticed elsewhere."""
        with contextlib.suppress(OSError):
            self.unsent = self.unsent[self.connection.send(self.unsent) :]

    def lines(self) -> list[bytes] | None:
        """Return what has come.

        It is None at the end of the connection, or after a line that is too long.
        """
        try:
            data = self.connection.recv(4096)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        *lines, self.rest = (self.rest + data).split(b"\n")
        return None if max(map(len, (self.rest, *lines))) > LONGEST else lines


class Meeting:
    """The processes that have come."""

    def __init__(
        self, server: socket.socket, service: int | str, count: int, patience: float, secret: bytes
    ) -> None:
        self.server, self.service, self.count = server, service, count
        self.patience, self.secret = patience, secret
        self.complete = False
        self.left = False
        """Says whether the process that started this one has closed its pipe."""
        self.joined: dict[int, _Peer] = {}
        """The connections that are of the job, by their number."""
        self.strangers: dict[_Peer, None] = {}
        """The connections that have not proved anything, the oldest first."""
        self.selector = selectors.DefaultSelector()
        server.setblocking(False)
        self.selector.register(server, selectors.EVENT_READ)

    def run(self, pipe: Any) -> None:
        """Serve until nobody is there, and the process behind the pipe has gone."""
        self.selector.register(pipe, selectors.EVENT_READ)
        while self.joined or not self.left:
            for key, events in self.selector.select(min(1.0, self.patience / 4)):
                if key.fileobj is self.server:
                    self._accept()
                elif isinstance(key.data, _Peer):
                    self._serve(key.data, events)
                elif not os.read(pipe.fileno(), 4096):
                    self.selector.unregister(pipe)
                    self.left = True
            self._look_for_silent()
            self._drop_late()

    def _accept(self) -> None:
        if self.complete:  # in the moment in which it was closed
            return
        try:
            connection, _ = self.server.accept()
        except OSError:  # it is gone again, or there are no descriptors left
            self._drop_oldest()
            return
        connection.setblocking(False)
        peer = _Peer(connection)
        self.strangers[peer] = None
        self.selector.register(connection, selectors.EVENT_READ, peer)
        self._tell(peer, line(challenge=peer.challenge))
        # The oldest goes, and tries again if it is of the job: a process that is answers within
        # milliseconds, and whoever floods the port has many that are older.
        if len(self.strangers) > _STRANGERS + self.count:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        if self.strangers:
            self._close(next(iter(self.strangers)))
        else:
            time.sleep(0.01)  # else this would be tried again at once, for ever

    def _drop_late(self) -> None:
        limit = time.monotonic() - _PATIENCE
        while self.strangers and (oldest := next(iter(self.strangers))).since < limit:
            self._close(oldest)

    def _tell(self, peer: _Peer, message: bytes) -> None:
        peer.unsent += message
        self._send(peer)

    def _send(self, peer: _Peer) -> None:
        if peer.closed:
            return
        peer.send()
        if len(peer.unsent) > _UNREAD + 64 * self.count:
            self._end(peer, "died")
            return
        waiting = selectors.EVENT_WRITE if peer.unsent else 0
        self.selector.modify(peer.connection, selectors.EVENT_READ | waiting, peer)

    def tell_all(self, **message: Any) -> None:
        """Send this to all that have joined."""
        text = line(**message)
        for peer in list(self.joined.values()):
            self._tell(peer, text)

    def _serve(self, peer: _Peer, events: int) -> None:
        if peer.closed:  # since the selector was asked
            return
        if events & selectors.EVENT_WRITE:
            self._send(peer)
        if events & selectors.EVENT_READ and not peer.closed:
            self._hear(peer)

    def _hear(self, peer: _Peer) -> None:
        lines = peer.lines()
        for one in lines or ():
            try:
                message = read(one, FROM_PROCESS)
            except ValueError:  # not one of ours
                lines = None
                break
            peer.heard = time.monotonic()
            if peer.index < 0:
                self._join(peer, message)
            elif "bye" in message:
                self._end(peer, "ended")
            elif message != {"ping": peer.index}:
                lines = None
                break
            if peer.closed:
                return
        if lines is None:
            self._end(peer, "died")

    def _join(self, peer: _Peer, message: dict[str, Any]) -> None:
        if "join" not in message:
            self._close(peer)
            return
        index, count, devices = message["join"], message["of"], message["devices"]
        challenges = peer.challenge, message["challenge"]
        expected = proof(self.secret, "process", *challenges, index, count, devices)
        if not same(message["proof"], expected):
            self._refuse(peer, "its secret is another one than that of process 0")
        elif count != self.count:
            self._refuse(peer, f"num_processes is {self.count} in process 0")
        elif index >= count:
            self._refuse(peer, f"there is no process {index} of {count}")
        elif index in self.joined:
            self._refuse(peer, f"another process has come as process {index}")
        else:
            del self.strangers[peer]
            peer.index, peer.devices = index, devices
            self.joined[index] = peer
            self._tell(peer, line(proof=proof(self.secret, "coordinator", *challenges)))
            self.tell_all(here=sorted(self.joined))
            if len(self.joined) == self.count:
                self._complete()

    def _complete(self) -> None:
        self.complete = True
        # Free for the next job, whose processes may meet while some of these still leave.
        self.selector.unregister(self.server)
        self.server.close()
        for stranger in list(self.strangers):
            self._close(stranger)
        ordered = [self.joined[i].devices for i in range(self.count)]
        self.tell_all(all=ordered, service=self.service)

    def _refuse(self, peer: _Peer, why: str) -> None:
        self._tell(peer, line(refused=why))
        if not peer.closed:
            self._close(peer)

    def _close(self, peer: _Peer) -> None:
        peer.closed = True
        self.strangers.pop(peer, None)
        self.selector.unregister(peer.connection)
        peer.connection.close()

    def _end(self, peer: _Peer, how: str) -> None:
        if peer.closed:
            return
        self._close(peer)
        if peer.index >= 0:
            del self.joined[peer.index]
            if self.complete:
                self.tell_all(gone=peer.index, how=how)

    def _look_for_silent(self) -> None:
        now = time.monotonic()
        for peer in list(self.joined.values()):
            silent = now - peer.heard > self.patience
            if silent != peer.silent:
                peer.silent = silent
                self.tell_all(silent=peer.index, whether=silent)


def _start_service(
    server: socket.socket, count: int, heartbeat: float, folder: str | None
) -> tuple[int | str, Any]:
    """Start the service: in a folder of this machine, or where the server is; where, and it."""
    if folder is not None:
        path = f"unix:{folder}/service"
        return path, coordination_service(path, count, heartbeat)
    host = server.getsockname()[0]
    at = free_port(host)
    shown = f"[{host}]" if ":" in host else host
    return at, coordination_service(f"{shown}:{at}", count, heartbeat)


def main(host: str, port: int, count: int, heartbeat: float, local: bool) -> None:
    """Serve until all are gone; say on standard output first where that is, or what is wrong.

    The first line of the standard input is the secret, in hexadecimal digits. Where all processes
    are on this machine, ``local``, XLA's service, which asks nobody who he is, listens in a folder
    of this user alone.
    """
    with os.fdopen(0, "rb", buffering=0) as pipe:
        secret = bytes.fromhex(pipe.readline().decode())
        folder = None
        try:
            server = listening(host, port)
            system.allow_descriptors(2 * count + _STRANGERS + 64)
            if local and len(tempfile.gettempdir()) < _LONGEST_PATH - 20:
                folder = tempfile.mkdtemp(prefix="stretto-")
            at, _service = _start_service(server, count, heartbeat, folder)
            meeting = Meeting(server, at, count, heartbeat, secret)
        except (OSError, RuntimeError) as error:
            print(error, flush=True)
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            return
        try:
            for number in system.ending_signals():
                signal.signal(number, lambda *_: sys.exit())
            print(f"ready {server.getsockname()[0]}", flush=True)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            meeting.run(pipe)
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)  # the service would wait for those that did not say goodbye
