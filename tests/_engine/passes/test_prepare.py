"""The settings that switch optimizations: where each is in force; none changes a result."""

import itertools
import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.config import shaping
from stretto._engine.core.program import check
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.ops.sort import Sort
from stretto._engine.passes.prepare import prepare
from stretto._engine.xla import cache
from tests.compilations import texts_compiled

SHAPING = ("simplify", "roll_loops", "interpret_small")
OTHERS = ("eager_compiled", "disk_cache")
OFF = dict.fromkeys((*SHAPING, *OTHERS), False)
COMBINATIONS = [dict(zip(SHAPING, on)) for on in itertools.product((True, False), repeat=3)]
SAID = lambda on: ", ".join(name for name, value in on.items() if value) or "none"


def busy(x, weights):
    """What each optimization looks for."""
    snp.tan(x)  # no result needs it
    y = snp.sin(x) + snp.sin(x) * (snp.arange(6) % 2)
    for _ in range(TURNS):
        y = y + 0.01 * snp.tanh(snp.log1p(y * y) @ snp.cos(weights))
    return y, snp.exp(-y).sum()


TURNS = 60
X, W = snp.linspace(-1, 1, 6), snp.linspace(0.5, 2, 36).reshape(6, 6)


def words(f, *args):
    return st.jit(f).lower(*args).as_text()


@pytest.fixture
def compiled(monkeypatch):
    """The texts that are compiled."""
    with st.config(disk_cache=False):
        yield texts_compiled(monkeypatch, cache)


@pytest.mark.parametrize("name", SHAPING)
def test_what_shapes_programs_is_in_the_key_of_a_signature(name):
    traced = []

    @st.jit
    def f(x):
        traced.append(shaping()[name])
        return x * 2 + 1

    for on in (True, False, True, False):
        with st.config(**{name: on}):
            assert f(3.0) == 7
    assert traced == [True, False]


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_shape_programs_is_not(name):
    traced = []

    @st.jit
    def f(x):
        traced.append(x)
        return x * 2 + 1

    for on in (True, False):
        with st.config(**{name: on}):
            assert f(3.0) == 7
    assert len(traced) == 1
    assert name not in shaping()


def test_set_for_all_threads_it_is_in_the_key_as_well():
    traced = []
    f = st.jit(lambda x: traced.append(x) or x + 1)
    f(1.0)
    before = st.config.simplify
    try:
        st.config.simplify = not before
        f(1.0)
        other = threading.Thread(target=f, args=(1.0,))
        other.start()
        other.join()
    finally:
        st.config.simplify = before
    assert len(traced) == 2
    f(1.0)
    assert len(traced) == 2


def test_switched_off_it_is_compiled_anew(compiled):
    f = st.jit(lambda x: snp.sin(x) * 0.37 + snp.sin(x))
    with st.config(**OFF):
        f(X)
        f(X)
        assert len(compiled) == 1 and compiled[0].count("stablehlo.sine") == 2
    with st.config(**OFF), st.config(simplify=True):
        f(X)
    assert len(compiled) == 2 and compiled[1].count("stablehlo.sine") == 1


def test_simplify():
    with st.config(simplify=False, roll_loops=False):
        plain = prepare(st.make_graph(busy)(X, W))
    with st.config(simplify=True, roll_loops=False):
        simpler = prepare(st.make_graph(busy)(X, W))
    named = lambda program: [e.primitive.name for e in program.equations]
    assert named(plain) == named(drop_dead(st.make_graph(busy)(X, W)))
    assert named(plain).count("cos") == TURNS and named(simpler).count("cos") == 1
    assert "tan" not in named(plain)


def test_roll_loops():
    with st.config(roll_loops=False):
        assert "stablehlo.while" not in words(busy, X, W)
    with st.config(roll_loops=True):
        assert "stablehlo.while" in words(busy, X, W)


def test_interpret_small(compiled):
    f = st.jit(lambda x: x * 0.53 + 1)
    with st.config(interpret_small=True):
        small = f(X)
    assert not compiled
    with st.config(interpret_small=False):
        np.testing.assert_array_equal(f(X), small)
    assert len(compiled) == 1


def test_eager_compiled(compiled, monkeypatch):
    monkeypatch.setattr(Sort, "compiled", lambda self, types: True)
    x = snp.array([0.31, -0.2, 7.0, 0.1])
    for on, count in ((False, 0), (True, 1)):
        with st.config(eager_compiled=on):
            np.testing.assert_array_equal(snp.sort(x), np.sort(np.asarray(x)))
        assert len(compiled) == count


@pytest.mark.parametrize("on", COMBINATIONS, ids=SAID)
def test_results_agree(on):
    want = busy(X, W)
    loss = lambda x, w: busy(x, w)[1]
    slope = st.grad(loss, (0, 1))(X, W)
    with st.config(**on):
        got = st.jit(busy)(X, W)
        gradient = st.jit(st.grad(loss, (0, 1)))(X, W)
        rows = st.jit(st.vmap(busy, (0, None)))(snp.stack([X, -X]), W)
    for g, w in zip([*got, *gradient], [*want, *slope], strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5)
    for i, x in enumerate((X, -X)):
        for g, w in zip(rows, busy(x, W), strict=True):
            np.testing.assert_allclose(g[i], w, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("on", COMBINATIONS[::2], ids=SAID)
def test_programs_that_operations_hold_are_prepared_as_well(on):
    inner = st.jit(lambda y, w: busy(y, w)[0])

    def f(x, w):
        carry, _ = st.lax.scan(lambda c, _: (inner(c, w), None), x, None, length=2)
        return st.lax.cond(x[0] > 0, lambda: carry, lambda: -carry)

    with st.config(**on):
        program = prepare(st.make_graph(f)(X, W))
        check(program)
        np.testing.assert_allclose(evaluate(program, [X, W])[0], f(X, W), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(st.jit(f)(X, W), f(X, W), rtol=1e-5, atol=1e-6)
        rolled = words(f, X, W).count("stablehlo.while")
        assert (rolled > 1) == on["roll_loops"]
        cosines = words(f, X, W).count("stablehlo.cosine")
        assert (cosines < TURNS) == (on["simplify"] or on["roll_loops"])
