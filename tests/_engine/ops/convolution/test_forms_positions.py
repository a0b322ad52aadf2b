"""Convolutions with few positions as products: the same as the definition."""

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import array_type
from stretto._engine.ops.convolution import forms
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from tests._engine.ops.convolution.cases import GROUPS, check, convolutions, whole

pytestmark = pytest.mark.usefixtures("without_kernels")


@settings(max_examples=100)
@given(convolutions(GROUPS))
def test_values(case):
    check(forms.of_positions, *case)


@settings(max_examples=100)
@given(convolutions())
def test_values_with_the_kernel_first(case):
    with mock.patch.object(forms, "_LARGE_KERNEL", 0):
        check(forms.of_positions, *case)


@settings(max_examples=100)
@given(hs.data())
def test_values_of_products_for_each_example(data):
    n = data.draw(hs.integers(0, 3))
    each = lambda least, most: tuple(data.draw(hs.integers(least, most)) for _ in range(n))
    rest = tuple(2 + a for a in data.draw(hs.permutations(range(n))))
    out = tuple(data.draw(hs.permutations(range(n + 2))))
    dims = ConvDimensionNumbers((1, 0, *rest), (1, 0, *rest), out)
    window, dilation, low = each(1, 4), each(1, 2), each(-1, 2)
    image = tuple((k - 1) * d + 1 for k, d in zip(window, dilation, strict=True))
    least = tuple(max(0, 1 + a - n) for n, a in zip(image, low, strict=True))
    more = tuple(m + extra for m, extra in zip(least, each(0, 2), strict=True))
    sizes = tuple(n - a + m for n, a, m in zip(image, low, more, strict=True))
    padding = tuple((a, -m) for a, m in zip(low, more, strict=True))
    op = ConvGeneralDilated((1,) * n, padding, (1,) * n, dilation, dims)
    examples, inputs, outputs = (data.draw(hs.integers(a, 3)) for a in (2, 1, 1))
    spatial = lambda sizes: tuple(sizes[rest.index(2 + a)] for a in range(n))
    x, y = (
        whole(0, (examples, inputs, *spatial(sizes))),
        whole(1, (examples, outputs, *spatial(window))),
    )
    with mock.patch.object(forms, "_IMAGES_LARGER", 0):
        assert forms._suits_summed(op, x.type, y.type, op.infer(x.type, y.type))
        check(forms.of_positions, op, x, y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_nan_and_infinities(value, place):
    op = ConvGeneralDilated((1,), ((1, 1),), (1,), (1,), ConvDimensionNumbers(*(((0, 1, 2),) * 3)))
    random = np.random.default_rng(0)
    x = random.integers(-4, 5, (2, 2, 6)).astype(np.float32)
    y = random.integers(1, 5, (3, 2, 5)).astype(np.float32)
    (x, y)[place][0, 0, 0] = value
    check(forms.of_positions, op, as_value(x), as_value(y))


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
        return forms.suits_positions(op, x, x, op.infer(x, x))

    assert suits(16, 0)
    assert not suits(16, 1)
    assert suits(16, 1, 4)
    assert not suits(16, 1, 16)  # too few features in each
    assert not suits(16, 0, 16)  # nor for one position
    assert not suits(16, 4, 4)  # too many positions


def gradient(layout, batch, features, size):
    """The gradient of a 3×3 convolution by its kernel, of so many features, in that layout."""
    image = {"N": batch, "C": features, "H": size, "W": size}
    window = {"O": features, "I": features, "H": 3, "W": 3}
    x = st.ShapeDtypeStruct([image[a] for a in layout[0]], np.float32)
    w = st.ShapeDtypeStruct([window[a] for a in layout[1]], np.float32)
    conv = lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), [(1, 1), (1, 1)], dimension_numbers=layout
    )
    return st.jit(lambda x, w, ct: st.vjp(lambda w: conv(x, w), w)[1](ct)[0]).lower(x, w, x)


FIRST, LAST = ("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")


@pytest.mark.parametrize(
    ("layout", "batch", "features", "size", "one_product"),
    [
        (FIRST, 6, 32, 16, True),
        (FIRST, 7, 32, 16, False),  # XLA's convolution has enough terms side by side
        (FIRST, 6, 128, 32, False),  # the windows are too large
        (FIRST, 16, 128, 8, True),  # XLA's convolution would have its result turned
        (FIRST, 16, 128, 16, False),
        (LAST, 3, 32, 16, True),
        (LAST, 4, 32, 16, False),
    ],
)
def test_one_product_for_few_examples_or_large_kernels(layout, batch, features, size, one_product):
    text = gradient(layout, batch, features, size).as_text()
    assert ("stablehlo.convolution" not in text) is one_product
    assert text.count("stablehlo.dot_general") == int(one_product)


def test_the_gradient_of_a_large_kernel_comes_in_its_order():
    large, small = gradient(FIRST, 2, 128, 8).as_text(), gradient(FIRST, 2, 32, 8).as_text()
    assert "-> tensor<128x1152xf32>" in large  # output features, then inputs and elements
    assert "-> tensor<288x32xf32>" in small


@pytest.mark.parametrize(("size", "summed"), [(1024, True), (16, False)])
def test_images_much_larger_than_the_kernel_are_not_turned(size, summed):
    x, ct = (
        st.ShapeDtypeStruct((2, 16, size), "float32"),
        st.ShapeDtypeStruct((2, 24, size), "float32"),
    )
    w = st.ShapeDtypeStruct((24, 16, 1), "float32")
    conv = lambda x, w: lax.conv_general_dilated(x, w, (1,), [(0, 0)])
    lowered = st.jit(lambda x, w, ct: st.vjp(lambda w: conv(x, w), w)[1](ct)[0]).lower(x, w, ct)
    assert ("-> tensor<2x24x16xf32>" in lowered.as_text()) is summed


KERNEL = ConvDimensionNumbers((1, 0, 2), (1, 0, 2), (1, 0, 2))


def typed(*shape):
    return array_type(shape, np.dtype(np.float32))


@pytest.mark.parametrize(
    ("lhs", "rhs", "few"),
    [((2, 3, 9), (4, 3, 6), 4), ((2, 3, 9), (4, 3, 5), 0), ((2, 3, 9), (4, 3, 4), 0)],
)
def test_few_positions_are_fewer_than_elements_of_a_window(lhs, rhs, few):
    dims = ConvDimensionNumbers(*(((0, 1, 2),) * 3))
    op, types = ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), dims), (typed(*lhs), typed(*rhs))
    assert forms._few_positions(op, *types, op.infer(*types)) == few


@pytest.mark.parametrize(
    ("dims", "lhs", "rhs", "summed"),
    [
        (KERNEL, (2, 4, 8), (2, 4, 8), True),  # 128 elements, four times those of two products
        (KERNEL, (2, 4, 7), (2, 4, 7), False),
        (KERNEL, (1, 4, 8), (1, 4, 8), False),  # one example
        (KERNEL, (2, 4, 29), (2, 4, 28), False),  # two positions
        (KERNEL._replace(rhs_spec=(1, 0, 2), lhs_spec=(0, 1, 2)), (2, 2, 28), (2, 2, 28), False),
        (ConvDimensionNumbers(*(((0, 1, 2),) * 3)), (4, 2, 28), (4, 2, 28), False),
    ],
)
def test_images_are_added_up_one_by_one_where_they_are_much_larger(dims, lhs, rhs, summed):
    op, types = ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), dims), (typed(*lhs), typed(*rhs))
    out = op.infer(*types)
    assert forms._suits_summed(op, *types, out) is summed


@pytest.mark.parametrize("batch", [(0, 1, 2), (2, 0, 1)], ids=["first", "last"])
@pytest.mark.parametrize("spec", [*itertools.permutations(range(3))], ids=str)
def test_the_product_sums_over_the_rows_of_its_right_operand(spec, batch):
    """Whatever the order of the kernel's axes: as layers do, for which options are chosen."""
    op = ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), ConvDimensionNumbers(batch, spec, batch))
    in_order = lambda sizes, axes: snp.ones([sizes[axes.index(d)] for d in range(3)])
    x, w = in_order((4, 2, 6), batch), in_order((3, 2, 5), spec)
    out = op.infer(x.type, w.type)
    program = st.make_graph(lambda x, w: forms.of_positions(op, x, w, out))(x, w)
    (product,) = [e.primitive for e in program.equations if e.primitive.name == "dot_general"]
    assert product.summed[1] == (0,)
