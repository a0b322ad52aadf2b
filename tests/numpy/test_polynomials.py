from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


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
