"""The form of a convolution follows from its geometry, and its lowering writes that form."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.types import array_type
from stretto._engine.ops.convolution.formulation import formulation
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import conv_dimension_numbers

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


LAST, KERNEL_FIRST = ("CHWN", "IHWO", "NCHW"), ("NCHW", "OIHW", "CNHW")
XLA, WINDOWS, TOGETHER = "XLA's convolution", "windows in one product", "positions in one product"
BORDERS = {
    # what is counted: image and kernel where the form still serves, and with one more or one less
    "output features": ("elements, then sums over windows", XLA,
        ((2, 32, 9, 9), (4, 32, 3, 3)), ((2, 32, 9, 9), (5, 32, 3, 3))),
    "input features": ("elements, then sums over windows", XLA,
        ((2, 16, 9, 9), (3, 16, 3, 3)), ((2, 15, 9, 9), (3, 15, 3, 3))),
    "elements of a window": ("elements, then sums over windows", XLA,
        ((2, 32, 20, 20), (3, 32, 8, 8)), ((2, 32, 20, 20), (3, 32, 5, 13))),
    "copies of a plane": ("planes of a volume", XLA,
        ((2, 64, 16, 20, 20), (8, 64, 9, 3, 3)), ((2, 64, 17, 20, 20), (8, 64, 9, 3, 3))),
    "planes of a window": ("planes of a volume", XLA,
        ((2, 64, 71, 20, 20), (8, 64, 64, 3, 3)), ((2, 64, 72, 20, 20), (8, 64, 65, 3, 3))),
    "positions": (TOGETHER, XLA,
        ((2, 5, 14, 14), (4, 5, 8, 8)), ((2, 5, 57, 8), (8, 5, 8, 8))),
    "elements of all positions": (TOGETHER, XLA,
        ((1, 5, 513, 513), (4, 5, 512, 512)), ((1, 5, 513, 514), (4, 5, 512, 513))),
    "examples": (TOGETHER, XLA,
        ((2, 6, 14, 14), (8, 6, 8, 8)), ((2, 7, 14, 14), (8, 7, 8, 8))),
    "examples, features last": (TOGETHER, XLA,
        ((3, 14, 14, 2), (3, 8, 8, 8), 1, LAST), ((4, 14, 14, 2), (4, 8, 8, 8), 1, LAST)),
    "elements of a gradient's windows": (TOGETHER, XLA,
        ((2048, 8, 6, 9), (256, 8, 5, 8), 1, KERNEL_FIRST),
        ((2049, 8, 6, 9), (256, 8, 5, 8), 1, KERNEL_FIRST)),
    "elements of a gradient": (TOGETHER, XLA,
        ((128, 8, 6, 6), (256, 8, 5, 5), 1, KERNEL_FIRST),
        ((128, 8, 6, 6), (255, 8, 5, 5), 1, KERNEL_FIRST)),
    "rows of a group": ("products by position", "groups written out",
        ((3, 10, 9, 9), (6, 5, 8, 8), 2), ((2, 10, 9, 9), (6, 5, 8, 8), 2)),
    "terms of a sum": ("sum of shifted slices", XLA,
        ((2, 2, 20, 50), (2, 1, 8, 16), 2), ((2, 2, 20, 50), (2, 1, 3, 43), 2)),
    "features of a group": ("sum of shifted slices", "groups written out",
        ((2, 8, 9, 9), (4, 4, 3, 3), 2), ((2, 10, 9, 9), (4, 5, 3, 3), 2)),
    "slices of windows": (WINDOWS, XLA,
        ((1, 70, 18, 27), (264, 70, 8, 16)), ((1, 70, 13, 54), (264, 70, 3, 43))),
    "terms of a window": (WINDOWS, XLA,
        ((2, 1, 20, 20), (8, 1, 8, 8)), ((2, 1, 20, 20), (8, 1, 5, 13))),
    "elements of windows": (WINDOWS, XLA,
        ((1, 1, 513, 515), (8, 1, 2, 4)), ((1, 1, 514, 515), (8, 1, 2, 4))),
    "groups": ("groups written out", XLA,
        ((1, 512, 5, 5), (64, 8, 3, 3), 64), ((1, 520, 5, 5), (65, 8, 3, 3), 65)),
}  # fmt: skip


def form_of(image, kernel, groups=1, names=None):
    ones = (1,) * (len(image) - 2)
    padding, dims = ((0, 0),) * len(ones), conv_dimension_numbers(image, kernel, names)
    op = ConvGeneralDilated(ones, padding, ones, ones, dims, groups)
    x, w = (array_type(shape, np.dtype(np.float32)) for shape in (image, kernel))
    return formulation(op, x, w, op.infer(x, w))


@pytest.mark.parametrize("what", BORDERS)
def test_up_to_which_sizes_a_form_serves(what):
    inside, outside, last, beyond = BORDERS[what]
    assert form_of(*last).name == inside
    assert form_of(*beyond).name == outside


RATES = {
    # image, kernel, groups: the fraction of the best rate of multiply-adds
    "few positions of groups": (((3, 10, 9, 9), (6, 5, 8, 8), 2), 0.5),
    "shifted": (((2, 8, 9, 9), (8, 1, 3, 3), 8), 0.12),
    "shifted, of several inputs": (((2, 8, 9, 9), (8, 2, 3, 3), 4), 0.12),
    "elements": (((2, 32, 9, 9), (3, 32, 3, 3)), 0.3),
    "windows of few features": (((2, 3, 9, 9), (4, 3, 3, 3)), 0.03 * 3 / 4),
    "windows of many outputs": (((2, 3, 9, 9), (32, 3, 3, 3)), 0.09),
    "windows of many features": (((2, 64, 9, 9), (32, 64, 1, 1)), 0.5),
    "planes of few features": (((2, 8, 5, 9, 9), (32, 8, 3, 3, 3)), 0.24),
    "planes": (((2, 64, 5, 9, 9), (32, 64, 3, 3, 3)), 0.45),
    "positions together": (((2, 6, 14, 14), (8, 6, 8, 8)), 0.5),
    "groups written out": (((2, 12, 9, 9), (16, 6, 3, 3), 2), 0.8 * 0.03 * 5 / 2),
    "wide groups written out": (((2, 64, 9, 9), (64, 32, 3, 3), 2), 0.8 * 0.45),
    "XLA's": (((2, 8, 9, 9), (4, 8, 3, 3)), 0.03 * 7 / 4),
    "XLA's of many features": (((2, 64, 9, 9), (64, 64, 3, 3)), 0.45),
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
