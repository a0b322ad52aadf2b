from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

F = np.array([[-2.5, -1.0, -0.5], [0.0, 0.5, 3.0]], np.float32)
WILD = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0], np.float32)
COMPLEX = np.array([1 + 2j, -3j, 0.5], np.complex64)
UNIT = np.array([-0.9, -0.5, 0.0, 0.3, 0.9], np.float32)
POSITIVE = np.array([0.1, 0.5, 1.0, 2.0, 100.0], np.float32)


@pytest.mark.parametrize("name", ["arcsin", "arccos", "arctanh", "asin", "acos", "atanh"])
def test_on_the_unit_interval(agree, name):
    agree(name, UNIT, dtype="float32", rtol=1e-5)


def test_arccosh(agree):
    agree("arccosh", POSITIVE + 1, dtype="float32", rtol=1e-5)


def test_sinc_derivatives_at_zero():
    first, second = st.grad(snp.sinc), st.grad(st.grad(snp.sinc))
    assert float(first(0.0)) == 0
    assert float(second(0.0)) == pytest.approx(-(np.pi**2) / 3, rel=1e-5)


def test_sinc_has_all_derivatives_at_zero():
    # sin(pi x) / (pi x) = 1 - (pi x)^2 / 6 + (pi x)^4 / 120 - (pi x)^6 / 5040
    with st.enable_x64():
        f = snp.sinc
        for k in range(7):
            want = [1, 0, -1 / 3, 0, 1 / 5, 0, -1 / 7][k] * np.pi**k
            np.testing.assert_allclose(f(0.0), want, rtol=1e-12, atol=1e-12)
            near = 0 if k else 1
            np.testing.assert_allclose(f(1e-9), want, rtol=1e-6, atol=1e-5 if not near else 1e-12)
            f = st.grad(f)
    np.testing.assert_allclose(snp.sinc(1 + 1j), np.sinc(1 + 1j), rtol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "arcsinh",
        "arctan",
        "degrees",
        "radians",
        "rad2deg",
        "deg2rad",
        "sinc",
    ],
)
def test_everywhere(agree, name):
    agree(name, F, dtype="float32", rtol=1e-5)
    agree(name, np.array([0, 1, 2], np.int32), dtype="float32", rtol=1e-5)
    agree(name, WILD, dtype="float32", rtol=1e-5)


@pytest.mark.parametrize("name", ["sin", "cosh", "tanh"])
def test_complex(agree, name):
    agree(name, COMPLEX, dtype="complex64", rtol=1e-5)


def test_arctan2(agree):
    agree("arctan2", F, F[::-1].copy(), dtype="float32", rtol=1e-5)
    agree("arctan2", F, 1, dtype="float32", rtol=1e-5)
    agree(
        "arctan2",
        np.array([1000.0, -1000.0, np.inf, -np.inf], np.float32),
        np.array([999.0, -1001.0, 0.0, -np.inf], np.float32),
        rtol=1e-5,
    )


def test_low_precision_keeps_its_dtype():
    for dtype in (snp.float16, snp.bfloat16):
        x = snp.array([0.5, 1.5], dtype)
        for f in (snp.tanh, snp.sinc):
            assert f(x).dtype == dtype
