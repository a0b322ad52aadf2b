"""Jitted programs of a few small operations run in NumPy: which, and that nothing else changes."""

import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.eager import interpreted
from stretto._engine.eager.interpreted import interpretable
from tests._engine.api.jit.test_entry import entry_of


@pytest.fixture(autouse=True)
def _switched_on():
    with st.config(interpret_small=True):
        yield


def repeated(n):
    def f(x):
        for _ in range(n):
            x = x * x
        return x

    return f


SMALL = {
    "arithmetic": lambda x: x * 2.0 + x,
    "matrix product": lambda x: x @ x,
    "row and product": lambda x: x[0] @ x + 1.0,
    "reduction": lambda x: (x * x).sum(),
    "extremum": lambda x: x.max(axis=0),
    "shapes": lambda x: x.T.reshape(2, 8),
    "choice": lambda x: snp.where(x > 0, x, -x),
    "conversion": lambda x: x.astype(snp.int32),
    "parts": lambda x: snp.concatenate([x[:1], x[2:]], axis=1 - 1),
    "argument": lambda x: x,
    "constant": lambda x: snp.float32(3.0),
    "one of each": lambda x: {"sum": x.sum(), "twice": [x + x, None]},
    "half": lambda x: x.astype(snp.bfloat16) * 1.5,
    "complex": lambda x: (x * 1j).real,
    "boolean": lambda x: (x > 0) & (x < 2),
    "elementary": lambda x: snp.exp(snp.sin(x)),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_programs_are_not_compiled_and_give_the_same(name):
    x = snp.asarray(np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32))
    f = st.jit(SMALL[name])
    results = [f(x) for _ in range(3)]
    entry = entry_of(f)
    assert entry.is_interpreted and entry.executable is None
    with st.config(interpret_small=False):
        compiled = f(x)
    for result in results:
        assert st.tree.structure(result) == st.tree.structure(compiled)
        for ours, xlas in zip(st.tree.leaves(result), st.tree.leaves(compiled), strict=True):
            assert ours.type is xlas.type
            np.testing.assert_allclose(
                np.asarray(ours, np.complex64), np.asarray(xlas, np.complex64), rtol=1e-5
            )


def test_equal_bits_each_time():
    f = st.jit(lambda x, w: snp.tanh(x @ w).sum())
    x = snp.asarray(np.random.default_rng(1).standard_normal(8).astype(np.float32))
    w = snp.asarray(np.random.default_rng(2).standard_normal((8, 8)).astype(np.float32))
    f.lower(x, w).compile()  # compiled ahead of time: calls are as they would be without
    first = float(f(x, w))
    assert {float(f(x, w)) for _ in range(20)} == {first}
    f.clear_cache()
    assert float(f(x, w)) == first


def test_ahead_of_time_is_compiled():
    f = st.jit(lambda x: x + 1)
    compiled = f.lower(snp.ones(3)).compile()
    assert "fusion" in compiled.as_text() or "add" in compiled.as_text()
    np.testing.assert_array_equal(compiled(snp.ones(3)), 2)


def test_dead_work_does_not_count():
    def f(x):
        repeated(50)(x)
        return x + 1

    jitted = st.jit(f)
    np.testing.assert_array_equal(jitted(snp.ones(3)), 2)
    assert entry_of(jitted).is_interpreted


def test_options_donation_and_effects_are_compiled():
    x = snp.ones(3) + 0
    f = st.jit(lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": False})
    f(x)
    assert not entry_of(f).is_interpreted
    g = st.jit(lambda x: x + 1, donate_argnums=0)
    g(x)
    assert not entry_of(g).is_interpreted and x.is_deleted()
    seen = []
    h = st.jit(lambda x: st.debug.callback(seen.append, x) or x + 1)
    h(snp.ones(2))
    st.debug.effects_barrier()
    assert not entry_of(h).is_interpreted and len(seen) == 1


def test_captured_arrays_that_are_donated_are_refused():
    table = snp.arange(3.0) + 1
    f = st.jit(lambda x: x * table)
    np.testing.assert_array_equal(f(snp.ones(3)), [1, 2, 3])
    np.testing.assert_array_equal(f(snp.ones(3)), [1, 2, 3])
    table.delete()
    with pytest.raises(st.errors.DonatedArrayError, match="deleted"):
        f(snp.ones(3))
    x = snp.arange(3.0)
    g = st.jit(lambda x: x + 1)
    g(x), x.delete()
    with pytest.raises(st.errors.DonatedArrayError, match="deleted"):
        g(x)


def test_floating_point_warnings_are_off(recwarn):
    f = st.jit(lambda x, y: x / y)
    zero = snp.zeros(2)
    assert np.isnan(np.asarray(f(zero, zero))).all()
    assert np.isnan(np.asarray(f(zero, zero))).all()
    assert not recwarn.list


def test_inside_transformations_it_is_a_call():
    f = st.jit(lambda x: (x * x).sum())
    x = snp.arange(3.0)
    f(x)
    np.testing.assert_array_equal(st.grad(f)(x), 2 * np.arange(3.0))
    np.testing.assert_array_equal(st.vmap(f)(snp.ones((2, 3))), [3, 3])
    outer = st.jit(lambda x: f(x) + 1)
    assert float(outer(x)) == 6
    assert not entry_of(outer).is_interpreted  # it holds a program


def test_many_threads():
    f = st.jit(lambda x: x * 2 + 1)
    failures = []

    def work(n):
        with st.config(interpret_small=True):
            x = snp.full((n,), 3.0)
            for _ in range(200):
                if not (np.asarray(f(x)) == 7).all():
                    failures.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_the_setting_makes_another_signature():
    f = st.jit(lambda x: x + 1)
    f(snp.ones(2))
    with st.config(interpret_small=False):
        f(snp.ones(2))
    assert sorted(e.is_interpreted for e in f._entries.values()) == [False, True]


# Which programs are so small that they run in NumPy: each of the limits.


def repeated_work(n):
    def f(x):
        for _ in range(n):
            x = x * x
        return x

    return f


def program_of(f, *args):
    return st.jit(f).trace(*args).program


def test_the_rule():
    x, large = snp.ones(4), snp.ones(1025)
    assert interpretable(program_of(repeated_work(8), x))
    assert not interpretable(program_of(repeated_work(9), x))
    assert interpretable(program_of(repeated_work(2), large[1:]))
    assert not interpretable(program_of(repeated_work(2), large))
    assert not interpretable(program_of(lambda x: snp.outer(x, x), snp.ones(33)))  # its result
    assert not interpretable(program_of(snp.sort, x))
    assert not interpretable(program_of(snp.fft.fft, x))
    assert not interpretable(program_of(snp.linalg.inv, snp.eye(2)))
    assert not interpretable(program_of(lambda x: st.lax.fori_loop(0, 3, lambda i, c: c, x), x))
    assert not interpretable(program_of(lambda x: st.lax.cond(x[0] > 0, snp.sin, snp.cos, x), x))
    a, b = snp.ones((32, 32)), snp.ones((32, 32))
    assert interpretable(program_of(lambda a, b: a @ b, a, b))
    assert not interpretable(program_of(lambda a, b: a @ b @ a @ b @ a @ b @ a @ b, a, b))


def small(f, *args):
    return interpretable(st.make_graph(f)(*args))


def chain(turns):
    return lambda x: [x := x + x for _ in range(turns)][-1]


def test_the_number_of_operations():
    x = snp.ones(3)
    assert small(lambda x: x, x)
    assert small(chain(8), x)
    assert not small(chain(9), x)
    assert not small(snp.linalg.svd, snp.ones((3, 3)))  # several results


def test_the_elements_of_inputs_and_of_what_is_made():
    assert small(chain(2), snp.ones(1024))
    assert not small(chain(2), snp.ones(1025))
    assert not small(lambda x: x, snp.ones(1025))
    wide = lambda x: snp.sum(x[:, None] * x[None, :])
    assert small(wide, snp.ones(32))
    assert not small(wide, snp.ones(33))


def test_the_work_of_all_operations():
    x = snp.ones((32, 32))
    products = lambda n: lambda x: [x := x @ x for _ in range(n)][-1]
    assert small(products(6), x)  # of 200,000 multiply-adds, 32,768 each
    assert not small(products(7), x)
    and_another = lambda x, y: (products(6)(x), y @ y)
    assert small(and_another, x, snp.ones((15, 15)))  # of 3,375 more
    assert not small(and_another, x, snp.ones((16, 16)))  # of 4,096


def test_it_depends_on_the_program_alone():
    program = st.make_graph(chain(2))(np.float32(1))
    assert interpretable(program) and interpretable(program)
    with st.config(disable_jit=True):
        assert interpretable(program)


def test_as_much_work_as_is_quick(monkeypatch):
    program = st.make_graph(repeated(3))(snp.ones((4, 4)))
    work = 3 * 4 * 16.0  # of three operations, each four times through 16 elements
    for most, is_small in [(work, True), (work - 1, False), (work + 1, True)]:
        monkeypatch.setattr(interpreted, "MOST_WORK", most)
        assert interpretable(program) is is_small
