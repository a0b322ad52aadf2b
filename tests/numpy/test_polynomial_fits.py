from __future__ import annotations

import numpy as np
import pytest

import stretto.numpy as snp

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
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()
