"""Convolutions with groups as sums of shifted slices: the same as the definition."""

import hypothesis.strategies as hs
import numpy as np
import pytest
from hypothesis import given, settings

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import array_type
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convolution import forms
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from tests._engine.ops.convolution.cases import check, convolutions, whole

FORMS = {
    "features": forms.of_feature_groups,
    "batch": forms.of_batch_groups,
    "diagonals": forms.of_diagonals,
}


@pytest.mark.parametrize("kind", FORMS)
@settings(max_examples=60)
@given(hs.data())
def test_values(kind, data):
    grouped = ["features" if kind == "features" else "batch"]
    check(FORMS[kind], *data.draw(convolutions(grouped)))


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "complex64"])
def test_dtypes(kind, dtype):
    last = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    groups = {"feature_groups": 2} if kind == "features" else {"batch_groups": 2}
    op = ConvGeneralDilated((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), last, **groups)
    x, y = whole(0, (2, 4, 5, 4), dtype), whole(1, (2, 2, 2 if kind == "features" else 4, 6), dtype)
    want = op(x, y)
    got = FORMS[kind](op, x, y, want.type)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", FORMS)
def test_nan_and_infinities(kind, value):
    first = ConvDimensionNumbers(*(((0, 1, 2),) * 3))
    groups = {"feature_groups": 2} if kind == "features" else {"batch_groups": 2}
    op = ConvGeneralDilated((1,), ((1, 1),), (1,), (1,), first, **groups)
    for place in (0, 1):
        x = np.array(whole(0, (2, 2, 5)))
        y = np.array(whole(1, (2, 1 if kind == "features" else 2, 3)))
        (x, y)[place].reshape(-1)[0] = value
        check(FORMS[kind], op, as_value(x), as_value(y))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(("stride", "dilation", "multiplier"), [(1, 1, 1), (2, 1, 2), (1, 2, 1)])
def test_depthwise_with_derivatives_compiled(channels_last, stride, dilation, multiplier):
    """The loop over channels, each a convolution of its own."""
    channels, random = 5, np.random.default_rng(0)
    x = random.standard_normal((2, channels, 7, 6)).astype(np.float32)
    w = random.standard_normal((channels * multiplier, 1, 3, 2)).astype(np.float32)
    layout = ("NHWC", "OIHW", "NHWC") if channels_last else ("NCHW", "OIHW", "NCHW")
    pads = [(1, 2), (0, 1)]

    def depthwise(x, w):
        if channels_last:
            x = snp.transpose(x, (0, 2, 3, 1))
        out = lax.conv_general_dilated(
            *(x, w, (stride, stride), pads, None, (dilation, dilation), layout, channels)
        )
        return snp.transpose(out, (0, 3, 1, 2)) if channels_last else out

    def one_by_one(x, w):
        kernels = [w[c * multiplier : (c + 1) * multiplier] for c in range(channels)]
        options = (stride, stride), pads, None, (dilation, dilation)
        outs = [
            lax.conv_general_dilated(x[:, c : c + 1], k, *options) for c, k in enumerate(kernels)
        ]
        return snp.concatenate(outs, 1)

    loss = lambda f: lambda x, w: (f(x, w) ** 2).sum()
    np.testing.assert_allclose(st.jit(depthwise)(x, w), one_by_one(x, w), rtol=1e-5, atol=1e-5)
    got = st.jit(st.grad(loss(depthwise), (0, 1)))(x, w)
    for g, want in zip(got, st.grad(loss(one_by_one), (0, 1))(x, w), strict=True):
        np.testing.assert_allclose(g, want, rtol=1e-4, atol=1e-3)


def test_lowered_so_where_that_suits():
    def convolutions(features, groups, window, loss=None):
        x, w = snp.ones((4, features, 9, 9)), snp.ones((features, features // groups, *window))
        options = {"feature_group_count": groups}
        conv = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", **options)
        slopes = st.grad(lambda x, w: (conv(x, w) ** 2).sum(), (0, 1))
        texts = [st.jit(f).lower(x, w).as_text() for f in (conv, slopes)]
        return tuple(text.count("stablehlo.convolution") for text in texts)

    assert convolutions(8, 8, (3, 3)) == (0, 0)
    assert convolutions(8, 1, (3, 3)) == (1, 2)  # the gradient by the kernel is one product
    assert convolutions(64, 4, (3, 3)) == (4, 8)  # of many features each
    assert convolutions(8, 8, (9, 9)) == (0, 0)


def test_convolutions_of_one_geometry_share_a_function():
    x, w = snp.ones((2, 3, 12, 12)), snp.ones((3, 1, 3, 3))
    conv = lambda x: lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=3)
    text = st.jit(lambda x: conv(snp.tanh(conv(x)))).lower(x).as_text()
    assert text.count("func.call") == 2
    assert text.count("func.func private") == 1


def test_slopes_of_a_wide_window_by_diagonals():
    x, w = snp.ones((2, 3, 12, 12)), snp.ones((3, 1, 7, 7))
    conv = lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), [(3, 3), (3, 3)], feature_group_count=3
    )
    slope = st.jit(st.grad(lambda w: (conv(x, w) ** 2).sum()))
    assert slope.lower(w).as_text().count("stablehlo.dot_general") == 7
    np.testing.assert_allclose(slope(w), st.grad(lambda w: (conv(x, w) ** 2).sum())(w), rtol=1e-5)


@pytest.mark.parametrize("kind", ["features", "batch"])
@settings(max_examples=40)
@given(hs.data())
def test_the_fastest_form_in_any_layout(kind, data):
    """Also where features come last, and are put before the positions."""
    check(forms.of_shifted, *data.draw(convolutions([kind])))


FIRST = ConvDimensionNumbers(*(((0, 1, 2, 3),) * 3))
LAST = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))


def typed(shape, dtype="float32"):
    return array_type(shape, np.dtype(dtype))


def convolution(dims, **groups):
    return ConvGeneralDilated((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), dims, **groups)


@pytest.mark.parametrize(
    ("groups", "lhs", "rhs", "suits"),
    [
        ({}, (2, 4, 9, 9), (4, 4, 3, 3), False),
        ({"feature_groups": 2}, (2, 8, 9, 9), (4, 4, 3, 3), True),
        ({"feature_groups": 2}, (2, 10, 9, 9), (4, 5, 3, 3), False),
        ({"feature_groups": 2}, (2, 8, 9, 9), (4, 4, 4, 8), True),  # 128 terms
        ({"feature_groups": 2}, (2, 6, 9, 50), (4, 3, 1, 43), False),  # 129
        ({"batch_groups": 2}, (4, 4, 9, 9), (4, 4, 3, 3), True),  # 4 pairs of features
        ({"batch_groups": 2}, (10, 4, 9, 9), (2, 4, 3, 3), False),  # 5
        ({"batch_groups": 2}, (2, 4, 9, 9), (10, 4, 3, 3), False),
        ({"batch_groups": 2}, (4, 4, 10, 18), (4, 4, 3, 3), True),  # 128 positions
        ({"batch_groups": 2}, (4, 4, 5, 45), (4, 4, 3, 3), False),  # 129
    ],
    ids=str,
)
def test_suits_few_terms_in_groups(groups, lhs, rhs, suits):
    op = convolution(FIRST, **groups)
    out = op.infer(typed(lhs), typed(rhs))
    assert forms.suits_shifted(op, typed(lhs), typed(rhs), out) is suits


@pytest.mark.parametrize(
    ("dims", "groups", "lhs", "rhs", "form", "first"),
    [
        # Features last are put before the positions from 16 terms of a sum on.
        (LAST, "feature_groups", (2, 9, 9, 4), (4, 2, 2, 4), "of_feature_groups", True),
        (LAST, "feature_groups", (2, 9, 9, 6), (5, 1, 3, 4), "of_feature_groups", False),
        (FIRST, "feature_groups", (2, 4, 9, 9), (4, 2, 4, 4), "of_feature_groups", True),
        # By diagonals from 5 positions along the last axis on, and windows up to 16 times as wide.
        (FIRST, "batch_groups", (2, 1, 3, 12), (2, 1, 3, 8), "of_diagonals", True),
        (FIRST, "batch_groups", (2, 1, 3, 11), (2, 1, 3, 8), "of_batch_groups", True),
        (FIRST, "batch_groups", (2, 1, 99, 84), (2, 1, 98, 80), "of_diagonals", True),
        (FIRST, "batch_groups", (2, 1, 9, 85), (2, 1, 8, 81), "of_batch_groups", True),
        (LAST, "batch_groups", (2, 3, 11, 1), (3, 8, 1, 2), "of_batch_groups", True),
        (LAST, "batch_groups", (2, 3, 12, 1), (3, 8, 1, 2), "of_diagonals", True),
    ],
    ids=str,
)
def test_which_form_is_the_fastest(monkeypatch, dims, groups, lhs, rhs, form, first):
    called = []
    for name in ("of_feature_groups", "of_batch_groups", "of_diagonals"):

        def noted(op, lhs, rhs, out, name=name):
            called.append((name, op.dims == FIRST))
            return full(out.shape, 0, out.dtype)

        monkeypatch.setattr(forms, name, noted)
    count = lhs[dims.lhs_spec[0]] if groups == "batch_groups" else 2
    op = convolution(dims, **{groups: count})
    x, y = (as_value(np.zeros(shape, np.float32)) for shape in (lhs, rhs))
    out = op.infer(x.type, y.type)
    assert forms.of_shifted(op, x, y, out).type is out
    assert called == [(form, first)]


def test_sums_of_integers_in_the_batch_are_no_products(monkeypatch):
    monkeypatch.setattr(forms, "of_diagonals", None)
    op = convolution(FIRST, batch_groups=2)
    check(forms.of_shifted, op, whole(0, (2, 1, 3, 12), "int32"), whole(1, (2, 1, 3, 8), "int32"))


@pytest.mark.parametrize(
    ("lhs", "out", "sums"),
    [
        ("float16", "float16", "float32"),
        ("bfloat16", "bfloat16", "float32"),
        ("float32", "float32", "float32"),
        ("float64", "float64", "float64"),
        ("float16", "float64", "float64"),
        ("float32", "float16", "float32"),
        ("int8", "int8", "int8"),
        ("int8", "int32", "int32"),
        ("int32", "float32", "float32"),
        ("int32", "float16", "int32"),
        ("complex64", "complex64", "complex64"),
    ],
)
def test_the_dtype_that_sums_are_added_up_in(lhs, out, sums):
    assert forms._dtype_of_sums(typed((2,), lhs), typed((2,), out)) == np.dtype(sums)
