"""Files that are written whole or not at all, and opened only where they are plain files.

Layer 1 (core). Nothing here knows what is in a file. All
writers of the package come here, except ``runtime/store``, which trusts its folder less.

A file is written beside its place, under a name of its own, brought to the disk, and renamed. While
it is written it is locked. Whoever can lock a file of such a name knows that its writer is dead,
and removes it: the system lets go of the locks of a process that ends, however it does. A writer
locks its file, then looks whether the name is still there, as it may have been removed in between.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import re
import stat
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from stretto._engine.core.bounded import room

__all__ = ["checked_path", "opened", "read_small", "write_whole"]

_PREFIX = ".stretto-"
_OURS = re.compile(rf"\{_PREFIX}[0-9a-f]{{16}}")

_SECOND = 1.0
"""At most so often a process looks for what killed writers left in a folder, which may be big."""
_looked: dict[str, float] = {}
"""When it did last."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO (a named pipe)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def checked_path(path: Any, caller: str) -> str:
    """The path as text.

    Raises ``TypeError`` for what is no path, or is of bytes; ``ValueError`` for one that no file
    can have.

    >>> checked_path("", "save")
    Traceback (most recent call last):
    ValueError: save: the path is empty; name a file
    """
    try:
        text = os.fspath(path)
    except TypeError:
        raise TypeError(
            f"{caller}: the path must be a string or an os.PathLike, got {type(path).__name__}"
        ) from None
    if isinstance(text, bytes):
        raise TypeError(
            f"{caller}: the path must be text, got the bytes {text!r}; use os.fsdecode(path)"
        )
    if not text:
        raise ValueError(f"{caller}: the path is empty; name a file")
    if "\0" in text:
        raise ValueError(
            f"{caller}: the path {text!r} has a null character, which no name can have"
        )
    return text


# Writing


def write_whole(
    path: Any, write: Callable[[BinaryIO], object], caller: str, *, durable: bool = True
) -> None:
    """Make a file of what ``write`` writes to the file that it is given, or leave all as it was.

    Whoever opens the path finds the old file or the new, whenever this is interrupted; where it is
    ``durable``, also after the machine has stopped. A symbolic link stays, and what it leads to is
    replaced. The permissions are those of the old file, or the usual ones.

    Raises as ``checked_path`` does; ``OSError`` where there is something else than a plain file, or
    the file cannot be written, with the path and the system's ``errno``.
    """
    text = checked_path(path, caller)
    try:
        place, mode = _place(text, caller)
        folder = os.path.dirname(place)
        _remove_left(folder)
        while not _written(place, mode, write, durable):
            pass
        if durable:
            _to_disk(folder)
    except _Refused as error:
        raise error.why from None
    except OSError as error:
        said = f"{caller}: {text} could not be written: {error.strerror or error}"
        raise (OSError(said) if error.errno is None else OSError(error.errno, said)) from None


class _Refused(Exception):
    """What is wrong is said already."""

    def __init__(self, why: OSError) -> None:
        self.why = why


def _place(text: str, caller: str) -> tuple[str, int | None]:
    """Where the path leads to, and the permissions of the file that is there."""
    try:
        status = os.stat(text)
    except FileNotFoundError:
        status = None
    if status is not None:
        if (refused := _refusal(status, text, caller)) is not None:
            raise _Refused(refused)
        return os.path.realpath(text), stat.S_IMODE(status.st_mode)
    if text.endswith(os.sep):
        raise _Refused(
            IsADirectoryError(errno.EISDIR, f"{caller}: {text} names a folder, not a file")
        )
    place = os.path.realpath(text)
    folder = os.path.dirname(place)
    if not os.path.isdir(folder):
        raise _Refused(
            FileNotFoundError(errno.ENOENT, f"{caller}: {text}: there is no directory {folder}")
        )
    return place, None


def _refusal(status: os.stat_result, text: str, caller: str) -> OSError | None:
    """The error that this is no plain file, unless it is one."""
    if stat.S_ISREG(status.st_mode):
        return None
    kind = next((name for test, name in _KINDS if test(status.st_mode)), "no plain file")
    code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
    return OSError(
        code, f"{caller}: {text} is {kind}, and must be a regular file; name another path"
    )


def _written(
    place: str, mode: int | None, write: Callable[[BinaryIO], object], durable: bool
) -> bool:
    """Write the file; false where it was taken for a dead writer's before it was locked."""
    made = os.path.join(os.path.dirname(place), _PREFIX + os.urandom(8).hex())
    file, done = None, False
    try:
        try:
            file = open(made, "xb")  # noqa: SIM115 (an interruption may come before __enter__)
            _lock(file)
            if _is_at(file, made):
                if mode is not None:
                    os.fchmod(file.fileno(), mode | stat.S_IRUSR | stat.S_IWUSR)
                write(file)
                file.flush()
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                if durable:
                    os.fsync(file.fileno())
                os.replace(made, place)
                done = True
        finally:
            _let_go(made, file)
    finally:  # again, as an interruption may have fallen into the line above
        _let_go(made, file)
    return done


def _let_go(made: str, file: Any) -> None:
    """Remove what was not renamed, and close it."""
    try:
        os.unlink(made)
    except OSError:
        pass  # it was renamed, or never made
    finally:
        _close(file)


def _close(file: Any) -> None:
    if file is not None:
        with contextlib.suppress(OSError):  # no room for what is not wanted any more
            file.close()


def _lock(file: BinaryIO) -> None:
    """Lock it, where the file system has locks; where not, nobody takes it for a dead writer's."""
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)


def _is_at(file: Any, path: str) -> bool:
    """Whether the name is still this file's."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _remove_left(folder: str) -> None:
    """Remove what writers left there that were killed."""
    now = time.monotonic()
    if now - _looked.get(folder, -_SECOND) < _SECOND:
        return
    try:
        names = os.listdir(folder)
    except OSError:
        return  # it may be there to be written only
    for name in names:
        if _OURS.fullmatch(name):
            _remove_dead(os.path.join(folder, name))
    room(_looked)[folder] = now


def _remove_dead(path: str) -> None:
    """Remove a file that is being written by nobody."""
    file = None
    try:
        try:
            file = open(path, "r+b", 0, opener=_not_followed)  # noqa: SIM115 (as in _written)
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(file, path):
                    os.unlink(path)
        finally:
            _close(file)
    except OSError:
        pass  # its writer lives, or it is another user's
    finally:
        _close(file)


def _to_disk(folder: str) -> None:
    """Return when the folder's list of files is on the disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


# Reading


def _waiting_for_nobody(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # were it a FIFO, opening it would wait for ever


def _not_followed(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)


def opened(path: Any, caller: str) -> io.FileIO:
    """A plain file, open for reading without a buffer.

    Raises as ``checked_path`` does, ``OSError`` where there is something else than a plain file,
    and what ``open`` raises.
    """
    text = checked_path(path, caller)
    refused = _refusal(os.stat(text), text, caller)  # first, as to open a device can do something
    if refused is None:
        file = open(text, "rb", 0, opener=_waiting_for_nobody)  # noqa: SIM115 (given away)
        refused = _refusal(os.fstat(file.fileno()), text, caller)
        if refused is None:
            return file
        file.close()
    raise refused


def read_small(path: str, limit: int) -> bytes | None:
    """What is in a file; ``None`` where it has more than ``limit`` bytes, or is no plain file.

    A link is not followed. Raises what ``open`` raises.
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return None
    with open(path, "rb", 0, opener=_not_followed) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        found = file.read(limit + 1)
        return found if len(found) <= limit else None
