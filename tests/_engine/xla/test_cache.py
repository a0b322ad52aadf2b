"""Compiled programs kept in memory: made once, let go."""

import gc
import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.lowering.stablehlo import lower
from stretto._engine.ops.arithmetic import ADD
from stretto._engine.xla import cache, pjrt, recent


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
        cache.compiled(text, types, options)
        for options in (
            (),
            (("xla_backend_optimization_level", 0),),
            (("xla_backend_optimization_level", 1),),
        )
    )
    assert len({id(plain), id(low), id(high)}) == len(compiles) == 3
    assert cache.compiled(text, types) is plain
    assert cache.compiled(text, types, (("xla_backend_optimization_level", 0),)) is low


def test_what_is_compiled_is_logged(caplog):
    program = st.make_graph(lambda x: x - 3)(snp.ones(2))
    with st.config(log_compiles=True, disk_cache=False):
        cache.executable(program)
        cache.executable(program)
    (record,) = caplog.records
    assert record.getMessage().startswith("compiled function for (float32[2]): lower ")


def test_clear_caches(compiles):
    f = st.jit(lambda x: x + 1)
    f(1.0), st.clear_caches(), f(1.0)
    assert len(compiles) == 2


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
    monkeypatch.setattr(recent, "MOST", 800_000)  # some 350,000 for each
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
