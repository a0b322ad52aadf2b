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
ORTHOGONAL = np.linalg.qr(X)[0] * np.array([1, 2, 3], np.float32)
ALIKE = X @ np.float32([[1, 1, 1], [0, 0.3, 0], [0, 0, 0.3]])
"""Inputs that go together, so that a diagonal posterior is far off."""
AT = np.array([1.0, -2.0, 0.5], np.float32)


def by_structure(structure, x=X):
    """Return the prediction of a Laplace posterior, which is exact for a linear model.

    Kronecker factors are, as there is one output, and a diagonal where inputs are orthogonal.
    """

    def predict(y):
        precision = x.T @ x / SIGMA**2 + ALPHA * np.eye(3, dtype=np.float32)
        best = snp.linalg.solve(precision, x.T @ y / SIGMA**2)
        line = lambda w, x: x @ w.T
        posterior = st.ensemble.fit_laplace(
            (line, best[None]), (x, y[:, None]), likelihood="gaussian", structure=structure,
            noise=SIGMA, prior_precision=ALPHA, key=st.random.key(1),
        )  # fmt: skip
        found = posterior.predict(AT[None])
        return found.mean[0, 0], found.covariance[0, 0, 0]

    return predict, x


LAPLACE = {
    "full": by_structure("full"),
    "kron": by_structure("kron"),
    "diagonal": by_structure("diagonal", ORTHOGONAL),
    "low_rank": by_structure("low_rank"),
}


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


class Line:
    """A member, as losses get it."""

    def __init__(self, w):
        self.params = w

    def __call__(self, x):
        return x @ self.params


def by_randomised_map(y, key):
    """Predictions of the minima of ``randomised_map``'s own loss, which is quadratic here."""
    error = lambda member, x, y: snp.mean((member(x) - y) ** 2) / (2 * SIGMA**2)
    loss, keys = st.ensemble.randomised_map(error, ALPHA**-0.5, SIGMA, key, DRAWS, data_size=len(X))

    def minimum(key):
        of = lambda w: loss(Line(w), X, y, snp.arange(len(X)), posterior_key=key)
        start = snp.zeros(3)
        return AT @ (start - snp.linalg.solve(st.hessian(of)(start), st.grad(of)(start)))

    return st.vmap(minimum)(keys["posterior_key"])


def by_chain(y, key, every=40):
    """Predictions of every 40th state of a chain of SGHMC, after the first 200."""
    optimizer = st.optim.sghmc(0.05, data_size=len(X), prior_precision=ALPHA, friction=7.0, key=key)
    slope = st.grad(lambda w: snp.mean((X @ w - y) ** 2) / (2 * SIGMA**2))

    def step(carry, _):
        w, state = carry
        change, state = optimizer.update(slope(w), state, w)
        return (w + change, state), AT @ w

    start = snp.zeros(3)
    _, values = st.lax.scan(step, (start, optimizer.init(start)), None, length=200 + every * DRAWS)
    return values[200::every]


def by_close_states(y, key):
    """Predictions of states that follow each other, which are no independent draws."""
    return by_chain(y, key, every=1)


BY_DRAWS = (by_anchored_members, by_randomised_map, by_chain)
"""Those that give draws; of others it is a mean and a variance."""


def counts(posterior, width=1.0, x=X):
    """How often the true value fell into each eighth of the draws."""

    def rank(key):
        of_weights, of_noise, of_draws = st.random.split(key, 3)
        weights = st.random.normal(of_weights, (3,)) / np.sqrt(ALPHA)
        y = x @ weights + SIGMA * st.random.normal(of_noise, (12,))
        if posterior in (*BY_DRAWS, by_close_states):
            draws = posterior(y, of_draws)[:DRAWS]
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


@pytest.mark.parametrize("posterior", [by_regression, *BY_DRAWS])
def test_ranks_of_the_truth_are_uniform(posterior):
    assert chi_squared(counts(posterior)) < MOST


@pytest.mark.parametrize("structure", LAPLACE)
def test_ranks_by_each_structure_are_uniform_where_it_is_exact(structure):
    posterior, x = LAPLACE[structure]
    assert chi_squared(counts(posterior, x=x)) < MOST


def test_a_diagonal_posterior_of_inputs_that_go_together_is_found_out():
    posterior, x = by_structure("diagonal", ALIKE)
    assert chi_squared(counts(posterior, x=x)) > 4 * MOST


def test_states_of_a_chain_that_are_next_to_each_other_are_found_out():
    assert chi_squared(counts(by_close_states)) > 4 * MOST


@pytest.mark.parametrize("width", [0.8, 1.25])
def test_a_wrong_width_is_found(width):
    found = counts(LAPLACE["full"][0], width)
    assert chi_squared(found) > 4 * MOST
    ends = found[0] + found[-1]
    assert (ends > 2 * REPLICATIONS / BINS) == (width < 1)
