"""The machine: its processors and their kind, memory and threads, and the folder for caches.

What the system says of these is asked for here alone, since each says it elsewhere; where one says
nothing, neither do these. What systems can do, such as locks, is in ``system``.
"""

from __future__ import annotations

import ctypes
import enum
import os
import platform
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

_IDENTIFYING = ("vendor_id", "cpu", "model", "stepping", "flags", "CPU", "Features", "isa")
"""The beginnings of lines of ``/proc/cpuinfo`` that identify the processor, on any architecture."""

_CHANGING = ("cpu MHz", "cpu cores")
"""Lines that begin like those, but may differ between two runs on one machine."""

_FIRST = 1 << 13
"""Characters that have the first processor's lines; all of many processors take milliseconds."""


class Kind(enum.Enum):
    """A kind of processor, by its vectors: which of our measurements are for it."""

    AVX512 = "x86 with AVX-512"
    AVX2 = "x86 with AVX2"
    ARM = "ARM with NEON"


def cache_directory() -> str | None:
    """Return this user's folder for caches, which may not exist: ``STRETTO_CACHE_DIR``, if set.

    Otherwise ``stretto`` below ``XDG_CACHE_HOME``, by the XDG base directory specification, or
    below ``~/.cache``. ``None`` where there is no home directory either.
    """
    chosen = os.environ.get("STRETTO_CACHE_DIR")
    if chosen:
        return os.path.abspath(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification says to ignore relative paths
        base = os.path.expanduser("~/.cache")
    return os.path.join(base, "stretto") if os.path.isabs(base) else None


def cores() -> int:
    """Say how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def processor() -> str:
    """Give the architecture, and what the system says about the processor, such as its features."""
    about = []
    for line in read("/proc/cpuinfo", _FIRST).splitlines(keepends=True):
        if not line.strip():  # the end of the first processor's lines
            break
        if line.startswith(_IDENTIFYING) and not line.startswith(_CHANGING):
            about.append(line)
    # platform.processor() takes tens of milliseconds.
    return "\n".join([platform.machine(), *(about or [_brand() or platform.processor()])])


def kind() -> Kind:
    """Return the kind of this machine's processor; x86 with AVX2 for one of none of the kinds."""
    if platform.machine().lower() in ("aarch64", "arm64"):  # as Linux says it, and macOS
        return Kind.ARM
    return Kind.AVX512 if " avx512f " in processor() else Kind.AVX2


# What the system says


def read(path: str, most: int = -1) -> str:
    """Return a file in which Linux says something, or as much; nothing where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(most)
    except OSError:
        return ""


_NAME, _MEMORY = b"machdep.cpu.brand_string", b"hw.memsize"


def _of_macos(name: bytes) -> bytes | None:
    """Return what macOS says under this name; None on other systems."""
    if sys.platform != "darwin":
        return None
    room, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
    failed = ctypes.CDLL(None).sysctlbyname(name, room, ctypes.byref(size), None, ctypes.c_size_t())
    return None if failed else room.raw[: size.value]


def _brand() -> str:
    """Return macOS's name of the processor, by which its features are known; empty elsewhere."""
    return (_of_macos(_NAME) or b"").rstrip(b"\0").decode("ascii", "replace")


# Memory


class Memory(NamedTuple):
    """Bytes of memory; those swapped out are beside the others."""

    total: int | None
    """None where nobody tells."""
    free: int | None
    """Those that can be had at once, with what can be forgotten; None where nobody tells."""
    swap: int = 0
    free_swap: int = 0


def memory() -> Memory:
    """Return what the system says of its memory: Linux and Windows all, others the total."""
    said = read("/proc/meminfo")
    kilobytes = {m[1]: 1024 * int(m[2]) for m in re.finditer(r"^(\w+): +(\d+) kB", said, re.M)}
    if "MemTotal" in kilobytes:
        at = kilobytes.get
        return Memory(at("MemTotal"), at("MemAvailable"), at("SwapTotal", 0), at("SwapFree", 0))
    return _memory_of_windows() or Memory(_physical(), None)


def _memory_of_windows() -> Memory | None:
    windows = getattr(ctypes, "windll", None)
    if windows is None:
        return None
    # MEMORYSTATUSEX: its size, the load in percent, then bytes in all and free: of memory, of
    # memory and swap files together, of addresses.
    numbers = (ctypes.c_uint64 * 8)()
    ctypes.cast(numbers, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(numbers)
    if not windows.kernel32.GlobalMemoryStatusEx(ctypes.byref(numbers)):
        return None
    _, total, free, both, both_free, *_ = numbers
    return Memory(total, free, max(both - total, 0), max(both_free - free, 0))


def _physical() -> int | None:
    said = _of_macos(_MEMORY)
    if said is not None:
        return int.from_bytes(said, sys.byteorder)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


_MEMORY_FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""Files in which Linux says what containers may use, by its second and first control groups."""


def _groups(controller: str) -> Iterator[tuple[str, str]]:
    """Give the folder of each control group that bounds this process, and which kind it is.

    Of the second kind, "", one has all controllers; of the first, each has a tree of its own.
    """
    for line in read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        kind = controller if controllers else ""
        base = f"/sys/fs/cgroup/{kind}".rstrip("/")
        # In a container the path may be that outside, and the group itself is at the root.
        for folder in {base, f"{base}{path}".rstrip("/")}:
            yield folder, kind


def memory_of_groups() -> list[tuple[int, int]]:
    """Return the most bytes, and those in use, of each control group that bounds this process."""
    found = []
    for folder, kind in _groups("memory"):
        limit, use, cached = _MEMORY_FILES[kind]
        most, used = (read(os.path.join(folder, name)).strip() for name in (limit, use))
        if most.isdigit() and used.isdigit():
            files = re.search(rf"^{cached} (\d+)", read(f"{folder}/memory.stat"), re.M)
            found.append((int(most), int(used) - int(files[1] if files else 0)))
    return found


def cores_of_groups() -> int | None:
    """Return the processors whose time control groups let this process have, at least 1.

    A container that may have two processors' time sees all of the machine's, which ``cores`` gives.
    ``None`` where nothing bounds it.
    """
    found = []
    for folder, kind in _groups("cpu"):
        if kind:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            said = [read(os.path.join(folder, name)).strip() for name in names]
        else:
            said = read(os.path.join(folder, "cpu.max")).split()
        if len(said) == 2 and all([x.isdigit() and int(x) for x in said]):
            found.append(max(1, int(said[0]) // int(said[1])))
    return min(found, default=None)


# Threads

_TASKS = "/proc/self/task"


def running_threads() -> Iterator[int]:
    """Return this process's threads that have work, by the system's numbers.

    Where there is no ``/proc``, which tells: none.
    """
    try:
        tasks = os.listdir(_TASKS)
    except OSError:
        return
    for task in tasks:
        about = read(f"{_TASKS}/{task}/stat").rpartition(")")[2].split()
        if about and about[0] in "RD":  # else it rests, or has ended
            yield int(task)
