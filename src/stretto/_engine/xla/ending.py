"""The end of the process, which waits until XLA's threads rest, and those that use it.

A result that nobody waited for, or what an interrupted call had begun, is computed on threads of
XLA's. When the process ends meanwhile, the data of libraries are destroyed under them, and it may
end by a signal: seen where oneDNN was writing a kernel. A thread of Python's that is in XLA is
aborted, and the process with it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from stretto._engine.core import machine, system
from stretto._engine.native import native
from stretto._engine.xla import clients
from stretto._engine.xla.patience import close, count_abandoned, count_unfinished

_PATIENCE = 5.0
"""The seconds after which the process ends all the same: somebody may want it to."""


def busy() -> bool:
    """Say whether any thread is running that is none of Python's; False where nobody tells.

    Most of XLA's have no names, so they are not told from those of other libraries.
    """
    ours = {thread.native_id for thread in threading.enumerate()}
    return any(thread not in ours for thread in machine.running_threads())


def wait_until_idle(patience: float = _PATIENCE) -> None:
    """Wait until no thread of XLA's is running, so many seconds at most."""
    end = time.monotonic() + patience
    resting = 0
    # Twice, since a thread that hands work to another rests before that has woken.
    while resting < 2 and time.monotonic() < end:
        resting = 0 if busy() else resting + 1
        time.sleep(0.001)


_waits: list[Callable[[], None]] = []
"""Functions that wait for threads of this package's; once these end, no other begins anything."""


def wait_at_end() -> None:
    """Have the process wait so when it ends, and first have all threads leave XLA.

    It may be asked for more than once. What was registered to be done at the end before is done
    after that, when the main thread alone uses XLA.
    """
    if not _Asked.once:
        _Asked.once = True
        atexit.register(_end)
        atexit.register(_end)  # for an interrupt as it begins, which nothing there can catch yet


class _Asked:
    once = False
    ended = False


def _end() -> None:
    if _Asked.ended:
        return
    with _ended_by_interrupts():
        _Asked.ended = True
        for wait in _waits:
            wait()
        close()
        clients.keep()
        _wait_for_threads()
        # What goes on in vain is not waited for, as it may go on for ever.
        wait_until_idle(_SHORT if count_abandoned() else _PATIENCE)
        goes_on = count_abandoned() + count_unfinished() > 0
        if goes_on:
            print(_GOES_ON, file=sys.stderr, flush=True)
        if goes_on or busy():
            system.leave_libraries_alone()


_SHORT = 0.1
_GOES_ON = (
    "stretto: a compiled program was still running when the process ended, perhaps a loop that "
    "never ends; its results are lost"
)


@contextlib.contextmanager
def _ended_by_interrupts() -> Iterator[None]:
    """Have an interrupt end the process at once: XLA cannot be interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stdout.flush()
        sys.stderr.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


_IN_XLA = tuple(
    os.path.join(os.path.dirname(__file__), f"{name}.py")
    for name in ("pjrt", "clients", "partitions")
)
"""The files of functions that are in XLA whenever they are the innermost of a thread."""


def _in_xla(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name in _IN_XLA or f"{os.sep}jaxlib{os.sep}" in name


def _wait_for_threads(patience: float = _PATIENCE) -> None:
    """Wait until no other thread of Python's is in XLA, so many seconds at most.

    None begins anything there any more. One that comes out of it after the interpreter has ended
    would abort the process: Python ends threads as they come, which C++ does not allow.
    """
    me, end = threading.get_ident(), time.monotonic() + patience
    while time.monotonic() < end:
        inside = native is not None and native.running() > 0
        frames = sys._current_frames()
        if not inside and not any([_in_xla(f) for thread, f in frames.items() if thread != me]):
            return
        del frames
        time.sleep(0.001)


def wait_for(threads: Callable[[], None]) -> None:
    """Have ``threads()`` wait for threads of Python's when the process ends.

    An interrupt meanwhile ends the process at once: XLA cannot be interrupted.
    """
    _waits.append(threads)
    wait_at_end()
