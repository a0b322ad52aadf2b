"""BatchEnsemble: one product for all members is each member's own weight applied."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.ensemble.layers import (
    BatchEnsembleConv2d,
    BatchEnsembleLinear,
    repeat_members,
    split_members,
)
from stretto.nn import functional as F

KEY = st.random.PRNGKey(0)
M, B = 3, 2
FACTORS = pytest.mark.parametrize("factors", ["signs", "normal"])


def linear(**settings):
    return BatchEnsembleLinear(4, 5, M, **{"key": KEY, **settings})


def conv(**settings):
    return BatchEnsembleConv2d(4, 6, 3, M, **{"key": KEY, "padding": 1, **settings})


def member_of(layer, i, x):
    """Member i, with the weight that it has by definition."""
    outer = layer.s[i][:, None] * layer.r[i][None]
    bias = None if layer.bias is None else layer.bias[i]
    weight = layer.shared.weight
    if weight.ndim == 2:
        return F.linear(x, weight * outer, bias)
    groups = layer.shared.groups
    if groups > 1:  # the inputs of an output are those of its group
        each = layer.s.shape[1] // groups
        inputs = layer.r[i].reshape(groups, -1)
        outer = layer.s[i][:, None] * snp.repeat(inputs, each, axis=0)
    return F.conv2d(
        x,
        weight * outer[:, :, None, None],
        bias,
        layer.shared.stride,
        layer.shared.padding,
        groups=groups,
    )


CASES = {
    "linear": (linear, (M, B, 4)),
    "no bias": (lambda **s: linear(bias=False, **s), (M, B, 4)),
    "conv": (conv, (M, B, 4, 5, 5)),
    "strided": (lambda **s: conv(stride=2, bias=False, **s), (M, B, 4, 5, 5)),
    "grouped": (lambda **s: conv(groups=2, **s), (M, B, 4, 5, 5)),
}


@FACTORS
@pytest.mark.parametrize("case", CASES)
def test_the_loop_over_members(case, factors):
    make, shape = CASES[case]
    layer, x = make(factors=factors), st.random.normal(KEY, shape)
    expected = np.stack([member_of(layer, i, x[i]) for i in range(M)])
    for out in (layer(x), st.jit(lambda m, x: m(x))(layer, x)):
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
    tiled = layer(x.reshape(M * B, *shape[2:]))
    assert tiled.shape == (M * B, *expected.shape[2:])
    np.testing.assert_allclose(split_members(tiled, M), layer(x), rtol=1e-5)
    shared = layer(repeat_members(x[0], M))
    np.testing.assert_allclose(
        split_members(shared, M),
        np.stack([member_of(layer, i, x[0]) for i in range(M)]),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("case", ["linear", "conv"])
def test_derivatives_and_vmap(case):
    make, shape = CASES[case]
    layer, x = make(), st.random.normal(KEY, shape)

    def loss(layer, x):
        return (layer(x) ** 2).sum()

    def looped(layer, x):
        return sum((member_of(layer, i, x[i]) ** 2).sum() for i in range(M))

    for how in (st.grad, lambda f: st.jit(st.grad(f))):
        for a, b in zip(
            st.tree.leaves(how(loss)(layer, x)), st.tree.leaves(st.grad(looped)(layer, x))
        ):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    two = st.stack([layer, make(key=st.random.PRNGKey(1))])
    each = st.jit(st.vmap(lambda m: m(x)))(two)
    np.testing.assert_allclose(each[0], layer(x), rtol=1e-4, atol=1e-5)


def test_how_they_begin():
    layer = BatchEnsembleLinear(200, 300, 4, key=KEY)
    assert set(np.unique(layer.r)) == set(np.unique(layer.s)) == {-1, 1}
    assert layer.r.dtype == np.float32 and abs(float(layer.s.mean())) < 0.1
    assert list(layer.state_dict()) == ["r", "s", "bias", "shared.weight"]
    assert layer.bias.shape == (4, 300) and float(abs(layer.bias).max()) <= 200**-0.5
    assert float(abs(layer.shared.weight).max()) <= 200**-0.5
    normal = BatchEnsembleLinear(200, 300, 4, factors="normal", key=KEY, dtype=snp.bfloat16)
    assert normal.r.dtype == normal.bias.dtype == snp.bfloat16
    assert abs(float(normal.s.mean()) - 1) < 0.05 and abs(float(normal.s.std()) - 0.5) < 0.05
    with st.nn.keys(KEY):
        ambient = BatchEnsembleLinear(2, 3, 4)
    assert repr(ambient).startswith(
        "BatchEnsembleLinear(\n  num_estimators=4, bias=True\n  (shared"
    )
    made = st.vmap(lambda k: BatchEnsembleLinear(2, 3, 4, key=k))(st.random.split(KEY, 2))
    assert made.r.shape == (2, 4, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: linear()(np.ones((4, 4))), r"expected input \(3 members × batch, ...\) of 2 axes"),
        (lambda: linear()(np.ones(4)), "BatchEnsembleLinear.*repeat_members"),
        (lambda: linear()(np.ones((2, 3, 4))), r"or \(3 members, batch, ...\) of more"),
        (lambda: linear()(np.ones((3, 3, 5))), "with 4 features or channels, got float32"),
        (lambda: conv()(np.ones((3, 5, 9, 9))), "BatchEnsembleConv2d.*with 4 features or channels"),
        (lambda: linear(factors="ones"), "factors must be 'signs' or 'normal', got 'ones'"),
        (lambda: BatchEnsembleLinear(2, 2, 0), "BatchEnsembleLinear: num_estimators must be a pos"),
    ],
)
def test_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
