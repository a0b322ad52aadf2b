"""The form of a convolution follows from its geometry, and its lowering writes that form."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.types import array_type
from stretto._engine.ops.convolution.formulation import formulation, suits_kernel
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import conv_dimension_numbers
from tests._engine.ops.convolution.cases import form_of

CASES = {
    # image, kernel, groups, dtype: name, a word of the reason, convolutions in the text
    "plain": ((2, 8, 9, 9), (4, 8, 3, 3), 1, "float32", "XLA's convolution", "no groups", 1),
    "one element": ((2, 8, 9, 9), (4, 8, 1, 1), 1, "float32", "windows in one product", "over", 0),
    "few outputs": ((2, 32, 9, 9), (3, 32, 3, 3), 1, "float32", "elements, then", "few", 0),
    "few inputs": ((2, 3, 9, 9), (4, 3, 3, 3), 1, "float32", "windows in one product", "few", 0),
    "depthwise": ((2, 8, 9, 9), (8, 1, 3, 3), 8, "float32", "sum of shifted slices", "few", 0),
    "wide groups": ((2, 32, 9, 9), (16, 16, 3, 3), 2, "float32", "groups written out", "2 gr", 2),
    "many groups": ((1, 520, 5, 5), (65, 8, 3, 3), 65, "float32", "XLA's convolution", "65 gr", 1),
    "many terms": ((1, 2, 20, 20), (2, 1, 12, 12), 2, "float32", "XLA's convolution", "144", 1),
    "few positions": ((2, 5, 7, 7), (4, 5, 7, 7), 1, "float32", "positions in one", "few ex", 0),
    "large kernel": ((2, 3, 2, 2), (4, 3, 5, 5), 1, "float32", "windows in one product", "im", 0),
    "integers": ((2, 3, 2, 2), (4, 3, 5, 5), 1, "int32", "XLA's convolution", "integers", 1),
    "empty": ((0, 3, 9, 9), (4, 3, 3, 3), 1, "float32", "zeros", "nothing", 0),
}


@pytest.mark.parametrize("case", CASES)
def test_by_geometry(case):
    image, kernel, groups, dtype, name, why, count = CASES[case]
    x, w = snp.ones(image, dtype), snp.ones(kernel, dtype)
    conv = lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), [(2, 2), (2, 2)], feature_group_count=groups
    )
    (equation,) = st.make_graph(conv)(x, w).equations
    chosen = formulation(equation.primitive, x.type, w.type, equation.outputs[0].type)
    assert chosen.name.startswith(name)
    assert why in chosen.reason
    assert st.jit(conv).lower(x, w).as_text().count("stablehlo.convolution") == count


def test_the_batch_in_groups():
    """The gradient of a depthwise convolution by its kernel has the form of few positions."""
    x, w = snp.ones((2, 8, 9, 9)), snp.ones((8, 1, 3, 3))
    loss = lambda w: lax.conv_general_dilated(x, w, (1, 1), "VALID", feature_group_count=8).sum()
    graph = st.make_graph(st.grad(loss))(w)
    back = [e for e in graph.equations if getattr(e.primitive, "batch_groups", 1) > 1]
    names = []
    for equation in back:
        lhs, rhs = [a.type for a in equation.inputs]
        names.append(formulation(equation.primitive, lhs, rhs, equation.outputs[0].type).name)
    assert names == ["sum of shifted slices"]


RATES = {
    # image, kernel, groups: the fraction of the best rate of multiply-adds
    "few positions of groups": (((3, 10, 9, 9), (6, 5, 8, 8), 2), 0.5),
    "shifted": (((2, 8, 9, 9), (8, 1, 3, 3), 8), 0.12),
    "shifted, of several inputs": (((2, 8, 9, 9), (8, 2, 3, 3), 4), 0.12),
    "elements": (((2, 32, 9, 9), (3, 32, 3, 3)), 0.3),
    "windows of few features": (((2, 3, 9, 9), (4, 3, 3, 3)), 0.5 / 4),
    "windows of many outputs": (((2, 3, 9, 9), (32, 3, 3, 3)), 0.5),
    "windows of many features": (((2, 64, 9, 9), (32, 64, 1, 1)), 0.5),
    "planes of few features": (((2, 8, 5, 9, 9), (32, 8, 3, 3, 3)), 0.24),
    "planes": (((2, 64, 5, 9, 9), (32, 64, 3, 3, 3)), 0.45),
    "positions together": (((2, 6, 14, 14), (8, 6, 8, 8)), 0.5),
    "groups written out": (((2, 12, 9, 9), (16, 6, 3, 3), 2), 0.8 * 0.5 * 8 / 16),
    "wide groups written out": (((2, 64, 9, 9), (64, 32, 3, 3), 2), 0.8 * 0.5 * 32 / 48),
    "XLA's": (((2, 8, 9, 9), (4, 8, 3, 3)), 0.42 * 4 / 20),
    "XLA's of many features": (((2, 64, 9, 9), (64, 64, 3, 3)), 0.5 * 64 / 80),
    "XLA's of one feature": (((2, 1, 99, 99), (4, 1, 15, 15)), 0.01),
    "XLA's in groups": (((1, 520, 5, 5), (65, 8, 3, 3), 65), 0.006),
}


@pytest.mark.parametrize("what", RATES)
def test_the_rate_that_a_form_is_expected_to_reach(what):
    (image, kernel, *groups), rate = RATES[what]
    assert form_of(image, kernel, *groups).fraction == pytest.approx(rate, rel=0.02)


def test_shifted_slices_of_several_features_last_are_slower():
    last = ("NHWC", "HWIO", "NHWC")
    for inputs, rate in ((1, 0.12), (2, 0.05)):
        form = form_of((2, 9, 9, 4 * inputs), (3, 3, inputs, 8), 4, last)
        assert form.fraction == pytest.approx(rate, rel=0.02)


def test_nothing_to_sum_takes_no_time_and_gives_zeros():
    for image, kernel in (((0, 3, 9, 9), (4, 3, 3, 3)), ((2, 0, 9, 9), (4, 0, 3, 3))):
        assert form_of(image, kernel)[:1] == ("zeros",) and form_of(image, kernel).fraction == 1
    x, w = snp.ones((2, 0, 9, 9)), snp.ones((4, 0, 3, 3))
    conv = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID")
    np.testing.assert_array_equal(st.jit(conv)(x, w), np.zeros((2, 4, 7, 7)))


LAST = ("NHWC", "HWIO", "NHWC")
SUITS = {
    # image, kernel, what is not plain: whether a kernel of ours is called
    "plain": ((2, 8, 9, 9), (8, 8, 3, 3), {}, True),
    "one axis": ((2, 8, 20), (8, 8, 3), {}, True),
    "volumes": ((2, 8, 9, 9, 9), (8, 8, 3, 3, 3), {}, False),
    "nothing": ((0, 8, 9, 9), (8, 8, 3, 3), {}, False),
    "a precision": ((2, 8, 9, 9), (8, 8, 3, 3), {"precision": "HIGHEST"}, False),
    "float64": ((2, 8, 9, 9), (8, 8, 3, 3), {"dtype": "float64"}, True),
    "float16": ((2, 8, 9, 9), (8, 8, 3, 3), {"dtype": "float16"}, True),
    "bfloat16 to float32": (
        (2, 8, 9, 9),
        (8, 8, 3, 3),
        {"dtype": "bfloat16", "preferred": np.dtype("float32")},
        True,
    ),
    "float16, each channel alone": (
        (2, 8, 40, 40),
        (8, 1, 3, 3),
        {"dtype": "float16", "feature_groups": 8},
        False,
    ),
    "other sums": ((2, 8, 9, 9), (8, 8, 3, 3), {"preferred": np.dtype("float64")}, False),
    "features last": ((2, 20, 20, 8), (3, 3, 8, 8), {"names": LAST}, False),
    "one feature last": ((2, 40, 40, 1), (4, 4, 1, 32), {"names": LAST}, True),
    "rows of one element": ((2, 40, 1, 1), (16, 1, 1, 8), {"names": LAST}, True),
    "rows of one element apart": ((2, 40, 1, 8), (16, 1, 8, 8), {"names": LAST}, False),
    "enough work": ((1, 4, 19), (8, 4, 4), {}, True),
    "too little work": ((1, 4, 18), (8, 4, 4), {}, False),
    "enough work in groups": ((1, 8, 19), (16, 4, 4), {"feature_groups": 2}, True),
    "too little work in groups": ((1, 8, 18), (16, 4, 4), {"feature_groups": 2}, False),
    "few terms": ((4, 5, 42), (8, 5, 3), {}, False),
    "few terms in groups": ((4, 10, 42), (8, 5, 3), {"feature_groups": 2}, True),
    "windows of one element": ((2, 32, 20), (16, 32, 1), {}, True),
    "strides between such": ((2, 128, 23), (16, 128, 1), {"strides": (2,)}, True),
    "to short rows": ((2, 128, 22), (16, 128, 1), {"strides": (2,)}, False),
    "of many terms": ((2, 129, 23), (16, 129, 1), {"strides": (2,)}, False),
    "strides": ((2, 8, 40), (16, 8, 3), {"strides": (2,)}, True),
    "a spread image": ((4, 8, 14), (8, 8, 4), {"lhs_dilation": (2,)}, True),
    "of short rows": ((4, 8, 13), (8, 8, 4), {"lhs_dilation": (2,)}, False),
    "of short rows, broad": ((4, 128, 5), (128, 128, 4), {"lhs_dilation": (2,)}, True),
    "of short rows, few inputs": ((4, 127, 5), (128, 127, 4), {"lhs_dilation": (2,)}, False),
    "of short rows, few outputs": ((4, 128, 5), (127, 128, 4), {"lhs_dilation": (2,)}, False),
    "of few terms": ((4, 7, 14), (8, 7, 4), {"lhs_dilation": (2,)}, False),
    "of too little work": ((1, 8, 14), (5, 8, 4), {"lhs_dilation": (2,)}, False),
    "in gaps": ((4, 32, 20), (8, 32, 2), {"lhs_dilation": (2,)}, False),
    "spread, with strides": ((4, 8, 30), (8, 8, 4), {"lhs_dilation": (2,), "strides": (2,)}, False),
    "spread, with strides beside": (
        (4, 8, 9, 14),
        (8, 8, 3, 4),
        {"lhs_dilation": (1, 2), "strides": (2, 1)},
        True,
    ),
    "few positions, few terms": ((8, 1, 258), (8, 1, 256), {}, False),
    "few positions, more terms": ((8, 1, 259), (8, 1, 257), {}, True),
    "few positions, more inputs": ((8, 8, 18), (8, 8, 16), {}, True),
    "few terms of three by three": (
        (128, 4, 8, 8),
        (127, 4, 8, 8),
        {"padding": ((1, 1),) * 2},
        False,
    ),
    "fewer products": ((128, 4, 8, 8), (128, 4, 8, 8), {"padding": ((1, 1),) * 2}, True),
    "one position": ((8, 1, 256), (8, 1, 256), {}, True),
}


@pytest.mark.parametrize("what", SUITS)
def test_when_a_kernel_of_ours_is_called(what):
    image, kernel, settings, suits = SUITS[what]
    ones, settings = (1,) * (len(image) - 2), dict(settings)
    dtype = np.dtype(settings.pop("dtype", "float32"))
    plain = {
        "strides": ones,
        "padding": ((0, 0),) * len(ones),
        "lhs_dilation": ones,
        "rhs_dilation": ones,
        "dims": conv_dimension_numbers(image, kernel, settings.pop("names", None)),
    }
    op = ConvGeneralDilated(**{**plain, **settings})
    lhs, rhs = (array_type(shape, dtype) for shape in (image, kernel))
    assert suits_kernel(op, lhs, rhs, op.infer(lhs, rhs)) is suits
