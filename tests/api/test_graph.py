"""Looking at what a function does: its program, and the shapes of its results."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.core.program import check


def test_eval_shape():
    def never(w, x, scale=1.0):
        return {"y": w @ x * scale, "n": [x.astype(snp.int8)]}

    spec = st.ShapeDtypeStruct((3, 1000000), snp.float32)
    out = st.eval_shape(never, spec, st.ShapeDtypeStruct((1000000,), snp.float32), scale=2.0)
    assert out == {
        "y": st.ShapeDtypeStruct((3,), np.float32),
        "n": [st.ShapeDtypeStruct((1000000,), np.int8)],
    }
    with pytest.raises(TypeError, match="x must be an array"):
        st.eval_shape(lambda x: x, "a")


def test_make_graph():
    graph = st.make_graph(lambda p, x: p["w"] @ x)({"w": snp.ones((2, 3))}, snp.ones(3))
    assert [str(v.type) for v in graph.inputs] == ["float32[2,3]", "float32[3]"]
    check(graph)
    with pytest.raises(TypeError, match="y must be an array"):
        st.make_graph(lambda x, y: x)(1.0, "a")


def test_shape_dtype_struct():
    spec = st.ShapeDtypeStruct([2, 3], "bfloat16")
    assert (spec.shape, spec.ndim, spec.size, spec.dtype) == ((2, 3), 2, 6, snp.bfloat16)
    assert spec == st.ShapeDtypeStruct((2, 3), snp.bfloat16) != st.ShapeDtypeStruct((2,), "f4")
    assert len({spec, st.ShapeDtypeStruct((2, 3), snp.bfloat16)}) == 1
