"""Ahead of time: traced, lowered, compiled, and called."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.core.program import check


def test_lower_and_compile():
    def affine(w, b, x):
        return x @ w + b

    args = snp.ones((4, 2)), snp.ones(2), snp.ones(4)
    lowered = st.jit(affine).lower(*args)
    assert "stablehlo.dot_general" in lowered.as_text()
    compiled = lowered.compile()
    assert "dot" in compiled.as_text()
    np.testing.assert_array_equal(compiled(*args), [5, 5])
    np.testing.assert_array_equal(compiled(*map(np.asarray, args)), [5, 5])
    assert compiled.cost_analysis()["flops"] > 0
    memory = compiled.memory_analysis()
    assert memory.output_size_in_bytes >= 8 and memory.argument_size_in_bytes >= 56
    with pytest.raises(
        TypeError, match=r"affine: compiled for .*float32\[4,2\].*called with .*float32\[3\]"
    ):
        compiled(args[0], args[1], snp.ones(3))
    with pytest.raises(TypeError, match="compiled for"):
        compiled(*args[:2])


def test_lower_with_static_and_keyword_arguments():
    f = st.jit(lambda x, n, y=0.0: x * n + y, static_argnums=1)
    assert float(f.lower(2.0, 3).compile()(2.0)) == 6
    assert float(f.lower(2.0, 3, y=1.0).compile()(2.0, y=5.0)) == 11
    assert float(st.jit(lambda x, y=0.0: x - y).lower(2.0, y=1.0).compile()(2.0, y=5.0)) == -3


def test_lower_for_shapes_alone():
    spec = st.ShapeDtypeStruct((2, 3), snp.float32)
    assert (spec.ndim, spec.size, repr(spec)) == (
        2,
        6,
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    )
    compiled = (
        st.jit(lambda t: t["x"].sum(0) + t["y"]).lower({"x": spec, "y": snp.ones(3)}).compile()
    )
    np.testing.assert_array_equal(compiled({"x": snp.ones((2, 3)), "y": snp.ones(3)}), [3, 3, 3])


def test_the_trace_can_be_read():
    traced = st.jit(lambda x: snp.sin(x) * 2).trace(1.0)
    assert "sin" in str(traced) and len(traced.program.equations) == 2
    check(traced.program)


def test_programs_name_the_users_line():
    text = st.jit(lambda x: snp.sin(x) + 1).lower(1.0).as_text()
    assert "test_stages.py" in text
