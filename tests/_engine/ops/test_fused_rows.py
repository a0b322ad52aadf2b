"""Operations along rows, as one operation."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.ops.fused_rows import FusedRows
from stretto._engine.passes.fuse_rows import fuse_rows
from stretto._engine.passes.prepare import prepare
from stretto.laws import f32, f64, law

ROWS, COLUMNS = 64, 80


def softmax(x):
    e = snp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def fused(dtype="float32"):
    """The operation of a softmax."""
    with st.enable_x64(dtype == "float64"):
        graph = make_graph(softmax)(np.zeros((ROWS, COLUMNS), dtype))
        (equation,) = fuse_rows(prepare(graph)).equations
    return equation.primitive


def called(x):
    return fused(str(x.dtype))(x)[0]


LAWS = [
    # A pass makes it after all transformations, of which it has no rules.
    law(FusedRows, called, kind(ROWS, COLUMNS), derivative=False, mapped=False)
    for kind in (f32, f64)
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


def test_its_types_are_those_of_the_program():
    op = fused()
    assert op.infer(*op.program.in_types) == op.program.out_types
    wrong = op.program.in_types[0].with_shape((ROWS, COLUMNS + 1))
    with pytest.raises(TypeError, match=r"fused_rows: expected .*64,80.*, got .*64,81"):
        op.infer(wrong)


def test_the_reference_runs_its_operations():
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    (got,) = fused().reference(x)
    e = np.exp(x - x.max(-1, keepdims=True))
    np.testing.assert_allclose(got, e / e.sum(-1, keepdims=True), rtol=1e-6)


def test_its_work_is_that_of_the_program():
    op = fused()
    assert op.work(op.program.in_types, op.program.out_types) == op.program.work > ROWS * COLUMNS
