"""Have processes of a job prove to each other that they are its own, and say what they may say.

Whoever reaches the coordinator's port may connect to it, so each side shows that it knows the
secret of the job, without sending it: the coordinator sends a number that was never used, the
process one of its own and the HMAC-SHA256 of both and of what it says, and gets one back. Each
message is one object of JSON on a line, of known fields and ranges.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import json
import os
import re
import secrets
import socket
import stat
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from stretto._engine.core import system
from stretto._engine.core.files import Unsafe, check_owned, check_way
from stretto._engine.core.machine import cache_directory

SECRET, SECRET_FILE = "STRETTO_JOB_SECRET", "STRETTO_JOB_SECRET_FILE"
LONGEST = 1024
"""The longest line that a process may send, in bytes; a ``join`` has some 250."""
LONGEST_TOLD = 1 << 24
"""The longest line that the coordinator sends, which may name a million processes."""

_SHORTEST_SECRET = 16
_MOST = 1 << 20
"""The most processes that there may be, and the most devices that each may have."""

_Check = Callable[[Any], bool]


def _integer(low: int, high: int) -> _Check:
    return lambda x: type(x) is int and low <= x <= high  # and no boolean


def _text(pattern: str) -> _Check:
    known = re.compile(pattern)
    return lambda x: type(x) is str and known.fullmatch(x) is not None


def _integers(low: int, high: int) -> _Check:
    one = _integer(low, high)
    return lambda x: type(x) is list and len(x) <= _MOST and all(map(one, x))


_INDEX, _HEX = _integer(0, _MOST - 1), _text("[0-9a-f]{64}")
_PORT, _PATH = _integer(1, 65535), _text("unix:/.{1,120}")

FROM_PROCESS: tuple[Mapping[str, _Check], ...] = (
    {
        "join": _INDEX,
        "of": _integer(1, _MOST),
        "devices": _integer(1, _MOST),
        "challenge": _HEX,
        "proof": _HEX,
    },
    {"ping": _INDEX},
    {"bye": _INDEX},
)
"""Messages to the coordinator: the fields of each kind, and their values."""

FROM_COORDINATOR: tuple[Mapping[str, _Check], ...] = (
    {"challenge": _HEX},
    {"refused": _text(".{1,200}")},
    {"proof": _HEX},
    {"here": _integers(0, _MOST - 1)},
    {"all": _integers(1, _MOST), "service": lambda x: _PORT(x) or _PATH(x)},
    {"gone": _INDEX, "how": _text("ended|died")},
    {"silent": _INDEX, "whether": lambda x: type(x) is bool},
)
"""Messages of the coordinator, likewise."""


def line(**message: Any) -> bytes:
    """Return a message as it is sent."""
    return json.dumps(message).encode() + b"\n"


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not expected")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field was given twice")
    return found


_decode = json.JSONDecoder(
    object_pairs_hook=_once, parse_float=_refuse, parse_constant=_refuse
).decode


def read(data: bytes, kinds: tuple[Mapping[str, _Check], ...]) -> dict[str, Any]:
    """Return the message of a line; raises ``ValueError`` for all that is none of these kinds."""
    try:
        found = _decode(data.decode("ascii"))
    except RecursionError:
        raise ValueError("brackets in brackets are not expected") from None
    if type(found) is dict:
        for kind in kinds:
            if kind.keys() == found.keys():
                if all([check(found[name]) for name, check in kind.items()]):
                    return found
                break
    raise ValueError(f"{bytes(data[:40])!r} is no message that is known")


def new_challenge() -> str:
    """Return a number that was never used, and that nobody can guess."""
    return secrets.token_hex(32)


def proof(secret: bytes, who: str, *said: object) -> str:
    """Return what only who knows the secret can say, of a side and all that was said so far."""
    text = "\n".join(["stretto job 1", who, *map(str, said)])
    return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Say whether two proofs are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())


def is_local(host: str) -> bool:
    """Say whether this name or address is this machine's alone, not to be reached from others.

    A name that is not known is not.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    addresses = {str(address[0]) for *_, address in found}
    return all([_is_loopback(ipaddress.ip_address(text)) for text in addresses])


def _is_loopback(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    # Python 3.13 and later count what IPv6 writes of IPv4's as well, earlier ones do not.
    return address.is_loopback and getattr(address, "ipv4_mapped", None) is None


def job_secret(caller: str, where: str, local: bool) -> bytes:
    """Return the job's secret, ``STRETTO_JOB_SECRET`` or that in ``STRETTO_JOB_SECRET_FILE``.

    For a job that is on this machine alone, it may be the user's own, which is made at the first
    such job and kept in the folder for caches. Raises ``RuntimeError`` if there is none, or it is
    too short, or others can read or write it; in the error, ``where`` is the coordinator's address.
    """
    told = os.environ.get(SECRET)
    file = os.environ.get(SECRET_FILE)
    if told:
        return _long_enough(told.encode().strip(), caller, SECRET)
    if file:
        try:
            return _long_enough(_of_file(file), caller, f"{SECRET_FILE}={file}")
        except OSError as error:
            raise RuntimeError(
                f"{caller}: {SECRET_FILE}={file} cannot be used: {_words(error)}"
            ) from None
    way = (
        f"start the processes by stretto launch, or set {SECRET} in all of them to the same text "
        f"of {_SHORTEST_SECRET} characters or more, as `openssl rand -hex 32` prints one; or "
        f"{SECRET_FILE} to a file that has it and that only you can read"
    )
    if not local:
        raise RuntimeError(
            f"{caller}: {where} may be reached from other machines, and this job has no secret, so "
            f"that anybody there could take part in it or end it: {way}"
        )
    try:
        return _users_own()
    except OSError as error:
        raise RuntimeError(
            f"{caller}: this job has no secret, and none can be kept for you: {_words(error)}; "
            f"{way}"
        ) from None


def _words(error: OSError) -> str:
    return str(error) if isinstance(error, Unsafe) or error.strerror is None else error.strerror


def _long_enough(secret: bytes, caller: str, where: str) -> bytes:
    if len(secret) < _SHORTEST_SECRET:
        raise RuntimeError(
            f"{caller}: {where} must have {_SHORTEST_SECRET} characters or more, as `openssl rand "
            f"-hex 32` prints; got {len(secret)}"
        )
    return secret


def _of_file(path: str) -> bytes:
    """Read a file that no other user can read, and no other but root can have written."""
    handle, you = system.open_at_once(path, os.O_RDONLY), system.user()
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Unsafe("it is not a regular file")
        if you is None:  # who may read it is not known there
            return file.read(4096).strip()
        if status.st_uid not in (0, you):
            raise Unsafe(f"it belongs to user {status.st_uid}, you are {you}")
        # A group may read it: so orchestrators hand secrets to processes that are not root's.
        if stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IRWXO):
            raise Unsafe(f"others can read or write it, with mode {status.st_mode & 0o777:o}")
        return file.read(4096).strip()


def _users_own() -> bytes:
    """Return the secret of this user's jobs on this machine; made if there is none."""
    folder = cache_directory()
    if folder is None:
        raise Unsafe("there is no home directory, nor STRETTO_CACHE_DIR")
    check_way(folder)
    os.makedirs(folder, 0o700, exist_ok=True)
    check_way(folder)
    path = os.path.join(folder, "job-secret")
    for _ in range(2):
        try:
            handle = system.open_no_link(path, os.O_RDONLY)
        except FileNotFoundError:
            _make(path)
            continue
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            check_owned(status, path)
            found = file.read(4096).strip()
        is_others = system.user() is not None and status.st_mode & 0o077
        if is_others or len(found) < _SHORTEST_SECRET:
            raise Unsafe(f"{path} can be read by others, or is damaged: remove it")
        return found
    raise Unsafe(f"{path} was removed while it was made")


def _make(path: str) -> None:
    """Make the file whole, unless another process was quicker."""
    beside = f"{path}.{secrets.token_hex(8)}"
    handle = system.open_no_link(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with open(handle, "wb") as file:
            file.write(secrets.token_hex(32).encode())
        with contextlib.suppress(FileExistsError):
            system.publish(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):  # it was renamed
            os.unlink(beside)
