"""Programs for which there is no memory are refused, and what fails for want of it says so."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core import machine
from stretto._engine.core.types import array_type
from stretto._engine.lowering.text import Facts
from stretto._engine.xla import memory, pjrt

SIDE = 1 << 20
"""Of a square of which no machine has the memory: 4 TiB."""

LARGE = 1 << 14
"""Of a square of 1 GiB, with which a program is looked at."""


def refused(what):
    """What is said of it; where its compilation could end the process, that it was not compiled."""
    if pjrt.runtime().breaks_on_huge:
        return r"was not compiled: it has an array of 4,398,046,511,104 bytes .*GB.*chunk_size"
    return what


def outer(n):
    return st.jit(lambda x: snp.exp(snp.outer(x, x))), snp.ones(n)


WAYS = {
    "asarray": np.asarray,
    "float": lambda x: float(x.sum()),
    "tolist": lambda x: x.tolist(),
    "print": str,
    "repr": repr,
    "block": lambda x: x.block_until_ready(),
    "block tree": lambda x: st.block_until_ready({"a": x}),
    "dlpack": np.from_dlpack,
    "eager": lambda x: x + 1,
    "jit": lambda x: np.asarray(st.jit(lambda y: snp.sin(y) @ y)(x)),
    "device_get": st.device_get,
    "save": lambda x: st.save("/nowhere/file", {"a": x}),
}


@pytest.mark.parametrize("background", [False, True], ids=["waiting", "later"])
@pytest.mark.parametrize("way", WAYS)
def test_what_needs_more_than_there_is(way, background, monkeypatch):
    monkeypatch.setattr("stretto._engine.api.jit.entry._LONG", 0)
    f, x = outer(SIDE)
    with (
        st.config(compile_in_background=background),
        pytest.raises(
            MemoryError, match=refused(r"was not run: it needs 4,398,046,511,104 bytes .*GB")
        ),
    ):
        WAYS[way](f(x))


def test_several_results():
    """One of them is small: XLA would never say that it is not computed."""
    f = st.jit(lambda x: (x + 1, snp.sin(snp.outer(x, x)), 2.0))
    with pytest.raises(MemoryError, match=refused("for results")):
        f(snp.ones(SIDE))[0].block_until_ready()


def test_temporaries_count():
    f = st.jit(lambda x: snp.sort(snp.outer(x, x), axis=0).sum())
    with pytest.raises(MemoryError, match=refused("for what is computed on the way")):
        float(f(snp.ones(SIDE)))


def test_arrays_that_no_memory_holds_are_refused_before_they_are_compiled(monkeypatch):
    facts = Facts(name="jit_f")
    facts.results[array_type((SIDE,), np.dtype("float32"))] += 1
    memory.refuse_huge(facts)
    facts.results[array_type((SIDE, SIDE), np.dtype("float32"))] += 1
    with pytest.raises(MemoryError, match=r"jit_f was not compiled: it has an array of 4,398"):
        memory.refuse_huge(facts)
    monkeypatch.setattr(memory, "total", lambda: None)
    memory.refuse_huge(facts)  # nobody tells how much there is
    monkeypatch.setattr(memory, "total", lambda: 1 << 43)
    memory.refuse_huge(facts)


def test_every_call_is_refused():
    f, x = outer(SIDE)
    for _ in range(4):  # from the third on, by the short way
        with pytest.raises(MemoryError, match="chunk_size"):
            f(x).block_until_ready()


@pytest.fixture
def looked_at(monkeypatch):
    monkeypatch.setattr(memory, "LARGE", 0)
    monkeypatch.setattr("stretto._engine.xla.pjrt.LARGE", 0)


def test_free_memory_is_asked_for_twice(looked_at, monkeypatch):
    """What other programs have begun to use may become free: they are waited for first."""
    answers = iter([10, 10**12, 10, 10])
    monkeypatch.setattr(memory, "available", lambda: next(answers))
    f, x = outer(100)
    assert f(x).shape == (100, 100)
    with pytest.raises(MemoryError, match=r"it needs 40,000 bytes .* and 10 bytes are free"):
        f(x).block_until_ready()


@pytest.mark.parametrize(("free", "waits"), [(39_999, True), (40_000, False), (None, False)])
def test_others_are_waited_for_where_less_is_free(looked_at, monkeypatch, free, waits):
    answers, waited = iter([free, 10**12]), []
    monkeypatch.setattr(memory, "available", lambda: next(answers))
    monkeypatch.setattr(memory, "_wait_for_the_others", waited.append)
    f, x = outer(100)
    f(x).block_until_ready()
    assert len(waited) == waits


@pytest.mark.parametrize("free", [None, 40_000])
def test_what_others_have_left_is_enough(looked_at, monkeypatch, free):
    answers = iter([0, free])
    monkeypatch.setattr(memory, "available", lambda: next(answers))
    f, x = outer(100)
    assert f(x).block_until_ready().shape == (100, 100)


@pytest.mark.parametrize("most", [None, 40_000])
def test_memory_that_is_just_enough(looked_at, monkeypatch, most):
    monkeypatch.setattr(memory, "total", lambda: most)
    f, x = outer(100)
    assert f(x).block_until_ready().shape == (100, 100)


def test_total_memory_bounds(looked_at, monkeypatch):
    monkeypatch.setattr(memory, "total", lambda: 39_999)
    f, x = outer(100)
    with pytest.raises(MemoryError, match="there are 39,999 bytes in all"):
        f(x).block_until_ready()


def test_memory_of_an_argument_that_is_donated_does_not_count(looked_at, monkeypatch):
    monkeypatch.setattr(memory, "total", lambda: 39_999)
    f = st.jit(lambda x: x + 1, donate_argnums=0)
    assert float(f(snp.ones((100, 100)))[0, 0]) == 2


def test_what_the_system_says():
    everything, free = memory.total(), memory.available()
    assert everything is None or (free is not None and 0 < free <= everything)


def test_control_groups(monkeypatch):
    files = {
        "/proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 900 kB\n"
        "SwapTotal: 50 kB\nSwapFree: 5 kB",
        "/proc/self/cgroup": "0::/mine\n",
        "/sys/fs/cgroup/mine/memory.max": "600000\n",
        "/sys/fs/cgroup/mine/memory.current": "500000\n",
        "/sys/fs/cgroup/mine/memory.stat": "anon 7\ninactive_file 200000\n",
        "/sys/fs/cgroup/memory.max": "max\n",
    }
    monkeypatch.setattr(machine, "read", lambda path: files.get(path, ""))
    assert (memory.total(), memory.available()) == (600_000, 300_000)
    del files["/proc/self/cgroup"]
    assert (memory.total(), memory.available()) == (1_050 * 1024, 905 * 1024)


def test_errors_of_the_runtime_in_words():
    error = RuntimeError(
        "INTERNAL: Error dispatching: Out of memory allocating 460800000000 bytes."
    )
    explained = memory.explanation_of(error)
    assert isinstance(explained, MemoryError)
    assert "it asked for 460,800,000,000 bytes (461 GB)" in str(explained)
    other = RuntimeError("INTERNAL: another")
    assert memory.explanation_of(other) is other
