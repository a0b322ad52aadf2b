"""The modes of the parts of a PyTorch module, kept by what is imported."""

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 (only where PyTorch is)
from torch.nn import functional as F  # noqa: E402

from stretto.torch.python_state.between_calls import in_mode  # noqa: E402

X = torch.from_numpy(np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32))
ARRAY = X.numpy()


class Net(nn.Module):
    """What has modes: batch normalization and dropout."""

    def __init__(self, p=0.5):
        super().__init__()
        self.norm, self.drop, self.fc = nn.BatchNorm1d(4), nn.Dropout(p), nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(self.drop(self.norm(x)))


def modes(module):
    return {name: part.training for name, part in module.named_modules()}


def draws(model, *args):
    results = []
    for seed in (0, 1):
        with st.nn.keys(st.random.key(seed)):
            results.append(np.asarray(model(*args)))
    return not np.allclose(*results)


def dropping():
    net = Net().eval()
    net.drop.train()
    return net


def test_dropout_that_is_left_on(tmp_path):
    theirs = dropping()
    before = modes(theirs)
    ours = st.from_torch(theirs, X, train=True)
    assert modes(theirs) == before
    evaluated = {"": False, "norm": False, "fc": False, "drop": True}
    assert draws(ours, ARRAY) and modes(ours) == evaluated
    assert all(modes(ours.train()).values())
    assert draws(ours.eval(), ARRAY) and modes(ours) == evaluated
    path = str(tmp_path / "net.safetensors")
    st.torch.save(path, ours)
    assert modes(st.torch.load(path)) == evaluated
    with st.nn.keys(st.random.key(0)):
        kept = np.asarray(ours(ARRAY)) - np.asarray(ours.fc.bias)
    with torch.no_grad():
        still = theirs.eval()(X).numpy()
    assert not np.allclose(kept, still - np.asarray(ours.fc.bias))


def test_normalization_that_is_frozen():
    theirs = Net(p=0.0).train()
    with torch.no_grad():
        theirs.norm.running_mean.add_(1)
    theirs.norm.eval()
    ours = st.from_torch(theirs, X, train=True)
    assert modes(theirs) == {"": True, "norm": False, "drop": True, "fc": True}
    np.testing.assert_allclose(ours.train()(ARRAY), theirs(X).detach(), rtol=1e-4, atol=1e-5)
    assert modes(ours) == {"": True, "norm": False, "fc": True}
    after = st.nn.stateful_call(ours, ARRAY)[1]
    assert int(after.norm.num_batches_tracked) == 0
    slope = st.jit(st.grad(lambda m: (m(ARRAY) ** 2).sum()))(ours)
    theirs(X).square().sum().backward()
    np.testing.assert_allclose(slope.norm.weight, theirs.norm.weight.grad, rtol=1e-3)
    np.testing.assert_allclose(ours.eval()(ARRAY), theirs.eval()(X).detach(), rtol=1e-4, atol=1e-5)


def test_a_train_of_its_own():
    class Frozen(Net):
        def train(self, mode=True):
            super().train(mode)
            self.norm.eval()
            return self

    theirs = Frozen(p=0.0).eval()
    ours = st.from_torch(theirs, X, train=True).train()
    np.testing.assert_allclose(ours(ARRAY), theirs.train()(X).detach(), rtol=1e-4, atol=1e-5)
    assert modes(ours) == {"": True, "norm": False, "fc": True}


def test_statistics_in_an_evaluated_module():
    theirs = Net().eval()
    theirs.norm.train()
    ours = st.from_torch(theirs, X)
    out, after = st.nn.stateful_call(ours, ARRAY)
    np.testing.assert_allclose(out, theirs(X).detach(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after.norm.running_mean, theirs.norm.running_mean, rtol=1e-5)


@pytest.mark.parametrize(
    ("function", "drops"),
    [
        (lambda self, x: F.dropout(x), True),
        (lambda self, x: F.dropout(x, 0.5, training=True), True),
        (lambda self, x: F.dropout(x, 0.5, self.training), False),
    ],
)
def test_functions(function, drops):
    class Drops(nn.Module):
        forward = function

    ours = st.from_torch(Drops().eval(), X)
    assert draws(ours, ARRAY) == drops


def test_dropout_inside_of_layers():
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True)
            self.lstm = nn.LSTM(4, 4, 2, dropout=0.5)

        def forward(self, x):
            return self.attention(x, x, x, need_weights=False)[0], self.lstm(x)[0]

    x = X[None, :6]
    theirs = Layers().eval()
    still = st.from_torch(theirs, x, dynamic_batch=False)
    for ours, expected in zip(still(x.numpy()), theirs(x), strict=True):
        np.testing.assert_allclose(ours, expected.detach(), rtol=1e-4, atol=1e-5)
    for name, k in (("attention", 0), ("lstm", 1)):
        theirs.eval().get_submodule(name).train()
        ours = st.from_torch(theirs, x, dynamic_batch=False)
        assert draws(lambda x, ours=ours, k=k: ours(x)[k], x.numpy())
        assert not draws(lambda x, ours=ours, k=k: ours(x)[1 - k], x.numpy())


def test_ensembles_and_modules_around():
    ensemble = st.Ensemble.from_torch([dropping() for _ in range(3)], X, train=True)
    assert len(ensemble.groups) == 1
    one, other = [ensemble(ARRAY, key=st.random.key(k)) for k in (0, 1)]
    assert not np.allclose(one, other)
    assert modes(ensemble.train()[0])["norm"] and modes(ensemble.eval()[0])["drop"]
    assert not modes(ensemble[0])["norm"]

    class Around(st.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x)

    theirs = Net(p=0.0)
    theirs.norm.eval()
    around = Around(st.from_torch(theirs, X, train=True)).train()
    assert not around.inner.norm.training
    np.testing.assert_allclose(around(ARRAY), theirs(X).detach(), rtol=1e-4, atol=1e-5)
    around.eval()(ARRAY)


def test_parts_stay_in_the_mode_of_the_program():
    ours = st.from_torch(dropping(), X)
    with pytest.raises(RuntimeError, match="this Dropout was imported in train mode"):
        ours.drop.eval()
    ours.norm.train()
    with pytest.raises(RuntimeError, match=r"Net\.norm was imported in evaluation mode"):
        ours(ARRAY)


class Merges(nn.Module):
    """An adapter that is merged for evaluation."""

    def __init__(self):
        super().__init__()
        self.w, self.a = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(4, 4))
        self.merged = False

    def train(self, mode=True):
        super().train(mode)
        if self.merged == mode:
            self.w.data += -self.a if mode else self.a
            self.merged = not mode
        return self

    def forward(self, x):
        return x @ self.w if self.merged else x @ self.w + x @ self.a


def test_modes_that_change_parameters():
    theirs = Merges()
    before = theirs.w.detach().clone()
    with pytest.raises(NotImplementedError, match=r"Merges\.eval\(\) changes w, .* same arrays"):
        st.from_torch(theirs, X)
    assert theirs.training and not theirs.merged and torch.equal(theirs.w, before)
    ours = st.from_torch(theirs.eval(), X)
    np.testing.assert_allclose(ours(ARRAY), theirs(X).detach(), rtol=1e-4, atol=1e-5)


def test_modes_that_are_not_there():
    class Still(Net):
        def train(self, mode=True):
            return super().train(False)

    with pytest.raises(NotImplementedError, match=r"Still\.train\(\) does not put .* train=True"):
        st.from_torch(Still().eval(), X, train=True)


def test_the_module_stays_in_its_modes():
    theirs = dropping()
    before = modes(theirs)
    with in_mode(theirs, True):
        assert all(modes(theirs).values())
    assert modes(theirs) == before
    with in_mode(theirs, False):
        assert modes(theirs) == before
