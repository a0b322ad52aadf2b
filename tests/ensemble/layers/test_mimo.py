"""MIMO: where members' inputs and outputs lie, and which examples each of them gets."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.ensemble.layers import MIMO, mimo_batch

KEY = st.random.key(0)
RNG = np.random.default_rng(0)
M, B = 3, 6
X = RNG.normal(size=(M, B, 4)).astype(np.float32)
IMAGES = RNG.normal(size=(M, B, 2, 5, 5)).astype(np.float32)


def keys(n):
    return st.random.split(KEY, n)


def apart(members):
    """Weights with which member i's output depends on its own input alone: a block for each."""
    outputs, inputs = members[0].weight.shape[:2]
    rest = members[0].weight.shape[2:]
    weight = np.zeros((M * outputs, M * inputs, *rest), np.float32)
    for i, layer in enumerate(members):
        rows, columns = (slice(i * n, (i + 1) * n) for n in (outputs, inputs))
        weight[rows, columns] = layer.weight
    return nn.Parameter(snp.asarray(weight)), nn.Parameter(
        snp.concatenate([layer.bias for layer in members])
    )


def test_members_of_a_network_that_is_apart_are_the_parts():
    parts = [nn.Linear(4, 5, key=k) for k in keys(M)]
    network = nn.Linear(M * 4, M * 5)
    network.weight, network.bias = apart(parts)
    model = MIMO(network, M)
    expected = np.stack([part(x) for part, x in zip(parts, X, strict=True)])
    for out in (model(X), st.jit(lambda m, x: m(x))(model, X)):
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    same = np.stack([part(X[0]) for part in parts])
    np.testing.assert_allclose(model.eval()(X[0]), same, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(st.vmap(model)(X)[1], [p(X[1]) for p in parts], rtol=1e-5, atol=1e-6)


def test_images_in_and_out():
    parts = [nn.Conv2d(2, 3, 3, key=k) for k in keys(M)]
    network = nn.Conv2d(M * 2, M * 3, 3)
    network.weight, network.bias = apart(parts)
    model = MIMO(network, M, axis=-3, out_axis=-3)
    expected = np.stack([part(x) for part, x in zip(parts, IMAGES, strict=True)])
    np.testing.assert_allclose(model(IMAGES), expected, rtol=1e-4, atol=1e-5)
    same = np.stack([part(IMAGES[1]) for part in parts])
    np.testing.assert_allclose(model.eval()(IMAGES[1]), same, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("repetition", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("batches", [1, 2])
def test_each_member_sees_each_example_as_often(repetition, batches):
    draw = lambda key: mimo_batch(
        {"x": snp.arange(B) * 10, "y": snp.arange(B)},
        M,
        input_repetition=repetition,
        batch_repetition=batches,
        key=key,
    )
    found = st.jit(draw)(KEY)
    order = np.asarray(found["y"])
    np.testing.assert_array_equal(found["x"], order * 10)  # they stay together
    np.testing.assert_array_equal(np.sort(order), np.tile(np.repeat(np.arange(B), batches), (M, 1)))
    own = round((1 - repetition) * B * batches)
    assert (order[:, own:] == order[0, own:]).all()
    if not repetition:
        assert not (order[0] == order[1]).all() and not (order[1] == order[2]).all()
    np.testing.assert_array_equal(draw(KEY)["y"], order)
    assert not np.array_equal(draw(st.random.key(1))["y"], order)


def test_orders_are_equally_likely_and_independent():
    order = np.asarray(
        st.vmap(lambda key: mimo_batch(snp.arange(3), 2, key=key))(st.random.split(KEY, 3000))
    )
    pairs = order[:, 0, 0] * 3 + order[:, 1, 0]  # the first examples of both members
    share = np.bincount(pairs, minlength=9) / 3000
    # A share of 1/9 has a deviation of 0.0057.
    assert abs(share - 1 / 9).max() < 0.025


def make(i):
    network = nn.Sequential(
        nn.Linear(M * 4, 16, key=st.random.key(i)), nn.ReLU(), nn.Linear(16, M * 2)
    )
    return MIMO(network, M)


def test_an_ensemble_of_them_is_trained_and_is_each_alone():
    x, y = X.reshape(-1, 4), (X.reshape(-1, 4)[:, 0] > 0).astype(np.int32)

    def loss(model, x, y):
        x, y = mimo_batch((x, y), M, input_repetition=0.25) if model.training else (x, y)
        logits = model(x)
        y = snp.broadcast_to(y, logits.shape[:-1])
        return nn.functional.cross_entropy(logits.reshape(-1, 2), y.reshape(-1))

    fitted = st.Ensemble([make(0), make(1)]).fit(
        loss, (x, y), optim.adam(0.02), epochs=30, batch_size=9, key=KEY, progress=False
    )
    out = fitted.ensemble(x)
    assert out.shape == (2, M, 18, 2)
    for i in range(2):
        np.testing.assert_allclose(out[i], fitted.ensemble[i](x), rtol=1e-5, atol=1e-5)
    probs = nn.functional.softmax(out, dim=-1)
    assert st.ensemble.accuracy(probs, y).shape == (2, M)
    assert float(st.ensemble.accuracy(snp.mean(probs, axis=(0, 1)), y)) > 0.8


def test_gradients_of_a_member_s_loss_reach_its_own_input_rows_alone():
    parts = [nn.Linear(4, 5, key=k) for k in keys(M)]
    network = nn.Linear(M * 4, M * 5)
    network.weight, network.bias = apart(parts)
    model = MIMO(network, M)
    slopes = st.grad(lambda x: (model(x)[1] ** 2).sum())(snp.asarray(X))
    assert not slopes[0].any() and not slopes[2].any()
    assert slopes[1].any()


def test_misuse():
    model = MIMO(nn.Linear(M * 4, M * 5), M)
    with pytest.raises(ValueError, match=r"MIMO\(num_estimators=3.*as mimo_batch has it"):
        model(X[:2])
    with pytest.raises(ValueError, match="in train mode"):
        model(X[0])
    with pytest.raises(ValueError, match=r"\(batch, ...\) with channels along axis -3"):
        MIMO(nn.Conv2d(6, 6, 3), M, axis=-3).eval()(IMAGES[0, 0])
    with pytest.raises(ValueError, match="outputs of 3 members along axis -1, got float32"):
        MIMO(nn.Linear(M * 4, 5), M)(X)
    with pytest.raises(TypeError, match="MIMO: expected a module, got function"):
        MIMO(lambda x: x, M)
    with pytest.raises(ValueError, match="axis must count from the end, −1 or less, got 1"):
        MIMO(nn.Linear(4, 4), M, axis=1)
    with pytest.raises(ValueError, match=r"input_repetition must be in \[0, 1\], got 2"):
        mimo_batch(X[0], M, input_repetition=2)
    with pytest.raises(ValueError, match=r"equally many examples, got \(6, 4\), \(5,\)"):
        mimo_batch((X[0], np.arange(5)), M)
    with pytest.raises(ValueError, match="mimo_batch: num_estimators must be a positive integer"):
        mimo_batch(X[0], 0)
