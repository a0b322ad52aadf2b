"""A process's connection to the coordinator: who takes part, and who is gone.

A thread listens, and says from time to time that this process is alive.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from typing import Any

from stretto._engine.xla import handshake
from stretto._engine.xla.handshake import FROM_COORDINATOR, LONGEST, LONGEST_TOLD, line, read


class NotAnswered(ConnectionError):
    """The coordinator did not answer, or closed the connection: it may do better at another try."""


class Refused(ConnectionError):
    """One of the two is not of the job, or not as it should be: another try is of no use."""


class Members:
    """The processes that work together, as the coordinator tells of them."""

    def __init__(self, connection: socket.socket, index: int, count: int, heartbeat: float) -> None:
        self._connection = connection
        self.index, self.count = index, count
        self._interval = heartbeat / 5
        self._rest = b""
        self._longest = LONGEST
        self._messages: list[dict[str, Any]] = []
        """Bytes that have come and were not looked at yet."""
        self._changed = threading.Condition()
        self.gone: dict[int, str] = {}
        """Says of each process that is gone how it has ended."""
        self.silent: dict[int, float] = {}
        """Since when each process that does not answer is known not to."""
        self._gone_since = 0.0

    def introduce(self, devices: int, secret: bytes, seconds: float) -> None:
        """Prove to the coordinator that this process is of the job, and have it prove the same.

        Raises ``NotAnswered`` if nothing comes within these seconds, or the connection ends, and
        ``Refused`` if either is not of the job, or the coordinator says so.
        """
        deadline = time.monotonic() + seconds
        its = self._answer(deadline, "challenge")["challenge"]
        own = handshake.new_challenge()
        said = its, own, self.index, self.count, devices
        shown = handshake.proof(secret, "process", *said)
        message = line(join=self.index, of=self.count, devices=devices, challenge=own, proof=shown)
        try:
            self._connection.sendall(message)
        except OSError as error:
            raise NotAnswered(str(error)) from None
        expected = handshake.proof(secret, "coordinator", its, own)
        if not handshake.same(self._answer(deadline, "proof")["proof"], expected):
            raise Refused("whoever listens there does not know the secret of this job")
        self._longest = LONGEST_TOLD

    def _answer(self, deadline: float, name: str) -> dict[str, Any]:
        """Return the next message, which must have this field."""
        while not self._messages:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._connection], [], [], max(left, 0))
            if not ready:
                raise NotAnswered("whoever listens there does not answer as process 0 does")
            try:
                self._messages += self._read()
            except OSError as error:
                raise NotAnswered(str(error)) from None
        message = self._messages.pop(0)
        if "refused" in message:
            raise Refused(message["refused"])
        if name not in message:
            raise NotAnswered("whoever listens there does not answer as process 0 does")
        return message

    def join(self, deadline: float) -> tuple[list[int], int | str]:
        """Wait for all others, once this process has introduced itself.

        Returns how many devices each process has, and the port of the coordination service, or its
        path. Raises ``ConnectionError`` if the coordinator ends, and ``TimeoutError`` if others do
        not come.
        """
        here: list[int] = []
        while True:
            messages = self._received(min(self._interval, max(deadline - time.monotonic(), 0)))
            for message in messages:
                self._note(message)
                here = message.get("here", here)
            for message in messages:
                if "all" in message:
                    return message["all"], message["service"]
            if time.monotonic() > deadline:
                missing = [str(i) for i in range(self.count) if i not in here]
                raise TimeoutError(
                    f"of {self.count} processes these have not come: {', '.join(missing)}"
                )

    def listen(self) -> None:
        """Start the thread that listens."""
        threading.Thread(target=self._listen, name="stretto-members", daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # closed, here or there
            while True:
                for message in self._received(self._interval):
                    self._note(message)

    def _received(self, seconds: float) -> list[dict[str, Any]]:
        """Return what comes within this time.

        If nothing does, the coordinator hears of this process.
        """
        if self._messages:
            messages, self._messages = self._messages, []
            return messages
        ready, _, _ = select.select([self._connection], [], [], seconds)
        if not ready:
            self._connection.sendall(line(ping=self.index))
            return []
        return self._read()

    def _read(self) -> list[dict[str, Any]]:
        """Return the messages that the connection has; raises ``ConnectionError`` if it ends."""
        data = self._connection.recv(65536)
        if not data:
            raise ConnectionError("the coordinator has closed the connection")
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > self._longest:
            raise ConnectionError("the coordinator sends lines without end")
        try:
            return [read(one, FROM_COORDINATOR) for one in lines]
        except ValueError as error:
            raise ConnectionError(f"what the coordinator sends cannot be read: {error}") from None

    def _note(self, message: dict[str, Any]) -> None:
        with self._changed:
            if "gone" in message:
                self.gone[message["gone"]] = message["how"]
                self.silent.pop(message["gone"], None)
                self._gone_since = self._gone_since or time.monotonic()
            elif message.get("whether"):
                self.silent[message["silent"]] = time.monotonic()
            else:
                self.silent.pop(message.get("silent", -1), None)
            self._changed.notify_all()

    def lost_for(self, seconds: float) -> bool:
        """Say whether a process has been gone for so long, or does not answer."""
        gone = bool(self.gone) and time.monotonic() - self._gone_since > seconds
        return gone or bool(self.silent)

    def wait_for_loss(self, seconds: float) -> bool:
        """Wait until a process is gone or silent, but not longer than this; say whether one is."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self.gone or self.silent), seconds)

    def losses(self) -> str:
        """Return which processes are gone, in words."""
        ways = {"ended": "has ended", "died": "died (it was killed, or ended without shutdown)"}
        texts = [f"process {i} {ways[how]}" for i, how in sorted(self.gone.items())]
        texts += [f"process {i} does not answer" for i in sorted(self.silent)]
        return "; ".join(texts)

    def leave(self) -> None:
        """Say goodbye."""
        with contextlib.suppress(OSError):
            self._connection.sendall(line(bye=self.index))
            self._connection.shutdown(socket.SHUT_RDWR)  # which wakes the thread
        self.close()

    def close(self) -> None:
        """Close the connection here, as a forked child does."""
        self._connection.close()
