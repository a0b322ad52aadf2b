"""A process's connection to the coordinator: who takes part, and who is gone.

Layer 6 (runtime). A thread listens, and says from time to time that this process is alive. Next,
read ``processes``.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from typing import Any

from stretto._engine.runtime.coordinator import line

__all__ = ["Members"]


class Members:
    """The processes that work together, as the coordinator tells of them."""

    def __init__(self, connection: socket.socket, index: int, count: int, heartbeat: float) -> None:
        self._connection = connection
        self.index, self.count = index, count
        self._interval = heartbeat / 5
        self._rest = b""
        self._changed = threading.Condition()
        self.gone: dict[int, str] = {}
        """How each process that is gone has ended."""
        self.silent: dict[int, float] = {}
        """Since when each process that does not answer is known not to."""
        self._gone_since = 0.0

    def join(self, devices: int, deadline: float) -> tuple[list[int], int]:
        """Say that this process is here; wait for all others.

        Returns how many devices each process has, and the port of the coordination service. Raises
        ``ConnectionError`` if the coordinator refuses, and ``TimeoutError`` if others do not come.
        """
        self._connection.sendall(line(join=self.index, of=self.count, devices=devices))
        here: list[int] = []
        while True:
            messages = self._received(min(self._interval, max(deadline - time.monotonic(), 0)))
            for message in messages:
                self._note(message)
                here = message.get("here", here)
            for message in messages:
                if "refused" in message:
                    raise ConnectionError(message["refused"])
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
        """What comes within this time; if nothing does, the coordinator hears of this process."""
        ready, _, _ = select.select([self._connection], [], [], seconds)
        if not ready:
            self._connection.sendall(line(ping=self.index))
            return []
        data = self._connection.recv(4096)
        if not data:
            raise ConnectionError("the coordinator has closed the connection")
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(one) for one in lines]

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
        """Whether a process has been gone for so long, or does not answer."""
        gone = bool(self.gone) and time.monotonic() - self._gone_since > seconds
        return gone or bool(self.silent)

    def wait_for_loss(self, seconds: float) -> bool:
        """Wait until a process is gone or silent, but not longer than this; say whether one is."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self.gone or self.silent), seconds)

    def losses(self) -> str:
        """Which processes are gone, in words."""
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
