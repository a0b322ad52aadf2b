"""Ensembles whose members are on the devices of a mesh: calls, members taken, and what is refused.

The oracle is the same ensemble on one device.
"""

import copy
import pickle
import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, nn
from stretto.ensemble.over_mesh import over_mesh
from tests.meshes import mesh

pytestmark = pytest.mark.devices

MEMBERS = {"members": 4}
BOTH = {"members": 4, "data": 2}
X = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)


def network(key):
    first, second = st.random.split(key)
    return nn.Sequential(nn.Linear(5, 7, key=first), nn.Tanh(), nn.Linear(7, 3, key=second))


def ensemble(n=8, **options):
    return st.Ensemble.init(network, st.random.PRNGKey(0), n, **options)


def sharing():
    """Members that share their first layer."""
    first = nn.Linear(5, 7, key=st.random.PRNGKey(3))
    rest = [nn.Linear(7, 3, key=key) for key in st.random.split(st.random.PRNGKey(4), 8)]
    return st.Ensemble([nn.Sequential(first, nn.Tanh(), last) for last in rest], shared="0.*")


def collectives(text):
    return re.findall(r"\b(all-\w+|reduce-scatter|collective-\w+)(?:-start)?\(", text)


@pytest.mark.parametrize("sizes", [MEMBERS, BOTH], ids=str)
@pytest.mark.parametrize("options", [{}, {"chunk_size": 1}, {"plan": "in turn"}], ids=str)
def test_calls_have_the_values_of_one_device(sizes, options):
    whole = ensemble(**options)
    split = whole.shard(mesh(**sizes))
    out = split(X)
    assert out.sharding.is_equivalent_to(st.sharding.NamedSharding(mesh(**sizes), P("members")), 3)
    np.testing.assert_allclose(out, whole(X), rtol=1e-6, atol=1e-6)
    own = np.stack([X + i for i in range(8)])
    np.testing.assert_allclose(split.each(own), whole.each(own), rtol=1e-6, atol=1e-6)


def test_a_call_moves_nothing_between_devices():
    split = ensemble().shard(mesh(**MEMBERS))
    run, inputs = split._layout.runner.compiled(split._arrays, (X,), {}, None, None, False)
    assert collectives(run.lower(*inputs).compile().as_text()) == []


def test_arrays_are_split_or_on_all_devices():
    whole = sharing()
    split = whole.shard(mesh(**BOTH))
    (arrays,) = split.state_dict()
    specs = {name: tuple(x.sharding.spec) for name, x in arrays.items()}
    assert specs == {"0.weight": (), "0.bias": (), "2.weight": ("members",), "2.bias": ("members",)}
    np.testing.assert_allclose(split(X), whole(X), rtol=1e-6, atol=1e-6)


def test_the_ensemble_itself_stays_where_it_is():
    whole = ensemble()
    split = whole.shard(mesh(**MEMBERS))
    assert whole._layout.over is None
    assert split._layout.over is not None
    assert type(whole._arrays[0][0]) is not type(split._arrays[0][0])


def test_several_architectures():
    other = lambda key: nn.Linear(5, 3, key=key)
    more = st.Ensemble.init(other, st.random.PRNGKey(1), 4)
    whole = ensemble() + more
    split = whole.shard(mesh(**MEMBERS))
    np.testing.assert_allclose(split(X), whole(X), rtol=1e-6, atol=1e-6)
    assert collectives(split.groups[0].shard(mesh(**MEMBERS)).__repr__()) == []


def test_members_taken_and_added():
    whole, split = ensemble(), ensemble().shard(mesh(**MEMBERS))
    some = split[[1, 3, 5, 7]]
    assert some._layout.over == split._layout.over
    np.testing.assert_allclose(some(X), whole[[1, 3, 5, 7]](X), rtol=1e-6, atol=1e-6)
    odd = split[:3]  # cannot be split evenly: the compiler splits what it can
    assert odd._layout.over is None
    np.testing.assert_allclose(odd(X), whole[:3](X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(split[2](X), whole[2](X), rtol=1e-6, atol=1e-6)
    grown = split + ensemble(4)
    assert grown._layout.over == split._layout.over
    np.testing.assert_allclose(grown(X), (whole + ensemble(4))(X), rtol=1e-6, atol=1e-6)


def test_transformations_of_calls():
    whole, split = ensemble(), ensemble().shard(mesh(**MEMBERS))
    value = lambda ensemble, x: (ensemble(x) ** 2).mean()
    for one, other in zip(
        st.tree.leaves(st.grad(value)(split, X)),
        st.tree.leaves(st.grad(value)(whole, X)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    wanted = st.vmap(whole)(X[None])
    np.testing.assert_allclose(st.vmap(split)(X[None]), wanted, rtol=1e-5, atol=1e-6)
    scores = lambda ensemble: ensemble.vmap(lambda member, x: member(x).sum())(X)
    np.testing.assert_allclose(st.jit(scores)(split), scores(whole), rtol=1e-5, atol=1e-5)


def test_combination_of_what_is_split():
    whole, split = ensemble(), ensemble().shard(mesh(**MEMBERS))
    mean = st.jit(lambda out: snp.mean(out, 0))
    out = split(X)
    text = mean.lower(out).compile().as_text()
    assert collectives(text) == ["all-reduce"]
    np.testing.assert_allclose(mean(out), whole(X).mean(0), rtol=1e-5, atol=1e-6)


def test_random_layers_draw_the_same():
    make = lambda key: nn.Sequential(nn.Linear(5, 4, key=key), nn.Dropout(0.5))
    whole = st.Ensemble.init(make, st.random.PRNGKey(0), 8)
    key = st.random.PRNGKey(7)
    np.testing.assert_allclose(
        whole.shard(mesh(**MEMBERS))(X, key=key), whole(X, key=key), rtol=1e-6, atol=1e-6
    )


def test_buffers_are_updated():
    make = lambda key: nn.Sequential(nn.Linear(5, 4, key=key), nn.BatchNorm1d(4))
    whole = st.Ensemble.init(make, st.random.PRNGKey(0), 4)
    out, after = whole.shard(mesh(**MEMBERS)).stateful_call(X)
    wanted, wanted_after = whole.stateful_call(X)
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)
    for x, y in zip(st.tree.leaves(after), st.tree.leaves(wanted_after), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


def test_copies_and_pickles():
    split = ensemble().shard(mesh(**MEMBERS))
    for again in (copy.deepcopy(split), pickle.loads(pickle.dumps(split))):
        assert again._layout == split._layout
        np.testing.assert_allclose(again(X), split(X), rtol=1e-6)


def test_the_mesh_in_use():
    with st.sharding.set_mesh(mesh(**BOTH)):
        assert ensemble().shard()._layout.over == over_mesh(mesh(**BOTH), None, None, None, "test")
    named = mesh(models=2, examples=2)
    over = ensemble().shard(named, members="models", data="examples")._layout.over
    assert (over.parts, over.data_parts) == (2, 2)


def test_refusals():
    with pytest.raises(ValueError, match=r"10 members .* evenly over the axis 'members'"):
        ensemble(10).shard(mesh(**MEMBERS))
    with pytest.raises(ValueError, match="mesh must be given"):
        ensemble().shard()
    with pytest.raises(TypeError, match="must be a Mesh"):
        ensemble().shard("cpu")
    with pytest.raises(ValueError, match=r"members must be an axis .* got 'models'"):
        ensemble().shard(mesh(**MEMBERS), members="models")
    with pytest.raises(ValueError, match="which axis"):
        ensemble().shard(mesh(x=2))
    with pytest.raises(ValueError, match="two different"):
        ensemble().shard(mesh(**MEMBERS), members="members", data="members")
