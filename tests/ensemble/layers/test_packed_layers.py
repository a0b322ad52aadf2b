"""Packed ensembles: grouped layers are the narrow networks that they hold, one after the other."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble.layers import PackedConv2d, PackedLinear, packed_width
from stretto.nn import functional as F

KEY = st.random.PRNGKey(0)
KEYS = st.random.split(KEY, 3)


def test_widths():
    assert packed_width(64, 2, 4) == 128
    assert packed_width(10, 1.5, 4) == 16
    assert packed_width(10, 1.1, 1) == 11
    assert packed_width(16, 2, 4, gamma=2) == 32
    assert packed_width(17, 1, 4, gamma=2) == 24
    for bad in (0, -1, "2"):
        with pytest.raises(ValueError, match="alpha must be a positive number"):
            packed_width(8, bad, 4)
    with pytest.raises(ValueError, match="packed_width: gamma must be a positive integer"):
        packed_width(8, 2, 4, 0)


class Narrow(nn.Module):
    """A packed network of linear layers, and its members as dense layers cut out of it."""

    def __init__(self, members, gamma, bias=True):
        super().__init__()
        settings = {"alpha": 2, "num_estimators": members, "bias": bias}
        self.one = PackedLinear(3, 8, gamma=gamma, first=True, key=KEYS[0], **settings)
        self.two = PackedLinear(8, 12, gamma=gamma, key=KEYS[1], **settings)
        self.three = PackedLinear(12, 5, gamma=gamma, last=True, key=KEYS[2], **settings)

    def forward(self, x):
        return self.three(snp.tanh(self.two(snp.tanh(self.one(x)))))


def dense(layer):
    """The weight of a grouped layer as one matrix, zero between groups."""
    groups, outs, ins = layer.weight.shape
    full = np.zeros((groups * outs, groups * ins), np.float32)
    for g in range(groups):
        full[g * outs : (g + 1) * outs, g * ins : (g + 1) * ins] = layer.weight[g]
    return full


def member(model, i, members, x):
    """Member i alone: its rows and columns of each layer."""
    first = True
    for layer in (model.one, model.two, model.three):
        weight = dense(layer)
        rows = slice(*(len(weight) // members * k for k in (i, i + 1)))
        columns = slice(*(weight.shape[1] // members * k for k in (i, i + 1)))
        outside = np.delete(weight[rows], np.r_[columns], axis=1)
        assert first or not outside.any()  # nothing comes from other members
        weight = weight[rows] if first else weight[rows, columns]
        bias = None if layer.bias is None else layer.bias[rows]
        x = F.linear(x if first else snp.tanh(x), weight, bias)
        first = False
    return x


@pytest.mark.parametrize(("members", "gamma", "bias"), [(4, 1, True), (2, 2, True), (3, 1, False)])
def test_linear_members(members, gamma, bias):
    model = Narrow(members, gamma, bias)
    x = st.random.normal(KEY, (6, 3))
    expected = np.stack([member(model, i, members, x) for i in range(members)])
    assert expected.shape == (members, 6, 5)
    for out in (model(x), st.jit(lambda m, x: m(x))(model, x)):
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model(x[:, None])[:, :, 0], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model(x[0]), expected[:, 0], rtol=1e-4, atol=1e-5)
    assert model.two.weight.shape[0] == members * gamma
    assert model.three.weight.shape[0] == members
    one = st.grad(lambda m: (m(x)[1] ** 2).sum())(model)
    other = np.asarray(one.three.weight)
    assert other[1].any() and not np.delete(other, 1, axis=0).any()
    two = st.stack([model, Narrow(members, gamma, bias)])
    np.testing.assert_allclose(st.vmap(lambda m: m(x))(two)[1], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("gamma", "groups"), [(1, 1), (2, 1), (1, 2)])
def test_conv_members(gamma, groups):
    members = 2
    settings = {"alpha": 2, "num_estimators": members, "gamma": gamma, "padding": 1}
    first = PackedConv2d(4, 8, 3, first=True, key=KEYS[0], groups=groups, **settings)
    second = PackedConv2d(8, 8, 3, key=KEYS[1], groups=groups, **settings)
    last = PackedConv2d(8, 3, 1, last=True, key=KEYS[2], alpha=2, num_estimators=members)
    norm = nn.BatchNorm2d(packed_width(8, 2, members, gamma)).eval()
    x = st.random.normal(KEY, (2, 4, 5, 5))
    run = lambda x: last(snp.tanh(norm(second(snp.tanh(first(x))))))
    out = run(x)
    assert out.shape == (members, 2, 3, 5, 5)
    np.testing.assert_allclose(st.jit(run)(x), out, rtol=1e-4, atol=1e-5)
    assert second.groups == members * gamma * groups and last.groups == members
    assert second.weight.shape == (16, 16 // second.groups, 3, 3)
    for i in range(members):
        h = first(x)[:, 8 * i : 8 * i + 8]
        rows = slice(8 * i, 8 * i + 8)
        h = F.conv2d(snp.tanh(h), second.weight[rows], second.bias[rows], padding=1,
                     groups=second.groups // members)  # fmt: skip
        h = h / np.sqrt(1 + norm.eps)
        h = F.conv2d(snp.tanh(h), last.weight[3 * i : 3 * i + 3], last.bias[3 * i : 3 * i + 3])
        np.testing.assert_allclose(out[i], h, rtol=1e-4, atol=1e-5)
    assert last(snp.tanh(norm(second(snp.tanh(first(x[0])))[None]))[0]).shape == (2, 3, 5, 5)
    slopes = st.jit(st.grad(lambda w: (run_with(second, w, first, x)[:, 8:] ** 2).sum()))(
        second.weight
    )
    assert not np.asarray(slopes)[:8].any() and np.asarray(slopes)[8:].any()


def run_with(layer, weight, first, x):
    return st.func.functional_call(layer, {"weight": weight}, snp.tanh(first(x)))


def test_first_and_last_at_once():
    layer = PackedLinear(3, 5, 2, num_estimators=4, first=True, last=True, key=KEY)
    x = st.random.normal(KEY, (6, 3))
    assert layer(x).shape == (4, 6, 5)
    np.testing.assert_allclose(
        layer(x)[2], F.linear(x, layer.weight[0, 10:15], layer.bias[10:15]), rtol=1e-4, atol=1e-5
    )


def test_fewer_parameters():
    # With alpha² = M, a packed layer has as many weights as the one network's.
    layer = PackedLinear(64, 64, alpha=2, num_estimators=4, key=KEY)
    assert layer.weight.size == 64 * 64
    assert float(abs(layer.weight).max()) <= 32**-0.5  # by the inputs of a group
    assert (
        repr(layer) == "PackedLinear(in_features=128, out_features=128, groups=4, num_estimators=4)"
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PackedLinear(8, 8, 2, 4)(np.ones((2, 8))), r"PackedLinear\(in_features=16"),
        (lambda: PackedConv2d(3, 8, 3, 2, 4, groups=2, first=True), "groups must divide in_ch"),
        (lambda: PackedConv2d(8, 8, 3, 2, 4)(np.ones((2, 8, 4, 4))), "16 channels"),
        (lambda: PackedLinear(8, 8, 0, 4), "alpha must be a positive number, got 0"),
        (lambda: PackedConv2d(8, 8, 3, 2, 0), "num_estimators must be a positive integer"),
    ],
)  # fmt: skip
def test_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
