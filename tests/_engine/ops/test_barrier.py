"""The optimization barrier: the identity, for values, derivatives and examples; and handed on."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.barrier import OptimizationBarrier
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
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


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
