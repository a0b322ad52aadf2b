"""Bytes by key in a folder: files that nobody else can have written, whole or not at all, bounded.

Layer 6 (runtime). Of the standard library alone, and of nothing that knows what the bytes are.

What another user could have written is never read: folder and files must belong to the effective
user, and be writable to nobody else. The folder is opened once, what was opened is checked, and
files are reached through it, so that no name is looked up twice. A file is written beside and
renamed, and says its key, length and checksum. No more is read than may be written. There are no
locks: of several writers of a key the last one stays. The least lately used files go when there are
too many bytes. Next, read ``disk``.
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

__all__ = ["Kept", "Unsafe", "clear", "kept", "read", "write"]

_HEADER = struct.Struct("<8s32sQ32s")
"""What a file is, its key, the length of its content, and the SHA-256 of that."""
_MAGIC = b"stretto\x01"  # the last byte: the version of the format

_FILE, _BESIDE, _WRITTEN = ".program", ".beside", "written"
_OURS = re.compile(rf"[0-9a-f]{{64}}(\{_FILE}|\.[0-9a-f]{{16}}\{_BESIDE})")
_HOUR = 3600.0

_PART = 64
"""Files are counted, and some removed, when this part of the limit was written since they were."""
_UNIT = 1024
"""What was written is noted as one byte for each of so many, at the end of the file ``written``."""


class Unsafe(OSError):
    """Another user could have written this; says what, why, and what to do."""


class Kept(NamedTuple):
    """A file: its name, its bytes, and when it was last used, within the hour."""

    name: str
    size: int
    used: float


def read(folder: str, key: str, limit: int) -> bytes | None:
    """The content of this key, 64 hexadecimal digits; ``None`` where there is none that is whole.

    A file that is larger than ``write`` makes them, with this ``limit``, is not read. Raises
    ``Unsafe`` where somebody else could have written it, ``OSError`` where it cannot be read.
    """
    try:
        with _opened(folder) as at:
            # Not blocking: were it a pipe, opening it would wait for ever.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with _handle(key + _FILE, flags, at) as handle:
                status = os.fstat(handle)
                _check_file(status, os.path.join(folder, key + _FILE))
                if status.st_size > _most(limit):
                    return None
                content = _content(_all_of(handle, status.st_size), key)
                if content is not None and abs(time.time() - status.st_mtime) > _HOUR:
                    with contextlib.suppress(OSError):  # it may be there to be read only
                        os.utime(handle)
                return content
    except FileNotFoundError:
        return None


def write(folder: str, key: str, content: bytes, limit: int) -> None:
    """Keep this content, where all that is kept may take ``limit`` bytes.

    It is left out where it takes more than an eighth of them. Raises ``Unsafe`` where somebody else
    could write it, ``OSError`` where it cannot be written; then nothing is left of it.
    """
    header = _HEADER.pack(
        _MAGIC, bytes.fromhex(key), len(content), hashlib.sha256(content).digest()
    )
    size = len(header) + len(content)
    if size > _most(limit):
        return
    os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    with _opened(folder) as at:
        name = key + _FILE
        with contextlib.suppress(FileNotFoundError):
            there = os.stat(name, dir_fd=at, follow_symlinks=False)
            _check_file(there, os.path.join(folder, name))  # what is not ours stays
        part = limit // _PART
        if _note(at, size) > part:
            _sweep(at, limit - part - size)
        beside = f"{key}.{os.urandom(8).hex()}{_BESIDE}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            # Not synced: if the machine stops, what is left of the file fails its checksum.
            with _handle(beside, flags, at) as handle, open(handle, "wb", closefd=False) as file:
                file.write(header)
                file.write(content)
            os.replace(beside, name, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            _remove(at, beside)
            raise


def kept(folder: str) -> list[Kept]:
    """What is kept there. Raises ``Unsafe`` and ``OSError`` as ``read`` does."""
    try:
        with _opened(folder) as at:
            return [file for file in _files(at) if file.name.endswith(_FILE)]
    except FileNotFoundError:
        return []


def clear(folder: str) -> list[Kept]:
    """Remove what is kept, and give what was removed. Files of other users stay."""
    try:
        with _opened(folder) as at:
            return _sweep(at, -1)
    except FileNotFoundError:
        return []


@contextlib.contextmanager
def _opened(folder: str) -> Iterator[int]:
    """A descriptor of the folder, which nobody else can write."""
    with _handle(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) as at:
        _check_owned(os.fstat(at), folder)
        above = os.path.realpath(folder)
        while above != (above := os.path.dirname(above)):
            mode = os.stat(above).st_mode
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                raise Unsafe(
                    f"{folder} is in {above}, which everybody can write: chmod o-w {above}"
                )
        yield at


@contextlib.contextmanager
def _handle(name: str, flags: int, at: int | None = None) -> Iterator[int]:
    """A descriptor, which is closed wherever an interruption falls."""
    handle = -1
    try:
        handle = os.open(name, flags, 0o600, dir_fd=at)
        yield handle
    finally:
        if handle >= 0:
            os.close(handle)


def _most(limit: int) -> int:
    """How many bytes a file may have, where all may have so many."""
    return limit // 8


def _check_owned(status: os.stat_result, path: str) -> None:
    if status.st_uid != os.geteuid():
        raise Unsafe(f"{path} belongs to user {status.st_uid}, you are {os.geteuid()}: remove it")
    mode = stat.S_IMODE(status.st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unsafe(f"{path} can be written by others, with mode {mode:o}: remove it")


def _check_file(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Unsafe(f"{path} is not a plain file: remove it")
    _check_owned(status, path)


def _all_of(handle: int, size: int) -> bytes:
    with open(handle, "rb", closefd=False) as file:
        return file.read(size + 1)


def _content(data: bytes, key: str) -> bytes | None:
    """The content of a file, if the file is whole and its key is this one."""
    if len(data) < _HEADER.size:
        return None
    magic, its_key, length, digest = _HEADER.unpack_from(data)
    content = data[_HEADER.size :]
    whole = magic == _MAGIC and its_key == bytes.fromhex(key) and length == len(content)
    return content if whole and hashlib.sha256(content).digest() == digest else None


def _note(at: int, size: int) -> int:
    """Note that so much is being written; how much was since files were last counted.

    A file that only grows, with one short write at its end: writers need not wait for each other,
    and those that are killed have said what they may have left.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    with _handle(_WRITTEN, flags, at) as handle:
        os.write(handle, bytes(size // _UNIT + 1))
        return os.fstat(handle).st_size * _UNIT


def _sweep(at: int, limit: int) -> list[Kept]:
    """Remove the least lately used above the limit, and what killed writers left an hour ago."""
    flags = os.O_WRONLY | os.O_TRUNC | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    with _handle(_WRITTEN, flags, at):
        pass
    now, total, files = time.time(), 0, []
    for file in _files(at):
        if file.name.endswith(_BESIDE):
            if now - file.used > _HOUR:
                _remove(at, file.name)
        else:
            total += file.size
            files.append(file)
    removed = []
    for file in sorted(files, key=lambda file: file.used):
        if total <= limit:
            break
        if _remove(at, file.name):
            removed.append(file)
        total -= file.size
    return removed


def _files(at: int) -> Iterator[Kept]:
    """Our files in the folder, written and being written."""
    for name in os.listdir(at):
        if _OURS.fullmatch(name):
            try:
                status = os.stat(name, dir_fd=at, follow_symlinks=False)
            except FileNotFoundError:
                continue  # another process was quicker
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                yield Kept(name, status.st_size, status.st_mtime)


def _remove(at: int, name: str) -> bool:
    """Remove a file, unless another process was quicker; whether this one did."""
    try:
        os.unlink(name, dir_fd=at)
    except FileNotFoundError:
        return False
    return True
