"""Convolutions with few positions as a product for each: the same as the definition."""

import hypothesis.strategies as hs
import numpy as np
import pytest
from hypothesis import given, settings

import stretto as st
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convolution import positions
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers


@hs.composite
def convolutions(draw):
    """An operation, perhaps with groups of either kind, and the shapes of its operands."""
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
    batch, inputs, outputs, groups = (draw(hs.integers(1, 3)) for _ in range(4))
    place = lambda shape, spec: tuple(shape[spec.index(a)] for a in range(len(shape)))
    batches, features = draw(hs.sampled_from([(groups, 1), (1, groups)]))
    lhs = place((batches * batch, features * inputs, *image), dims.lhs_spec)
    rhs = place((groups * outputs, inputs, *window), dims.rhs_spec)
    op = ConvGeneralDilated(strides, tuple(padding), spread, dilations, dims, features, batches)
    return op, lhs, rhs


@settings(max_examples=100)
@given(convolutions())
def test_values(case):
    op, lhs, rhs = case
    random = np.random.default_rng(0)
    x = as_value(random.integers(-4, 5, lhs).astype(np.float32))
    y = as_value(random.integers(-4, 5, rhs).astype(np.float32))
    want = op(x, y)
    np.testing.assert_array_equal(positions.as_products(op, x, y, want.type), want)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_nan_and_infinities(value, place):
    op = ConvGeneralDilated((1,), ((1, 1),), (1,), (1,), ConvDimensionNumbers(*(((0, 1, 2),) * 3)))
    random = np.random.default_rng(0)
    x = random.integers(-4, 5, (2, 2, 6)).astype(np.float32)
    y = random.integers(1, 5, (3, 2, 5)).astype(np.float32)
    (x, y)[place][0, 0, 0] = value
    want = op(as_value(x), as_value(y))
    got = positions.as_products(op, as_value(x), as_value(y), want.type)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("layout", [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")])
@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_by_kernels_compiled(layout, groups):
    random = np.random.default_rng(0)
    features = 32
    image = {"N": 2, "C": features, "H": 33, "W": 34}
    window = {"O": features, "I": features // groups, "H": 3, "W": 3}
    x = random.standard_normal([image[a] for a in layout[0]]).astype(np.float32)
    w = random.standard_normal([window[a] for a in layout[1]]).astype(np.float32)
    loss = lambda x, w: (
        lax.conv_general_dilated(
            x, w, (2, 1), [(1, 1), (1, 1)], dimension_numbers=layout, feature_group_count=groups
        )
        ** 2
    ).sum()
    want = st.grad(loss, 1)(x, w)
    np.testing.assert_allclose(st.jit(st.grad(loss, 1))(x, w), want, rtol=1e-4, atol=5e-2)


def test_suits_gradients_by_kernels_with_groups_or_of_one_element():
    dims = ConvDimensionNumbers(*(((0, 1, 2, 3),) * 3))

    def suits(features, padding, groups=1):
        pads = ((padding, padding),) * 2
        op = ConvGeneralDilated((1, 1), pads, (1, 1), (1, 1), dims, batch_groups=groups)
        x = as_value(np.ones((features, 4, 8, 8), np.float32)).type
        return positions.suits(op, x, x, op.infer(x, x))

    assert suits(16, 0)
    assert not suits(16, 1)
    assert suits(16, 1, 4)
    assert not suits(16, 1, 16)  # too few features in each
    assert not suits(16, 4, 4)  # too many positions
