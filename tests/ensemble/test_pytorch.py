"""Ensembles of PyTorch modules: values, groups, training, scores, merging, functions of arrays."""

import copy

import numpy as np
import pytest

import stretto as st


def test_what_is_no_list_of_modules():
    for wrong in (len, 3, st.nn.Linear(2, 2)):
        with pytest.raises(TypeError, match=r"from_torch: expected a list of PyTorch modules, got"):
            st.Ensemble.from_torch(wrong)
    with pytest.raises(ValueError, match="expected at least one module, got none"):
        st.Ensemble.from_torch([])
    with pytest.raises(TypeError, match=r"expected a torch.nn.Module, got a \w+ as member 0"):
        st.Ensemble.from_torch([len, 3])


torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

from stretto.torch.export import capture  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 6, 8)).astype(np.float32)
Y = RNG.integers(0, 3, 12).astype(np.int32)


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(6, 4, 3), nn.BatchNorm1d(4), nn.ReLU(inplace=True))
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.body(x).mean(-1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


def perceptron():
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(48, 8),
        nn.BatchNorm1d(8),
        nn.Tanh(),
        nn.Dropout(0.2),
        nn.Linear(8, 3),
    )


@pytest.fixture(scope="module")
def modules():
    torch.manual_seed(0)
    made = [perceptron(), Convolutional(), Attending(), Recurrent(), perceptron()]
    for module in made:  # running statistics other than the first
        module(torch.from_numpy(X) * 2 + 1)
        module.eval()
    return made


@pytest.fixture(scope="module")
def imported(modules):
    return st.Ensemble.from_torch(modules, torch.from_numpy(X), train=True)


def theirs(modules, x=X):
    with torch.no_grad():
        return np.stack([module(torch.from_numpy(x)).numpy() for module in modules])


def cross_entropy(member, x, y):
    return st.nn.functional.cross_entropy(member(x), y)


def test_each_member_gives_what_pytorch_gives(modules, imported):
    assert [len(group) for group in imported.groups] == [2, 1, 1, 1]
    np.testing.assert_allclose(imported(X), theirs(modules), rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(imported(X[:5]), theirs(modules, X[:5]), rtol=2e-5, atol=2e-6)
    kinds = [line.split(":")[0] for line in repr(imported).split("\n")[1:3]]
    assert kinds == ["  2 × Sequential", "  1 × Convolutional"]
    for member, module in zip(imported, modules, strict=True):
        assert set(member.state_dict()) == set(module.state_dict())
    assert not any(module.training for module in modules)
    probabilities = st.nn.softmax(imported(X), -1)
    mean = st.ensemble.mean(probabilities)
    np.testing.assert_allclose(
        mean, torch.softmax(torch.from_numpy(theirs(modules)), -1).mean(0), rtol=1e-5
    )
    assert 0 <= float(st.ensemble.accuracy(mean, Y)) <= 1 < float(st.ensemble.nll(mean, Y)) + 1


def test_training(imported):
    ensemble = imported[:]
    before = ensemble.state_dict()[0]
    fitted = ensemble.train().fit(
        cross_entropy,
        (X, Y),
        st.optim.adam(1e-2),
        epochs=30,
        batch_size=6,
        key=st.random.key(0),
        metrics={"accuracy": lambda member, x, y: (member(x).argmax(-1) == y).mean()},
        validation=(X, Y),
    )
    losses = fitted.history["loss"]
    assert (losses[-1] < 0.7 * losses[0]).all()
    after = ensemble.state_dict()[0]
    assert int(after["2.num_batches_tracked"][0]) == int(before["2.num_batches_tracked"][0]) + 60
    assert not np.allclose(after["2.running_mean"], before["2.running_mean"])
    ensemble.eval()
    np.testing.assert_array_equal(ensemble(X), ensemble(X))
    accuracy = [(np.asarray(out).argmax(-1) == Y).mean() for out in ensemble(X)]
    np.testing.assert_allclose(fitted.history["validation_accuracy"][-1], accuracy, rtol=1e-6)


def test_one_export_serves_all_of_an_architecture(monkeypatch):
    counted = []

    def counting(*args, **kwargs):
        counted.append(args[0])
        return capture_one(*args, **kwargs)

    capture_one = capture.capture
    monkeypatch.setitem(capture.__dict__, "capture", counting)
    twins = [perceptron().eval() for _ in range(4)]
    own = perceptron().eval()
    own.note = lambda: None  # which changes nothing, but who knows
    other = perceptron().eval()
    other[4].p = other[2].eps = 0.5
    alike = st.Ensemble.from_torch([*twins, own, other], torch.from_numpy(X))
    assert counted == [twins[0], own, other]
    assert [len(group) for group in alike.groups] == [5, 1]
    np.testing.assert_allclose(alike(X), theirs([*twins, own, other]), rtol=2e-5, atol=2e-6)


def test_options_and_exported_programs():
    modules = [nn.Linear(8, 2) for _ in range(3)]
    x = torch.from_numpy(X[0])
    programs = [torch.export.export(module, (x,)) for module in modules]
    ensemble = st.Ensemble.from_torch(programs, frozen="bias", chunk_size=2)
    assert len(ensemble.groups) == 1 and list(ensemble.trainable()[0]) == ["weight"]
    with torch.no_grad():
        expected = [module(x).numpy() for module in modules]
    np.testing.assert_allclose(ensemble(X[0]), expected, rtol=1e-5, atol=1e-6)


def test_ties_and_what_is_trained():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 4)
            self.head = nn.Linear(4, 5)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.embed(ids))

    modules = [Tied() for _ in range(3)]
    modules[0].head.bias.requires_grad_(False)
    ids = torch.tensor([[1, 2], [3, 4]])
    ensemble = st.Ensemble.from_torch(modules, ids, train=True)
    assert [len(group) for group in ensemble.groups] == [1, 2]
    assert [list(names) for names in ensemble.trainable()] == [
        ["embed.weight"],
        ["embed.weight", "head.bias"],
    ]
    with torch.no_grad():
        expected = [module(ids).numpy() for module in modules]
    np.testing.assert_allclose(ensemble(ids.numpy()), expected, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def tuned():
    """A network, and three of that start, with other weights; and all of them here."""
    torch.manual_seed(1)
    base = perceptron().eval()
    nets = [copy.deepcopy(base) for _ in range(3)]
    with torch.no_grad():
        for net in nets:
            for parameter in net.parameters():
                parameter += 0.1 * torch.randn_like(parameter)
    first, *rest = st.Ensemble.from_torch([base, *nets], torch.from_numpy(X), train=True)
    return base, nets, first, rest


def mean_of(nets, base=None, scale=1.0):
    """PyTorch's network with the mean of weights; or with the sum of differences from a start."""
    mean = copy.deepcopy(nets[0])
    with torch.no_grad():
        for own, *others in zip(mean.parameters(), *[n.parameters() for n in nets], strict=True):
            own.copy_(torch.stack(others).mean(0))
        if base is not None:
            for own, start in zip(mean.parameters(), base.parameters(), strict=True):
                own.copy_(start + scale * len(nets) * (own - start))
    return mean


def test_merging(tuned):
    base, nets, first, members = tuned
    expected = theirs([mean_of(nets)])[0]
    for soup in (st.ensemble.uniform_soup(members), st.ensemble.uniform_soup(st.Ensemble(members))):
        np.testing.assert_allclose(soup(X), expected, rtol=1e-4, atol=1e-5)
    vectors = [st.ensemble.task_vector(member, first) for member in members]
    added = st.ensemble.add_task_vectors(first, vectors, 0.3)
    np.testing.assert_allclose(
        added(X), theirs([mean_of(nets, base, 0.3)])[0], rtol=1e-4, atol=1e-5
    )
    kept = st.ensemble.ties(vectors, density=1.0)
    weights = [np.asarray(v.state_dict()["1.weight"]) for v in vectors]
    sign = np.sign(np.sum(weights, 0))
    agreed = [np.where(np.sign(w) == sign, w, 0) for w in weights]
    np.testing.assert_allclose(
        kept.state_dict()["1.weight"],
        np.sum(agreed, 0) / np.maximum(np.sum([a != 0 for a in agreed], 0), 1),
        rtol=1e-4,
        atol=1e-6,
    )

    def log_likelihood(member, x, y):
        return -cross_entropy(member, x[None], y[None])

    name = "5.weight"
    fishers = [st.ensemble.diagonal_fisher(log_likelihood, m, X, Y) for m in members]
    averaged = st.ensemble.fisher_average(members, fishers).state_dict()[name]
    weights = np.stack([m.state_dict()[name] for m in members])
    shares = np.stack([f.state_dict()[name] for f in fishers])
    np.testing.assert_allclose(
        averaged, (weights * shares).sum(0) / shares.sum(0), rtol=1e-3, atol=1e-4
    )


def test_dropout_when_it_predicts(tuned):
    _, (net, *_), _, members = tuned
    with pytest.raises(ValueError, match=r"has no dropout.*its dropout layers alone in train mode"):
        st.ensemble.layers.mc_dropout(members[0], X, st.random.key(0), 3)
    net[4].train()
    exported = torch.export.export(net, (torch.from_numpy(X),), strict=False)
    net.eval()
    runs = st.ensemble.layers.mc_dropout(st.from_torch(exported), X, st.random.key(0), 200)
    assert runs.shape == (200, 12, 3) and (np.std(runs, 0) > 0).all()
    np.testing.assert_allclose(np.mean(runs, 0), theirs([net])[0], atol=0.15)


def test_a_transformer_of_a_library():
    transformers = pytest.importorskip("transformers")
    try:
        kind = transformers.BertForSequenceClassification
    except ImportError as error:  # it is there, and what it needs is not
        pytest.skip(str(error))
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        num_labels=3,
    )
    modules = [kind(config).eval() for _ in range(3)]
    ids = torch.randint(0, 20, (6, 10))
    ensemble = st.Ensemble.from_torch(modules, ids)
    assert len(ensemble.groups) == 1
    with torch.no_grad():
        expected = np.stack([module(ids).logits.numpy() for module in modules])
    np.testing.assert_allclose(ensemble(ids.numpy()).logits, expected, rtol=1e-4, atol=1e-6)


def test_functions_of_arrays(tuned):
    _, nets, _, members = tuned
    parameters, buffers = st.func.stack_module_state(members)

    def call(parameters, buffers, x):
        return st.func.functional_call(members[0], (parameters, buffers), (x,))

    out = st.func.vmap(call, in_dims=(0, 0, None))(parameters, buffers, X)
    np.testing.assert_allclose(out, theirs(nets), rtol=1e-4, atol=1e-5)

    def loss(parameters):
        out = st.func.functional_call(members[0], parameters, (X,))
        return st.nn.functional.cross_entropy(out, Y)

    own = dict(members[0].named_parameters())
    slopes, value = st.func.grad_and_value(loss)(own)
    nets[0].zero_grad()
    expected = nn.functional.cross_entropy(nets[0](torch.from_numpy(X)), torch.from_numpy(Y).long())
    expected.backward()
    np.testing.assert_allclose(value, expected.detach(), rtol=1e-5)
    by_module = st.grad(lambda m: cross_entropy(m, X, Y))(members[0]).state_dict()
    for name, parameter in nets[0].named_parameters():
        np.testing.assert_allclose(slopes[name], parameter.grad, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(by_module[name], parameter.grad, rtol=1e-4, atol=1e-6)
    training = members[0].clone().train()
    with st.nn.keys(st.random.key(0)):
        _, after = st.func.functional_call(training, own, (X,), return_buffers=True)
    assert int(after["2.num_batches_tracked"]) == 1


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.drop = nn.Linear(8, 8), nn.Dropout(0.5)

    def forward(self, x, scale=1.0, count=3, flag=True, *, options=(("a", 1.5),)):
        y = self.drop(self.layer(x)) * scale + options[0][1]
        return y + count if flag else y


def test_options_are_not_traced():
    members = [Scaled().eval() for _ in range(3)]
    x, options = torch.from_numpy(X), (("a", 2.5),)
    ensemble = st.Ensemble.from_torch(members, x, {"scale": 2.0, "options": options}, train=True)
    want = np.stack([m(x, 2.0, options=options).detach() for m in members])
    for args, kwargs in (
        ((), {"scale": 2.0}),
        ((2.0,), {}),
        ((np.float64(2),), {}),
        ((2.0, 3, True), {}),
    ):
        found = ensemble(X, *args, options=options, **kwargs)
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    each = ensemble.each(np.stack([X] * 3), 2.0, options=options)
    np.testing.assert_allclose(each, want, rtol=1e-5, atol=1e-5)
    compiled = st.jit(lambda ensemble, x: ensemble(x, scale=2.0, options=options))
    np.testing.assert_allclose(compiled(ensemble, X), want, rtol=1e-5, atol=1e-5)
    for scale, found in ((3.0, "3.0"), (2, "2 now"), (True, "True")):
        with pytest.raises(
            ValueError, match=f"scale is part of the program: it was 2.0 .* {found}"
        ):
            ensemble(X, scale=scale, options=options)
    with pytest.raises(ValueError, match=r"is left out now, which means 1\.0"):
        ensemble(X, options=options)
    out, _ = ensemble.train().stateful_call(X, 2.0, options=options, key=st.random.key(0))
    assert out.shape == want.shape
