"""Where caches lie, and what is known of the processor."""

import ctypes
import os
import platform
import sys
import threading
from types import SimpleNamespace

import pytest

from stretto._engine.core import machine


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"STRETTO_CACHE_DIR": "/a/b", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/a/b"),
        ({"STRETTO_CACHE_DIR": "", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/stretto"),
        ({"XDG_CACHE_HOME": "not/absolute", "HOME": "/h"}, "/h/.cache/stretto"),
        ({"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/stretto"),
        ({"HOME": "/h"}, "/h/.cache/stretto"),
    ],
)
def test_the_directory_of_caches(monkeypatch, given, expected):
    for name in ("STRETTO_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert machine.cache_directory() == expected


def test_a_directory_given_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRETTO_CACHE_DIR", "caches")
    assert machine.cache_directory() == str(tmp_path / "caches")


def test_without_a_home_there_is_none(monkeypatch):
    for name in ("STRETTO_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user that nobody knows
    assert machine.cache_directory() is None


INFO = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: A processor
cpu MHz\t\t: 2596.146
flags\t\t: fpu avx2

processor\t: 1
flags\t\t: fpu
"""


def test_the_processor_by_what_stays_the_same(monkeypatch, tmp_path):
    file = tmp_path / "cpuinfo"

    def said(text):
        file.write_text(text)
        monkeypatch.setattr(machine, "open", lambda path, **how: file.open(), raising=False)
        return machine.processor()

    here = said(INFO)
    assert platform.machine() in here and "GenuineIntel" in here and "avx2" in here
    assert said(INFO.replace("2596.146", "800.0")) == here  # what changes while it runs
    assert said(INFO.replace("fpu\n", "fpu more\n")) == here  # the others of a kind are like it
    assert said(INFO.replace("avx2", "avx")) != here
    assert said(INFO.replace("A processor", "Another")) != here


def test_of_many_processors_the_first_is_enough(monkeypatch, tmp_path):
    """Eight thousand characters are read, as reading about all takes milliseconds."""
    file = tmp_path / "cpuinfo"
    file.write_text("flags: " + "x" * 20_000)
    monkeypatch.setattr(machine, "open", lambda path, **how: file.open(), raising=False)
    assert len(machine.processor()) == len(platform.machine()) + 1 + 8192
    assert len(machine.read("/proc/cpuinfo")) == 20_007


def test_the_processor_where_the_system_has_no_such_file(monkeypatch):
    def missing(path, **how):
        raise FileNotFoundError(path)

    monkeypatch.setattr(machine, "open", missing, raising=False)
    assert machine.processor().startswith(platform.machine())


# Systems that say it elsewhere, or not at all


@pytest.fixture
def silent(monkeypatch):
    """A system without ``/proc``."""
    monkeypatch.setattr(machine, "read", lambda path, most=-1: "")
    monkeypatch.setattr(machine, "_TASKS", "/nowhere")


def test_memory_where_linux_says_it(monkeypatch):
    said = "MemTotal:  1000 kB\nMemAvailable: 900 kB\nHugePages_Total: 0\nSwapTotal: 50 kB\n"
    monkeypatch.setattr(machine, "read", lambda path, most=-1: said)
    assert machine.memory() == (1_024_000, 921_600, 51_200, 0)
    monkeypatch.setattr(machine, "read", lambda path, most=-1: "MemTotal: 1 kB\n")
    assert machine.memory() == (1024, None, 0, 0)


def test_memory_on_windows(monkeypatch, silent):
    both = 1500, 600

    def asked(status):
        numbers = ctypes.cast(status, ctypes.POINTER(ctypes.c_uint64))
        assert numbers[0] == 64  # the size, and no load yet
        for k, n in enumerate((1000, 400, *both, 1 << 47, 1 << 46, 0)):
            numbers[k + 1] = n
        return works

    kernel = SimpleNamespace(GlobalMemoryStatusEx=asked)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    works = 1
    assert machine.memory() == (1000, 400, 500, 200)
    both = 1000, 300  # without swap files, and some of what is free promised
    assert machine.memory() == (1000, 400, 0, 0)
    works = 0
    monkeypatch.setattr(machine, "_physical", lambda: 7)
    assert machine.memory() == (7, None, 0, 0)


def test_memory_and_processor_on_macos(monkeypatch, silent):
    def sysctlbyname(name, room, size, new, length):
        said = {b"hw.memsize": (8 << 30).to_bytes(8, sys.byteorder)}
        said[b"machdep.cpu.brand_string"] = b"Apple M1\0"
        room.raw = said[name].ljust(256, b"\0")
        size._obj.value = len(said[name])
        return fails

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(sysctlbyname=sysctlbyname))
    fails = 0
    assert machine.memory() == (8 << 30, None, 0, 0)
    assert machine.processor() == f"{platform.machine()}\nApple M1"
    fails = -1
    assert machine.processor() == f"{platform.machine()}\n{platform.processor()}"
    assert machine.memory().total == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


SECOND = {
    "/proc/self/cgroup": "0::/user/a\n",
    "/sys/fs/cgroup/user/a/memory.max": "1000\n",
    "/sys/fs/cgroup/user/a/memory.current": "600\n",
    "/sys/fs/cgroup/user/a/memory.stat": "anon 5\ninactive_file 100\n",
    "/sys/fs/cgroup/memory.max": "max\n",
    "/sys/fs/cgroup/memory.current": "7000\n",
}
FIRST = {
    "/proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n1:name=systemd:/x\n",
    "/sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2000\n",
    "/sys/fs/cgroup/memory/x/memory.usage_in_bytes": "900\n",
    "/sys/fs/cgroup/memory/x/memory.stat": "inactive_file 1\ntotal_inactive_file 300\n",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "5000\n",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes": "800\n",
}
OF_THE_CPU = {
    "/proc/self/cgroup": "5:cpu:/x\n",
    "/sys/fs/cgroup/x/memory.max": "1000\n",
    "/sys/fs/cgroup/x/memory.current": "600\n",
    "/sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2000\n",
    "/sys/fs/cgroup/memory/x/memory.usage_in_bytes": "900\n",
}
WITH_A_COLON = {
    "/proc/self/cgroup": "0::/a:b\n",
    "/sys/fs/cgroup/a:b/memory.max": "1000\n",
    "/sys/fs/cgroup/a:b/memory.current": "600\n",
}


@pytest.mark.parametrize(
    ("said", "groups"),
    [
        (SECOND, [(1000, 500)]),
        (FIRST, [(2000, 600), (5000, 800)]),
        (OF_THE_CPU, []),
        ({**SECOND, "/proc/self/cgroup": "0::/\n"}, []),
        (WITH_A_COLON, [(1000, 600)]),
        ({**SECOND, "/sys/fs/cgroup/memory.max": "9000"}, [(1000, 500), (9000, 7000)]),
    ],
    ids=["second", "first", "of the processor", "at the root", "a colon", "at both"],
)
def test_control_groups_that_bound_memory(monkeypatch, said, groups):
    """Each with what is in use, but for files that may go at any time."""
    monkeypatch.setattr(machine, "read", lambda path, most=-1: said.get(path, ""))
    assert sorted(machine.memory_of_groups()) == groups


OF_FIRST = {
    "/proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n",
    "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "350000\n",
    "/sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n",
}


@pytest.mark.parametrize(
    ("said", "processors"),
    [
        ({"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": "200000 100000\n"}, 2),
        ({"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": "max 100000\n"}, None),
        (OF_FIRST, 3),
        ({**OF_FIRST, "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "-1\n"}, None),
        ({**OF_FIRST, "/proc/self/cgroup": "4:memory:/x\n"}, None),
    ],
    ids=["second", "half a processor", "no bound", "first", "none of the first", "of memory"],
)
def test_control_groups_that_bound_processors(monkeypatch, said, processors):
    monkeypatch.setattr(machine, "read", lambda path, most=-1: said.get(path, ""))
    assert machine.cores_of_groups() == processors


@pytest.mark.parametrize("error", [ValueError, OSError, AttributeError])
def test_where_nobody_tells(monkeypatch, silent, error):
    def none(name):
        raise error

    monkeypatch.setattr(os, "sysconf", none)
    assert machine.memory() == (None, None, 0, 0)
    assert machine.memory_of_groups() == [] and list(machine.running_threads()) == []
    assert machine.cores_of_groups() is None
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert machine.cores() == os.cpu_count()


@pytest.mark.skipif(not os.path.isdir(machine._TASKS), reason="the system does not tell")
def test_threads_that_run():
    assert threading.get_native_id() in machine.running_threads()


@pytest.mark.parametrize(
    ("architecture", "flags", "expected"),
    [
        ("x86_64", "fpu avx2 avx512f avx512dq", machine.Kind.AVX512),
        ("AMD64", "fpu avx2", machine.Kind.AVX2),  # as Windows says it
        ("aarch64", "fp asimd", machine.Kind.ARM),
        ("arm64", "", machine.Kind.ARM),  # as macOS says it
        ("riscv64", "", machine.Kind.AVX2),
    ],
)
def test_the_kind_of_processor(monkeypatch, architecture, flags, expected):
    monkeypatch.setattr(platform, "machine", lambda: architecture)
    monkeypatch.setattr(machine, "processor", lambda: f"{architecture}\nflags\t\t: {flags}\n")
    assert machine.kind() is expected
