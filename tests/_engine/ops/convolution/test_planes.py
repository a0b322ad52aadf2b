"""Convolutions over volumes as ones over planes: the same as the definition."""

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convolution import planes
from stretto._engine.ops.convolution.formulation import formulation
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from tests._engine.ops.convolution.cases import check, convolutions, whole

FIRST = ConvDimensionNumbers(*(((0, 1, 2, 3, 4),) * 3))


@settings(max_examples=150)
@given(convolutions())
def test_values(case):
    op, x, y = case
    assume(x.ndim == 5)
    out = op.infer(x.type, y.type)
    assume(out.size)
    check(planes.as_planes, op, x, y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_nan_and_infinities(value, place):
    op = ConvGeneralDilated((1,) * 3, ((1, 1),) * 3, (1,) * 3, (1,) * 3, FIRST)
    x, y = np.array(whole(0, (2, 2, 3, 4, 4))), np.array(whole(1, (3, 2, 2, 3, 3)))
    (x, y)[place].reshape(-1)[5] = value
    check(planes.as_planes, op, as_value(x), as_value(y))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("mapped", [False, True])
def test_compiled_with_derivatives(stride, mapped):
    random = np.random.default_rng(0)
    x = random.standard_normal((3, 2, 8, 5, 9, 9))
    w = random.standard_normal((3, 4, 8, 3, 3, 3))
    conv = lambda x, w: lax.conv_general_dilated(x, w, (stride,) * 3, [(1, 1)] * 3)
    loss = lambda x, w: (conv(x, w) ** 2).sum()
    value_and_grads = st.value_and_grad(loss, (0, 1))
    if mapped:
        value_and_grads = st.vmap(value_and_grads)
    else:
        x, w = x[0], w[0]
    with st.config(enable_x64=True):
        want = st.tree.leaves(value_and_grads(snp.array(x), snp.array(w)))
    narrow = snp.array(x, np.float32), snp.array(w, np.float32)
    for got, exact in zip(st.tree.leaves(st.jit(value_and_grads)(*narrow)), want, strict=True):
        np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize(
    ("image", "kernel", "groups", "dtype", "suits"),
    [
        ((2, 8, 5, 9, 9), (32, 8, 3, 3, 3), 1, "float32", True),
        ((2, 8, 5, 9, 9), (32, 8, 1, 3, 3), 1, "float32", True),
        ((2, 8, 5, 9, 9), (4, 8, 3, 1, 1), 1, "float32", False),  # lines
        ((2, 8, 5, 9, 9), (4, 4, 3, 3, 3), 2, "float32", False),
        ((2, 8, 5, 9, 9), (4, 8, 3, 3, 3), 1, "int32", False),
        ((2, 8, 9, 9), (4, 8, 3, 3), 1, "float32", False),
        ((2, 8, 40, 9, 9), (4, 8, 20, 3, 3), 1, "float32", False),  # many copies
    ],
)
def test_suits(image, kernel, groups, dtype, suits):
    x, w = snp.ones(image, dtype), snp.ones(kernel, dtype)
    n = len(image) - 2
    conv = lambda x, w: lax.conv_general_dilated(
        x, w, (1,) * n, [(1, 1)] * n, feature_group_count=groups
    )
    (equation,) = st.make_graph(conv)(x, w).equations
    out = equation.outputs[0].type
    assert planes.suits(equation.primitive, x.type, w.type, out) == suits
    name = formulation(equation.primitive, x.type, w.type, out).name
    assert (name == "planes of a volume") == suits
    if suits:
        text = st.jit(conv).lower(x, w).as_text()
        (line,) = [line for line in text.splitlines() if "stablehlo.convolution" in line]
        assert len(re.findall(r"tensor<(?:\d+x){4}f32>", line)) == 3
