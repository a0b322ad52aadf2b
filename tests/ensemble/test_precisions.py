"""Precisions: draws beside the inverse, and low rank beside full."""

import numpy as np
import pytest

import stretto as st
from stretto import nn
from stretto.ensemble import fit_laplace
from tests.ensemble.posteriors import close, perceptron, table

KEY = st.random.key(0)
ALL = ["full", "kron", "diagonal", "low_rank"]


@pytest.fixture(autouse=True)
def _float64():
    with st.config(enable_x64=True):
        yield


@pytest.mark.parametrize("structure", ALL)
def test_draws_of_weights_have_the_precisions_inverse(structure):
    x, y = table()
    model = perceptron(3, width=2)
    laplace = fit_laplace(model, (x, y), structure=structure, prior_precision=2.0, rank=3)
    differences = laplace.members(KEY, 20_000).differences
    names = list(model.state_dict())
    flat = np.concatenate([np.reshape(differences[n], (20_000, -1)) for n in names], 1)
    curvature = st.curvature.ggn(model, x, "categorical", y=y)
    if structure == "full":
        h = np.asarray(curvature.dense())
    elif structure == "kron":
        h = np.asarray(curvature.kron().dense())
    elif structure == "diagonal":
        h = np.diag(np.concatenate([np.ravel(v) for v in curvature.diagonal().values()]))
    else:
        s, u = np.linalg.eigh(np.asarray(curvature.dense()))
        h = (u[:, -3:] * s[-3:]) @ u[:, -3:].T
    expected = np.linalg.inv(h + 2 * np.eye(len(h)))
    # An entry of a covariance of 20,000 draws deviates by less than √2 × 0.5 / √20000.
    close(np.cov(flat.T), expected, atol=6 * 0.5 * 2**0.5 / 20_000**0.5)


def test_low_rank_of_full_rank_is_full():
    x, y = table()
    model = perceptron(4, width=2)
    full = fit_laplace(model, (x, y), structure="full")
    low = fit_laplace(model, (x, y), structure="low_rank", rank=15)
    close(low.predict(x).covariance, full.predict(x).covariance, rtol=1e-7)
    close(low.log_marginal_likelihood(), full.log_marginal_likelihood())
    names = list(full.prior_precision)
    prior = {n: float(i + 1) for i, n in enumerate(names)}
    close(low.log_marginal_likelihood(prior), full.log_marginal_likelihood(prior))


def test_memory_of_a_kronecker_prediction_is_that_of_its_positions_and_not_of_jacobians():
    def temporaries(inputs, classes=8, hidden=64):
        net = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, classes))
        x = np.random.default_rng(0).normal(size=(32, inputs)).astype(np.float32)
        laplace = st.ensemble.fit_laplace(net, (x, np.arange(32) % classes), structure="kron")
        variance = st.jit(lambda laplace, x: laplace.predict(x).covariance)
        found = variance.lower(laplace, x).compile().memory_analysis()
        return found.temp_size_in_bytes

    jacobians = lambda inputs: 4 * 32 * 8 * (inputs + 1 + 8) * 64
    assert temporaries(256) < jacobians(256) / 20
    assert temporaries(2048) < 4 * temporaries(256)  # of seven times as many weights
    assert temporaries(256, classes=16) < 4 * temporaries(256)
