"""Layers without space: PyTorch's figures, beginnings, ensembles, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import layer_digests, names, same, with_numbers

# Class, arguments, inputs; the names in state_dict; PyTorch's digests (``tests.nn.figures``).
CASES = [
    (
        "Linear",
        (3, 4),
        {},
        [(2, 5, 3)],
        ["weight", "bias"],
        [(2, 5, 4), 3.37233, 0.67844, 1.15486, 1.57323],
    ),
    ("Linear", (3, 2), {"bias": False}, [(3,)], ["weight"], [(2,), 0.70841, 0.66255, 0.0448]),
    (
        "Bilinear",
        (3, 2, 4),
        {},
        [(5, 3), (5, 2)],
        ["weight", "bias"],
        [(5, 4), 0.58203, -0.81977, 0.21099, -0.28671, 0.17529],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, args, settings, inputs, keys, want = case
    layer = with_numbers(name, args, settings)
    assert list(layer.state_dict()) == keys
    for run in (lambda f: f, st.jit):
        same(layer_digests(layer, inputs, run)[0], want)


def test_beginning():
    layer = nn.Linear(100, 50, key=st.random.PRNGKey(0))
    for array in (layer.weight, layer.bias):
        top = np.abs(array).max()
        assert 0.09 < top <= 0.1 and abs(np.mean(array)) < 0.02
    assert layer.weight.shape == (50, 100) and layer.bias.shape == (50,)
    again = nn.Linear(100, 50, bias=False, key=st.random.PRNGKey(0))
    np.testing.assert_array_equal(again.weight, layer.weight)
    bilinear = nn.Bilinear(25, 3, 40, key=st.random.PRNGKey(0))
    assert bilinear.weight.shape == (40, 25, 3)
    assert 0.19 < np.abs(bilinear.weight).max() <= 0.2


def test_keys_and_dtypes():
    st.random.manual_seed(0)
    one, other = nn.Linear(3, 2), nn.Linear(3, 2)
    assert (one.weight != other.weight).any()
    st.random.manual_seed(0)
    np.testing.assert_array_equal(nn.Linear(3, 2).weight, one.weight)
    narrow = nn.Linear(3, 2, key=st.random.PRNGKey(0), dtype=snp.bfloat16)
    assert narrow.weight.dtype == narrow.bias.dtype == snp.bfloat16
    assert narrow(snp.ones(3, snp.bfloat16)).dtype == snp.bfloat16


def test_ensemble():
    layers = [nn.Linear(3, 2, key=k) for k in st.random.split(st.random.PRNGKey(0), 4)]
    x = st.random.normal(st.random.PRNGKey(1), (5, 3))
    want = np.stack([layer(x) for layer in layers])
    run = st.vmap(lambda layer, x: layer(x), in_axes=(0, None))
    np.testing.assert_allclose(run(st.stack(layers), x), want, rtol=1e-5)
    np.testing.assert_allclose(st.jit(run)(st.stack(layers), x), want, rtol=1e-5)

    def loss(layer, x):
        return (layer(x) ** 2).sum()

    slopes = st.jit(st.vmap(st.grad(loss), in_axes=(0, None)))(st.stack(layers), x)
    each = [st.grad(loss)(layer, x).weight for layer in layers]
    np.testing.assert_allclose(slopes.weight, np.stack(each), rtol=1e-4, atol=1e-5)


def test_identity():
    x = snp.ones(3)
    assert nn.Identity(1, anything=2)(x) is x


def test_words():
    assert repr(nn.Linear(3, 2, bias=False)) == "Linear(in_features=3, out_features=2, bias=False)"
    with pytest.raises(
        ValueError, match=r"Linear\(in_features=3.*\.\.\., 3 features\), got float32\[4\]"
    ):
        nn.Linear(3, 2)(snp.ones(4))
    with pytest.raises(ValueError, match=r"Bilinear\(.*2 features\), got float32\[4,3\]"):
        nn.Bilinear(3, 2, 1)(snp.ones((4, 3)), snp.ones((4, 3)))
    with pytest.raises(ValueError, match="Linear: in_features must be a positive integer, got 0"):
        nn.Linear(0, 2)
    with pytest.raises(TypeError, match="expected a key"):
        nn.Linear(3, 2, key=3)
