"""Folders and files that nobody but the user and root can have changed.

Whoever may write to a folder may rename what is in it, and put something else in its place: so all
folders on the way to a file matter, and those that a link leads through.
"""

from __future__ import annotations

import functools
import grp
import os
import pwd
import stat

_MOST_LINKS = 40  # as Linux follows


class Unsafe(OSError):
    """Another user could have written this; the message says what, why, and what to do."""


def check_owned(status: os.stat_result, path: str) -> None:
    """Raise ``Unsafe`` unless it belongs to the effective user, who alone can write to it."""
    if status.st_uid != os.geteuid():
        raise Unsafe(f"{path} belongs to user {status.st_uid}, you are {os.geteuid()}: remove it")
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
    is not there yet is not looked at. A way is walked once in a process.
    """
    known = path, os.geteuid()
    if known in _SAFE:
        return
    if _walked(path):
        _SAFE.add(known)


def _walked(path: str) -> bool:
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
    if not _alone(status.st_gid, status.st_uid) or _has_list(at):
        raise Unsafe(
            f"the way to {path} leads through {at}, which users of group {status.st_gid} can write "
            f"to: chmod g-w {at}"
        )


def _check_owner(at: str, status: os.stat_result, path: str, what: str) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise Unsafe(
            f"the way to {path} leads through {at}, {what} of user {status.st_uid}, who could "
            f"replace what is there; you are {os.geteuid()}: have it belong to you or to root"
        )


@functools.cache
def _alone(group: int, user: int) -> bool:
    """Say whether a group is a user's own, as many systems make one for each user."""
    try:
        account, its = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    own = account.pw_gid == group and account.pw_name == its.gr_name
    return own and set(its.gr_mem) <= {account.pw_name}


def _has_list(at: str) -> bool:
    """Say whether a folder has an access control list, whose sum the group's bits are."""
    attributes = getattr(os, "listxattr", None)  # Linux's
    try:
        return attributes is not None and "system.posix_acl_access" in attributes(at)
    except OSError:
        return False
