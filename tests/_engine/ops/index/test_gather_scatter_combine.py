"""Scatters that multiply, or keep an extremum: products of others, ties, zeros, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.config import enable_x64
from stretto._engine.ops.index.gather_scatter import (
    ScatterMax,
    ScatterMin,
    ScatterMul,
    products_of_others,
)
from stretto._engine.ops.index.geometry import ScatterDimensionNumbers

ELEMENTS = ScatterDimensionNumbers((), (0,), (0,))


@pytest.mark.parametrize("groups", [[], [0], [0, 0, 0], [2, 0, 2, 1, 0, 2, 9, 0]])
def test_the_product_of_the_others_of_each_group(groups):
    factors = np.array([2, 0, 3, 5, 7, 0, 4, 11][: len(groups)], np.float32)
    want = [
        np.prod([f for j, f in enumerate(factors) if j != i and groups[j] == groups[i]])
        for i in range(len(groups))
    ]
    got = products_of_others(snp.array(factors), snp.array(np.array(groups, np.int32)))
    np.testing.assert_array_equal(got, want)


def at(kind, indices, mode="drop"):
    return lambda x, u: kind(ELEMENTS, mode)(x, snp.array(np.array(indices)[:, None]), u)


def slopes(f, x, u):
    """The derivatives of the sum of squares, by rule and by differences."""
    loss = lambda x, u: snp.sum(f(x, u) ** 2)
    with enable_x64():
        x, u = snp.array(x, dtype=float), snp.array(u, dtype=float)
        by_rule = st.grad(loss, (0, 1))(x, u)
        step = 1e-6
        rough = [[], []]
        for k, v in enumerate((x, u)):
            for i in range(v.size):
                pair = [[x, u], [x, u]]
                pair[0][k], pair[1][k] = v.at[i].add(step), v.at[i].add(-step)
                rough[k].append((float(loss(*pair[0])) - float(loss(*pair[1]))) / (2 * step))
    return by_rule, rough


@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("u", [[2.0, 3.0, 0.5, 4.0], [0.0, 3.0, 0.0, 4.0]])
def test_products_with_repeated_places_zeros_and_places_outside(mode, u):
    f = at(ScatterMul, [1, 1, 0, 7], mode)
    got, want = slopes(f, [1.5, -2.0, 3.0], u)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [ScatterMin, ScatterMax])
def test_extrema(kind):
    got, want = slopes(at(kind, [1, 1, 0, 7]), [1.5, -2.0, 3.0], [-2.5, 3.0, 1.0, 4.0])
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [ScatterMin, ScatterMax])
def test_those_that_tie_share_the_tangent(kind):
    f = at(kind, [1, 1, 0])
    out, pull = st.vjp(f, snp.array([1.0, 2.0]), snp.array([2.0, 2.0, 1.0]))
    np.testing.assert_array_equal(out, [1, 2])
    to_x, to_u = pull(snp.array([6.0, 6.0]))
    np.testing.assert_array_equal(to_x, [3, 2])
    np.testing.assert_array_equal(to_u, [2, 2, 3])


@pytest.mark.parametrize("kind", [ScatterMin, ScatterMax])
def test_nan_is_kept_and_has_the_tangent(kind):
    f = at(kind, [0, 1])
    out, pull = st.vjp(f, snp.array([np.nan, 2.0]), snp.array([1.0, np.nan]))
    assert np.isnan(np.asarray(out)).all()
    to_x, to_u = pull(snp.array([1.0, 1.0]))
    np.testing.assert_array_equal(to_x, [1, 0])
    np.testing.assert_array_equal(to_u, [0, 1])


def test_what_is_not_linear_is_not_transposed():
    x, u = snp.array([1.0, 2.0]), snp.array([3.0])
    times = at(ScatterMul, [1])
    (back,) = st.linear_transpose(lambda x: times(x, u), x)(snp.array([1.0, 1.0]))
    np.testing.assert_array_equal(back, [1, 3])
    with pytest.raises(TypeError, match="scatter_mul is not linear in its updates"):
        st.linear_transpose(lambda u: times(x, u), u)(x)
    with pytest.raises(TypeError, match=r"scatter_max .*is not linear"):
        st.linear_transpose(lambda x: at(ScatterMax, [1])(x, u), x)(x)
