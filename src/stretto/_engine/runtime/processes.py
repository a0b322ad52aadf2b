"""Several processes as one computation: joining and leaving, and what to do if one is gone.

Layer 6 (runtime). XLA's runtime carries collectives between the processes; that one of them is gone
is learned from the ``members``, at once and by name. Next, read ``partitions``.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from stretto._engine.core.config import config
from stretto._engine.core.errors import LostProcessError
from stretto._engine.core.forks import in_child
from stretto._engine.runtime import clients, pjrt
from stretto._engine.runtime.launching import Launcher
from stretto._engine.runtime.members import Members

__all__ = ["check", "finish", "freeze", "join", "joined", "launched", "leave", "left"]

_GRACE = 0.5
"""For so many seconds after a loss, the runtime may still say itself what failed."""


class _Membership:
    """What this process has while it takes part in a job."""

    def __init__(self, members: Members, coordination: Any) -> None:
        self.members = members
        self.coordination = coordination
        self.launcher = Launcher()


_now: _Membership | None = None
_past = False
_launchers: list[Launcher] = []
"""Those of the past, of which some may wait for ever."""
_coordinators: list[subprocess.Popen[bytes]] = []
"""The coordinators that this process started; each ends by itself when all have left."""


def freeze() -> None:
    """Prepare for the end of Python: see ``Launcher.freeze``."""
    for launcher in _launchers:
        launcher.freeze()


def joined() -> bool:
    """Whether this process takes part in a job."""
    return _now is not None


def left() -> bool:
    """Whether this process took part in a job before."""
    return _past


def join(host: str, port: int, count: int, index: int, patience: float, heartbeat: float) -> None:
    """Take part in a job of so many processes, as the one of this number.

    Raises ``RuntimeError`` if that fails, or not all have come within ``patience`` seconds.
    """
    global _now  # noqa: PLW0603
    deadline = time.monotonic() + patience
    if index == 0:
        _start_coordinator(host, port, count, heartbeat, deadline)
    members = None
    try:
        connection = _connected(host, port, deadline)
        members = Members(connection, index, count, heartbeat)
        counts, service = members.join(config.num_cpu_devices, deadline)
        members.listen()
        shown = f"[{host}]" if ":" in host else host
        coordination = clients.coordination_client(
            f"{shown}:{service}", index, max(deadline - time.monotonic(), 5), heartbeat
        )
        address = connection.getsockname()[0]
        clients.join(clients.Job(index, tuple(counts)), coordination, address)
    except BaseException as error:
        if members is not None:
            members.close()
        if index == 0:
            _coordinators[-1].stdin.close()  # type: ignore[union-attr]
        if isinstance(error, (OSError, RuntimeError)):
            raise RuntimeError(
                f"distributed.initialize: process {index} of {count} could not join the others at "
                f"{host}:{port}: {error}"
            ) from None
        raise
    _now = _Membership(members, coordination)


def leave() -> None:
    """Leave the job; the others are told, and this process is alone again."""
    global _now, _past
    if _now is None:
        return
    past, _now, _past = _now, None, True
    clients.leave()
    with contextlib.suppress(RuntimeError):  # a service that is gone
        past.coordination.shutdown()
    past.members.leave()
    past.launcher.end()
    _launchers.append(past.launcher)
    for coordinator in _coordinators:
        coordinator.stdin.close()  # type: ignore[union-attr]
    _coordinators[:] = [one for one in _coordinators if one.poll() is None]


def _start_coordinator(host: str, port: int, count: int, heartbeat: float, deadline: float) -> None:
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        f"from stretto._engine.runtime.coordinator import main\n"
        f"main({host!r}, {port}, {count}, {heartbeat})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what interrupts this process must not end it
    )
    assert process.stdout is not None
    with process.stdout as output:
        text = output.readline().decode().strip()
    if text != "ready":
        process.kill()
        process.communicate()
        raise RuntimeError(
            f"distributed.initialize: process 0 cannot listen at {host}:{port}: "
            f"{text or 'the coordinator does not start'}"
        )
    _coordinators.append(process)


def _connected(host: str, port: int, deadline: float) -> socket.socket:
    """A connection to the coordinator, once it is there."""
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=5)
        except OSError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"process 0 has not come: {error}") from None
            time.sleep(0.1)
        else:
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection


def check() -> None:
    """Raise ``LostProcessError`` if a process of the job died, or does not answer.

    One that ended well may have done its part, so that is for the runtime to find out.
    """
    members = None if _now is None else _now.members
    if members is not None and (members.silent or "died" in members.gone.values()):
        raise _lost(members)


def finish(buffer: Any) -> None:
    """Wait for a result of a program of several processes; give up if one of them is gone.

    Raises ``LostProcessError`` if the program fails, or cannot end, since a process is gone or does
    not answer.
    """
    start = time.monotonic()
    # A wait in the runtime would end only when the other process answers, or never. So it is asked
    # again and again, ever more slowly.
    while not (buffer.is_deleted() or buffer.is_ready()):
        waited = time.monotonic() - start
        if _now is not None:
            _watch()
        elif waited > _GRACE:
            raise LostProcessError("the processes that this needs work together no more")
        time.sleep(min(max(waited / 8, 2e-5), 5e-3))
    with _explained():
        if not buffer.is_deleted():
            pjrt.wait(buffer)


def launched(start: Callable[[], Any]) -> Any:
    """Return ``start()``, which starts a program of several processes; give up as ``finish`` does.

    Raises ``LostProcessError`` likewise.
    """
    assert _now is not None
    with _explained():
        return _now.launcher.call(start, _watch)


def _watch() -> None:
    """Raise ``LostProcessError`` if what is waited for will not come."""
    if _now is not None and _now.members.lost_for(_GRACE):
        raise _lost(_now.members)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Raise ``LostProcessError`` where a program failed since a process is gone."""
    try:
        yield
    except RuntimeError as error:
        members = _now.members if _now is not None and pjrt.failed(error) else None
        if members is not None and members.wait_for_loss(_GRACE):
            raise _lost(members) from error
        raise


def _lost(members: Members) -> LostProcessError:
    return LostProcessError(
        f"process {members.index} of {members.count} cannot compute with the others: "
        f"{members.losses()}. What is on this process's devices goes on; to go on with others, "
        f"have those that are left call distributed.shutdown() and distributed.initialize(...)"
    )


def _forked() -> None:
    """In a forked child: the job is the parent's, whose connections must not stay open here."""
    global _now  # noqa: PLW0603
    if _now is not None:
        _now.members.close()
        _now = None
    for coordinator in _coordinators:
        coordinator.stdin.close()  # type: ignore[union-attr]
        coordinator.returncode = 0  # it is not this process's child
    _coordinators.clear()
    _launchers.clear()


in_child(_forked)
