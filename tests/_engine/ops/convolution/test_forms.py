"""Forms of a convolution for special geometries, against the definition."""

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.recorder import record
from stretto._engine.core.types import array_type
from stretto._engine.ops.convolution import forms
from stretto._engine.ops.convolution.formulation import formulation
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers, conv_dimension_numbers
from tests._engine.ops.convolution.cases import check, convolutions, whole

pytestmark = pytest.mark.usefixtures("without_kernels")


@settings(max_examples=100)
@given(convolutions())
def test_values(case):
    check(forms.of_elements, *case)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_nan_and_infinities(value, place):
    op = ConvGeneralDilated((1,), ((1, 1),), (1,), (1,), ConvDimensionNumbers(*(((0, 1, 2),) * 3)))
    random = np.random.default_rng(0)
    x = random.integers(-4, 5, (2, 2, 5)).astype(np.float32)
    y = random.integers(1, 5, (3, 2, 3)).astype(np.float32)
    (x, y)[place].reshape(-1)[0] = value
    check(forms.of_elements, op, as_value(x), as_value(y))


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
        return forms.suits_elements(op, x, y, op.infer(x, y))

    assert suits(3, 64)
    assert not suits(64, 64)
    assert not suits(3, 3)
    assert not suits(3, 64, window=2, stride=2)
    assert not suits(3, 64, spread=2)
    assert not suits(3, 64, dtype=np.float16)


FIRST = ConvDimensionNumbers(*(((0, 1, 2, 3, 4),) * 3))


@settings(max_examples=150)
@given(convolutions())
def test_values_of_planes(case):
    op, x, y = case
    assume(x.ndim == 5)
    out = op.infer(x.type, y.type)
    assume(out.size)
    check(forms.as_planes, op, x, y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_nan_and_infinities_of_planes(value, place):
    op = ConvGeneralDilated((1,) * 3, ((1, 1),) * 3, (1,) * 3, (1,) * 3, FIRST)
    x, y = np.array(whole(0, (2, 2, 3, 4, 4))), np.array(whole(1, (3, 2, 2, 3, 3)))
    (x, y)[place].reshape(-1)[5] = value
    check(forms.as_planes, op, as_value(x), as_value(y))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("mapped", [False, True])
def test_compiled_with_derivatives_of_planes(stride, mapped):
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
    assert forms.suits_planes(equation.primitive, x.type, w.type, out) == suits
    name = formulation(equation.primitive, x.type, w.type, out).name
    assert (name == "planes of a volume") == suits
    if suits:
        text = st.jit(conv).lower(x, w).as_text()
        (line,) = [line for line in text.splitlines() if "stablehlo.convolution" in line]
        assert len(re.findall(r"tensor<(?:\d+x){4}f32>", line)) == 3


FIRST_POINTWISE = ConvDimensionNumbers(*(((0, 1, 2),) * 3))


@settings(max_examples=150)
@given(convolutions(grouped=("features",)))
def test_values_of_pointwise(case):
    op, x, y = case
    window = [slice(None)] * y.ndim
    for a in op.dims.rhs_spec[2:]:
        window[a] = slice(1)
    y = y[tuple(window)]
    op = dataclasses.replace(op, padding=tuple((max(low, 0), high) for low, high in op.padding))
    out = op.infer(x.type, y.type)
    assume(out.size)
    check(forms.of_pointwise, op, x, y)


@pytest.mark.parametrize("positions", [70, 3])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinities_stay_in_their_group(positions, value):
    op = ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), FIRST_POINTWISE, feature_groups=2)
    x, y = np.array(whole(0, (2, 4, positions))), as_value(whole(1, (6, 2, 1)))
    x[1, 0, 2] = value
    check(forms.of_pointwise, op, as_value(x), y)
    out = op.infer(as_value(x).type, y.type)
    found = np.asarray(forms.of_pointwise(op, as_value(x), y, out))
    assert np.isfinite(found[1, 3:]).all() and not np.isfinite(found[1, :3, 2]).any()


@pytest.mark.parametrize("size", [4, 9])
def test_mapped_and_compiled_with_derivatives(size):
    random = np.random.default_rng(0)
    x = random.standard_normal((3, 2, 8, size, size)).astype(np.float32)
    w = random.standard_normal((3, 16, 8, 1, 1)).astype(np.float32)

    def loss(x, w):
        y = lax.conv_general_dilated(x, w, (1, 1), "VALID", feature_group_count=2)
        return (y**2).sum()

    w = w[:, :, :4]
    gradients = st.jit(st.vmap(st.value_and_grad(loss, (0, 1))))(x, w)
    with st.config(enable_x64=True):
        each = [st.value_and_grad(loss, (0, 1))(*map(snp.float64, pair)) for pair in zip(x, w)]
    exact = st.tree.leaves(st.tree.map(lambda *parts: np.stack(parts), *each))
    for got, want in zip(st.tree.leaves(gradients), exact, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())


def test_lowered_so_for_features_before_positions():
    x, w = snp.ones((2, 32, 9, 9)), snp.ones((16, 16, 1, 1))
    first = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", feature_group_count=2)
    text = st.jit(first).lower(x, w).as_text()
    assert text.count("stablehlo.dot_general") == 1
    assert "stablehlo.convolution" not in text and "stablehlo.concatenate" not in text
    (equation,) = st.make_graph(first)(x, w).equations
    assert forms.suits_pointwise(equation.primitive, x.type, w.type)
    last = dataclasses.replace(
        equation.primitive, dims=ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    )
    image, kernel = snp.ones((2, 9, 9, 32)), snp.ones((1, 1, 16, 16))
    assert not forms.suits_pointwise(last, image.type, kernel.type)


@settings(max_examples=100)
@given(convolutions(in_gaps=True))
def test_values_of_scattered(case):
    op, x, y = case
    assert forms.suits_scattered(op, x.type, y.type)
    check(forms.of_scattered, op, x, y)


def test_does_not_suit_windows_that_meet():
    dims = ConvDimensionNumbers(*(((0, 1, 2),) * 3))
    x, y = (as_value(np.ones((1, 1, 5), np.float32)), as_value(np.ones((1, 1, 3), np.float32)))
    meet = ConvGeneralDilated((1,), ((2, 2),), (2,), (1,), dims)
    assert not forms.suits_scattered(meet, x.type, y.type)
    assert not forms.suits_scattered(
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
    check(forms.of_scattered, op, as_value(x), y)


def test_zeros_between_elements_are_not_multiplied():
    """An infinite weight stays with the outputs that it meets, as in the kernel's own gradient."""
    op = ConvGeneralDilated((1,), ((0, 0),), (2,), (1,), ConvDimensionNumbers(*(((0, 1, 2),) * 3)))
    x, y = np.ones((1, 1, 3), np.float32), np.array([[[np.inf]]], np.float32)
    out = op.infer(as_value(x).type, as_value(y).type)
    got = forms.of_scattered(op, as_value(x), as_value(y), out)
    np.testing.assert_array_equal(got, [[[np.inf, 0, np.inf, 0, np.inf]]])


def typed(shape, dtype="float32"):
    return array_type(shape, np.dtype(dtype))


def asked(suits, lhs, rhs, dtype="float32", **settings):
    """Ask for images and kernels with their features in front, of any settings."""
    n = len(lhs) - 2
    first = ConvDimensionNumbers(*((tuple(range(n + 2)),) * 3))
    usual = {"strides": (1,) * n, "padding": ((0, 0),) * n, "dims": first}
    usual |= {"lhs_dilation": (1,) * n, "rhs_dilation": (1,) * n}
    op = ConvGeneralDilated(**(usual | settings))
    types = typed(lhs, dtype), typed(rhs, dtype)
    if suits in (forms.suits_pointwise, forms.suits_scattered):
        return suits(op, *types)
    return suits(op, *types, op.infer(*types))


@pytest.mark.parametrize(
    ("suits", "lhs", "rhs", "settings"),
    [
        (forms.suits_elements, (4, 32, 9), (4, 32, 3), {}),
        (forms.suits_planes, (4, 8, 5, 9, 9), (4, 8, 3, 3, 3), {}),
        (forms.suits_scattered, (4, 8, 9), (4, 8, 2), {"lhs_dilation": (2,)}),
        (forms.suits_positions, (4, 8, 9), (4, 8, 9), {}),
        (forms.suits_positions_together, (4, 2, 9), (8, 2, 6), {}),
        (forms.reason_for_windows, (4, 8, 9), (4, 8, 1), {}),
    ],
)
def test_suits_floats_and_complex_numbers_without_groups(suits, lhs, rhs, settings):
    for dtype in ("float32", "float64", "complex64"):
        assert asked(suits, lhs, rhs, dtype, **settings)
    for dtype in ("int32", "uint8"):
        assert not asked(suits, lhs, rhs, dtype, **settings)
    if suits is forms.suits_positions:
        return
    batch, features, *rest = lhs
    assert not asked(suits, (batch, 2 * features, *rest), rhs, feature_groups=2, **settings)
    assert not asked(suits, lhs, rhs, batch_groups=2, **settings)


def test_elements_are_not_added_up_in_another_dtype():
    lhs, rhs = (4, 32, 9), (4, 32, 3)
    for dtype, preferred in (("float32", "float64"), ("float64", "float32"), ("float16", None)):
        wide = None if preferred is None else np.dtype(preferred)
        assert not asked(forms.suits_elements, lhs, rhs, dtype, preferred=wide)
    assert not asked(forms.suits_elements, lhs, rhs, lhs_dilation=(2,))
    assert asked(forms.suits_elements, lhs, rhs, strides=(2,))
    assert not asked(forms.suits_elements, lhs, rhs, strides=(3,))  # windows do not overlap


@pytest.mark.parametrize(
    ("lhs", "rhs", "settings", "suits"),
    [
        ((2, 8, 9), (4, 4, 1), {"feature_groups": 2}, True),
        ((2, 9, 9), (3, 3, 1), {"feature_groups": 3}, True),
        ((2, 4, 9), (4, 4, 1), {}, False),
        ((4, 8, 9), (4, 8, 1), {"batch_groups": 2}, False),
        ((2, 8, 9), (4, 4, 2), {"feature_groups": 2}, False),
        ((2, 8), (4, 4), {"feature_groups": 2}, False),  # no positions
    ],
    ids=str,
)
def test_suits_groups_of_single_elements(lhs, rhs, settings, suits):
    assert asked(forms.suits_pointwise, lhs, rhs, **settings) is suits
    assert asked(forms.suits_pointwise, lhs, rhs, "complex64", **settings) is suits
    assert not asked(forms.suits_pointwise, lhs, rhs, "int32", **settings)


@pytest.mark.parametrize(
    ("window", "settings", "suits"),
    [
        ((2, 1), {"lhs_dilation": (2, 1)}, True),
        ((2, 2), {"lhs_dilation": (2, 1)}, False),  # wider than a gap
        ((2, 1), {"lhs_dilation": (3, 1)}, True),
        ((1, 1), {"lhs_dilation": (1, 1)}, False),  # no gaps
        ((2, 1), {"lhs_dilation": (2, 1), "strides": (1, 2)}, False),
        ((2, 1), {"lhs_dilation": (2, 1), "rhs_dilation": (2, 1)}, False),
        ((2, 1), {"lhs_dilation": (2, 1), "rhs_dilation": (1, 2)}, True),
    ],
    ids=str,
)
def test_suits_windows_in_gaps(window, settings, suits):
    assert asked(forms.suits_scattered, (2, 3, 5, 5), (4, 3, *window), **settings) is suits


@pytest.mark.parametrize(
    ("window", "settings", "apart"),
    [
        ((2, 3), {"strides": (2, 3)}, True),
        ((2, 3), {"strides": (2, 2)}, False),
        ((2, 3), {"strides": (3, 9)}, True),
        ((2, 3), {"strides": (3, 5), "rhs_dilation": (2, 2)}, False),  # elements lie between
        ((1, 3), {"strides": (1, 3), "rhs_dilation": (5, 1)}, True),
    ],
    ids=str,
)
def test_windows_that_do_not_overlap(window, settings, apart):
    reason = asked(forms.reason_for_windows, (2, 64, 30, 30), (64, 64, *window), **settings)
    assert reason == ("its windows do not overlap" if apart else None)


@pytest.mark.parametrize(
    ("lhs", "rhs", "larger"),
    [
        ((2, 70, 9, 9), (9, 70, 3, 3), False),
        ((2, 70, 9, 2), (9, 70, 3, 2), False),
        ((2, 70, 9, 2), (9, 70, 3, 3), True),  # than the image along one axis
        ((2, 70, 9, 9), (4 * 49, 70, 3, 3), True),  # output features for each two positions
        ((2, 70, 9, 9), (4 * 49 - 1, 70, 3, 3), False),
    ],
    ids=str,
)
def test_kernels_larger_than_what_they_meet(lhs, rhs, larger):
    padding = ((1, 1),) * 2 if rhs[3] > lhs[3] else ((0, 0),) * 2
    reason = asked(forms.reason_for_windows, lhs, rhs, padding=padding)
    assert reason == (
        "the kernel is larger than the image, or than what its windows take" if larger else None
    )


@pytest.mark.parametrize("spec", ["OIHW", "OHWI", "HWOI", "IOHW", "IHWO", "HWIO"])
def test_kernels_with_their_output_features_last_need_not_be_turned(spec):
    """So many output features are a reason only where XLA would turn the kernel round."""
    sizes = {"O": 4 * 49, "I": 70, "H": 3, "W": 3}
    lhs, rhs = (2, 70, 9, 9), tuple(map(sizes.get, spec))
    dims = conv_dimension_numbers(lhs, rhs, ("NCHW", spec, "NCHW"))
    reason = asked(forms.reason_for_windows, lhs, rhs, dims=dims)
    assert bool(reason) == (spec.index("O") < spec.index("I"))


@pytest.mark.parametrize(("spec", "rows"), [((0, 1, 2), 5), ((2, 1, 0), 18)])
def test_a_kernel_larger_than_the_image_stays_in_its_order(spec, rows):
    """Its output features are the rows of the product, or last its columns."""
    dims = ConvDimensionNumbers((0, 1, 2), spec, (0, 1, 2))
    op = ConvGeneralDilated((1,), ((4, 4),), (1,), (1,), dims)
    x, w = snp.ones((3, 2, 2)), snp.ones((5, 2, 5) if spec[0] == 0 else (5, 2, 5)[::-1])
    out = op.infer(x.type, w.type)
    program = st.make_graph(lambda x, w: forms.of_windows(op, x, w, out))(x, w)
    (product,) = [e for e in program.equations if e.primitive.name == "dot_general"]
    assert product.outputs[0].type.shape[0] == rows


@pytest.mark.parametrize(("spec", "rows"), [((0, 2, 1), 12), ((0, 1, 2), 5), ((1, 2, 0), 12)])
def test_windows_are_rows_where_features_come_last(spec, rows):
    """Elsewhere they are columns, and the five output features are rows."""
    op = ConvGeneralDilated(
        (2,), ((0, 0),), (1,), (1,), ConvDimensionNumbers(spec, (0, 1, 2), spec)
    )
    shape = [0, 0, 0]
    for axis, size in zip(spec, (3, 2, 8), strict=True):
        shape[axis] = size
    x, w = snp.ones(tuple(shape)), snp.ones((5, 2, 2))
    out = op.infer(x.type, w.type)
    program = st.make_graph(lambda x, w: forms.of_windows(op, x, w, out))(x, w)
    (product,) = [e for e in program.equations if e.primitive.name == "dot_general"]
    assert product.inputs[0].type.shape[0] == rows


@pytest.mark.parametrize(
    ("spec", "groups", "width", "suits"),
    [
        ((0, 1, 2), 2, 1, True),
        ((1, 0, 2), 2, 1, True),
        ((0, 2, 1), 2, 1, False),
        ((0, 1, 2), 1, 1, False),
        ((0, 1, 2), 2, 2, False),
        ((0, 1), 2, 1, False),
        ((1, 0), 2, 1, False),
    ],
)
def test_single_elements_in_groups_whose_features_come_before_positions(spec, groups, width, suits):
    n = len(spec) - 2
    dims = ConvDimensionNumbers(spec, tuple(range(n + 2)), spec)
    op = ConvGeneralDilated((1,) * n, ((0, 0),) * n, (1,) * n, (1,) * n, dims, groups)
    shape = [0] * (n + 2)
    for axis, size in zip(spec, (3, 4, 8)[: n + 2], strict=True):
        shape[axis] = size
    x, w = snp.ones(tuple(shape)), snp.ones((6, 4 // groups, *[width] * n))
    assert forms.suits_pointwise(op, x.type, w.type) is suits


@pytest.mark.parametrize(
    ("examples", "positions", "each"), [(2, 64, True), (2, 63, False), (1, 3, True)]
)
def test_groups_of_many_positions_have_a_product_for_each_example(examples, positions, each):
    op = ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), FIRST_POINTWISE, feature_groups=2)
    x, w = snp.ones((examples, 4, positions)), snp.ones((6, 2, 1))
    out = op.infer(x.type, w.type)
    program = st.make_graph(lambda x, w: forms.of_pointwise(op, x, w, out))(x, w)
    (product,) = [e.primitive for e in program.equations if e.primitive.name == "dot_general"]
    assert len(product.shared[0]) == (2 if each else 1)


# Many slices of one image


@pytest.mark.parametrize(
    ("form", "image", "kernel", "groups"),
    [
        (forms.as_planes, (2, 3, 5, 4, 4), (4, 3, 3, 3, 3), 1),
        (forms.of_positions, (2, 3, 6, 6), (4, 3, 5, 5), 1),
        (forms.of_positions, (6, 5, 2, 3), (4, 5, 1, 2), 1),
        (forms.of_positions, (2, 6, 6, 6), (4, 3, 5, 5), 2),
        (forms.by_row, (2, 3, 6, 6), (4, 3, 2, 2), 1),
        (forms.by_row, (2, 3, 6, 6), (4, 3, 5, 5), 1),
        (forms.by_example, (2, 3, 6, 6), (4, 3, 2, 2), 1),
        (forms.by_example, (2, 3, 6, 6), (4, 3, 5, 5), 1),
        (forms.by_column, (2, 3, 6, 6), (4, 3, 2, 2), 1),
    ],
)
def test_the_compiler_does_not_learn_where_slices_begin(form, image, kernel, groups):
    """So that it compiles one kernel for those at many places."""
    n = len(image) - 2
    dims = ConvDimensionNumbers(*((tuple(range(n + 2)),) * 3))
    op = ConvGeneralDilated((1,) * n, ((0, 0),) * n, (1,) * n, (1,) * n, dims, groups)
    types = [array_type(shape, np.dtype(np.float32)) for shape in (image, kernel)]
    out = op.infer(*types)
    program = record(lambda x, y: ([form(op, x, y, out)], None), types)[0]
    slices = [e.primitive for e in program.equations if e.primitive.name == "slice"]
    assert len(slices) > 1 and all([each.hidden for each in slices])
