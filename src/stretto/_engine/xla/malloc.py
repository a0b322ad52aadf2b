"""The C library's ``malloc``, told to keep what is freed, as ``config.keep_memory`` asks.

XLA allocates the temporaries of a program as one block at each call. By default glibc has large
blocks mapped by the system, which fills every page with zeros when it is first touched, and unmaps
them when they are freed. See docs/decisions/0042-memory-kept.md, and next ``pjrt``, whose threads
must not have started.
"""

from __future__ import annotations

import ctypes
import platform

from stretto._engine.core.errors import ConfigError

LARGE = 1 << 25
"""The bytes from which on glibc always has a block mapped, unless it is told to keep memory."""

# Numbers of parameters in glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -3, -4, -8


def is_glibc() -> bool:
    """Say whether the C library of the process is glibc, whose ``malloc`` can be told."""
    return platform.libc_ver()[0] == "glibc"


def keep_memory(value: bool) -> None:
    """Have freed blocks kept by the process, from now to its end.

    Raises ``ConfigError`` where that cannot be done, or would be without effect.
    """
    if not value:
        raise ConfigError(
            "config.keep_memory cannot be switched off again: glibc keeps memory until the process "
            "ends"
        )
    if not is_glibc():
        raise ConfigError(
            "config.keep_memory needs glibc's mallopt; this system's C library is another one"
        )
    libc = ctypes.CDLL(None)
    count = _arenas(libc)
    if count > 1:
        raise ConfigError(
            f"config.keep_memory comes too late: threads of this process have {count - 1} heaps of "
            f"their own, from which large blocks are always mapped. Set it before anything is "
            f"compiled and before threads are started, or set STRETTO_KEEP_MEMORY=1 in the "
            f"environment and import stretto first; where that is not possible, start the process "
            f"with MALLOC_ARENA_MAX=1 as well"
        )
    libc.mallopt(_ARENA_MAX, 1)
    libc.mallopt(_TRIM_THRESHOLD, -1)  # never
    if not libc.mallopt(_MMAP_THRESHOLD, (1 << 31) - 1):
        libc.mallopt(_MMAP_MAX, 0)  # older versions refuse thresholds above 32 MiB


def _arenas(libc: ctypes.CDLL) -> int:
    """Return how many heaps there are; those besides the first one belong to threads."""
    libc.open_memstream.restype = ctypes.c_void_p
    text, size = ctypes.c_char_p(), ctypes.c_size_t()
    stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(text), ctypes.byref(size)))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    count = ctypes.string_at(text, size.value).count(b"<heap ")
    libc.free(text)
    return count
