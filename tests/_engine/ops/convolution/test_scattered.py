"""Convolutions over spread images as one product: the same as the definition."""

import hypothesis.strategies as hs
import numpy as np
import pytest
from hypothesis import given, settings

import stretto as st
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convolution import scattered
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers


@hs.composite
def convolutions(draw):
    """An operation whose kernel fits into the image's gaps, and the shapes of its operands."""
    n = draw(hs.integers(1, 3))
    order = hs.permutations(range(n + 2))
    dims = ConvDimensionNumbers(*(tuple(draw(order)) for _ in range(3)))
    image = [draw(hs.integers(1, 17 if n == 1 else 5)) for _ in range(n)]
    window = [draw(hs.integers(1, 4)) for _ in range(n)]
    spread = tuple(max(2, k + draw(hs.integers(0, 2))) for k in window)
    padding = []
    for size, k, s in zip(image, window, spread, strict=True):
        low = draw(hs.integers(-1, 4))
        least = k - 1 - (size - 1) * s - low  # at least one window fits
        padding.append((low, draw(hs.integers(max(-1, least), max(4, least)))))
    batch, inputs, outputs = (draw(hs.integers(1, 3)) for _ in range(3))
    place = lambda shape, spec: tuple(shape[spec.index(a)] for a in range(len(shape)))
    lhs = place((batch, inputs, *image), dims.lhs_spec)
    rhs = place((outputs, inputs, *window), dims.rhs_spec)
    ones = (1,) * n
    return ConvGeneralDilated(ones, tuple(padding), spread, ones, dims), lhs, rhs


@settings(max_examples=100)
@given(convolutions())
def test_values(case):
    op, lhs, rhs = case
    random = np.random.default_rng(0)
    x = as_value(random.integers(-4, 5, lhs).astype(np.float32))
    y = as_value(random.integers(-4, 5, rhs).astype(np.float32))
    assert scattered.suits(op, x.type, y.type)
    want = op(x, y)
    np.testing.assert_array_equal(scattered.as_product(op, x, y, want.type), want)


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
    want = op(as_value(x), y)
    np.testing.assert_array_equal(scattered.as_product(op, as_value(x), y, want.type), want)


def test_zeros_between_elements_are_not_multiplied():
    """An infinite weight stays with the outputs that it meets, as in the kernel's own gradient."""
    op = ConvGeneralDilated((1,), ((0, 0),), (2,), (1,), ConvDimensionNumbers(*(((0, 1, 2),) * 3)))
    x, y = np.ones((1, 1, 3), np.float32), np.array([[[np.inf]]], np.float32)
    out = op.infer(as_value(x).type, as_value(y).type)
    got = scattered.as_product(op, as_value(x), as_value(y), out)
    np.testing.assert_array_equal(got, [[[np.inf, 0, np.inf, 0, np.inf]]])
