"""Files, users and processes as systems differ in them, and what is done where one has it not.

Nothing else in this package uses locks of files, flags of ``open`` that some systems lack, owners
of files, hard links, limits, or signals and children as POSIX has them. Each is asked for by its
name, so that a system which has some of them loses no more than the others; Windows has the least.
What is lost is said where it is lost. Forks are in ``threads``, processors and memory in
``machine``.

The modules that only some systems have are imported where they are used: their absence is no error
until then, and none there.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import select
import signal
import stat
import subprocess
import time
from collections.abc import Iterable
from importlib import import_module
from typing import Any, BinaryIO


def module(name: str) -> Any | None:
    """Return a module of the standard library, or None where this system has none of that name."""
    try:
        return import_module(name)
    except ImportError:
        return None


# Files

KEEPS_OPEN_FILES = os.name == "nt"
"""Says that nobody can rename or remove a file which is open, nor write another in its place.

Windows is so. What is written is closed first, and a file that another process reads is waited for
a while."""

_BINARY = getattr(os, "O_BINARY", 0)
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_IS_FOLDER = getattr(os, "O_DIRECTORY", 0)

_PAUSES = (0.01, 0.03, 0.1, 0.3, 0.6)
"""The seconds between attempts to replace a file that is open."""

_HOUR = 3600.0


def open_at_once(path: str, flags: int, mode: int = 0o666) -> int:
    """Open a file as bytes, and do not wait for the writer of a FIFO, where there are such."""
    return os.open(path, flags | _AT_ONCE | _BINARY, mode)


def open_no_link(path: str, flags: int, mode: int = 0o600) -> int:
    """Open a file so, unless it is a link, which is an ``OSError``.

    Where the system cannot do both at once, somebody could put a link there in between.
    """
    if not _NO_LINK:
        _refuse_link(path)
    return open_at_once(path, flags | _NO_LINK, mode)


def _refuse_link(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def lock(file: BinaryIO) -> None:
    """Wait for the lock of an open file, if system and file system have such; see ``take_over``."""
    fcntl = module("fcntl")
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)


def take_over(file: Any) -> bool:
    """Say whether whoever locked this open file is gone; then this process has the lock.

    Without locks, a file counts as left behind that was not written to for an hour: what a killed
    writer leaves stays for as long. On Windows a file cannot be removed while its writer lives.
    """
    fcntl = module("fcntl")
    if fcntl is None:
        return time.time() - os.fstat(file.fileno()).st_mtime > _HOUR
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def set_mode(file: Any, mode: int) -> None:
    """Set the permissions of an open file, where files have users'.

    Elsewhere the only one is to be written to, and a file without it cannot be replaced.
    """
    if HAS_USERS:
        os.fchmod(file.fileno(), mode)


def flush(descriptor: int) -> None:
    """Return when what was written is on the disk; on macOS, which has two ways, not in its cache.

    Raises ``OSError``.
    """
    fcntl = module("fcntl")
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if fcntl is not None and full is not None:
        with contextlib.suppress(OSError):  # file systems of other machines do not know it
            fcntl.fcntl(descriptor, full)
            return
    os.fsync(descriptor)


def forget(descriptor: int) -> None:
    """Have the system use the memory in which it keeps what an open file has on the disk.

    Where it cannot be told so, as on macOS and Windows, it decides by itself.
    """
    advise = getattr(os, "posix_fadvise", None)
    if advise is not None:
        with contextlib.suppress(OSError):  # a file system may have no such memory
            advise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def flush_folder(folder: str) -> None:
    """Return when the folder's list of files is on the disk.

    Where folders cannot be opened, as on Windows, the list is left to the system: if the machine
    stops soon after, the old file may be there instead of the new one, whole.
    """
    if not _IS_FOLDER:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        flush(descriptor)
    finally:
        os.close(descriptor)


def replace(source: str, target: str, **folders: int) -> None:
    """Rename a file, also over another, which is gone or there, never half of it.

    A file that others have open is waited for where that is in the way, about a second.
    """
    for pause in _PAUSES if KEEPS_OPEN_FILES else ():
        try:
            return os.replace(source, target, **folders)
        except PermissionError:
            time.sleep(pause)
    return os.replace(source, target, **folders)


def remove(path: str) -> None:
    """Remove a file or a link; ``IsADirectoryError`` for a folder, as only Linux says of itself."""
    try:
        os.unlink(path)
    except PermissionError:
        if os.path.isdir(path) and not os.path.islink(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path) from None
        raise


def publish(source: str, target: str) -> None:
    """Have a file at this name as well, or instead; ``FileExistsError`` if the name is taken.

    Without hard links the file is renamed, which on Windows fails alike. On other systems that
    replaces a file which came in between: who was the last to write has written what stays.
    """
    if hasattr(os, "link"):
        os.link(source, target)
        return
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    os.rename(source, target)


_BY_DESCRIPTOR = (
    bool(_IS_FOLDER and _NO_LINK)
    and {os.open, os.stat, os.unlink, os.rename} <= os.supports_dir_fd
    and os.listdir in os.supports_fd
)


class Folder:
    """A folder that is looked up once, by ``open``: its files are reached through it from then on.

    Where the system has no descriptors of folders, its path is looked up each time, so that who may
    rename a folder on the way could put another in its place meanwhile.
    """

    __slots__ = ("_at", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._at: int | None = None

    def open(self) -> os.stat_result:
        """Look the folder up, and return what is known of it; ``OSError`` for a link or a file."""
        if _BY_DESCRIPTOR:
            self._at = os.open(self.path, os.O_RDONLY | _IS_FOLDER | _NO_LINK)
            return os.fstat(self._at)
        _refuse_link(self.path)
        status = os.stat(self.path)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.path)
        return status

    def close(self) -> None:
        """Let go of the folder; more than once does nothing."""
        if self._at is not None:
            at, self._at = self._at, None
            os.close(at)

    def open_file(self, name: str, flags: int) -> int:
        """Open a file in it as ``open_no_link`` does."""
        if self._at is None:
            return open_no_link(os.path.join(self.path, name), flags)
        return os.open(name, flags | _AT_ONCE | _NO_LINK | _BINARY, 0o600, dir_fd=self._at)

    def status_of(self, name: str) -> os.stat_result:
        """Return what is known of a file in it, or of a link."""
        if self._at is None:
            return os.lstat(os.path.join(self.path, name))
        return os.stat(name, dir_fd=self._at, follow_symlinks=False)

    def replace(self, source: str, target: str) -> None:
        """Rename a file in it as ``replace`` does."""
        if self._at is None:
            replace(os.path.join(self.path, source), os.path.join(self.path, target))
        else:
            replace(source, target, src_dir_fd=self._at, dst_dir_fd=self._at)

    def remove(self, name: str) -> bool:
        """Remove a file in it; False if it is gone, or, on Windows, open."""
        try:
            if self._at is None:
                os.unlink(os.path.join(self.path, name))
            else:
                os.unlink(name, dir_fd=self._at)
        except FileNotFoundError:
            return False
        except PermissionError:
            if not KEEPS_OPEN_FILES:
                raise
            return False
        return True

    def names(self) -> list[str]:
        """Return the names in it."""
        return os.listdir(self.path if self._at is None else self._at)


# Users
#
# Without them, who may write a file is not asked: on Windows what is in a user's own folder is, by
# default, writable for nobody else but administrators; other places are the user's to judge.

HAS_USERS = hasattr(os, "geteuid") and hasattr(os, "fchmod")
"""Says whether files have an owner and permissions for others, as POSIX has them."""


def user() -> int | None:
    """Return the number of the effective user, or None where there are no such."""
    return os.geteuid() if HAS_USERS else None


@functools.cache
def is_alone(group: int, user: int) -> bool:
    """Say whether a group is a user's own, as many systems make one for each user.

    No, where nobody tells.
    """
    pwd, grp = module("pwd"), module("grp")
    if pwd is None or grp is None:
        return False
    try:
        account, its = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    own = account.pw_gid == group and account.pw_name == its.gr_name
    return own and set(its.gr_mem) <= {account.pw_name}


def has_list(at: str) -> bool:
    """Say whether a folder has an access control list, whose sum the group's bits are."""
    attributes = getattr(os, "listxattr", None)  # Linux's
    try:
        return attributes is not None and "system.posix_acl_access" in attributes(at)
    except OSError:
        return False


# Processes


def watches_pipes() -> bool:
    """Say whether pipes can be waited for as sockets are; on Windows they cannot."""
    return hasattr(select, "poll")


def allow_descriptors(count: int) -> None:
    """Have the system allow this process so many open files, or as many as it may.

    Where no limit can be asked for, it stays.
    """
    resource = module("resource")
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def ending_signals() -> Iterable[int]:
    """Return the signals that ask a process without a terminal to end."""
    return [getattr(signal, n) for n in ("SIGHUP", "SIGTERM") if hasattr(signal, n)]


def c_library() -> Any | None:
    """Return the functions of the process's C library; None where they are not found so."""
    try:
        return ctypes.CDLL(None)
    except (TypeError, OSError):  # Windows has none without a name
        return None


_PDEATHSIG, _SUBREAPER = 1, 36


def _control(*numbers: int) -> None:
    """Tell Linux what it has for a process; others have no such call."""
    prctl = getattr(c_library(), "prctl", None)
    if prctl is not None:
        prctl(*numbers)


def _end_with_parent() -> None:
    _control(_PDEATHSIG, signal.SIGTERM)


def apart() -> dict[str, Any]:
    """Return what has ``subprocess.Popen`` start a process that no terminal's Ctrl-C reaches.

    Linux ends it, too, where this process is killed; elsewhere it goes on.
    """
    if not hasattr(os, "fork"):
        return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    # The caller has no threads yet.
    return {"start_new_session": True, "preexec_fn": _end_with_parent}


def pass_on(process: subprocess.Popen[Any], number: int) -> None:
    """Send a signal to another process; it is ended at once where there are none, as on Windows."""
    if hasattr(signal, "SIGKILL"):
        process.send_signal(number)
    else:
        process.terminate()


def adopt(whether: bool) -> None:
    """Have processes whose parents have ended become this one's children, where Linux is."""
    _control(_SUBREAPER, int(whether), 0, 0, 0)


def children(mark: str) -> list[int]:
    """Return the children of this process with this text in their command line.

    Where there is no ``/proc``, which tells: none.
    """
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            with contextlib.suppress(OSError):
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if parent == os.getpid() and mark.encode() in file.read():
                        found.append(int(name))
    return found


def collect(child: int, kill: bool) -> None:
    """Have the system forget a child that has ended; ``kill`` ends it first."""
    with contextlib.suppress(OSError):
        if kill:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0 if kill else os.WNOHANG)


# The end of this process


def hold_thread(ident: int) -> None:
    """Have a thread wait for ever, where a signal can be sent to one that nobody else uses."""
    number, system = getattr(signal, "SIGRTMAX", 0), c_library()
    if number and system is not None:
        with contextlib.suppress(AttributeError, OSError):
            system.signal(int(number), system.pause)
            signal.pthread_kill(ident, number)


def leave_libraries_alone() -> None:
    """Have the process end before libraries destroy their data, which threads go on to use.

    All that Python does at the end is done, and the exit status stays. Where the C library has no
    ``on_exit``, or C++'s is another one than GNU's, that part is left out: a thread that still
    computes may end the process by a signal.
    """
    system = c_library()
    if system is None:
        return
    with contextlib.suppress(AttributeError, OSError):
        # Python ends a thread that comes back to it at the end, by unwinding; C++ may not allow it
        # there, and asks this function, which waits, rather than abort the process.
        cpp = ctypes.CDLL("libstdc++.so.6")
        cpp._ZSt13set_terminatePFvvE(system.pause)
    with contextlib.suppress(AttributeError, OSError):
        system.fflush(None)
        system.on_exit(system._exit, None)  # what is registered last is called first
