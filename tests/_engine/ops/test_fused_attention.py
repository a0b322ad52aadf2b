"""Attention and its gradients, as one operation each."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.ops.fused_attention import FusedAttention
from stretto._engine.passes.fuse_attention import fuse_attention
from stretto._engine.passes.prepare import prepare
from stretto.laws import f32, f64, law

SIZES = (2, 32, 16), (2, 64, 16), (2, 64, 8)


def attention(q, k, v):
    scores = 0.25 * q @ k.swapaxes(-1, -2)
    e = snp.exp(scores - st.lax.stop_gradient(scores.max(-1, keepdims=True)))
    return e / e.sum(-1, keepdims=True) @ v


def gradients(q, k, v, ct):
    out, back = st.vjp(attention, q, k, v)
    return out, back(ct)


def fused(f, sizes, dtype="float32"):
    """The last operation of what attention is found in."""
    with st.enable_x64(dtype == "float64"):
        graph = make_graph(f)(*[np.ones(shape, dtype) for shape in sizes])
        equations = fuse_attention(prepare(graph)).equations
    return [e.primitive for e in equations if isinstance(e.primitive, FusedAttention)][-1]


def called(q, k, v):
    return fused(attention, SIZES, str(q.dtype))(q, k, v)[0]


LAWS = [
    # A pass makes it after all transformations, of which it has no rules.
    law(FusedAttention, called, *[kind(*shape) for shape in SIZES], derivative=False, mapped=False)
    for kind in (f32, f64)
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


def test_its_types_are_those_of_the_program():
    op = fused(attention, SIZES)
    assert op.infer(*op.program.in_types) == op.program.out_types
    types = [t.with_shape((2, 7, 16)) for t in op.program.in_types]
    with pytest.raises(TypeError, match=r"fused_attention: expected .*2,32,16.*, got .*2,7,16"):
        op.infer(*types)


def test_the_reference_of_gradients_runs_their_operations():
    op = fused(gradients, (*SIZES, (2, 32, 8)))
    assert op.geometry.gradient
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(t.shape).astype(t.dtype) for t in op.program.in_types]
    got = op.reference(*arrays)
    assert [a.shape for a in got] == [t.shape for t in op.program.out_types]


def test_its_work_is_that_of_the_program():
    op = fused(attention, SIZES)
    work = op.work(op.program.in_types, op.program.out_types)
    assert work == op.program.work > 2 * 32 * 64 * 24
