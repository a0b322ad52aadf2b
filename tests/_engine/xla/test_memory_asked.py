"""What is asked of the runtime and of the C library, by ones that are none."""

from types import SimpleNamespace

import numpy as np
import pytest

from stretto._engine.core.errors import ConfigError
from stretto._engine.core.types import array_type
from stretto._engine.lowering.text import Facts
from stretto._engine.xla import memory, pjrt
from stretto._engine.xla.memory import RunIfRoom, bytes_needed
from stretto._engine.xla.patience import LongRun


def loaded(outputs=0, temporaries=0, aliased=0, run=None, live=()):
    """A compiled program, by the memory that it takes."""
    sizes = SimpleNamespace(
        output_size_in_bytes=outputs,
        temp_size_in_bytes=temporaries,
        alias_size_in_bytes=aliased,
    )
    return SimpleNamespace(
        get_compiled_memory_stats=lambda: sizes,
        execute_sharded=run,
        client=SimpleNamespace(live_arrays=lambda: list(live)),
    )


def test_what_a_program_needs():
    assert bytes_needed(loaded(100, 20, 30)) == 90
    assert bytes_needed(loaded(10, 20, 30)) == 20  # what is donated may be more than the results

    def untold():
        raise RuntimeError

    assert bytes_needed(SimpleNamespace(get_compiled_memory_stats=untold)) == 0


def test_how_programs_are_run():
    """One that needs more than a gibibyte is looked at; one that may take long is waited for."""
    text = SimpleNamespace(facts=Facts())
    one = loaded(1 << 29, 1 << 29)
    types = [array_type((n,), np.dtype(kind)) for n, kind in [(8, "f4"), (9, "i2"), (7, "f4")]]
    assert pjrt.runner(one, types, text) is one.execute_sharded
    assert isinstance(pjrt.runner(loaded(1 << 29, (1 << 29) + 1), types, text), RunIfRoom)
    assert isinstance(pjrt.runner(one, types, text, 2), RunIfRoom)
    text.facts.may_take_long = True
    long = pjrt.runner(one, types, text)
    assert isinstance(long, LongRun) and long._smallest == 1
    assert pjrt.runner(one, [], text) is one.execute_sharded


def test_from_how_many_elements_on_arrays_are_refused(monkeypatch):
    """Those for which XLA ends the process, and only where there is no memory for them."""
    monkeypatch.setattr(memory, "total", lambda: (1 << 36) - 1)
    bytes_of = lambda size: Facts(results={array_type((size,), np.dtype("int8")): 1})
    memory.refuse_huge(bytes_of((1 << 36) - 1))
    memory.refuse_huge(Facts(results={array_type((1 << 35,), np.dtype("int32")): 1}))
    with pytest.raises(MemoryError, match=r"an array of 68,719,476,736 bytes .* 68,719,476,735"):
        memory.refuse_huge(bytes_of(1 << 36))
    monkeypatch.setattr(memory, "total", lambda: 1 << 36)
    memory.refuse_huge(bytes_of(1 << 36))


class OfXla(RuntimeError):
    """As the runtime's errors are."""


def test_a_program_that_fails_for_want_of_memory(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1_500_000)

    def fails(buffers):
        raise OfXla("Out of memory allocating 3000000 bytes.")

    run = RunIfRoom(fails, loaded(), "jit_f", 1)
    with pytest.raises(MemoryError, match=r"asked for 3,000,000 bytes \(0.003 GB\); 1,500,000"):
        run([])


class Buffer:
    """What a program computes; it may fail, or be given away meanwhile."""

    def __init__(self, error=None, deleted=False, given_away=False):
        self.error, self.deleted, self.given_away, self.waited = error, deleted, given_away, False

    def is_deleted(self):
        return self.deleted

    def block_until_ready(self):
        self.waited, self.deleted = True, self.given_away
        if self.error is not None:
            raise self.error


def test_all_that_has_begun_is_waited_for(monkeypatch):
    """Errors of programs are raised where their results are read, those of signal handlers here."""
    answers = iter([10, 10**9] * 9)
    monkeypatch.setattr(memory, "available", lambda: next(answers))
    monkeypatch.setattr(memory, "total", lambda: None)
    gone = Buffer(deleted=True)
    live = [gone, Buffer(OfXla("failed")), Buffer(RuntimeError("gone"), given_away=True), Buffer()]
    run = lambda: RunIfRoom(lambda buffers: "results", loaded(50, live=live), "jit_f", 1)([])
    assert run() == "results"
    assert [one.waited for one in live] == [False, True, True, True]
    live.append(Buffer(RuntimeError("a handler's")))
    with pytest.raises(RuntimeError, match="a handler's"):
        run()


@pytest.mark.parametrize("takes_high_thresholds", [True, False])
def test_what_malloc_is_told(monkeypatch, takes_high_thresholds):
    """By the numbers in malloc.h: one heap, nothing given back, nothing mapped."""
    told = []

    class Library:
        def mallopt(self, option, value):
            told.append((option, value))
            return int(takes_high_thresholds or option != -3)

    monkeypatch.setattr(memory, "is_glibc", lambda: True)
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: Library())
    heaps = iter([1, 2, 4])
    monkeypatch.setattr(memory, "_arenas", lambda libc: next(heaps))
    memory.keep_memory(True)
    mapped = [] if takes_high_thresholds else [(-4, 0)]
    assert told == [(-8, 1), (-1, -1), (-3, 2_147_483_647), *mapped]
    for others in (1, 3):
        with pytest.raises(ConfigError, match=f"threads of this process have {others} heaps"):
            memory.keep_memory(True)
    assert len(told) == 3 + len(mapped)


@pytest.mark.skipif(not memory.is_glibc(), reason="the C library is not glibc")
def test_how_many_heaps_there_are():
    assert memory._arenas(memory.ctypes.CDLL(None)) >= 1


def test_from_which_size_on_blocks_are_mapped():
    assert memory.ALWAYS_MAPPED == 32 * 1024 * 1024  # glibc's greatest threshold


@pytest.mark.parametrize(
    ("bytes", "words"),
    [(999_999, "999,999 bytes"), (1_000_000, "1,000,000 bytes (0.001 GB)")],
)
def test_sizes_from_a_megabyte_on_are_rounded_too(bytes, words):
    assert memory._in_words(bytes) == words
