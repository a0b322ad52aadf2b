"""Laplace posteriors of ensembles over a mesh, and of data over one: those of one device."""

import numpy as np
import pytest

import stretto as st
from stretto import P, nn
from stretto.ensemble import fit_laplace
from tests.ensemble.posteriors import close, perceptron
from tests.meshes import mesh

pytestmark = pytest.mark.devices

KEY = st.random.key(0)
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(16, 2)), RNG.integers(3, size=16).astype(np.int32)
STRUCTURES = ["full", "kron", "diagonal", "low_rank"]


@pytest.fixture(autouse=True)
def _float64():
    with st.config(enable_x64=True):
        yield


@pytest.mark.parametrize("sizes", [{"members": 4}, {"members": 4, "data": 2}], ids=str)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_each_member_has_its_posterior_where_it_is(structure, sizes):
    whole = st.Ensemble([perceptron(seed) for seed in range(8)])
    split = whole.shard(mesh(**sizes))
    one, many = [fit_laplace(e, (X, Y), structure=structure, rank=5) for e in (whole, split)]
    found = many.predict(X)
    place = st.sharding.NamedSharding(mesh(**sizes), P("members"))
    assert found.covariance.sharding.is_equivalent_to(place, 4)
    assert many.log_marginal_likelihood().sharding.is_equivalent_to(place, 1)
    close(found.covariance, one.predict(X).covariance)
    close(many.log_marginal_likelihood(), one.log_marginal_likelihood())
    close(many.probabilities(X, link="probit"), one.probabilities(X, link="probit"))
    if structure in ("full", "diagonal"):  # the others' draws turn with the signs of eigenvectors
        close(many.members(KEY, 2)(X), one.members(KEY, 2)(X), rtol=1e-7)
        close(many.sample(KEY, 2)(X), one.sample(KEY, 2)(X), rtol=1e-7)
    if structure == "diagonal":
        found, expected = [e.tuned().prior_precision["0.bias"] for e in (many, one)]
        close(found, expected, rtol=1e-5)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_data_over_devices(structure):
    model = perceptron(0)
    place = st.sharding.NamedSharding(mesh(members=4, data=2), P("data"))
    x, y = st.device_put((X, Y), place)
    one, many = [fit_laplace(model, d, structure=structure, rank=5) for d in ((X, Y), (x, y))]
    close(many.predict(x).covariance, one.predict(X).covariance)
    close(many.log_marginal_likelihood(), one.log_marginal_likelihood())


def test_a_tied_network_over_devices():
    def tied(seed):
        layer = nn.Linear(2, 2, key=st.random.key(seed))
        return st.tree.cast(nn.Sequential(layer, nn.Tanh(), nn.Linear(2, 2, bias=False)), "float64")

    members = [tied(seed) for seed in range(4)]
    for member in members:
        member.get_submodule("2").weight = nn.Parameter(member.get_submodule("0").weight)
    whole = st.Ensemble(members)
    one, many = [fit_laplace(e, (X, Y % 2)) for e in (whole, whole.shard(mesh(members=4)))]
    assert list(many.prior_precision) == ["0.weight", "0.bias"]
    close(many.predict(X).covariance, one.predict(X).covariance)
