"""Files that are written whole or not at all, opened only if they are regular, or the user's alone.

Nothing here knows what is in a file. Everything in this package that writes files does it through
here, except ``xla/store`` and ``xla/handshake``, which trust their folder less.

A file is written in the folder it is meant for, under a temporary name, flushed to the disk, and
then renamed. While it is being written it is locked. The system releases the locks of a process
that ends, however it ends; so whoever can lock a file with a temporary name knows that its writer
is dead, and removes it. That can also hit a file that was created but is not locked yet, so a
writer checks, once it has the lock, that the name is still its file's, and otherwise starts again.
Where there are no locks, ``system`` has what is done instead.

A file is the user's alone if nobody else but root can have changed it. Whoever may write to a
folder may rename what is in it, and put something else in its place: so all folders on the way to a
file matter, and those that a link leads through.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import stat
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from stretto._engine.core import system
from stretto._engine.core.caches import room

_PREFIX = ".stretto-"
_OURS = re.compile(rf"\{_PREFIX}[0-9a-f]{{16}}")

_SECOND = 1.0
"""The least time between two searches of a folder, which may be big, for dead writers' files."""
_last_search: dict[str, float] = {}
"""The time at which this process last searched each folder."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO (a named pipe)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def checked_path(path: Any, caller: str) -> str:
    """Return the path as a string.

    Raises ``TypeError`` for what is not a path, or is one in bytes; ``ValueError`` for one that no
    file can have.

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
    """Replace a file with what ``write`` writes to the file it is given, or change nothing.

    Whoever opens the path finds either the old file or the new, wherever this is interrupted; with
    ``durable``, even if the machine stops. A symbolic link stays, and the file that it leads to is
    replaced. The permissions are those of the old file, or the system's default.

    Raises as ``checked_path`` does; ``OSError``, with the path and the system's ``errno``, if the
    path is not a regular file or the file cannot be written.
    """
    text = checked_path(path, caller)
    try:
        place, mode = _place(text, caller)
        folder = os.path.dirname(place)
        remove_abandoned(folder)
        while not _write(place, mode, write, durable):
            pass
        if durable:
            system.flush_folder(folder)
    except _Refused as error:
        raise error.why from None
    except OSError as error:
        message = f"{caller}: {text} could not be written: {error.strerror or error}"
        raise (OSError(message) if error.errno is None else OSError(error.errno, message)) from None


class _Refused(Exception):
    """Carries an error whose message is already complete past the handler that would add to it."""

    def __init__(self, why: OSError) -> None:
        self.why = why


def _place(text: str, caller: str) -> tuple[str, int | None]:
    """Return where the path leads, and the permissions of the file there, if there is one."""
    try:
        status = os.stat(text)
    except FileNotFoundError:
        status = None
    if status is not None:
        if (refusal := _refusal(status, text, caller)) is not None:
            raise _Refused(refusal)
        return os.path.realpath(text), stat.S_IMODE(status.st_mode)
    if text.endswith((os.sep, os.altsep or os.sep)):
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
    """Return the error to raise for what is not a regular file; ``None`` for one that is."""
    if stat.S_ISREG(status.st_mode):
        return None
    kind = next((name for test, name in _KINDS if test(status.st_mode)), "not a regular file")
    code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
    return OSError(
        code, f"{caller}: {text} is {kind}, and must be a regular file; name another path"
    )


def _write(
    place: str, mode: int | None, write: Callable[[BinaryIO], object], durable: bool
) -> bool:
    """Write the file; false if another process removed it before it was locked."""
    temporary = os.path.join(os.path.dirname(place), _PREFIX + os.urandom(8).hex())
    file, done = None, False
    try:
        try:
            file = open(temporary, "xb")  # noqa: SIM115 (an interrupt may come before __enter__)
            system.lock(file)
            if _is_at(file, temporary):
                if mode is not None:
                    system.set_mode(file, mode | stat.S_IRUSR | stat.S_IWUSR)
                write(file)
                file.flush()
                if mode is not None:
                    system.set_mode(file, mode)
                if durable:
                    system.flush(file.fileno())
                if system.KEEPS_OPEN_FILES:
                    file.close()
                system.replace(temporary, place)
                done = True
        finally:
            _discard(temporary, file)
    finally:  # again, as an interrupt may have come in the line above
        _discard(temporary, file)
    return done


def _discard(temporary: str, file: Any) -> None:
    """Remove the temporary file, if it is still there, and close it."""
    try:
        os.unlink(temporary)
    except OSError:
        pass  # it was renamed, or never created
    finally:
        _close(file)


def _close(file: Any) -> None:
    if file is not None:
        with contextlib.suppress(OSError):  # such as a full disk: the file is not wanted any more
            file.close()


def _is_at(file: Any, path: str) -> bool:
    """Say whether the name is still this file's."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def remove_abandoned(folder: str) -> None:
    """Remove the temporary files of writers that were killed; at most once a second."""
    now = time.monotonic()
    if now - _last_search.get(folder, -_SECOND) < _SECOND:
        return
    try:
        names = os.listdir(folder)
    except OSError:
        return  # the folder may be writable but not readable
    for name in names:
        if _OURS.fullmatch(name):
            _remove_unless_locked(os.path.join(folder, name))
    room(_last_search)[folder] = now


def _remove_unless_locked(path: str) -> None:
    """Remove a file unless its writer still holds the lock."""
    file = None
    try:
        try:
            file = open(path, "r+b", 0, opener=system.open_no_link)  # noqa: SIM115 (as in _write)
            is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            if is_regular and system.take_over(file) and _is_at(file, path):
                if system.KEEPS_OPEN_FILES:
                    file.close()
                os.unlink(path)
        finally:
            _close(file)
    except OSError:
        pass  # its writer is alive, or it belongs to another user
    finally:
        _close(file)


# Reading


def open_regular(path: Any, caller: str) -> io.FileIO:
    """Return a regular file, opened for reading without a buffer.

    Raises as ``checked_path`` does, ``OSError`` for what is not a regular file, and what ``open``
    raises.
    """
    text = checked_path(path, caller)
    # Checked before opening, since opening a device may have an effect, and after, since the path
    # may by then lead to another file.
    refusal = _refusal(os.stat(text), text, caller)
    if refusal is None:
        file = open(text, "rb", 0, opener=system.open_at_once)  # noqa: SIM115 (the caller closes it)
        refusal = _refusal(os.fstat(file.fileno()), text, caller)
        if refusal is None:
            return file
        file.close()
    raise refusal


def read_small(path: str, limit: int) -> bytes | None:
    """Give the contents of a file; ``None`` if it has more than ``limit`` bytes or is not regular.

    Links are not followed. Raises what ``open`` raises.
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return None
    with open(path, "rb", 0, opener=system.open_no_link) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        contents = file.read(limit + 1)  # one more, in case it has grown since
        return contents if len(contents) <= limit else None


# Files that nobody but the user and root can have changed

_MOST_LINKS = 40  # as Linux follows


class Unsafe(OSError):
    """Another user could have written this; the message says what, why, and what to do."""


def check_owned(status: os.stat_result, path: str) -> None:
    """Raise ``Unsafe`` unless it belongs to the effective user, who alone can write to it.

    Where the system has no such users, nothing is looked at.
    """
    you = system.user()
    if you is None:
        return
    if status.st_uid != you:
        raise Unsafe(f"{path} belongs to user {status.st_uid}, you are {you}: remove it")
    mode = stat.S_IMODE(status.st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unsafe(f"{path} can be written by others, with mode {mode:o}: remove it")


_SAFE: set[tuple[str, int]] = set()
"""Ways that were found safe, with the user: none but that one and root can change them."""


def check_way(path: str) -> None:
    """Raise ``Unsafe`` if another user could change which folder this absolute path leads to.

    Each folder on the way, also through links, must belong to root or to the effective user, as
    must the links, and others must not be able to write to it. A folder with the sticky bit, as
    ``/tmp``, may be everybody's where what comes next on the way is root's or the user's own. What
    is not there yet is not looked at, nor is anything where the system has no such users. A way is
    walked once in a process.
    """
    you = system.user()
    if you is None or (known := (path, you)) in _SAFE:
        return
    if _walk(path):
        _SAFE.add(known)


def _walk(path: str) -> bool:
    """Say whether the whole way is there; raises ``Unsafe`` if a part is not safe."""
    at, links = os.sep, 0
    status = os.lstat(at)
    left = _parts(path)
    while True:
        _check_folder(at, status, path)
        if not left:
            return True
        name = left.pop()
        if name == os.pardir:
            at = os.path.dirname(at)
            status = os.lstat(at)
            continue
        child = os.path.join(at, name)
        try:
            found = os.lstat(child)
        except FileNotFoundError:
            return False
        if stat.S_ISLNK(found.st_mode):
            _check_owner(child, found, path, "a link")
            links += 1
            if links > _MOST_LINKS:
                raise Unsafe(f"{path} leads through more than {_MOST_LINKS} links: shorten it")
            target = os.readlink(child)
            left += _parts(target)
            if os.path.isabs(target):
                at, status = os.sep, os.lstat(os.sep)
        else:
            at, status = child, found


def _parts(path: str) -> list[str]:
    """Return the names on the way, the last first."""
    return [name for name in path.split(os.sep) if name not in ("", os.curdir)][::-1]


def _check_folder(at: str, status: os.stat_result, path: str) -> None:
    _check_owner(at, status, path, "a folder")
    mode = stat.S_IMODE(status.st_mode)
    # With the sticky bit, only the owner of an entry may rename or remove it. The next folder or
    # link on the way has its owner looked at as well.
    if mode & stat.S_ISVTX or not mode & (stat.S_IWOTH | stat.S_IWGRP):
        return
    if mode & stat.S_IWOTH:
        raise Unsafe(
            f"the way to {path} leads through {at}, which everybody can write to: chmod o-w {at}"
        )
    if not system.is_alone(status.st_gid, status.st_uid) or system.has_list(at):
        raise Unsafe(
            f"the way to {path} leads through {at}, which users of group {status.st_gid} can write "
            f"to: chmod g-w {at}"
        )


def _check_owner(at: str, status: os.stat_result, path: str, what: str) -> None:
    you = system.user()
    if status.st_uid not in (0, you):
        raise Unsafe(
            f"the way to {path} leads through {at}, {what} of user {status.st_uid}, who could "
            f"replace what is there; you are {you}: have it belong to you or to root"
        )
