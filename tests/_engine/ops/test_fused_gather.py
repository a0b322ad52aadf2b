"""Gathers with what finds their indices and what sums their rows, as one operation."""

import numpy as np
import pytest

import stretto as st
from stretto._engine.api.graph import make_graph
from stretto._engine.kernels import WITHOUT
from stretto._engine.ops.fused_gather import Bag, FusedGather
from stretto._engine.passes.fuse_gathers import fuse_gathers
from stretto._engine.passes.prepare import prepare
from stretto.laws import f32, f64, law

ROWS, WIDTH = 30, 40
PLACES = np.random.default_rng(0).integers(-ROWS, ROWS, (9, 5)).astype(np.int32)


def fused(function, *args):
    """The operation of a program that is one."""
    with st.enable_x64(str(args[0].dtype) == "float64"):
        (equation,) = fuse_gathers(prepare(make_graph(function)(*args))).equations
    return equation.primitive


def bags(w, i, f):
    return (w[i] * f[:, :, None]).sum(1) / 4


def sums(w, i):
    return w[i].sum(1) / 4


def called(w, i):
    return fused(sums, np.zeros(w.shape, str(w.dtype)), i)(w, i)[0]


LAWS = [
    # A pass makes it after all transformations, of which it has no rules.
    law(FusedGather, called, kind(ROWS, WIDTH), PLACES, derivative=False, mapped=False)
    for kind in (f32, f64)
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


def test_what_it_says_of_a_program():
    w = np.zeros((ROWS, WIDTH), np.float32)
    op = fused(sums, w, PLACES)
    assert op.bag == Bag("sum", (1,), False, 4.0)
    assert (op.vectors, op.wraps, op.counting) == (False, True, ())
    assert op.infer(*op.program.in_types) == op.program.out_types
    with pytest.raises(TypeError, match=r"fused_gather: expected .*30,40.*, got .*30,41"):
        op.infer(op.program.in_types[0].with_shape((ROWS, WIDTH + 1)), op.program.in_types[1])


def test_a_bag_divides_by_nothing_and_counts_all_unless_it_says_so():
    assert Bag("sum", (1,), False).divisor is None


@pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")
def test_it_is_written_out_where_there_are_no_kernels():
    w = np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32)
    f = np.random.default_rng(2).standard_normal(PLACES.shape).astype(np.float32)
    texts, got = [], []
    for kernels in (True, False):
        with st.config(kernels=kernels):
            texts.append(st.jit(bags).lower(w, PLACES, f).as_text())
            got.append(np.asarray(st.jit(bags)(w, PLACES, f)))
    assert ["stretto_gather" in text for text in texts] == [True, False]
    wide = w[PLACES].astype(np.float64) * f[:, :, None]
    for values in got:
        np.testing.assert_allclose(values, wide.sum(1) / 4, rtol=1e-5, atol=1e-5)
