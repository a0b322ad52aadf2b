"""Programs go with their functions, but for those used of late, of which so many bytes stay."""

import gc

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla import cache, pjrt, recent
from stretto._engine.xla.recent import Recent, estimated


class Program:
    def __init__(self, text):
        self.text = text


@pytest.fixture
def alone():
    """Nothing compiled, nothing interpreted, nothing on disk."""
    with st.config(interpret_small=False, disk_cache=False, compile_in_background=False):
        st.clear_caches()
        yield


def live():
    gc.collect()
    return len(pjrt.live_executables())


def scaled(n):
    return st.jit(lambda x: snp.sin(x) * float(n))


def test_programs_of_functions_that_are_gone_take_bounded_memory(alone, monkeypatch):
    monkeypatch.setattr(recent, "MOST", 2_000_000)
    before = live()
    for n in range(30):
        scaled(n)(snp.ones(3))
    assert live() - before <= 5
    assert cache._by_text.bytes() <= 2_000_000


def test_by_default_they_are_few(alone):
    before = live()
    for n in range(120):
        scaled(n)(snp.ones(3))
    # 32 MiB, of 340 kB and more each; not 120.
    assert live() - before < 100
    assert cache._by_text.bytes() <= recent.MOST


def test_programs_of_functions_that_live_stay(alone, monkeypatch):
    monkeypatch.setattr(recent, "MOST", 1_000_000)
    before = live()
    functions = [scaled(n) for n in range(12)]
    for f in functions:
        f(snp.ones(3))
    assert live() - before == 12
    again = scaled(0)  # found, though it was used least recently
    again(snp.ones(3))
    assert live() - before == 12
    del functions, f, again
    assert live() - before <= 2


def test_a_function_made_anew_finds_its_program(alone):
    before = live()
    for _ in range(5):
        scaled(7)(snp.ones(3))
    assert live() - before == 1


def test_clear_caches_lets_all_go(alone):
    before = live()
    f = scaled(1)
    f(snp.ones(3))
    assert live() == before + 1
    st.clear_caches()
    assert live() == before


def test_the_table(monkeypatch):
    monkeypatch.setattr(recent, "MOST", 3 * estimated(Program("")))
    table, programs = Recent(), [Program("") for _ in range(4)]
    for i, program in enumerate(programs):
        assert table.setdefault(i, program) is program
    assert len(table) == 3 and table.get(0) is programs[0]  # which somebody has
    assert table.setdefault(0, Program("")) is programs[0]
    del programs, program
    gc.collect()
    assert [table.get(i) is None for i in range(4)] == [False, True, False, False]
    table.clear()
    assert table.get(3) is None


def test_one_that_is_larger_than_all_may_be(monkeypatch):
    monkeypatch.setattr(recent, "MOST", 10)
    table = Recent()
    table.setdefault("a", Program("text"))
    table.setdefault("b", Program("text"))
    assert table.get("a") is None and table.get("b") is not None
