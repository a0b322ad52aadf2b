"""Bytes by key in a folder, bounded in size: files that nobody else can have written.

It uses the standard library alone, and knows nothing about what the bytes are.

Files that another user could have written are never read: folder and files must belong to the
effective user, and be writable for nobody else, and no other user may be able to rename a folder on
the way (``core/files``). The folder is opened once, what was opened is checked, and files are
reached through it, so that no name is looked up twice, where the system can (``core/system``). A
file is written under a temporary name and renamed, so it is whole or not there; it contains its
key, length and checksum. No more is read than may be written. There are no locks: if several
processes write a key, the last one wins. When there are too many bytes, the least recently used
files are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

from stretto._engine.core import system
from stretto._engine.core.files import Unsafe, check_owned, check_way

_HEADER = struct.Struct("<8s32sQ32s")
"""A magic number, the key, the length of the content, and the SHA-256 of the content."""
_MAGIC = b"stretto\x03"  # the last byte: the version of the format

_FILE, _BESIDE, _WRITTEN = ".program", ".beside", "written"
_OURS = re.compile(rf"[0-9a-f]{{64}}(\{_FILE}|\.[0-9a-f]{{16}}\{_BESIDE})")
_HOUR = 3600.0

_PART = 64
"""Files are counted, and old ones removed, after each such part of the limit is written."""
_UNIT = 1024
"""The file ``written`` grows by one byte for each of so many that are written."""


class Kept(NamedTuple):
    """A file: its name, its bytes, and when it was last used, within the hour."""

    name: str
    size: int
    used: float


def read(folder: str, key: str, limit: int) -> bytes | None:
    """Return the content for this key, 64 hexadecimal digits.

    It is ``None`` if there is none that is whole.

    A file larger than ``write`` makes with this ``limit`` is not read. Raises ``Unsafe`` if
    somebody else could have written it, ``OSError`` if it cannot be read.
    """
    try:
        with _open_folder(folder) as at, _handle(at, key + _FILE, os.O_RDONLY) as handle:
            status = os.fstat(handle)
            _check_file(status, os.path.join(folder, key + _FILE))
            if status.st_size > _most(limit):
                return None
            content = _content(_all_of(handle, status.st_size), key)
            if content is not None and abs(time.time() - status.st_mtime) > _HOUR:
                with contextlib.suppress(OSError):  # the file system may be read-only
                    os.utime(handle)
            return content
    except FileNotFoundError:
        return None


def write(folder: str, key: str, content: bytes, limit: int) -> None:
    """Keep this content; all contents together may take ``limit`` bytes.

    It is not kept if it takes more than an eighth of that. Raises ``Unsafe`` if somebody else could
    write to it, ``OSError`` if it cannot be written; then no part of it is left behind.
    """
    header = _HEADER.pack(
        _MAGIC, bytes.fromhex(key), len(content), hashlib.sha256(content).digest()
    )
    size = len(header) + len(content)
    if size > _most(limit):
        return
    above = os.path.dirname(os.path.abspath(folder))
    check_way(above)  # before anything is made there
    os.makedirs(above, 0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    with _open_folder(folder) as at:
        name = key + _FILE
        with contextlib.suppress(FileNotFoundError):
            existing = at.status_of(name)
            _check_file(existing, os.path.join(folder, name))  # never replace another user's file
        part = limit // _PART
        if _note(at, size) > part:
            _sweep(at, limit - part - size)
        beside = f"{key}.{os.urandom(8).hex()}{_BESIDE}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            # Not flushed to the disk: if the machine stops, what is left fails the checksum.
            with _handle(at, beside, flags) as handle, open(handle, "wb", closefd=False) as file:
                file.write(header)
                file.write(content)
            at.replace(beside, name)
        except BaseException:
            at.remove(beside)
            raise


def list_kept(folder: str) -> list[Kept]:
    """Return the files that are kept. Raises ``Unsafe`` and ``OSError`` as ``read`` does."""
    try:
        with _open_folder(folder) as at:
            return [file for file in _files(at) if file.name.endswith(_FILE)]
    except FileNotFoundError:
        return []


def clear(folder: str) -> list[Kept]:
    """Remove what is kept, and return what was removed. Files of other users stay."""
    try:
        with _open_folder(folder) as at:
            return _sweep(at, -1)
    except FileNotFoundError:
        return []


@contextlib.contextmanager
def _open_folder(folder: str) -> Iterator[system.Folder]:
    """Return the folder, looked up; raises ``Unsafe`` if anybody else can write to it."""
    at = system.Folder(folder)
    try:
        check_owned(at.open(), folder)
        check_way(os.path.dirname(os.path.abspath(folder)))
        yield at
    finally:
        at.close()


@contextlib.contextmanager
def _handle(at: system.Folder, name: str, flags: int) -> Iterator[int]:
    """Return a descriptor of a file, which is closed wherever an interrupt comes."""
    handle = -1
    try:
        handle = at.open_file(name, flags)
        yield handle
    finally:
        if handle >= 0:
            os.close(handle)


def _most(limit: int) -> int:
    """Return how many bytes one file may have if all together may have ``limit``."""
    return limit // 8


def _check_file(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Unsafe(f"{path} is not a regular file: remove it")
    check_owned(status, path)


def _all_of(handle: int, size: int) -> bytes:
    with open(handle, "rb", closefd=False) as file:
        return file.read(size + 1)


def _content(data: bytes, key: str) -> bytes | None:
    """Return the content of a file, if the file is whole and its key is this one."""
    if len(data) < _HEADER.size:
        return None
    magic, its_key, length, digest = _HEADER.unpack_from(data)
    content = data[_HEADER.size :]
    whole = magic == _MAGIC and its_key == bytes.fromhex(key) and length == len(content)
    return content if whole and hashlib.sha256(content).digest() == digest else None


def _note(at: system.Folder, size: int) -> int:
    """Note that so many bytes are being written; return how many were since the last count.

    The note is a file to which each writer appends with one short write. So writers need not wait
    for each other, and those that are killed have already noted what they may leave behind.
    """
    with _handle(at, _WRITTEN, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as handle:
        os.write(handle, bytes(size // _UNIT + 1))
        return os.fstat(handle).st_size * _UNIT


def _sweep(at: system.Folder, limit: int) -> list[Kept]:
    """Remove the least recently used files above the limit, and old files of killed writers."""
    with _handle(at, _WRITTEN, os.O_WRONLY | os.O_TRUNC | os.O_CREAT):
        pass
    now, total, files = time.time(), 0, []
    for file in _files(at):
        if file.name.endswith(_BESIDE):
            if now - file.used > _HOUR:
                at.remove(file.name)
        else:
            total += file.size
            files.append(file)
    removed = []
    for file in sorted(files, key=lambda file: file.used):
        if total <= limit:
            break
        if at.remove(file.name):
            removed.append(file)
        total -= file.size
    return removed


def _files(at: system.Folder) -> Iterator[Kept]:
    """Return our files in the folder: those that are kept, and those being written."""
    for name in at.names():
        if _OURS.fullmatch(name):
            try:
                status = at.status_of(name)
            except FileNotFoundError:
                continue  # another process was quicker
            if stat.S_ISREG(status.st_mode) and system.user() in (None, status.st_uid):
                yield Kept(name, status.st_size, status.st_mtime)
