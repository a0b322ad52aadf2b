"""The process in which several others meet: it says who is there, and who is gone.

Layer 6 (runtime). The first of the processes starts it, and it outlives that one if need be: the
runtime ends every process that loses the coordination service, which runs here. Each of the others
keeps a connection, over which lines of JSON go both ways; the system closes it when a process ends,
however it ends. Next, read ``members``, the other side.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import sys
import time
from typing import Any

from stretto._engine.runtime.clients import coordination_service

__all__ = ["free_port", "line", "main"]

LOCAL = ("localhost", "127.0.0.1", "::1")
"""Addresses of this machine alone."""


def line(**message: Any) -> bytes:
    """A message as it is sent."""
    return json.dumps(message).encode() + b"\n"


def _listening(host: str, port: int) -> socket.socket:
    if host in LOCAL:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def free_port(host: str = "127.0.0.1") -> int:
    """A port on which nobody listens now."""
    with _listening(host, 0) as server:
        return server.getsockname()[1]


class _Peer:
    """A connection to one of the processes."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.rest = b""
        self.index = -1
        self.devices = 0
        self.heard = time.monotonic()
        self.silent = False

    def tell(self, message: bytes) -> None:
        """Send it; where that fails, the connection is closing, which is noticed elsewhere."""
        with contextlib.suppress(OSError):
            self.connection.send(message)

    def messages(self) -> list[dict[str, Any]] | None:
        """What has come; None at the end of the connection."""
        try:
            data = self.connection.recv(4096)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        *lines, self.rest = (self.rest + data).split(b"\n")
        try:
            return [dict(json.loads(one)) for one in lines]
        except ValueError:  # not one of ours
            return None


class _Meeting:
    """The processes that have come."""

    def __init__(self, server: socket.socket, service: int, count: int, patience: float) -> None:
        self.server, self.service, self.count, self.patience = server, service, count, patience
        self.complete = False
        self.left = False
        """Whether the process that started this one has closed its pipe."""
        self.selector = selectors.DefaultSelector()
        server.setblocking(False)
        self.selector.register(server, selectors.EVENT_READ)

    @property
    def peers(self) -> list[_Peer]:
        """Those that have joined."""
        every = [key.data for key in self.selector.get_map().values()]
        return [peer for peer in every if isinstance(peer, _Peer) and peer.index >= 0]

    def tell_all(self, **message: Any) -> None:
        """Send this to all that have joined."""
        for peer in self.peers:
            peer.tell(line(**message))

    def run(self, pipe: Any) -> None:
        """Serve until nobody is there, and the process behind the pipe has gone."""
        self.selector.register(pipe, selectors.EVENT_READ)
        while self.peers or not self.left:
            for key, _ in self.selector.select(min(1.0, self.patience / 4)):
                if key.fileobj is self.server:
                    connection, _ = self.server.accept()
                    connection.setblocking(False)
                    self.selector.register(connection, selectors.EVENT_READ, _Peer(connection))
                elif isinstance(key.data, _Peer):
                    self._hear(key.data)
                elif not os.read(pipe.fileno(), 4096):
                    self.selector.unregister(pipe)
                    self.left = True
            self._look_for_silent()

    def _hear(self, peer: _Peer) -> None:
        messages = peer.messages()
        for message in messages or ():
            peer.heard = time.monotonic()
            if "join" in message:
                self._join(peer, message)
            elif "bye" in message:
                self._end(peer, "ended")
                return
        if messages is None:
            self._end(peer, "died")

    def _join(self, peer: _Peer, message: dict[str, Any]) -> None:
        index = message["join"]
        if message["of"] != self.count:
            peer.tell(line(refused=f"num_processes is {self.count} in process 0"))
        elif index in [other.index for other in self.peers]:
            peer.tell(line(refused=f"another process has come as process {index}"))
        else:
            peer.index, peer.devices = index, message["devices"]
            self.tell_all(here=sorted(other.index for other in self.peers))
            if len(self.peers) == self.count:
                self.complete = True
                # Free for the next job, whose processes may meet while some of these still leave.
                self.selector.unregister(self.server)
                self.server.close()
                ordered = sorted(self.peers, key=lambda other: other.index)
                self.tell_all(all=[other.devices for other in ordered], service=self.service)

    def _end(self, peer: _Peer, how: str) -> None:
        self.selector.unregister(peer.connection)
        peer.connection.close()
        if peer.index >= 0 and self.complete:
            self.tell_all(gone=peer.index, how=how)

    def _look_for_silent(self) -> None:
        now = time.monotonic()
        for peer in self.peers:
            silent = now - peer.heard > self.patience
            if silent != peer.silent:
                peer.silent = silent
                self.tell_all(silent=peer.index, whether=silent)


def _served(host: str, port: int, count: int, heartbeat: float) -> tuple[_Meeting, Any]:
    """Listen for these processes, and start the service; raises ``OSError`` if that fails."""
    server = _listening(host, port)
    name = "[::]" if host not in LOCAL else "[::1]" if ":" in host else "127.0.0.1"
    at = free_port(host)
    service = coordination_service(f"{name}:{at}", count, heartbeat)
    return _Meeting(server, at, count, heartbeat), service


def main(host: str, port: int, count: int, heartbeat: float) -> None:
    """Serve until all are gone; say on standard output first whether that is possible."""
    try:
        meeting, _service = _served(host, port, count, heartbeat)
    except (OSError, RuntimeError) as error:
        print(error, flush=True)
        return
    print("ready", flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with os.fdopen(0, "rb", buffering=0) as pipe:
        meeting.run(pipe)
    sys.stdout.flush()
    os._exit(0)  # the service would wait for those that did not say goodbye
