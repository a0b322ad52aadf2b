"""Which work goes to YNNPACK, and that NaN stays there."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.runtime.libraries import library_work

SUMS, PRODUCTS = "LIBRARY_FUSION_TYPE_REDUCE", "LIBRARY_FUSION_TYPE_DOT"
X, W = snp.ones((8, 64)), snp.ones((96, 64))


def work_of(f, *args):
    return library_work(st.jit(f).lower(*args).as_text())


def test_products_with_a_transposed_matrix_on_the_right():
    assert work_of(lambda x, w: x @ w.T, X, W) == f"{PRODUCTS},{SUMS}"
    assert work_of(lambda x, w: x @ w, X, W.T) == SUMS
    assert work_of(st.grad(lambda w, x: ((x @ w.T) ** 2).sum()), W, X) == f"{PRODUCTS},{SUMS}"


def test_batches_and_sums_alone():
    assert work_of(lambda x, w: x @ w.mT, snp.ones((5, 8, 64)), snp.ones((5, 96, 64))) == SUMS
    assert work_of(lambda x: x.sum(), X) == SUMS
    assert work_of(lambda x: x.T + 1, X) == SUMS


def test_a_small_share_does_not_decide():
    def mostly_straight(x, w, wide):
        return (x @ w.T).sum() + (x @ wide).sum()

    assert work_of(mostly_straight, X, W[:4], snp.ones((64, 900))) == SUMS


def test_nothing_beside_extrema_of_floats():
    text = st.jit(lambda x, w: x @ w.T).lower(X, W).as_text()
    clamp = '%9 = "stablehlo.maximum"(%7, %8) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
    assert library_work(text + clamp) == ""


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("batch", [1, 4, 64])
def test_nan_and_infinities_pass(batch, value):
    x, w = np.ones((batch, 512), np.float32), np.zeros((256, 512), np.float32)
    x[0, 7] = value
    layer = st.jit(lambda x, w: nn.relu(x @ w.T + 1))
    assert np.isnan(layer(x, w)[0]).all()
    np.testing.assert_array_equal(layer(x, w)[1:], 1)
    assert np.isnan(st.jit(lambda x, w: nn.relu(x @ w.T + 1).sum())(x, w))
    assert np.isnan(st.jit(lambda x, w: nn.relu(x @ w.T + 1).mean(0))(x, w)).all()
