""""""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import TracedValueError


def test_division_has_a_remainder_of_fixed_length():
    u, v = snp.array([3.0, 5.0, 2.0]), snp.array([2.0, 1.0])
    quotient, rest = st.jit(snp.polydiv)(u, v)
    np.testing.assert_array_equal(quotient, [1.5, 1.75])
    np.testing.assert_array_equal(rest, [0, 0, 0.25])
    _, trimmed = snp.polydiv(u, v, trim_leading_zeros=True)
    np.testing.assert_array_equal(trimmed, [0.25])
    np.testing.assert_array_equal(
        snp.polymul(snp.array([0, 0, 2]), snp.array([0, 3]), trim_leading_zeros=True), [6]
    )


def test_a_large_derivative_of_integers_is_exact():
    coefficients = snp.array([1] + [0] * 11)
    np.testing.assert_array_equal(snp.polyder(coefficients, 9), [19958400, 0, 0])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: snp.polyadd(snp.ones((2, 2)), 1), ValueError, "a1 must be of rank 1"),
        (lambda: snp.polyval(1.0, 2.0), ValueError, "p must be of rank 1 or more"),
        (lambda: snp.polymul(snp.zeros(0), snp.ones(1)), ValueError, "need a coefficient"),
        (lambda: snp.polydiv(snp.ones(1), snp.zeros(0)), ValueError, "no coefficients"),
        (lambda: snp.polyder(snp.ones(2), -1), ValueError, "see polyint"),
        (lambda: snp.polyint(snp.ones(2), -1), ValueError, "see polyder"),
        (lambda: snp.polyint(snp.ones(2), 2, snp.ones(3)), ValueError, "a number or 2 of them"),
        (lambda: snp.poly(snp.ones((2, 3))), ValueError, "a square matrix"),
        (lambda: snp.vander(snp.ones((2, 2))), ValueError, "rank 1"),
        (lambda: snp.vander(snp.ones(2), -1), ValueError, "must not be negative"),
    ],
    ids=range(10),
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("zeros", [(0, 0), (2, 3)], ids=["none", "both"])
def test_zeros_at_the_ends_of_roots(zeros):
    p = np.array([0] * zeros[0] + [1, -3, 2] + [0] * zeros[1], np.float32)
    got, want = np.asarray(snp.roots(snp.array(p))), np.roots(p)
    assert got.shape == want.shape
    np.testing.assert_allclose(np.sort(got.real), np.sort(want), atol=1e-5)
    assert snp.roots(snp.zeros(3)).shape == (0,)


def test_roots_while_tracing():
    p = snp.array([1.0, -3.0, 2.0])
    found = st.jit(lambda p: snp.roots(p, strip_zeros=False))(p)
    np.testing.assert_allclose(np.sort(np.asarray(found).real), [1, 2], rtol=1e-5)
    with pytest.raises(TracedValueError, match="strip_zeros=False"):
        st.jit(snp.roots)(p)


def test_the_polynomial_of_a_real_matrix_is_real():
    matrix = np.array([[0.0, 1.0], [-1.0, 0.0]], np.float32)
    got = snp.poly(snp.array(matrix))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, np.poly(matrix), atol=1e-6)


X = np.linspace(-1, 2, 9).astype(np.float32)
Y = np.cos(3 * X).astype(np.float32)
W = np.linspace(0.5, 1.5, 9).astype(np.float32)


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("cov", [True, "unscaled"])
@pytest.mark.parametrize("several", [False, True])
def test_covariance_of_a_fit(weights, cov, several):
    y = np.stack([Y, Y**2], 1) if several else Y
    got = snp.polyfit(snp.array(X), snp.array(y), 2, w=weights, cov=cov)
    want = np.polyfit(X, y, 2, w=weights, cov=cov)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


def test_a_full_fit():
    c, residuals, rank, singular, rcond = snp.polyfit(snp.array(X), snp.array(Y), 2, full=True)
    want = np.polyfit(X, Y, 2, full=True)
    np.testing.assert_allclose(c, want[0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(residuals, want[1], rtol=1e-3)
    assert int(rank) == want[2] == 3
    np.testing.assert_allclose(singular, want[3], rtol=1e-4)
    assert rcond == want[4]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: snp.polyfit(snp.ones(2), snp.ones(3), 1), TypeError, "as long"),
        (lambda: snp.polyfit(snp.ones(2), snp.ones(2), -1), ValueError, "deg must not be"),
        (lambda: snp.polyfit(snp.ones(2), snp.ones(2), 1, cov="no"), ValueError, "cov must be"),
        (lambda: snp.polyfit(snp.ones(2), snp.ones(2), 1, cov=True), ValueError, "too few"),
        (lambda: snp.polyfit(snp.ones(2), snp.ones(2), 1, w=snp.ones(3)), TypeError, "w must be"),
    ],
)
def test_refusals_of_polynomial_fits(call, error, words):
    with pytest.raises(error, match=words):
        call()
