"""Ties: found by identity, kept once, and one value at all places when a member is run."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.ensemble.groups import retied, ties_of, untied

KEY = st.random.PRNGKey(2)
X = st.random.normal(st.random.PRNGKey(3), (6, 4))


class Autoencoder(nn.Module):
    """The decoder's weight is the encoder's, and one normalization is used twice."""

    def __init__(self, *, key, tied=True):
        super().__init__()
        self.encoder = nn.Linear(4, 4, key=key)
        self.decoder = nn.Linear(4, 4, key=st.random.fold_in(key, 1))
        if tied:
            self.decoder.weight = nn.Parameter(self.encoder.weight)
        self.norm = nn.BatchNorm1d(4)
        self.again = self.norm

    def forward(self, x):
        return self.decoder(self.again(nn.tanh(self.norm(self.encoder(x)))))


def autoencoders(count):
    return [Autoencoder(key=k) for k in st.random.split(KEY, count)]


def loss(member, x=X):
    return ((member(x) - x) ** 2).mean()


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def plain_gradients(model):
    """Take gradients by parameters by name, each once, with a function of these alone."""
    names = dict(model.named_parameters())

    def of_parameters(params):
        made = model.clone()
        made.load_state_dict({**params, "decoder.weight": params["encoder.weight"]}, strict=False)
        made.decoder.weight = nn.Parameter(made.encoder.weight)
        return loss(made)

    return st.grad(of_parameters)(names)


def test_what_counts_as_tied():
    assert ties_of(autoencoders(1)[0]) == (("decoder.weight", "encoder.weight"), ("again", "norm"))
    zeros = snp.zeros(3)
    model = nn.Module()
    model.register_buffer("a", zeros)
    model.register_buffer("b", zeros)
    assert ties_of(model) == ()  # each is assigned anew by itself
    assert ties_of({"a": zeros, "b": zeros}) == ()
    assert ties_of(nn.Sequential(nn.BatchNorm1d(3), nn.BatchNorm1d(3))) == ()


def test_taken_out_and_put_back():
    model = autoencoders(1)[0]
    ties = ties_of(model)
    bare = untied(model, ties)
    assert bare.decoder.weight is None
    assert bare.again is None
    assert model.again is model.norm  # the model itself stays
    whole = retied(st.tree.map(lambda x: x + 1, bare), ties)
    assert whole.decoder.weight is whole.encoder.weight
    assert whole.again is whole.norm


def test_an_ensemble_has_what_is_tied_once():
    models = autoencoders(3)
    ensemble = st.Ensemble(models).eval()
    names = list(ensemble.state_dict()[0])
    assert "decoder.weight" not in names
    assert not any(n.startswith("again") for n in names)
    assert list(ensemble.trainable()[0]) == [n for n, _ in models[0].named_parameters()]
    close(ensemble(X), [m.eval()(X) for m in models])
    taken = ensemble[1]
    assert taken.decoder.weight is taken.encoder.weight
    assert taken.again is taken.norm


@pytest.mark.parametrize("jit", [False, True])
def test_gradients_add_up(jit):
    models = [m.eval() for m in autoencoders(2)]
    ensemble = st.Ensemble(models)
    grad = st.grad(lambda arrays: ensemble.replace(arrays).vmap(loss)().sum())
    (grads,) = (st.jit(grad) if jit else grad)(ensemble.trainable())
    for k, model in enumerate(models):
        for name, g in plain_gradients(model).items():
            close(grads[name][k], g)


def test_statistics_of_a_module_used_twice_are_updated_twice():
    models = autoencoders(2)
    _, after = st.Ensemble(models).stateful_call(X)
    for k, model in enumerate(models):
        plain = nn.stateful_call(model, X)[1]
        close(after[k].norm.running_mean, plain.norm.running_mean)
        assert int(after[k].norm.num_batches_tracked) == 2


def test_training_keeps_ties():
    models = autoencoders(2)
    ensemble = st.Ensemble([m.clone() for m in models])
    ensemble.fit(loss, X, optim.sgd(0.5), batch_size=6, steps=3, key=KEY)
    taken = ensemble[0]
    assert taken.decoder.weight is taken.encoder.weight
    assert int(taken.norm.num_batches_tracked) == 6

    def step(params, buffers):
        made = models[0].clone()
        made.load_state_dict(params | buffers, strict=False)
        made.decoder.weight = nn.Parameter(made.encoder.weight)
        made.again = made.norm
        out, after = nn.stateful_call(made, X)
        return ((out - X) ** 2).mean(), dict(after.named_buffers())

    params, buffers = dict(models[0].named_parameters()), dict(models[0].named_buffers())
    for _ in range(3):
        grads, buffers = st.grad(step, has_aux=True)(params, buffers)
        params = {n: p - 0.5 * grads[n] for n, p in params.items()}
    for name, p in params.items():
        close(dict(taken.named_parameters())[name], p)


def test_init_keeps_ties():
    make = lambda key: Autoencoder(key=key).eval()
    ensemble = st.Ensemble.init(make, KEY, 2)
    assert "decoder.weight" not in ensemble.state_dict()[0]
    close(ensemble(X), [make(k)(X) for k in st.random.split(KEY, 2)])


def test_a_function_of_modules_keeps_ties():
    ensemble = st.Ensemble(lambda model, x: model(x), [m.eval() for m in autoencoders(2)])
    assert "decoder.weight" not in ensemble.state_dict()[0]
    close(ensemble(X)[1], ensemble[1](X))


def test_patterns_reach_all_names_of_what_is_tied():
    ensemble = st.Ensemble(autoencoders(2), frozen="decoder")
    assert list(ensemble.trainable()[0]) == ["encoder.bias", "norm.weight", "norm.bias"]
    with pytest.raises(
        ValueError, match=r"'deco' covers no part .* encoder.weight, decoder.weight,"
    ):
        st.Ensemble(autoencoders(2), shared="deco")


def test_members_must_tie_alike():
    tied, loose = Autoencoder(key=KEY), Autoencoder(key=KEY, tied=False)
    words = "member {} ties decoder.weight to encoder.weight .* member {} does not"
    with pytest.raises(ValueError, match=words.format(0, 1)):
        st.Ensemble([tied, loose])
    with pytest.raises(ValueError, match=words.format(1, 0)):
        st.Ensemble([loose, tied])
    with pytest.raises(ValueError, match=words.format(0, 2)):
        st.Ensemble([tied, tied]).append(loose)


def test_trees_show_no_ties():
    stacked = st.stack(autoencoders(2))
    assert "decoder.weight" in st.Ensemble(stacked).state_dict()[0]
    stacked.decoder.weight = nn.Parameter(stacked.encoder.weight)
    stacked.again = stacked.norm
    assert "decoder.weight" not in st.Ensemble(stacked).state_dict()[0]
