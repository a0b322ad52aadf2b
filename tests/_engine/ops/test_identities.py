"""Operations that give back their operands: values, derivatives, and what they are for."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.identities import AFTER, After, Example, Name, OptimizationBarrier
from stretto.laws import b1, bf16, c64, f32, f64, i32, law
from stretto.lax import optimization_barrier

both = lambda x, y: optimization_barrier((snp.sin(x) * y, y))

LAWS = [
    law(OptimizationBarrier, both, f32(3), f32(3)),
    law(OptimizationBarrier, both, f64(2, 2), f64(2)),
    law(OptimizationBarrier, both, c64(2), c64(2)),
    law(OptimizationBarrier, lambda x, n: optimization_barrier([x * x, n]), f32(2), i32(2)),
    law(OptimizationBarrier, optimization_barrier, bf16(2)),
    law(OptimizationBarrier, optimization_barrier, b1(2)),
    # A pass makes it after all transformations, of which it has no rules.
    *[
        law(After, AFTER, kind(3), b1(), derivative=False, mapped=False)
        for kind in (f32, f64, bf16, c64, i32, b1)
    ],
]


def test_trees():
    tree = {"a": snp.ones(2), "b": (1, None)}
    got = optimization_barrier(tree)
    assert st.tree.structure(got) == st.tree.structure(tree)
    assert got["b"][0].weak_type
    assert optimization_barrier(()) == ()
    with pytest.raises(TypeError, match=r"optimization_barrier: operand\['x'\] must be an array"):
        optimization_barrier({"x": "text"})


def test_it_reaches_the_compiler():
    f = lambda x: snp.tanh(x) + snp.tanh(optimization_barrier(x))
    text = st.jit(st.grad(f)).lower(1.0).as_text()
    assert text.count("stablehlo.optimization_barrier") == 2  # there, and back
    x = snp.linspace(-1.0, 1.0, 8)
    np.testing.assert_allclose(st.jit(f)(x), 2 * np.tanh(x), rtol=1e-6)


def test_values_and_tangents_have_a_barrier_each():
    f = lambda x, n: optimization_barrier((x, n))[0]
    program = st.make_graph(lambda x, dx: st.jvp(lambda x: f(x, 2), (x,), (dx,)))(1.0, 1.0)
    barriers = [e for e in program.equations if isinstance(e.primitive, OptimizationBarrier)]
    assert sorted(len(e.inputs) for e in barriers) == [1, 2]
    np.testing.assert_allclose(st.grad(f)(1.0, 2), 1.0)


named = lambda x: st.checkpoint_name(x, "x")

LAWS += [
    law(Name, lambda x: snp.sin(named(x * x)), f32(3)),
    *[law(Name, named, kind(2)) for kind in (f64, c64, bf16, i32, b1)],
]


def test_trees_and_graphs():
    out = st.checkpoint_name({"a": 1.0, "b": [snp.ones(2)]}, "pair")
    assert st.tree.structure(out) == st.tree.structure({"a": 0, "b": [0]})
    assert "name a [label=x]" in str(st.make_graph(named)(1.0))
    assert "name" not in st.jit(named).lower(1.0).as_text().split("return")[0].split("loc")[0]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: st.checkpoint_name(1.0, 3), "checkpoint_name: name must be a string, got int"),
        (lambda: st.checkpoint_name("text", "x"), "checkpoint_name: x must be an array"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        call()


LAWS += [law(Example, Example(0), kind(2, 3)) for kind in (f32, f64, bf16, c64)]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@pytest.mark.parametrize("own, axis, after", [(1, 0, 2), (1, 1, 2), (0, 1, 0), (0, 0, 1)])
def test_the_axis_moves_behind_a_new_one(own, axis, after):
    rule = lambda x: Example(own).vmap(2, [x], [axis])[0]
    assert f"example a [axis={after}]" in str(st.make_graph(rule)(snp.ones((2, 2, 2))))


def test_marks_are_left_only_while_debugging():
    graph = st.make_graph(st.vmap(snp.sin))
    assert "example" not in str(graph(snp.ones(2)))
    with st.config(debug_nans=True):
        assert "example b [axis=0]" in str(graph(snp.ones(2)))


def test_marks_keep_the_axes():
    x = snp.ones((2, 3)).type
    assert [*Name("a").kept_axes(0, x, x)] == [0, 1]
