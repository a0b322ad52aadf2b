"""Convolutions with few outputs by products of elements: the same as the definition."""

import numpy as np
import pytest
from hypothesis import given, settings

import stretto as st
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convolution import elements
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from tests._engine.ops.convolution.cases import check, convolutions


@settings(max_examples=100)
@given(convolutions())
def test_values(case):
    check(elements.of_elements, *case)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_nan_and_infinities(value, place):
    op = ConvGeneralDilated((1,), ((1, 1),), (1,), (1,), ConvDimensionNumbers(*(((0, 1, 2),) * 3)))
    random = np.random.default_rng(0)
    x = random.integers(-4, 5, (2, 2, 5)).astype(np.float32)
    y = random.integers(1, 5, (3, 2, 3)).astype(np.float32)
    (x, y)[place].reshape(-1)[0] = value
    check(elements.of_elements, op, as_value(x), as_value(y))


@pytest.mark.parametrize("layout", [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")])
def test_compiled_with_derivatives(layout):
    random = np.random.default_rng(0)
    image, window = {"N": 2, "C": 16, "H": 9, "W": 8}, {"O": 3, "I": 16, "H": 3, "W": 3}
    x = random.standard_normal([image[a] for a in layout[0]]).astype(np.float32)
    w = random.standard_normal([window[a] for a in layout[1]]).astype(np.float32)
    conv = lambda x, w: lax.conv_general_dilated(
        x, w, (2, 1), [(1, 1), (1, 1)], dimension_numbers=layout
    )
    loss = lambda x, w: (conv(x, w) ** 2).sum()
    assert "stablehlo.convolution" not in st.jit(conv).lower(x, w).as_text()
    np.testing.assert_allclose(st.jit(conv)(x, w), conv(x, w), rtol=1e-4, atol=1e-4)
    for got, want in zip(
        st.jit(st.grad(loss, (0, 1)))(x, w), st.grad(loss, (0, 1))(x, w), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-2)


def test_suits_few_outputs_of_many_inputs():
    dims = ConvDimensionNumbers(*(((0, 1, 2),) * 3))

    def suits(outs, inputs, window=3, stride=1, spread=1, dtype=np.float32):
        op = ConvGeneralDilated((stride,), ((1, 1),), (spread,), (1,), dims)
        x = as_value(np.ones((2, inputs, 9), dtype)).type
        y = as_value(np.ones((outs, inputs, window), dtype)).type
        return elements.suits(op, x, y, op.infer(x, y))

    assert suits(3, 64)
    assert not suits(64, 64)
    assert not suits(3, 3)
    assert not suits(3, 64, window=2, stride=2)
    assert not suits(3, 64, spread=2)
    assert not suits(3, 64, dtype=np.float16)
