"""Posteriors of one network: variances beside whole Jacobians, and sums over the data."""

import numpy as np
import pytest
from scipy import special

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble import fit_laplace
from tests.ensemble.posteriors import close, perceptron, table

KEY = st.random.key(0)


@pytest.fixture(autouse=True)
def _float64():
    with st.config(enable_x64=True):
        yield


def dense_covariance(laplace, model, x, precision):
    """Return J P⁻¹ Jᵀ with everything written out."""
    names = list(laplace.prior_precision)
    state = {n: w for n, w in model.state_dict().items() if n in names}
    jacobian = st.jacrev(lambda w: st.func.functional_call(model, w, x))(state)
    flat = np.concatenate([np.reshape(jacobian[n], (*jacobian[n].shape[:2], -1)) for n in state], 2)
    return np.einsum("ncp,pq,ndq->ncd", flat, np.linalg.inv(precision), flat)


class Shared(nn.Module):
    """One layer at all positions of a sequence, and at two places; the mean over positions."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3, key=st.random.key(1))
        self.out = nn.Linear(3, 2, key=st.random.key(2))

    def forward(self, x):
        return self.out(snp.tanh(self.layer(snp.tanh(self.layer(x)))).mean(1))


def models():
    keys = st.random.split(KEY, 4)
    conv = nn.Conv2d(2, 4, 3, groups=2, key=keys[0])
    last = nn.Linear(4 * 4, 3, key=keys[1])
    yield "conv", nn.Sequential(conv, nn.Tanh(), nn.Flatten(), last), (2, 4, 4)
    yield "shared", Shared(), (4, 3)
    norm = nn.LayerNorm(4)
    yield "norm", nn.Sequential(nn.Linear(3, 4, key=keys[2]), norm, nn.Linear(4, 2)), (3,)


@pytest.mark.parametrize("structure", ["kron", "diagonal"])
@pytest.mark.parametrize("name", ["conv", "shared", "norm"])
def test_variances_without_jacobians_are_those_with(name, structure):
    model, shape = {n: (m, s) for n, m, s in models()}[name]
    model = st.tree.map(lambda w: w.astype(np.float64), model).eval()
    rng = np.random.default_rng(0)
    x = snp.asarray(rng.normal(size=(6, *shape)))
    y = snp.asarray(rng.integers(2, size=6).astype(np.int32))
    laplace = fit_laplace(model, (x, y), structure=structure, prior_precision=0.5)
    curvature = st.curvature.ggn(model, x, "categorical", y=y)
    if structure == "kron":
        h = np.asarray(curvature.kron().dense())
    else:
        h = np.diag(np.concatenate([np.ravel(v) for v in curvature.diagonal().values()]))
    precision = h + 0.5 * np.eye(len(h))
    close(laplace.predict(x).covariance, dense_covariance(laplace, model, x, precision), rtol=1e-8)
    joint = laplace.predict(x, joint=True).covariance
    blocks = np.moveaxis(np.diagonal(joint, axis1=0, axis2=2), -1, 0)
    close(blocks, laplace.predict(x).covariance, rtol=1e-8)
    volume = np.linalg.slogdet(precision)[1] - len(h) * np.log(0.5)
    squares = sum(np.sum(np.square(w)) for w in model.state_dict().values())
    f = np.asarray(model(x))
    loss = -special.log_softmax(f, -1)[np.arange(6), np.asarray(y)].sum()
    close(laplace.log_marginal_likelihood(), -loss - (volume + 0.5 * squares) / 2)


class Last(nn.Module):
    """An LSTM, of which the last output counts."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 3, batch_first=True, key=st.random.key(0))
        self.out = nn.Linear(3, 2, key=st.random.key(1))

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


@pytest.mark.parametrize("structure", ["kron", "full"])
def test_an_lstm(structure):
    rng = np.random.default_rng(0)
    model = st.tree.map(lambda w: w.astype(np.float64), Last()).eval()
    x = snp.asarray(rng.normal(size=(8, 4, 2)))
    y = snp.asarray(rng.integers(2, size=8).astype(np.int32))
    laplace = fit_laplace(model, (x, y), structure=structure)
    curvature = st.curvature.ggn(model, x, "categorical", y=y)
    h = np.asarray(curvature.dense() if structure == "full" else curvature.kron().dense())
    expected = dense_covariance(laplace, model, x, h + np.eye(len(h)))
    close(laplace.predict(x).covariance, expected, rtol=1e-8)


@pytest.mark.parametrize("size", [1, 7, 30, 100])
def test_sums_are_over_all_examples_whatever_the_batches(size):
    x, y = table()
    model = perceptron(0)
    whole = fit_laplace(model, (x, y), structure="full", batch_size=30)
    parts = fit_laplace(model, (x, y), structure="full", batch_size=size)
    close(parts.log_marginal_likelihood(), whole.log_marginal_likelihood())
    close(parts.predict(x).covariance, whole.predict(x).covariance, rtol=1e-8)
    batches = [(x[i : i + 8], y[i : i + 8]) for i in range(0, 30, 8)]
    read = fit_laplace(model, batches, structure="full", batch_size=size)
    close(read.log_marginal_likelihood(), whole.log_marginal_likelihood())
