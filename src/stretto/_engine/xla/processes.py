"""Several processes as one computation: joining and leaving, and what to do if one is gone.

XLA's runtime carries collectives between the processes. That one of them is gone is learned from
``Members``, at once and by name: a process's connection to the coordinator, to which a thread
listens, and says from time to time that this process is alive.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

from stretto._engine.core import system
from stretto._engine.core.config import config
from stretto._engine.core.errors import LostProcessError
from stretto._engine.core.threads import Latch, in_child
from stretto._engine.xla import clients, handshake, pjrt
from stretto._engine.xla.coordinator import MARK
from stretto._engine.xla.handshake import (
    FROM_COORDINATOR,
    LONGEST,
    LONGEST_TOLD,
    is_local,
    job_secret,
    line,
    read,
)


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


class _Task:
    """A call, and what comes of it."""

    def __init__(self, fun: Callable[[], Any]) -> None:
        self.fun = fun
        self.done = Latch()
        self.result: Any = None
        self.error: BaseException | None = None


class Launcher:
    """A thread that makes calls, one after the other, for others that watch it."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._task: _Task | None = None
        """The call that is being made."""
        self._thread = threading.Thread(target=self._serve, name="stretto-launcher", daemon=True)
        self._thread.start()

    def call(self, fun: Callable[[], Any], watch: Callable[[], None]) -> Any:
        """Return ``fun()``; ``watch()``, called from time to time until then, may raise instead."""
        task = _Task(fun)
        self._tasks.put(task)
        while not task.done.wait(0.1):
            watch()
        if task.error is not None:
            raise task.error
        return task.result

    def end(self) -> None:
        """Let the thread end; one that does not return stays as it is for ever."""
        self._tasks.put(None)

    def freeze(self) -> None:
        """Keep a call that has not returned from returning, which must not be while Python ends.

        Its thread would be ended in the midst of functions in C++, and the process with it.
        """
        if self._thread.ident and self._task is not None:
            system.hold_thread(self._thread.ident)

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._task = task
            try:
                task.result = task.fun()
            except BaseException as error:
                task.error = error
            self._task = None
            task.done.open()
            del task


# Jobs


_GRACE = 0.5
"""The seconds after a loss for which the runtime may still say itself what failed."""
_ANSWER = 10.0
"""The seconds that the coordinator may take to answer before it is tried again."""
_EVERYWHERE = ("0.0.0.0", "::")


class _Membership:
    """Hold what this process has while it takes part in a job."""

    def __init__(self, members: Members, coordination: Any) -> None:
        self.members = members
        self.coordination = coordination
        self.launcher = Launcher()


_now: _Membership | None = None
_past = False
_launchers: list[Launcher] = []
"""The launchers of the past, of which some may wait for ever."""
_coordinators: list[subprocess.Popen[bytes]] = []
"""The coordinators that this process started; each ends by itself when all have left."""


def freeze() -> None:
    """Prepare for the end of Python: see ``Launcher.freeze``."""
    for launcher in _launchers:
        launcher.freeze()


def takes_part() -> bool:
    """Say whether this process takes part in a job."""
    return _now is not None


def took_part() -> bool:
    """Say whether this process took part in a job before."""
    return _past


def join(
    host: str,
    port: int,
    count: int,
    index: int,
    patience: float,
    heartbeat: float,
    bound: tuple[str, int] | None = None,
) -> None:
    """Take part in a job of so many processes, as the one of this number.

    Process 0 listens at ``bound``, or at ``host``, by which the others reach it. Raises
    ``RuntimeError`` if that fails, there is no secret where one is needed, not all have come within
    ``patience`` seconds, or the system cannot do it.
    """
    global _now  # noqa: PLW0603
    if not system.watches_pipes():
        raise RuntimeError(
            "distributed.initialize: this system, as Windows, has nothing by which a process could "
            "wait for pipes and sockets at once, which the one does in which several processes "
            "meet: run them on Linux or macOS, or use several devices of one process, "
            "config.num_cpu_devices"
        )
    deadline = time.monotonic() + patience
    here = bound if index == 0 and bound is not None else (host, port)
    local = is_local(here[0])
    secret = job_secret("distributed.initialize", "{}:{}".format(*here), local)
    listens, there = None, (host, port)
    if index == 0:
        listens = _start_coordinator(*here, count, heartbeat, secret, local)
        if listens not in _EVERYWHERE:
            there = listens, here[1]
    members = None
    try:
        connection, members = _introduce(there, count, index, heartbeat, secret, deadline)
        try:
            counts, service = members.join(deadline)
        except TimeoutError as error:
            if not local or listens is None or host in ("localhost", listens):
                raise
            raise TimeoutError(
                f"{error}; process 0 listens at {listens}, which only this machine reaches"
            ) from None
        members.listen()
        coordination = _coordination(connection, service, index, heartbeat, deadline)
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


def _coordination(
    connection: socket.socket, service: int | str, index: int, heartbeat: float, deadline: float
) -> Any:
    """Return XLA's client of its service, which is where the coordinator is."""
    if isinstance(service, str):
        if not os.path.exists(service.removeprefix("unix:")):
            raise RuntimeError(
                f"the processes do not share a folder for temporary files, where "
                f"{service.removeprefix('unix:')} would be: set TMPDIR to the same in all"
            )
        address = service
    else:
        host = connection.getpeername()[0]
        address = f"[{host}]:{service}" if ":" in host else f"{host}:{service}"
    patience = max(deadline - time.monotonic(), 5)
    return clients.coordination_client(address, index, patience, heartbeat)


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


def _start_coordinator(
    host: str, port: int, count: int, heartbeat: float, secret: bytes, local: bool
) -> str:
    """Start it; return the address at which it listens."""
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        f"from {MARK} import main\n"
        f"main({host!r}, {port}, {count}, {heartbeat}, {local})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # What interrupts this process must not end it, so it is in no terminal's foreground. It
        # stays in the session: should it be stopped when this process ends, the system ends it.
        process_group=0,
    )
    assert process.stdout is not None and process.stdin is not None
    text = ""
    with process.stdout as output, contextlib.suppress(BrokenPipeError):
        process.stdin.write(secret.hex().encode() + b"\n")
        process.stdin.flush()
        text = output.readline().decode().strip()
    if not text.startswith("ready "):
        process.kill()
        process.communicate()
        raise RuntimeError(
            f"distributed.initialize: process 0 cannot listen at {host}:{port}: "
            f"{text or 'the coordinator does not start'}"
        )
    _coordinators.append(process)
    return text.removeprefix("ready ")


def _introduce(
    there: tuple[str, int], count: int, index: int, heartbeat: float, secret: bytes, deadline: float
) -> tuple[socket.socket, Members]:
    """Connect to the coordinator, once it is there; each proves to the other what it is."""
    problem: OSError = TimeoutError("process 0 has not come")
    while True:
        connection = None
        try:
            connection = socket.create_connection(there, timeout=5)
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            members = Members(connection, index, count, heartbeat)
            seconds = min(_ANSWER, max(deadline - time.monotonic(), 1))
            members.introduce(config.num_cpu_devices, secret, seconds)
            return connection, members
        except Refused:
            assert connection is not None
            connection.close()
            raise
        except NotAnswered as error:  # it may have too many connections, of strangers
            problem = error
        except OSError as error:
            problem = TimeoutError(f"process 0 has not come: {error}")
        if connection is not None:
            connection.close()
        if time.monotonic() > deadline:
            raise problem
        time.sleep(0.1)


def check() -> None:
    """Raise ``LostProcessError`` if a process of the job died, or does not answer.

    One that ended well may have done its part, so that is for the runtime to find out.
    """
    members = None if _now is None else _now.members
    if members is not None and (members.silent or "died" in members.gone.values()):
        raise _loss(members)


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
    with _explaining_loss():
        if not buffer.is_deleted():
            pjrt.wait(buffer)


def launch(start: Callable[[], Any]) -> Any:
    """Return ``start()``, which starts a program of several processes; give up as ``finish`` does.

    Raises ``LostProcessError`` likewise.
    """
    assert _now is not None
    with _explaining_loss():
        return _now.launcher.call(start, _watch)


def _watch() -> None:
    """Raise ``LostProcessError`` if what is waited for will not come."""
    if _now is not None and _now.members.lost_for(_GRACE):
        raise _loss(_now.members)


@contextlib.contextmanager
def _explaining_loss() -> Iterator[None]:
    """Raise ``LostProcessError`` where a program failed since a process is gone."""
    try:
        yield
    except RuntimeError as error:
        members = _now.members if _now is not None and pjrt.is_failure(error) else None
        if members is not None and members.wait_for_loss(_GRACE):
            raise _loss(members) from error
        raise


def _loss(members: Members) -> LostProcessError:
    return LostProcessError(
        f"process {members.index} of {members.count} cannot compute with the others: "
        f"{members.losses()}. What is on this process's devices goes on; to go on with others, "
        f"have those that are left call distributed.shutdown() and distributed.initialize(...)"
    )


def _after_fork() -> None:
    """Leave the job in a forked child: it is the parent's, whose connections must not stay open."""
    global _now  # noqa: PLW0603
    if _now is not None:
        _now.members.close()
        _now = None
    for coordinator in _coordinators:
        coordinator.stdin.close()  # type: ignore[union-attr]
        coordinator.returncode = 0  # it is not this process's child
    _coordinators.clear()
    _launchers.clear()


in_child(_after_fork)
