"""Groups of windows of one element as one batched product: the same as the definition."""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, settings

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convolution import pointwise
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from tests._engine.ops.convolution.cases import check, convolutions, whole

FIRST = ConvDimensionNumbers(*(((0, 1, 2),) * 3))


@settings(max_examples=150)
@given(convolutions(grouped=("features",)))
def test_values(case):
    op, x, y = case
    window = [slice(None)] * y.ndim
    for a in op.dims.rhs_spec[2:]:
        window[a] = slice(1)
    y = y[tuple(window)]
    op = dataclasses.replace(op, padding=tuple((max(low, 0), high) for low, high in op.padding))
    out = op.infer(x.type, y.type)
    assume(out.size)
    check(pointwise.as_product, op, x, y)


@pytest.mark.parametrize("positions", [70, 3])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinities_stay_in_their_group(positions, value):
    op = ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), FIRST, feature_groups=2)
    x, y = np.array(whole(0, (2, 4, positions))), as_value(whole(1, (6, 2, 1)))
    x[1, 0, 2] = value
    check(pointwise.as_product, op, as_value(x), y)
    out = op.infer(as_value(x).type, y.type)
    found = np.asarray(pointwise.as_product(op, as_value(x), y, out))
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
    assert pointwise.suits(equation.primitive, x.type, w.type)
    last = dataclasses.replace(
        equation.primitive, dims=ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    )
    image, kernel = snp.ones((2, 9, 9, 32)), snp.ones((1, 1, 16, 16))
    assert not pointwise.suits(last, image.type, kernel.type)
