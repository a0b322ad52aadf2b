"""Imported modules as modules: names, modes, state, ties, transformations, ensembles."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.api.exported import trace
from stretto.torch.imported_module import Held, assembled
from tests.torch.sample_programs import counting, linear, module

X = np.arange(12, dtype=np.float32).reshape(4, 3) / 10


def expected(net):
    state = net.state_dict()
    return X @ np.asarray(state["layer.weight"]).T + np.asarray(state["layer.bias"])


def test_names_roles_and_calls():
    net = module()
    assert [name for name, _ in net.named_parameters()] == ["layer.weight", "layer.bias"]
    assert [name for name, _ in net.named_buffers()] == ["frozen", "hidden"]
    assert list(net.state_dict("a")) == ["a.frozen", "a.layer.weight", "a.layer.bias"]
    np.testing.assert_allclose(net(X)["y"], expected(net), rtol=1e-6)
    np.testing.assert_array_equal(net(X)["y"], net(x=X)["y"])
    assert net(X[:1])["y"].shape == (1, 2)
    assert repr(net) == "Net(\n  (layer): Linear()\n)"
    with pytest.raises(NotImplementedError, match="this Linear is a part of an imported"):
        net.layer(X)


def test_what_is_exported_has_pytorchs_names_of_arguments():
    net = module()
    assert trace(net, (X,), None, None, "export").inputs == ("x",)
    assert trace(st.Ensemble([net, net]), (X,), None, None, "export").inputs == ("x",)


def test_modes():
    net = module()
    with pytest.raises(RuntimeError, match=r"Net was not imported in train mode: .*train=True"):
        net.train()(X)
    both = module(training=linear(0.5))
    assert not both.training
    with st.nn.keys(st.random.key(0)):
        drawn = both.train()(X)["y"]
    assert 0 < np.mean(np.asarray(drawn) == 0) < 1
    with st.nn.keys(st.random.key(0)):
        np.testing.assert_array_equal(both(X)["y"], drawn)
    with pytest.raises(RuntimeError, match="keys"):
        st.jit(lambda net: net(X)["y"])(both)
    np.testing.assert_allclose(both.eval()(X)["y"], expected(both), rtol=1e-6)
    trained = module(evaluation=None, training=linear(0.5))
    with pytest.raises(RuntimeError, match="Net was not imported in evaluation mode"):
        trained.eval()(X)


def test_transformations():
    net = module()

    def loss(net, x):
        return (net(x)["y"] ** 2).sum()

    slope = st.grad(loss)(net, X)
    np.testing.assert_allclose(
        slope.state_dict()["layer.bias"], 2 * expected(net).sum(0), rtol=1e-5
    )
    np.testing.assert_allclose(st.jit(loss)(net, X), loss(net, X), rtol=1e-6)
    each = st.vmap(lambda x: net(x[None])["y"][0])(X)
    np.testing.assert_allclose(each, expected(net), rtol=1e-6)


def test_an_ensemble():
    nets = [module(seed, training=linear()) for seed in range(3)]
    ensemble = st.Ensemble(nets)
    out = ensemble(X)["y"]
    assert out.shape == (3, 4, 2)
    for row, net in zip(out, nets, strict=True):
        np.testing.assert_allclose(row, expected(net), rtol=1e-6)
    stacked = st.tree.stack(nets)
    assert stacked.layer.weight.shape == (3, 2, 3)
    y = snp.zeros((4, 2))

    def loss(member, x, y):
        return ((member(x)["y"] - y) ** 2).mean()

    evaluated = st.Ensemble([module(seed) for seed in range(3)])
    with pytest.raises(ValueError, match=r"evaluation mode.*from_torch\(\.\.\., train=True\)"):
        evaluated.fit(loss, (X, y), st.optim.sgd(0.05), epochs=1)
    fitted = ensemble.fit(loss, (X, y), st.optim.sgd(0.05), epochs=3, batch_size=4)
    before = float((out**2).mean())
    assert float((fitted.ensemble(X)["y"] ** 2).mean()) < before


def test_ties():
    net = module(ties=(("head.weight", "layer.weight"),))
    assert [name for name, _ in net.named_parameters()] == ["layer.weight", "layer.bias"]
    state = net.state_dict()
    assert state["head.weight"] is state["layer.weight"]
    other = module(1, ties=(("head.weight", "layer.weight"),))
    assert other.load_state_dict(state) == ([], [])
    np.testing.assert_array_equal(other.layer.weight, net.layer.weight)
    del state["head.weight"]
    assert other.load_state_dict(state) == ([], [])
    with pytest.raises(ValueError, match="unexpected: what"):
        other.load_state_dict({**state, "what": X})
    with pytest.raises(TypeError, match="expected a dictionary"):
        other.load_state_dict(3)


def test_updates_of_buffers():
    net = assembled("Counter", counting(), None, (), {"count": Held("buffer", np.int32(0))}, {})
    net(1.0)
    assert int(net.count) == 1
    with pytest.raises(RuntimeError, match="the update would be lost"):
        st.jit(lambda net: net(1.0))(net)
    _, after = st.jit(lambda net: nn.stateful_call(net, 1.0))(net)
    assert int(after.count) == 2 and int(net.count) == 1
