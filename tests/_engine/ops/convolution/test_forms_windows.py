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
from stretto._engine.ops.convolution import forms
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from tests._engine.ops.convolution.cases import check, convolutions, whole

FORMS = {"columns": forms.by_column, "rows": forms.by_row, "examples": forms.by_example}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=100)
@given(convolutions())
def test_values(form, case):
    check(FORMS[form], *case)


@settings(max_examples=60)
@given(convolutions(), hs.integers(0, 2))
def test_values_of_windows_apart(case, gap):
    op, x, y = case
    window = tuple(y.shape[a] for a in op.dims.rhs_spec[2:])
    op = dataclasses.replace(
        op, strides=tuple(k + gap for k in window), rhs_dilation=(1,) * len(window)
    )
    out = op.infer(x.type, y.type)
    if out.size:
        assert forms.reason_for_windows(op, x.type, y.type, out) == "its windows do not overlap"
        check(forms.of_windows, op, x, y)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_nan_and_infinities(form, value, place):
    op = ConvGeneralDilated((1,), ((1, 1),), (1,), (1,), ConvDimensionNumbers(*(((0, 1, 2),) * 3)))
    x, y = np.array(whole(0, (2, 2, 5))), np.array(whole(1, (3, 2, 3)))
    (x, y)[place].reshape(-1)[0] = value
    check(FORMS[form], op, as_value(x), as_value(y))


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
