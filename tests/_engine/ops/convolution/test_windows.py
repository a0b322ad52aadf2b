"""Convolutions as products of the kernel with windows: the same as the definition."""

import dataclasses

import hypothesis.strategies as hs
import numpy as np
import pytest
from hypothesis import given, settings

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convolution import windows
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers


@hs.composite
def convolutions(draw):
    """An operation without groups, and the shapes of its operands."""
    n = draw(hs.integers(1, 3))
    order = hs.permutations(range(n + 2))
    dims = ConvDimensionNumbers(*(tuple(draw(order)) for _ in range(3)))
    image = [draw(hs.integers(1, 17 if n == 1 else 5)) for _ in range(n)]
    window = [draw(hs.integers(1, 5 if n == 1 else 3)) for _ in range(n)]
    each = lambda least, most: tuple(draw(hs.integers(least, most)) for _ in range(n))
    strides, dilations, spread = each(1, 3), each(1, 3), each(1, 2)
    padding = []
    for size, k, d, s in zip(image, window, dilations, spread, strict=True):
        low = draw(hs.integers(-1, 3))
        least = (k - 1) * d - (size - 1) * s - low  # at least one window fits
        padding.append((low, draw(hs.integers(max(-1, least), max(2, least)))))
    batch, inputs, outputs = (draw(hs.integers(1, 3)) for _ in range(3))
    place = lambda shape, spec: tuple(shape[spec.index(a)] for a in range(len(shape)))
    lhs = place((batch, inputs, *image), dims.lhs_spec)
    rhs = place((outputs, inputs, *window), dims.rhs_spec)
    return ConvGeneralDilated(strides, tuple(padding), spread, dilations, dims), lhs, rhs


def whole(seed, shape, dtype=np.float32):
    """Small whole numbers, whose sums of products are exact."""
    return as_value(np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype))


FORMS = {"columns": windows.by_column, "rows": windows.by_row, "examples": windows.by_example}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=100)
@given(convolutions())
def test_values(form, case):
    op, lhs, rhs = case
    x, y = whole(0, lhs), whole(1, rhs)
    want = op(x, y)
    np.testing.assert_array_equal(FORMS[form](op, x, y, want.type), want)


@settings(max_examples=60)
@given(convolutions(), hs.integers(0, 2))
def test_values_of_windows_apart(case, gap):
    op, lhs, rhs = case
    window = tuple(rhs[a] for a in op.dims.rhs_spec[2:])
    op = dataclasses.replace(
        op, strides=tuple(k + gap for k in window), rhs_dilation=(1,) * len(window)
    )
    x, y = whole(0, lhs), whole(1, rhs)
    want = op(x, y)
    if want.size:
        assert windows.reason(op, x.type, y.type, want.type) == "its windows do not overlap"
        np.testing.assert_array_equal(windows.as_product(op, x, y, want.type), want)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_nan_and_infinities(form, value, place):
    op = ConvGeneralDilated((1,), ((1, 1),), (1,), (1,), ConvDimensionNumbers(*(((0, 1, 2),) * 3)))
    x, y = np.array(whole(0, (2, 2, 5))), np.array(whole(1, (3, 2, 3)))
    (x, y)[place].reshape(-1)[0] = value
    want = op(as_value(x), as_value(y))
    np.testing.assert_array_equal(FORMS[form](op, as_value(x), as_value(y), want.type), want)


@pytest.mark.parametrize(
    ("image", "window", "features", "stride"),
    [((2, 2), (3, 3), (3, 4), 1), ((1, 5), (3, 5), (2, 3), 2), ((3, 3), (1, 1), (4, 90), 1)],
)
def test_compiled_with_derivatives(image, window, features, stride):
    """Kernels larger than the image, and larger than what the windows take."""
    random = np.random.default_rng(0)
    x = random.standard_normal((2, features[0], *image)).astype(np.float32)
    w = random.standard_normal((features[1], features[0], *window)).astype(np.float32)
    conv = lambda x, w: lax.conv_general_dilated(x, w, (stride, stride), [(2, 2), (2, 2)])
    loss = lambda x, w: (conv(x, w) ** 2).sum()
    np.testing.assert_allclose(st.jit(conv)(x, w), conv(x, w), rtol=1e-5, atol=1e-5)
    for got, want in zip(
        st.jit(st.grad(loss, (0, 1)))(x, w), st.grad(loss, (0, 1))(x, w), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


def test_lowered_so_where_that_suits():
    def convolutions(image, window, outputs, inputs=8, stride=1, dtype=np.float32):
        x, w = snp.ones((2, inputs, *image), dtype), snp.ones((outputs, inputs, *window), dtype)
        conv = lambda x, w: lax.conv_general_dilated(x, w, (stride, stride), [(1, 1), (1, 1)])
        return st.jit(conv).lower(x, w).as_text().count("stablehlo.convolution")

    assert convolutions((2, 2), (3, 3), 4) == 0  # larger than the image
    assert convolutions((9, 9), (3, 3), 4) == 1
    assert convolutions((2, 2), (2, 2), 64) == 0  # larger than the windows
    assert convolutions((9, 9), (1, 1), 4) == 0  # windows that do not overlap
    assert convolutions((9, 9), (3, 3), 4, stride=3) == 0
    assert convolutions((9, 9), (3, 3), 4, inputs=3) == 0  # few features
    assert convolutions((2, 2), (3, 3), 4, dtype=np.int32) == 1
