"""Memory: ask whether there is enough for a program before it runs, and keep what is freed.

What a program needs is known when it is compiled. The system gives memory that it does not have,
and ends the process when that is used; where it gives none, XLA ends it when a result is read by
Python's buffer protocol, or never says that a result failed beside another. So programs that need
much are refused beforehand where there is too little (``RunIfRoom``).

XLA allocates each result, and the temporaries of a program as one block, at each call. glibc has
large blocks mapped by the system, which fills every page with zeros when it is first touched, and
unmaps them when they are freed. What it would learn with time, to take blocks below 32 MiB from
what was freed, it is told before XLA starts (``reuse_blocks``); ``config.keep_memory`` has it keep
all. See docs/decisions/0042-memory-kept.md and 0089.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from stretto._engine.core import machine
from stretto._engine.core.config import config
from stretto._engine.core.errors import ConfigError
from stretto._engine.core.types import bytes_of

if TYPE_CHECKING:
    from stretto._engine.lowering.text import Facts

LARGE = 1 << 30
"""The bytes beyond which a program is looked at each time it runs, which takes some 50 µs."""

_WAYS = (
    "Compute it in parts (st.vmap(f, chunk_size=...), st.lax.map(f, xs, batch_size=...)), give it "
    "smaller arguments or a smaller dtype; under grad, st.checkpoint keeps less"
)

_FAILED = re.compile(r"Out of memory allocating (\d+) bytes")


def bytes_needed(loaded: Any) -> int:
    """Return the bytes that a compiled program takes while it runs, beside its arguments."""
    try:
        sizes = loaded.get_compiled_memory_stats()
    except RuntimeError:  # the runtime does not tell
        return 0
    outputs = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    return max(outputs, 0) + sizes.temp_size_in_bytes


def total() -> int | None:
    """Return the bytes of memory that this process may use, those swapped out included.

    None: unknown.
    """
    there = machine.memory()
    return _least(_sum(there.total, there.swap), *[most for most, _ in machine.memory_of_groups()])


def available() -> int | None:
    """Return the bytes of memory that are free, or can be made so; None where nobody tells."""
    there = machine.memory()
    free = [most - used for most, used in machine.memory_of_groups()]
    return _least(_sum(there.free, there.free_swap), *free)


def _least(*numbers: int | None) -> int | None:
    return min([n for n in numbers if n is not None], default=None)


def _sum(first: int | None, second: int) -> int | None:
    return None if first is None else first + second


class RunIfRoom:
    """Runs a program that needs much memory, if there is so much."""

    __slots__ = ("_execute", "_loaded", "_name", "_parts")

    def __init__(
        self, execute: Callable[[Sequence[Any]], Any], loaded: Any, name: str, parts: int
    ) -> None:
        self._execute = execute
        self._loaded = loaded
        self._parts = parts
        self._name = name

    def __call__(self, buffers: Sequence[Any]) -> Any:
        """Run it; raises ``MemoryError`` if there is no room."""
        need = self._parts * bytes_needed(self._loaded)
        most = total()
        if most is not None and need > most:
            self._refuse(need, f"there are {_in_words(most)} in all")
        if not config.keep_memory:  # else this process has free memory that the system calls used
            free = available()
            if free is not None and need > free:
                _wait_for_the_others(self._loaded.client)
                free = available()
                if free is not None and need > free:
                    self._refuse(need, f"{_in_words(free)} are free")
        try:
            return self._execute(buffers)
        except RuntimeError as error:
            failure = explanation_of(error)
        raise failure

    def _refuse(self, need: int, there: str) -> NoReturn:
        sizes = self._loaded.get_compiled_memory_stats()
        raise MemoryError(
            f"{self._name} was not run: it needs {_in_words(need)} of memory beside its arguments, "
            f"{_in_words(self._parts * sizes.output_size_in_bytes)} for results and "
            f"{_in_words(self._parts * sizes.temp_size_in_bytes)} for what is computed on the way, "
            f"and {there}. {_WAYS}"
        )


HUGE = 1 << 36
"""The elements from which on XLA in jaxlib 0.12 divides by zero, and ends the process, where it
compiles some loops over an array, as that of a sine."""


def refuse_huge(facts: Facts) -> None:
    """Raise ``MemoryError`` for a program with an array of so many elements that no memory holds.

    Asked before it is compiled, only where compiling it could end the process: a value within a
    program may have no memory of its own.
    """
    largest = max([bytes_of(t) for t in facts.results if t.size >= HUGE], default=0)
    most = total() if largest else None  # what the system says is in files
    if most is not None and largest > most:
        raise MemoryError(
            f"{facts.name} was not compiled: it has an array of {_in_words(largest)}, and there "
            f"are {_in_words(most)} in all. {_WAYS}"
        )


def _wait_for_the_others(client: Any) -> None:
    """Wait until what has been begun is computed, and its temporaries are free."""
    for buffer in client.live_arrays():
        try:
            if not buffer.is_deleted():
                buffer.block_until_ready()
        except RuntimeError as error:
            if type(error) is RuntimeError and not buffer.is_deleted():  # a signal handler's
                raise
            # One of its own is raised where it is read.


def explanation_of(error: RuntimeError) -> Exception:
    """Return the error to raise for one of XLA's, a ``MemoryError`` if it had no memory."""
    found = _FAILED.search(str(error))
    if not found:
        return error
    free = available()
    there = "" if free is None else f"; {_in_words(free)} are free now"
    return MemoryError(
        f"a compiled program had no memory: it asked for {_in_words(int(found[1]))}{there}. {_WAYS}"
    )


def _in_words(bytes: int) -> str:
    """Return a size in words, exact and rounded."""
    return f"{bytes:,} bytes ({bytes / 1e9:.3g} GB)" if bytes >= 1e6 else f"{bytes:,} bytes"


ALWAYS_MAPPED = 1 << 25
"""The bytes from which on glibc always has a block mapped, unless it is told to keep memory."""

# Numbers of parameters in glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -3, -4, -8


def is_glibc() -> bool:
    """Say whether the C library of the process is glibc, whose ``malloc`` can be told."""
    return platform.libc_ver()[0] == "glibc"


_MEMORY_LEFT = 1 << 28
"""The bytes at the heap's end that may stay free before they are given back to the system."""
_told: list[bool] = []


def reuse_blocks() -> None:
    """Have blocks below 32 MiB taken from what was freed before, in one heap for all threads.

    glibc raises its thresholds as far by itself, when it sees such blocks freed; but gives threads
    heaps of their own, whose ends it unmaps. Whoever has set parameters of ``malloc`` in the
    environment is left alone. Once for the process, before XLA has threads.
    """
    if _told or not is_glibc() or config.keep_memory:
        return
    _told.append(True)
    if any([name.startswith("MALLOC_") for name in os.environ]) or "malloc" in os.environ.get(
        "GLIBC_TUNABLES", ""
    ):
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(_ARENA_MAX, 1)
    libc.mallopt(_MMAP_THRESHOLD, ALWAYS_MAPPED)
    libc.mallopt(_TRIM_THRESHOLD, _MEMORY_LEFT)


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
