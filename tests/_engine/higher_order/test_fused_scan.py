"""Recurrent loops as one operation."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.higher_order.fused_scan import FusedScan
from stretto._engine.passes.fuse_scans import fuse_scans
from stretto._engine.passes.prepare import prepare
from stretto.laws import f32, f64, law

SIZES = (64, 64), (8, 64), (5, 8, 64)


def plain(w, h, xs):
    return st.lax.scan(lambda h, x: (snp.tanh(x + h @ w), h), h, xs)


def fused(dtype="float32"):
    """The operation of a plain recurrent layer."""
    with st.enable_x64(dtype == "float64"):
        graph = make_graph(plain)(*[np.zeros(shape, dtype) for shape in SIZES])
        (equation,) = fuse_scans(prepare(graph)).equations
    return equation.primitive


def called(w, h, xs):
    return fused(str(w.dtype))(w * 0.1, h, xs)


LAWS = [
    # A pass makes it after all transformations, of which it has no rules.
    law(FusedScan, called, *[kind(*shape) for shape in SIZES], derivative=False, mapped=False)
    for kind in (f32, f64)
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


def test_it_is_its_loop_step_by_step():
    rng = np.random.default_rng(0)
    w, h, xs = [rng.standard_normal(shape).astype(np.float32) / 8 for shape in SIZES]
    last, stack = fused().reference(w, h, xs)
    for x, before in zip(xs, stack, strict=True):
        np.testing.assert_allclose(before, h, rtol=1e-5, atol=1e-6)
        h = np.tanh(x + h @ w)
    np.testing.assert_allclose(last, h, rtol=1e-5, atol=1e-6)


def test_its_types_and_its_work_are_those_of_the_loop():
    op = fused()
    graph = make_graph(plain)(*[np.zeros(shape, np.float32) for shape in SIZES])
    types = [v.type for v in graph.inputs]
    outs = op.infer(*types)
    assert [t.shape for t in outs] == [(8, 64), (5, 8, 64)]
    assert op.work(types, outs) == op.loop.work(types, outs) >= 5 * 8 * 64 * 64
