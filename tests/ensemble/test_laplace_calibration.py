"""Posteriors by simulation-based calibration: 2,000 replications of a model in one program.

Weights are drawn from the prior, data with them, and the posterior is fitted to these. Among draws
from it the true value of a function of the weights has each rank equally often, if it is the
posterior; if it is too narrow, or too wide, the ends have too many, or too few (Talts et al.,
"Validating Bayesian inference algorithms with simulation-based calibration", 2018,
arXiv:1804.06788).
"""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

REPLICATIONS, DRAWS, BINS = 2_000, 63, 8
ALPHA, SIGMA = 2.0, 0.5
X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
AT = np.array([1.0, -2.0, 0.5], np.float32)


def by_laplace(y):
    """The prediction of a Laplace posterior, which is exact for a linear model."""
    precision = X.T @ X / SIGMA**2 + ALPHA * np.eye(3, dtype=np.float32)
    best = snp.linalg.solve(precision, X.T @ y / SIGMA**2)
    line = lambda w, x: snp.sum(x * w, -1, keepdims=True)
    posterior = st.ensemble.fit_laplace(
        (line, best), (X, y[:, None]), likelihood="gaussian", structure="full", noise=SIGMA,
        prior_precision=ALPHA,
    )  # fmt: skip
    found = posterior.predict(AT[None])
    return found.mean[0, 0], found.covariance[0, 0, 0]


def by_regression(y):
    """The prediction of the closed form."""
    fitted = st.ensemble.fit_bayesian_regression(X, y, prior_precision=ALPHA, noise=SIGMA)
    found = fitted.predict(AT[None])
    return found.mean[0], found.variance[0]


def by_anchored_members(y, key):
    """Mean and variance of members that are each drawn to a draw of the prior."""
    size = 64
    of_prior, of_noise = st.random.split(key)
    anchors = st.random.normal(of_prior, (size, 3)) / np.sqrt(ALPHA)
    targets = y + SIGMA * st.random.normal(of_noise, (size, 12))
    precision = X.T @ X / SIGMA**2 + ALPHA * np.eye(3, dtype=np.float32)
    right = targets @ X / SIGMA**2 + ALPHA * anchors  # where a member's loss is least
    members = snp.linalg.solve(precision, right.T).T @ AT
    return members


def counts(posterior, width=1.0):
    """How often the true value fell into each eighth of the draws."""

    def rank(key):
        of_weights, of_noise, of_draws = st.random.split(key, 3)
        weights = st.random.normal(of_weights, (3,)) / np.sqrt(ALPHA)
        y = X @ weights + SIGMA * st.random.normal(of_noise, (12,))
        if posterior is by_anchored_members:
            draws = by_anchored_members(y, of_draws)[:DRAWS]
        else:
            mean, variance = posterior(y)
            noise = st.random.normal(of_draws, (DRAWS,))
            draws = mean + width * snp.sqrt(variance) * noise
        return snp.sum(draws < AT @ weights)

    ranks = st.jit(st.vmap(rank))(st.random.split(st.random.key(0), REPLICATIONS))
    return np.bincount(np.asarray(ranks) // (-(-(DRAWS + 1) // BINS)), minlength=BINS)


def chi_squared(found):
    expected = REPLICATIONS / BINS
    return float(((found - expected) ** 2 / expected).sum())


# Of 7 degrees of freedom: a right posterior is above it once in a thousand keys, and this key is
# always the same.
MOST = 24.3


@pytest.mark.parametrize("posterior", [by_laplace, by_regression, by_anchored_members])
def test_ranks_of_the_truth_are_uniform(posterior):
    assert chi_squared(counts(posterior)) < MOST


@pytest.mark.parametrize("width", [0.8, 1.25])
def test_a_wrong_width_is_found(width):
    found = counts(by_laplace, width)
    assert chi_squared(found) > 4 * MOST
    ends = found[0] + found[-1]
    assert (ends > 2 * REPLICATIONS / BINS) == (width < 1)
