"""Convolutions over spread images as one product: the same as the definition."""

import numpy as np
import pytest
from hypothesis import given, settings

import stretto as st
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convolution import scattered
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from tests._engine.ops.convolution.cases import check, convolutions


@settings(max_examples=100)
@given(convolutions(in_gaps=True))
def test_values(case):
    op, x, y = case
    assert scattered.suits(op, x.type, y.type)
    check(scattered.as_product, op, x, y)


def test_does_not_suit_windows_that_meet():
    dims = ConvDimensionNumbers(*(((0, 1, 2),) * 3))
    x, y = (as_value(np.ones((1, 1, 5), np.float32)), as_value(np.ones((1, 1, 3), np.float32)))
    meet = ConvGeneralDilated((1,), ((2, 2),), (2,), (1,), dims)
    assert not scattered.suits(meet, x.type, y.type)
    assert not scattered.suits(
        ConvGeneralDilated((1,), ((2, 2),), (1,), (1,), dims), x.type, y.type
    )


@pytest.mark.parametrize(
    ("window", "stride"), [((2, 2), (2, 2)), ((1, 1), (2, 3)), ((1, 3), (2, 3))]
)
def test_gradients_compiled(window, stride):
    """The gradient by the image of windows apart, with the rest of the image beside them."""
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 3, 9, 10)).astype(np.float32)
    w = random.standard_normal((4, 3, *window)).astype(np.float32)
    conv = lambda x, w: lax.conv_general_dilated(x, w, stride, [(0, 1), (1, 0)])
    loss = lambda x, w: (conv(x, w) ** 2).sum()
    for got, want in zip(
        st.jit(st.grad(loss, (0, 1)))(x, w), st.grad(loss, (0, 1))(x, w), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    text = st.jit(st.grad(loss)).lower(x, w).as_text()
    assert "stablehlo.convolution" not in text


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_in_the_image(value):
    op = ConvGeneralDilated((1,), ((1, 1),), (2,), (1,), ConvDimensionNumbers(*(((0, 1, 2),) * 3)))
    x, y = np.ones((2, 2, 5), np.float32), as_value(np.ones((3, 2, 2), np.float32))
    x[0, 0, 2] = value
    check(scattered.as_product, op, as_value(x), y)


def test_zeros_between_elements_are_not_multiplied():
    """An infinite weight stays with the outputs that it meets, as in the kernel's own gradient."""
    op = ConvGeneralDilated((1,), ((0, 0),), (2,), (1,), ConvDimensionNumbers(*(((0, 1, 2),) * 3)))
    x, y = np.ones((1, 1, 3), np.float32), np.array([[[np.inf]]], np.float32)
    out = op.infer(as_value(x).type, as_value(y).type)
    got = scattered.as_product(op, as_value(x), as_value(y), out)
    np.testing.assert_array_equal(got, [[[np.inf, 0, np.inf, 0, np.inf]]])
