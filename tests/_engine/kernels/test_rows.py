"""The kernel by rows: values against float64 and sums in Python, and what rows do not depend on."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.kernels import kernels

pytestmark = pytest.mark.skipif(kernels is None, reason="needs the kernels")


@pytest.fixture(autouse=True)
def _wide(request):
    """Have float64 where a test is for it."""
    with st.enable_x64(request.node.callspec.params.get("dtype") == "float64"):
        yield


SIZES = [(4096, 32), (130, 33), (70, 64), (40, 129), (9, 1000), (5, 1024), (5, 1025), (3, 5003)]


def below(x):
    return snp.exp(x - x.max(-1, keepdims=True))


def above(x):
    return snp.exp(x - x.min(-1, keepdims=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponentials_are_within_two_ulps(dtype):
    low, high = (-87, 88) if dtype == "float32" else (-708, 709)
    for f, end in ((below, low), (above, high)):
        x = np.linspace(0, end, 1 << 18, dtype=dtype).reshape(64, -1)
        x[:, 0] = 0
        got = np.asarray(st.jit(f)(x)).astype(np.longdouble)
        expected = np.exp(x.astype(np.longdouble))
        ulps = np.abs(got - expected) / np.spacing(expected.astype(dtype))
        assert ulps.max() <= 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponentials_end(dtype):
    x = np.zeros((64, 128), dtype)
    x[:, 1:6] = [-np.inf, -1e5, -2000, -110 if dtype == "float32" else -760, -0.0]
    np.testing.assert_array_equal(np.asarray(st.jit(below)(x))[0, :7], [1, 0, 0, 0, 0, 1, 1])
    x[:, 1:5] = [np.inf, 1e5, 2000, 90 if dtype == "float32" else 710]
    got = np.asarray(st.jit(above)(np.abs(x)))
    np.testing.assert_array_equal(got[0, :6], [1, np.inf, np.inf, np.inf, np.inf, 1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SIZES)
def test_values(shape, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype) * 4
    eps = np.finfo(dtype).eps
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(-1, keepdims=True))
    got = st.jit(lambda x: below(x) / below(x).sum(-1, keepdims=True))(x)
    np.testing.assert_allclose(got, e / e.sum(-1, keepdims=True), rtol=16 * eps)
    centered = wide - wide.mean(-1, keepdims=True)
    got = st.jit(lambda x: (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True))(x)
    expected = centered / wide.std(-1, keepdims=True)
    np.testing.assert_allclose(got, expected, rtol=64 * eps, atol=64 * eps)


@pytest.mark.parametrize("shape", SIZES)
def test_sums_over_rows(shape):
    rng = np.random.default_rng(0)
    x, ct = rng.standard_normal((2, *shape)).astype(np.float32)

    def both(x):
        y = below(x)
        y = y / y.sum(-1, keepdims=True)
        return y, (y * ct).sum(0), y.sum(0)

    y, first, second = map(np.asarray, st.jit(both)(x))
    wide = y.astype(np.float64)
    np.testing.assert_allclose(first, (wide * ct).sum(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(second, wide.sum(0), rtol=1e-5)


@pytest.mark.parametrize("columns", [64, 100, 3000])
def test_bits_of_a_row_are_its_own(columns):
    x = np.random.default_rng(0).standard_normal((500, columns)).astype(np.float32)
    f = st.jit(lambda x: below(x) / below(x).sum(-1, keepdims=True))
    whole = np.asarray(f(x))
    for start, stop in ((3, 203), (77, 440)):
        np.testing.assert_array_equal(np.asarray(f(x[start:stop])), whole[start:stop])


@pytest.mark.parametrize("sign", [1, -1])
def test_extremes_have_nan(sign):
    x = np.random.default_rng(0).standard_normal((64, 100)).astype(np.float32)
    x[np.arange(64), np.arange(64)] = np.nan
    f = (
        (lambda x: x - x.max(-1, keepdims=True))
        if sign > 0
        else (lambda x: x - x.min(-1, keepdims=True))
    )
    assert np.isnan(np.asarray(st.jit(f)(x))).all()
