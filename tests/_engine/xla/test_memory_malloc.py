"""``config.keep_memory``: pages that a call touches anew, and what is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import stretto as st
from stretto._engine.core.errors import ConfigError
from stretto._engine.kernels import WITHOUT
from stretto._engine.xla import memory

glibc = pytest.mark.skipif(not memory.is_glibc(), reason="the C library is not glibc")

FAULTS = """
import resource, statistics
import stretto as st, stretto.numpy as snp
{first}
def f(x, y):
    wide = x @ y
    {middle}
    return abs(wide) @ snp.sin(y.T)
f = st.jit(f)
x, y = snp.ones((1100, 2)), snp.ones((2, 8192))
assert f.lower(x, y).compile().memory_analysis().temp_size_in_bytes > {large}
counts = []
for _ in range(80):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    st.block_until_ready(f(x, y))
    counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(statistics.median(counts[-31:]))
"""

CALLS_PYTHON = "wide = wide + st.pure_callback(lambda v: v, y[0], y[0])"

THREADS = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    list(pool.map(bytearray, range(4)))
"""

OLD_GLIBC = """
import ctypes
class Old(ctypes.CDLL):
    def __init__(self, name):
        super().__init__(name)
        real = self["mallopt"]
        self.mallopt = lambda option, value: option != -3 and real(option, value)
ctypes.CDLL = Old
st.config.keep_memory = True
"""


def run(code, **environment):
    """What a process of its own prints; its environment has no orders for malloc but these."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    kept.pop("STRETTO_KEEP_MEMORY", None)
    kept["STRETTO_HUGE_PAGES"] = "0"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**kept, "STRETTO_DISK_CACHE": "0", **environment},
        check=False,
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def faults(first="", middle="", **environment):
    """The page faults of a call, after many: the heap grows for the first ten to twenty."""
    code = FAULTS.format(first=first, middle=middle, large=memory.ALWAYS_MAPPED)
    return float(run(code, **environment))


@glibc
def test_large_temporaries_are_mapped_anew_by_default():
    assert faults() > 8_000


def gives_huge_pages():
    """Say whether this system gives huge pages to who asks for them."""
    try:
        said = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text("utf-8")
    except OSError:
        return False
    return "[never]" not in said


@glibc
@pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")
@pytest.mark.skipif(not gives_huge_pages(), reason="this system gives no huge pages")
def test_kernels_advise_huge_pages_for_them():
    # The two ends of the block, which fill no huge page, take up to 511 pages each.
    assert faults(STRETTO_HUGE_PAGES="1") < 2_000
    assert faults("st.config.huge_pages = False", STRETTO_HUGE_PAGES="1") > 8_000


@glibc
def test_large_temporaries_are_kept():
    assert faults("st.config.keep_memory = True") < 1_000


@glibc
def test_programs_that_call_python_keep_theirs_and_the_environment_asks_for_it():
    assert faults(middle=CALLS_PYTHON, STRETTO_KEEP_MEMORY="1") < 1_000


@glibc
def test_a_client_made_late_has_threads_that_share_the_heap():
    assert faults(f"st.config.keep_memory = True\n{THREADS}") < 1_000


@glibc
def test_after_threads_the_environment_of_the_process_must_have_limited_them():
    late = f"{THREADS}\nst.config.keep_memory = True"
    assert "comes too late: threads of this process have" in run(f"import stretto as st\n{late}")
    assert faults(late, MALLOC_ARENA_MAX="1") < 1_000


@glibc
def test_a_glibc_that_refuses_a_high_threshold_maps_nothing():
    assert faults(OLD_GLIBC) < 1_000


@glibc
def test_heaps_that_threads_of_xla_have_make_it_too_late():
    code = """
import stretto as st, stretto.numpy as snp
st.block_until_ready(st.jit(lambda x: snp.sin(x @ x))(snp.ones((300, 300))))
try:
    st.config.keep_memory = True
except st.errors.ConfigError as error:
    print(st.config.keep_memory, error)
"""
    said = run(code, MALLOC_TOP_PAD_="0")  # else there is one heap
    assert said.startswith("False config.keep_memory comes too late") and "first" in said


@glibc
def test_from_the_environment_too_it_can_be_too_late():
    assert "comes too late" in run(f"{THREADS}\nimport stretto", STRETTO_KEEP_MEMORY="1")


@glibc
def test_it_stays():
    code = """
import stretto as st
st.config.keep_memory = False
st.config.keep_memory = True
st.config.keep_memory = True
try:
    st.config.keep_memory = False
except st.errors.ConfigError as error:
    print(st.config.keep_memory, error)
"""
    assert run(code).startswith("True config.keep_memory cannot be switched off again")


def test_a_block_of_one_thread_cannot_have_it():
    for value in (True, False):
        with pytest.raises(ConfigError, match="of the whole process, not of a block or a function"):
            st.config(keep_memory=value)


def test_another_c_library_is_refused(monkeypatch):
    monkeypatch.setattr(memory.platform, "libc_ver", lambda: ("", ""))
    with pytest.raises(ConfigError, match="needs glibc's mallopt"):
        st.config.keep_memory = True
    assert not st.config.keep_memory


def test_nothing_is_called_by_default(monkeypatch):
    def called(value):
        raise AssertionError(value)

    monkeypatch.setattr(memory.ctypes, "CDLL", called)
    st.config.keep_memory = False
    assert not st.config.keep_memory
    unasked = "import ctypes; ctypes.CDLL = None; import stretto; print('nothing')"
    assert run(unasked) == "nothing"


BLOCKS = """
import resource
import stretto as st, stretto.numpy as snp
f = st.jit(lambda x: st.nn.silu(x) * 2)
x = snp.ones((8, 64, 112, 112))
counts = []
for _ in range(60):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    st.block_until_ready(f(x))
    counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(sorted(counts)[10])
"""


@glibc
def test_results_of_some_megabytes_take_what_was_freed():
    assert float(run(BLOCKS)) < 100  # of 6,272 pages


@glibc
@pytest.mark.parametrize(
    "environment", [{"MALLOC_TOP_PAD_": "0"}, {"GLIBC_TUNABLES": "glibc.malloc.top_pad=0"}]
)
def test_orders_of_the_user_for_malloc_are_left_alone(environment, monkeypatch):
    told = []
    monkeypatch.setattr(memory, "_told", [])
    monkeypatch.setattr(memory.ctypes, "CDLL", told.append)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    memory.reuse_blocks()
    assert told == []


@glibc
def test_malloc_is_told_once(monkeypatch):
    told = []

    class Libc:
        def mallopt(self, *order):
            told.append(order)

    for name in [n for n in os.environ if n.startswith(("MALLOC_", "GLIBC_TUNABLES"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(memory, "_told", [])
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: Libc())
    memory.reuse_blocks()
    memory.reuse_blocks()
    assert told == [(-8, 1), (-3, 1 << 25), (-1, 1 << 28)]
