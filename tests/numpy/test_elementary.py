from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

F = np.array([[-2.5, -1.0, -0.5], [0.0, 0.5, 3.0]], np.float32)
UNIT = np.array([-0.9, -0.5, 0.0, 0.3, 0.9], np.float32)
POSITIVE = np.array([0.1, 0.5, 1.0, 2.0, 100.0], np.float32)
WILD = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0], np.float32)
COMPLEX = np.array([1 + 2j, -3j, 0.5], np.complex64)


@pytest.mark.parametrize("name", ["exp", "exp2", "expm1", "cbrt"])
def test_everywhere(agree, name):
    agree(name, F, dtype="float32", rtol=1e-5)
    agree(name, np.array([0, 1, 2], np.int32), dtype="float32", rtol=1e-5)
    agree(name, WILD, dtype="float32", rtol=1e-5)


@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p", "sqrt"])
def test_of_positive_numbers(agree, name):
    agree(name, POSITIVE, dtype="float32", rtol=1e-5)
    agree(name, WILD, dtype="float32", rtol=1e-5)
    agree(name, np.array([1, 2, 7], np.int32), dtype="float32", rtol=1e-5)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "log2"])
def test_complex(agree, name):
    agree(name, COMPLEX, dtype="complex64", rtol=1e-5)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_of_two(agree, name):
    agree(name, F, F[::-1].copy(), dtype="float32", rtol=1e-5)
    agree(name, F, 1, dtype="float32", rtol=1e-5)
    agree(
        name,
        np.array([1000.0, -1000.0, np.inf, -np.inf], np.float32),
        np.array([999.0, -1001.0, 0.0, -np.inf], np.float32),
        rtol=1e-5,
    )


def test_logaddexp_derivatives():
    slope = st.grad(snp.logaddexp, argnums=(0, 1))
    np.testing.assert_allclose(slope(0.0, 0.0), [0.5, 0.5])
    np.testing.assert_allclose(slope(1000.0, 0.0), [1.0, 0.0])
    assert np.isfinite(np.asarray(slope(-np.inf, -np.inf))).all()


def test_low_precision_keeps_its_dtype():
    for dtype in (snp.float16, snp.bfloat16):
        x = snp.array([0.5, 1.5], dtype)
        for f in (snp.exp, snp.log, snp.log2):
            assert f(x).dtype == dtype


def test_lists_are_refused():
    with pytest.raises(TypeError, match=r"stretto\.numpy\.array"):
        snp.exp([1.0])


@pytest.mark.parametrize("x", [0.0, 0.3, -2.0, 60.0])
def test_logaddexp_and_hypot_have_second_derivatives_where_arguments_are_alike(x):
    # Of log(e^x + e^y) at x = y: 1/4 [[1, -1], [-1, 1]].
    for f, scale in ((snp.logaddexp, 1.0), (snp.logaddexp2, np.log(2))):
        got = np.array(st.hessian(f, argnums=(0, 1))(x, x))
        np.testing.assert_allclose(got, scale / 4 * np.array([[1, -1], [-1, 1]]), rtol=1e-5)
    by_first = st.grad(st.grad(snp.hypot))
    for y in (2.0, -2.0):
        np.testing.assert_allclose(by_first(0.0, y), 0.5)
        np.testing.assert_allclose(st.grad(st.grad(snp.hypot, 1), 1)(y, 0.0), 0.5)
    assert float(st.grad(snp.hypot)(0.0, 0.0)) == 0


def test_logaddexp_of_complex_numbers_is_the_principal_value():
    x = np.array([1 + 2j, 3 - 1j, 1 + 3j, 700, 2j, -1 + 3j], np.complex64)
    y = np.array([1 + 1j, 2, 1 + 3j, -1j, 3j, -1 - 3j], np.complex64)
    wide = x.astype(complex), y.astype(complex)
    for f, base in ((snp.logaddexp, np.e), (snp.logaddexp2, 2)):
        want = np.log(base ** wide[0] + base ** wide[1]) / np.log(base)
        for g in (f, st.jit(f)):
            np.testing.assert_allclose(g(x, y), want, rtol=1e-5, atol=1e-6)
    slope = st.grad(lambda x: snp.logaddexp(x, 2 + 1j).real)(2 + 0j)
    np.testing.assert_allclose(slope, 0.5 - 0.27315125j, rtol=1e-6)
    assert complex(snp.logaddexp(complex(-np.inf), complex(-np.inf))).real == -np.inf


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_slopes_of_logaddexp_are_shares(name):
    f = getattr(snp, name)
    slope = st.grad(f, argnums=(0, 1))
    inf = np.inf
    for x, y, want in (
        (-inf, -inf, (0, 0)),  # nothing to share: as those of logsumexp
        (inf, inf, (0.5, 0.5)),
        (inf, -inf, (1, 0)),
        (-inf, 3.0, (0, 1)),
        (3.0, 3.0, (0.5, 0.5)),
    ):
        np.testing.assert_allclose(slope(x, y), want, rtol=1e-6)
        with st.config(interpret_small=False):
            np.testing.assert_allclose(st.jit(slope)(x, y), want, rtol=1e-6)
    nothing = snp.full(2, -inf)
    np.testing.assert_array_equal(st.grad(f.reduce)(nothing), [0, 0])
    np.testing.assert_array_equal(st.grad(st.special.logsumexp)(nothing), [0, 0])
    assert np.isnan(f(snp.nan, 0.0))
    assert np.isnan(f(-1.0, snp.nan))
