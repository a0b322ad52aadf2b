"""Laplace posteriors of PyTorch modules: those of the same network written here."""

import numpy as np
import pytest

import stretto as st
from stretto import nn as own

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5)).astype(np.float32)
Y = RNG.integers(0, 3, 40).astype(np.int32)


def pair(seed):
    """A module of PyTorch's, and ours with its weights."""
    torch.manual_seed(seed)
    theirs = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))
    ours = own.Sequential(own.Linear(5, 6), own.Tanh(), own.Linear(6, 3))
    ours.load_state_dict({n: x.detach().numpy() for n, x in theirs.state_dict().items()})
    return theirs, ours


def imported(module):
    return st.from_torch(module.eval(), (torch.zeros(2, 5),), dynamic_batch=True)


@pytest.mark.parametrize("structure", ["kron", "full", "diagonal", "low_rank"])
def test_a_module(structure):
    theirs, ours = pair(0)
    key = st.random.key(0) if structure == "low_rank" else None
    found, expected = [
        st.ensemble.fit_laplace(m, (X, Y), structure=structure, key=key)
        for m in (imported(theirs), ours)
    ]
    np.testing.assert_allclose(
        found.log_marginal_likelihood(), expected.log_marginal_likelihood(), rtol=1e-4
    )
    np.testing.assert_allclose(
        found.predict(X[:7]).covariance, expected.predict(X[:7]).covariance, rtol=2e-3, atol=1e-5
    )


def test_several_modules_are_one_ensemble():
    pairs = [pair(seed) for seed in range(3)]
    together = st.Ensemble.from_torch([theirs.eval() for theirs, _ in pairs], torch.from_numpy(X))
    found = st.ensemble.fit_laplace(together, (X, Y)).predict(X[:7])
    for i, (_, ours) in enumerate(pairs):
        expected = st.ensemble.fit_laplace(ours, (X, Y)).predict(X[:7])
        np.testing.assert_allclose(found.mean[i], expected.mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.covariance[i], expected.covariance, rtol=2e-3, atol=1e-5)
