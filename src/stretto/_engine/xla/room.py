"""Ask whether there is memory for a program before it runs, and say so where there was none.

What a program needs is known when it is compiled. The system gives memory that it does not have,
and ends the process when that is used; where it gives none, XLA ends it when a result is read by
Python's buffer protocol, or never says that a result failed beside another. So programs that need
much are refused beforehand where there is too little.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from stretto._engine.core.config import config

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
    return _least(
        _sum(_of_system("MemTotal"), _of_system("SwapTotal")), *[most for most, _ in _of_group()]
    )


def available() -> int | None:
    """Return the bytes of memory that are free, or can be made so; None where nobody tells."""
    free = [most - used for most, used in _of_group()]
    return _least(_sum(_of_system("MemAvailable"), _of_system("SwapFree")), *free)


def _least(*numbers: int | None) -> int | None:
    return min([n for n in numbers if n is not None], default=None)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None else first + (second or 0)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _of_system(name: str) -> int | None:
    found = re.search(rf"^{name}: +(\d+) kB", _read("/proc/meminfo"), re.M)
    if found:
        return 1024 * int(found[1])
    if name != "MemTotal" or not hasattr(os, "sysconf"):
        return None
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None


_GROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    (
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)
"""Files in which Linux says what containers may use, by its second and first control groups."""


def _of_group() -> list[tuple[int, int]]:
    """Return the most bytes, and those in use, of each control group that bounds this process."""
    found = []
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            base, limit, use, cached = _GROUPS[controllers == "memory"]
            # In a container the path may be that outside, and the group itself is at the root.
            for folder in {base, os.path.join(base, path.lstrip("/"))}:
                most = _read(os.path.join(folder, limit)).strip()
                used = _read(os.path.join(folder, use)).strip()
                if most.isdigit() and used.isdigit():
                    files = re.search(rf"^{cached} (\d+)", _read(f"{folder}/memory.stat"), re.M)
                    found.append((int(most), int(used) - int(files[1] if files else 0)))
    return found


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
            self._refuse(need, f"there are {_shown(most)} in all")
        if not config.keep_memory:  # else this process has free memory that the system calls used
            free = available()
            if free is not None and need > free:
                _wait_for_the_others(self._loaded.client)
                free = available()
                if free is not None and need > free:
                    self._refuse(need, f"{_shown(free)} are free")
        try:
            return self._execute(buffers)
        except RuntimeError as error:
            failure = explanation_of(error)
        raise failure

    def _refuse(self, need: int, there: str) -> NoReturn:
        sizes = self._loaded.get_compiled_memory_stats()
        raise MemoryError(
            f"{self._name} was not run: it needs {_shown(need)} of memory beside its arguments, "
            f"{_shown(self._parts * sizes.output_size_in_bytes)} for results and "
            f"{_shown(self._parts * sizes.temp_size_in_bytes)} for what is computed on the way, "
            f"and {there}. {_WAYS}"
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
    there = "" if free is None else f"; {_shown(free)} are free now"
    return MemoryError(
        f"a compiled program had no memory: it asked for {_shown(int(found[1]))}{there}. {_WAYS}"
    )


def _shown(bytes: int) -> str:
    """Return a size in words, exact and rounded."""
    return f"{bytes:,} bytes ({bytes / 1e9:.3g} GB)" if bytes >= 1e6 else f"{bytes:,} bytes"
