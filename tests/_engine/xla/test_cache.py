"""Compiled programs kept in memory: made once, let go."""

import gc
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.lowering.stablehlo import lower
from stretto._engine.ops.arithmetic import ADD
from stretto._engine.ops.trigonometric import SIN
from stretto._engine.xla import cache, pjrt
from stretto._engine.xla.cache import Recent, estimate_bytes, run_primitive


@pytest.fixture
def compiles(monkeypatch):
    """The texts compiled, from empty caches on."""
    st.clear_caches()
    texts = []

    def counted(text, out_types, options):
        texts.append(text)
        return pjrt.compile_text(text, out_types, options)

    monkeypatch.setattr(cache, "_load_or_compile", counted)
    yield texts
    st.clear_caches()


def test_a_program_is_compiled_once(compiles):
    program = st.make_graph(lambda x: x + 1)(snp.ones(2))
    assert cache.executable(program) is cache.executable(program)
    (out,) = cache.run_program(program, [snp.ones(2)])
    np.testing.assert_array_equal(out, [2, 2])
    assert len(compiles) == 1


def test_equal_programs_are_compiled_once(compiles):
    """A function made anew at each call is traced, and not compiled, again."""
    for n in range(3):
        assert float(st.jit(lambda x: snp.sin(x) * 2)(float(n))) == pytest.approx(
            2 * np.sin(n), rel=1e-6
        )
        last, _ = st.lax.scan(lambda c, _: (c + 1, None), n, None, length=9000)
        assert int(last) == n + 9000
    assert len(compiles) == 2


def test_different_programs_are_not_confused(compiles):
    f = [st.jit(lambda x: x + 1), st.jit(lambda x: x + 2), st.jit(lambda x: x * 2)]
    assert [float(g(5.0)) for g in f] == [6, 7, 10]
    assert [float(g(snp.float32(5))) for g in f] == [6, 7, 10]
    assert st.jit(lambda x: x + 1)(np.uint32(1)).dtype == snp.uint32


def test_options_of_the_compiler_are_part_of_the_key(compiles):
    text = lower(st.make_graph(lambda x: x + 1)(snp.ones(2)))
    types = (array_type((2,), np.dtype(np.float32)),)
    plain, low, high = (
        cache.compile_cached(text, types, options)
        for options in (
            (),
            (("xla_backend_optimization_level", 0),),
            (("xla_backend_optimization_level", 1),),
        )
    )
    assert len({id(plain), id(low), id(high)}) == len(compiles) == 3
    assert cache.compile_cached(text, types) is plain
    assert cache.compile_cached(text, types, (("xla_backend_optimization_level", 0),)) is low


def test_what_is_compiled_is_logged(caplog):
    program = st.make_graph(lambda x: x - 3)(snp.ones(2))
    with st.config(log_compiles=True, disk_cache=False):
        cache.executable(program)
        cache.executable(program)
    (record,) = caplog.records
    assert record.getMessage().startswith("compiled function for (float32[2]): lower ")


def test_what_is_logged_is_what_each_step_took(caplog, monkeypatch):
    program = st.make_graph(lambda x: x - 5)(snp.ones(2))
    seconds = iter([100, 101, 103])
    monkeypatch.setattr(cache, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))
    with st.config(log_compiles=True, disk_cache=False):
        cache.executable(program)
    assert "lower 1000.0 ms, compile 2000.0 ms" in caplog.records[0].getMessage()


def test_clear_caches(compiles):
    f = st.jit(lambda x: x + 1)
    f(1.0), st.clear_caches(), f(1.0)
    assert len(compiles) == 2


@pytest.mark.parametrize("are_placed", [True, False])
def test_all_that_is_compiled_is_forgotten(monkeypatch, are_placed):
    """That for arrays on devices of choice, too, if there has been any."""
    cleared = []
    placed = SimpleNamespace(clear=lambda: cleared.append(True))
    monkeypatch.setattr(cache.xla, "sharded", placed, raising=False)
    monkeypatch.setattr(cache, "SHARDED", [object] * are_placed)
    t = array_type((3,), np.dtype(np.float32))
    run_primitive(SIN, (t,), (t,), [snp.ones(3)])
    assert cache._kept_operation.cache_info().currsize
    cache.clear()
    assert not cache._kept_operation.cache_info().currsize
    assert cleared == [True] * are_placed


def test_threads_compile_one_text_once(compiles):
    start, out = threading.Barrier(6), []

    def work(k):
        def f(x):
            for _ in range(50):
                x = snp.sin(x)
            return x + (k % 2)

        start.wait()
        out.append(float(st.jit(f)(1.0)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(compiles) == 2 and len(set(out)) == 2


def test_as_many_as_fit_are_kept(compiles, monkeypatch):
    monkeypatch.setattr(cache, "MOST", 800_000)  # some 350,000 for each
    for n in (1, 2, 1, 3, 1, 2):
        st.jit(lambda x, n=n: x + n)(1.0)
        gc.collect()
    assert len(compiles) == 4  # 1, 2, 3, and 2 again: the least lately used goes first


def test_programs_are_let_go():
    """Loops evaluated eagerly leave none of their programs behind."""

    def steps(n):
        body = lambda c, _: (c * 1.5, None)
        out = st.lax.scan(body, 1.0, None, length=n)[0]
        st.grad(lambda x: st.lax.cond(x > 0, snp.sin, snp.cos, x))(1.0)
        st.lax.while_loop(lambda c: c < n, lambda c: c + 1, 0)
        return out

    steps(3), steps(9000), gc.collect()

    def programs():
        gc.collect()
        return sum(type(x).__name__ == "Program" for x in gc.get_objects())

    before = programs()
    for _ in range(5):
        steps(3), steps(9000)
    assert programs() <= before + 2


def test_an_operation_is_compiled_by_its_types(compiles):
    type = array_type((2,), np.dtype(np.float32))
    for _ in range(2):
        (out,) = cache.run_primitive(ADD, (type, type), (type,), [snp.ones(2), snp.ones(2)])
        np.testing.assert_array_equal(out, [2, 2])
    assert len(compiles) == 1


# Programs go with their functions, but for those used of late, of which so many bytes stay.


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
    monkeypatch.setattr(cache, "MOST", 2_000_000)
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
    assert cache._by_text.bytes() <= cache.MOST


def test_programs_of_functions_that_live_stay(alone, monkeypatch):
    monkeypatch.setattr(cache, "MOST", 1_000_000)
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
    monkeypatch.setattr(cache, "MOST", 3 * estimate_bytes(Program("")))
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
    monkeypatch.setattr(cache, "MOST", 10)
    table = Recent()
    table.setdefault("a", Program("text"))
    table.setdefault("b", Program("text"))
    assert table.get("a") is None and table.get("b") is not None


def test_what_programs_take_by_estimate():
    """340 kB each, and 70 bytes for each character; of large ones 32 MiB are kept."""
    assert [estimate_bytes(Program("x" * n)) for n in (0, 1000)] == [340_000, 410_000]
    table = Recent()
    programs = [Program("x" * 10_000) for _ in range(40)]  # of 1.04 MB each
    for i, program in enumerate(programs):
        table.setdefault(i, program)
    assert len(table) == 32


def test_programs_of_256_operations_are_kept():
    kept = [
        cache._kept_operation(ADD, (array_type((n,), np.dtype("f4")),) * 2, ())
        for n in range(1, 258)
    ]
    of = lambda n: cache._kept_operation(ADD, (array_type((n,), np.dtype("f4")),) * 2, ())
    assert of(257) is kept[256] and of(2) is kept[1] and of(1) is not kept[0]
    cache._kept_operation.cache_clear()
