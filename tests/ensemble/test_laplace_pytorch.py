"""Laplace posteriors of PyTorch modules: those of the same network written here, and PyTorch's own.

The oracle of networks that have no twin here is Σ JᵀΛJ by ``torch.func``, example by example.
"""

import numpy as np
import pytest

import stretto as st
from stretto import nn as own
from stretto.ensemble import Laplace, fit_laplace
from tests.ensemble.posteriors import close

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

KEY = st.random.key(0)
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 5)), RNG.integers(0, 3, 12).astype(np.int32)
STRUCTURES = ["full", "kron", "diagonal", "low_rank"]


@pytest.fixture(autouse=True)
def _float64():
    torch.manual_seed(0)
    with st.config(enable_x64=True):
        yield


def pair(seed):
    """A module of PyTorch's, and ours with its weights."""
    torch.manual_seed(seed)
    theirs = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).double().eval()
    ours = own.Sequential(own.Linear(5, 4), own.Tanh(), own.Linear(4, 3))
    ours.load_state_dict({n: x.numpy() for n, x in theirs.state_dict().items()})
    return theirs, ours.eval()


def imported(module, *inputs):
    return st.from_torch(module, tuple(map(torch.tensor, inputs)), dynamic_batch=True)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_module(structure):
    theirs, ours = pair(0)
    found, expected = [
        fit_laplace(m, (X, Y), structure=structure) for m in (imported(theirs, X), ours)
    ]
    assert list(found.prior_precision) == list(expected.prior_precision)
    close(found.log_marginal_likelihood(), expected.log_marginal_likelihood())
    close(found.predict(X[:7]).covariance, expected.predict(X[:7]).covariance)
    if structure in ("full", "diagonal"):  # the others' draws turn with the signs of eigenvectors
        close(found.members(KEY, 2)(X[:7]), expected.members(KEY, 2)(X[:7]))
        close(found.probabilities(X[:7], KEY), expected.probabilities(X[:7], KEY))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_several_modules_are_one_ensemble(structure):
    pairs = [pair(seed) for seed in range(3)]
    together = st.Ensemble.from_torch([theirs for theirs, _ in pairs], torch.from_numpy(X))
    many = fit_laplace(together, (X, Y), structure=structure)
    found = many.predict(X)
    for i, (_, ours) in enumerate(pairs):
        one = fit_laplace(ours, (X, Y), structure=structure)
        close(found.mean[i], one.predict(X).mean)
        close(found.covariance[i], one.predict(X).covariance)
        close(many.log_marginal_likelihood()[i], one.log_marginal_likelihood())
    assert many.members(KEY, 2)(X).shape == (6, 12, 3)


class Residual(nn.Module):
    """In place, with batch normalization, and a convolution without a bias."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 3, padding=1, bias=False), nn.BatchNorm2d(2)
        self.relu, self.head = nn.ReLU(inplace=True), nn.Linear(2, 3)

    def forward(self, x):
        return self.head(self.relu(self.norm(self.conv(x)) + x).mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 2, batch_first=True), nn.Linear(2, 3)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(2, 3)

    def forward(self, x, other):
        return torch.tanh(self.a(x)) + self.b(other)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(3, 2), nn.Linear(2, 3)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(torch.tanh(self.embedding(x)))


def whole(module, *inputs):
    """Return Σ JᵀΛJ of a classifier, by PyTorch."""
    params, total = dict(module.named_parameters()), 0
    for i in range(len(inputs[0])):
        one = tuple(torch.tensor(x[i : i + 1]) for x in inputs)
        of = lambda p, one=one: torch.func.functional_call(module, p, one)[0]
        by_name, p = torch.func.jacrev(of)(params), of(params).softmax(0)
        j = torch.cat([by_name[n].reshape(len(p), -1) for n in params], 1)
        total = total + (j.T @ (torch.diag(p) - torch.outer(p, p)) @ j).detach().numpy()
    return total


NETWORKS = {
    Residual: (RNG.normal(size=(6, 1, 3, 3)),),
    Recurrent: (RNG.normal(size=(6, 4, 3)),),
    TwoInputs: (RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2))),
    Tied: (RNG.integers(0, 3, 6),),
}


@pytest.mark.parametrize("kind", NETWORKS, ids=lambda kind: kind.__name__)
def test_networks_of_other_kinds(kind):
    module, inputs = kind().double().eval(), NETWORKS[kind]
    model, x = imported(module, *inputs), inputs if len(inputs) > 1 else inputs[0]
    full = fit_laplace(model, (x, Y[:6]), structure="full")
    assert list(full.prior_precision) == [n for n, _ in module.named_parameters()]
    close(full._posterior.precision.curvature, whole(module, *inputs))
    for structure in STRUCTURES[1:]:
        out = fit_laplace(model, (x, Y[:6]), structure=structure).predict(x)
        if structure == "low_rank":  # of all eigenvalues
            close(out.covariance, full.predict(x).covariance)
        assert (out.variance > 0).all()


def test_a_loader_of_tensors_and_a_file(tmp_path):
    theirs, ours = pair(0)
    pairs = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y))
    model = imported(theirs, X)
    found = fit_laplace(model, torch.utils.data.DataLoader(pairs, batch_size=5))
    expected = fit_laplace(ours, (X, Y)).predict(X).covariance
    close(found.predict(torch.tensor(X)).covariance, expected)
    found.save(tmp_path / "laplace.safetensors")
    again = Laplace.load(tmp_path / "laplace.safetensors", imported(pair(1)[0], X))
    close(again.predict(X).covariance, expected)


def test_a_module_in_bfloat16():
    theirs, _ = pair(0)
    narrow = theirs.bfloat16()
    wide = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).eval()
    wide.load_state_dict(narrow.state_dict())
    example = torch.tensor(X).bfloat16()
    rounded = example.float().numpy()
    x = st.numpy.asarray(rounded).astype("bfloat16")
    found = fit_laplace(st.from_torch(narrow, example), (x, Y)).predict(x)
    expected = fit_laplace(st.from_torch(wide, example.float()), (rounded, Y)).predict(rounded)
    assert found.covariance.dtype == np.float32
    # Its program rounds what lies between layers to bfloat16, of 8 bits; covariances are some 1.
    close(found.covariance, expected.covariance, atol=2**-6)


def test_a_module_that_was_not_imported_is_refused():
    with pytest.raises(TypeError, match=r"got a torch.nn.*Sequential; .* comes in by st.from_tor"):
        fit_laplace(pair(0)[0], (X, Y))
