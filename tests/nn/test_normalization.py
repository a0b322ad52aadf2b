"""Layers that normalize: PyTorch's figures, running statistics, transformations, messages."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import digest, layer_digests, names, numbers, same, with_numbers

# Class, arguments, inputs; the names in state_dict; PyTorch's digests (``tests.nn.figures``); its
# buffers after the call, and the digest of the same input in evaluation mode.
CASES = [
    (
        "LayerNorm",
        ([3, 4],),
        {},
        [(2, 3, 4)],
        ["weight", "bias"],
        [(2, 3, 4), -3.83103, 3.71835, -0.2453, 11.2316],
        {},
        -3.83103,
    ),
    (
        "LayerNorm",
        (4,),
        {"bias": False, "eps": 0.1},
        [(2, 3, 4)],
        ["weight"],
        [(2, 3, 4), -0.81518, 0.45073, -0.7776],
        {},
        -0.81518,
    ),
    (
        "RMSNorm",
        (4,),
        {},
        [(2, 3, 4)],
        ["weight"],
        [(2, 3, 4), -0.58819, 0.06915, -0.53146],
        {},
        -0.58819,
    ),
    (
        "GroupNorm",
        (2, 4),
        {},
        [(2, 4, 3)],
        ["weight", "bias"],
        [(2, 4, 3), -0.89297, -1.1807, -2.11618, 3.48003],
        {},
        -0.89297,
    ),
    (
        "LocalResponseNorm",
        (3,),
        {"alpha": 0.5},
        [(2, 4, 3)],
        [],
        [(2, 4, 3), 0.6283, 8.73612],
        {},
        0.6283,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, args, settings, inputs, keys, want, _, evaluated = case
    layer = with_numbers(name, args, settings)
    assert list(layer.state_dict()) == keys
    for run in (lambda f: f, st.jit):
        got, after = layer_digests(layer, inputs, run)
        same(got, want)
        assert digest(after.eval()(numbers(inputs[0], 0))) == pytest.approx(evaluated, abs=2e-4)


def test_words():
    want = "LayerNorm((3, 4), eps=1e-05, elementwise_affine=True, bias=True)"
    assert repr(nn.LayerNorm([3, 4])) == want
    assert repr(nn.RMSNorm(4)) == "RMSNorm((4,), eps=None, elementwise_affine=True)"
    assert repr(nn.GroupNorm(2, 4)) == "GroupNorm(2, 4, eps=1e-05, affine=True)"
    assert repr(nn.LocalResponseNorm(2)) == "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)"


ONES = snp.ones((2, 3, 4))
MESSAGES = [
    (lambda: nn.LayerNorm((3, 5))(ONES), r"LayerNorm\(.*\(\.\.\., 3, 5\), got float32\[2,3,4\]"),
    (lambda: nn.RMSNorm(5)(ONES), r"RMSNorm\(.*\(\.\.\., 5\), got float32\[2,3,4\]"),
    (lambda: nn.GroupNorm(2, 4)(ONES), r"GroupNorm\(2, 4, .*4 channels"),
    (lambda: nn.GroupNorm(2, 3), "num_groups must divide num_channels, got 2 and 3"),
]


@pytest.mark.parametrize("call, words", MESSAGES, ids=range(len(MESSAGES)))
def test_messages(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# Class, arguments, inputs; the names in state_dict; PyTorch's digests (``tests.nn.figures``); its
# buffers after the call, and the digest of the same input in evaluation mode.
BATCHES_CASES = [
    (
        "BatchNorm1d",
        (3,),
        {},
        [(4, 3)],
        ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"],
        [(4, 3), 4.25614, 2.56115, 4.11264, 0.06563],
        {
            "running_mean": [-0.01128, 0.02048, 0.02224],
            "running_var": [0.96666, 0.96065, 0.95911],
            "num_batches_tracked": [1.0],
        },
        3.11846,
    ),
    (
        "BatchNorm1d",
        (3,),
        {"momentum": None},
        [(2, 3, 4)],
        ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"],
        [(2, 3, 4), 3.20832, 9.17425, -1.2071, 3.69663],
        {
            "running_mean": [-0.00367, 0.0079, 0.01107],
            "running_var": [0.46778, 0.56422, 0.68293],
            "num_batches_tracked": [1.0],
        },
        3.28603,
    ),
    (
        "BatchNorm2d",
        (2,),
        {"affine": False, "eps": 0.1},
        [(2, 2, 3, 2)],
        ["running_mean", "running_var", "num_batches_tracked"],
        [(2, 2, 3, 2), 0.8486, 15.63852],
        {
            "running_mean": [0.00102, -0.0],
            "running_var": [0.94522, 0.96391],
            "num_batches_tracked": [1.0],
        },
        0.75249,
    ),
    (
        "BatchNorm2d",
        (2,),
        {"track_running_stats": False},
        [(2, 2, 3, 2)],
        ["weight", "bias"],
        [(2, 2, 3, 2), 0.31118, 13.66582, 0.10813, -0.44869],
        {},
        0.31118,
    ),
    (
        "BatchNorm3d",
        (2,),
        {"momentum": 0.3},
        [(2, 2, 2, 2, 2)],
        ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"],
        [(2, 2, 2, 2, 2), 4.29815, 17.56452, 3.89457, 0.41953],
        {
            "running_mean": [0.02111, 0.00662],
            "running_var": [0.85807, 0.85407],
            "num_batches_tracked": [1.0],
        },
        3.29265,
    ),
    ("InstanceNorm1d", (3,), {}, [(3, 4)], [], [(3, 4), 4.45358, 3.90881], {}, 4.45358),
    (
        "InstanceNorm2d",
        (2,),
        {"affine": True, "track_running_stats": True},
        [(2, 2, 3, 2)],
        ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"],
        [(2, 2, 3, 2), 0.37816, 9.40755, 0.15522, -0.44869],
        {
            "running_mean": [0.00102, -0.0],
            "running_var": [0.94973, 0.96601],
            "num_batches_tracked": [0.0],
        },
        0.25929,
    ),
    (
        "InstanceNorm3d",
        (2,),
        {"track_running_stats": True, "momentum": 0.4},
        [(2, 2, 2, 2, 2)],
        ["running_mean", "running_var", "num_batches_tracked"],
        [(2, 2, 2, 2, 2), 5.08988, 15.71031],
        {
            "running_mean": [0.02815, 0.00883],
            "running_var": [0.82031, 0.81015],
            "num_batches_tracked": [0.0],
        },
        4.09714,
    ),
]


@pytest.mark.parametrize("case", BATCHES_CASES, ids=names(BATCHES_CASES))
def test_equals_pytorch_of_batches(case):
    name, args, settings, inputs, keys, want, buffers, evaluated = case
    layer = with_numbers(name, args, settings)
    assert list(layer.state_dict()) == keys
    for run in (lambda f: f, st.jit):
        got, after = layer_digests(layer, inputs, run)
        same(got, want)
        for n, b in after.named_buffers():
            np.testing.assert_allclose(np.ravel(b), buffers[n], rtol=1e-4, atol=2e-5)
        assert after.eval()(numbers(inputs[0], 0)).shape == want[0]
        assert digest(after(numbers(inputs[0], 0))) == pytest.approx(evaluated, abs=2e-4)
    assert all(
        (b == nb).all()
        for b, nb in zip(layer.buffers(), with_numbers(name, args, settings).buffers())
    )


X = np.random.default_rng(0).normal(1, 2, (3, 8, 2, 5)).astype("f")


def test_running_statistics():
    layer = nn.BatchNorm1d(2, momentum=0.25)
    mean, variance = np.zeros(2), np.ones(2)
    for x in X:
        layer(x)
        mean = 0.75 * mean + 0.25 * x.mean((0, 2))
        variance = 0.75 * variance + 0.25 * x.var((0, 2), ddof=1)
    np.testing.assert_allclose(layer.running_mean, mean, rtol=1e-4)
    np.testing.assert_allclose(layer.running_var, variance, rtol=1e-4)
    assert layer.num_batches_tracked.item() == 3
    assert layer.num_batches_tracked.dtype == snp.int32
    layer.eval()
    want = (X[0] - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5)
    np.testing.assert_allclose(layer(X[0]), want, rtol=1e-3, atol=1e-4)
    assert layer.num_batches_tracked.item() == 3


def test_plain_means_of_batches():
    layer = nn.BatchNorm1d(2, momentum=None)
    for x in X:
        layer(x)
    np.testing.assert_allclose(layer.running_mean, X.mean((0, 1, 3)), rtol=1e-4)
    want = X.var((1, 3), ddof=1).mean(0)
    np.testing.assert_allclose(layer.running_var, want, rtol=1e-4)


def test_updates_inside_transformations():
    layer = nn.BatchNorm1d(2)
    with pytest.raises(RuntimeError, match=r"BatchNorm1d: the buffer .*stateful_call"):
        st.jit(lambda layer, x: layer(x))(layer, X[0])
    with pytest.raises(RuntimeError, match="stateful_call"):
        st.grad(lambda x: layer(x).sum())(X[0])
    out, after = st.jit(nn.stateful_call)(layer, X[0])
    assert (layer.running_mean == 0).all() and layer.num_batches_tracked.item() == 0
    np.testing.assert_allclose(layer(X[0]), out, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer.running_var, after.running_var, rtol=1e-5)
    # In evaluation mode nothing is updated.
    assert st.jit(lambda layer, x: layer(x))(layer.eval(), X[0]).shape == X[0].shape


def test_running_statistics_have_no_slope():
    layer = nn.BatchNorm1d(2)
    slope = st.grad(lambda x: nn.stateful_call(layer, x)[1].running_var.sum())(X[0])
    assert (slope == 0).all()


def test_ensemble_in_a_scan():
    layers = [with_numbers("BatchNorm1d", (2,), {"momentum": m}) for m in (0.1, 0.1)]
    layers[1].load_state_dict({"weight": snp.array([3.0, -1.0])}, strict=False)

    def train(layer, xs):
        def step(layer, x):
            out, layer = nn.stateful_call(layer, x)
            return layer, out.mean((0, 2))

        return st.lax.scan(step, layer, xs)

    after, outs = st.jit(st.vmap(train, in_axes=(0, None)))(st.stack(layers), X)
    for i, layer in enumerate(layers):
        want = np.stack([layer(x).mean((0, 2)) for x in X])
        np.testing.assert_allclose(outs[i], want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(after.running_mean[i], layer.running_mean, rtol=1e-4)
        np.testing.assert_allclose(after.running_var[i], layer.running_var, rtol=1e-4)
        assert after.num_batches_tracked[i].item() == 3


def test_narrow_floats():
    layer = nn.BatchNorm1d(2, dtype=snp.bfloat16)
    out = layer(snp.array(X[0], snp.bfloat16))
    assert out.dtype == layer.running_var.dtype == layer.weight.dtype == snp.bfloat16
    mixed = nn.BatchNorm1d(2)
    assert mixed(snp.array(X[0], snp.bfloat16)).dtype == snp.bfloat16
    assert mixed.running_mean.dtype == snp.float32


def test_words_of_batches():
    want = "BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)"
    assert repr(nn.BatchNorm2d(4)) == want


BATCHES_MESSAGES = [
    (
        lambda: nn.BatchNorm2d(3)(ONES),
        r"BatchNorm2d\(3, .*expected input \(batch, 3 channels, height, width\), got "
        r"float32\[2,3,4\]",
    ),
    (lambda: nn.BatchNorm1d(4)(ONES), r"\(batch, 4 channels\) or \(batch, 4 channels, length\)"),
    (lambda: nn.BatchNorm1d(3)(ONES[:1, :, 0]), "more than 1 value per channel in train mode"),
    (lambda: nn.InstanceNorm1d(3)(ONES[:, :, :1]), "more than 1 value per channel"),
    (lambda: nn.InstanceNorm2d(4)(ONES), r"InstanceNorm2d\(4, .*4 channels"),
    (lambda: nn.BatchNorm1d(0), "num_features must be a positive integer"),
]


@pytest.mark.parametrize("call, words", BATCHES_MESSAGES, ids=range(len(BATCHES_MESSAGES)))
def test_messages_of_batches(call, words):
    with pytest.raises(ValueError, match=words):
        call()
