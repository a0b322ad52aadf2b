"""Covariance: one variable, complex numbers, and messages."""

import numpy as np
import pytest

import stretto.numpy as snp

X = np.array([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]], np.float32)


def test_complex_variables_and_single_ones():
    z = (X + 1j * X[::-1]).astype(np.complex64)
    np.testing.assert_allclose(snp.cov(snp.array(z)), np.cov(z), rtol=1e-5, atol=1e-6)
    assert snp.cov(snp.array(X[0])).shape == () and snp.corrcoef(snp.array(X[0])) == 1
    assert bool(snp.isnan(snp.cov(snp.array(X[:, :1]))).all())
    assert snp.cov(snp.array(X), dtype=snp.float16).dtype == snp.float16


def test_messages():
    x = snp.array(X)
    cases = [
        (lambda: snp.cov(snp.ones((2, 2, 2))), ValueError, "expected m of rank 2 or less"),
        (
            lambda: snp.cov(x, snp.ones((1, 2))),
            ValueError,
            "must have the same number of observations",
        ),
        (lambda: snp.cov(x, ddof=0.5), ValueError, "ddof must be an integer"),
        (lambda: snp.cov(x, fweights=snp.ones(3)), TypeError, "fweights, which count observations"),
        (lambda: snp.cov(x, aweights=snp.ones(2)), ValueError, "one for each of 3 observations"),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: snp.cov(None), TypeError, r"cov: m must be an array"),
        (lambda: snp.corrcoef(None), TypeError, r"corrcoef: x must be an array"),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()
