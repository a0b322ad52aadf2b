"""Activations are one operator where tails may be the runtime's; else they keep NaN and digits."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto import export, nn
from stretto.nn import functional as F
from tests.onnx_graphs import agrees, operators, run

pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


X = 3 * normal(5, 37)
SPECIAL = X.copy()
for _k, _value in enumerate((np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-20)):
    SPECIAL.reshape(-1)[_k::23] = _value

SLOPES = np.abs(normal(37))

ACTIVATIONS = [
    (F.leaky_relu, ["LeakyRelu"], ["LeakyRelu"]),
    (lambda x: F.leaky_relu(x, 0.2), ["LeakyRelu"], ["LeakyRelu"]),
    (lambda x: F.prelu(x, SLOPES), ["PRelu"], ["PRelu"]),
    (F.elu, 16, ["Elu"]),
    (lambda x: F.elu(x, 0.5), 17, ["Elu"]),
    (F.celu, 16, ["Elu"]),
    (F.selu, 18, ["Selu"]),
    (F.softplus, 19, ["Softplus"]),
    (F.mish, 19, ["Softplus", "Tanh", "Mul"]),
    (F.hardsigmoid, ["Add", "Clip", "Div"], ["HardSigmoid"]),
    (F.hardswish, ["Add", "Clip", "Div", "Mul"], ["HardSwish"]),
    (F.hardtanh, ["Clip"], ["Clip"]),
    (F.silu, ["Neg", "Exp", "Add", "Div"], ["Sigmoid", "Mul"]),
    (F.gelu, ["Gelu"], ["Gelu"]),
]


@pytest.mark.parametrize(("f", "names", "_"), ACTIVATIONS)
def test_nan_and_infinities_are_kept(f, names, _):
    found = agrees(f, SPECIAL)
    assert found == names if isinstance(names, list) else len(found) <= names


@pytest.mark.parametrize(("f", "_", "names"), ACTIVATIONS)
def test_they_are_the_runtimes_operators(f, _, names):
    assert agrees(f, X, exact=False) == names


@pytest.mark.parametrize("f", [F.elu, F.softplus, F.selu, F.silu])
def test_tails_and_small_numbers_keep_their_digits(f):
    x = np.concatenate(
        [np.linspace(-80, 80, 801), np.geomspace(1e-12, 1, 50), -np.geomspace(1e-12, 1, 50)]
    )
    x = x.astype(np.float32)
    got, expected = run(export.onnx(f, x), x)[0], np.asarray(f(x))
    # What is below the normal numbers has fewer digits.
    np.testing.assert_allclose(got, expected, rtol=3e-5, atol=1e-37)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: snp.where(x > 0.5, x, 0.1 * x),
        lambda x: snp.where(x > 0, 0.1 * x, x),
        lambda x: snp.where(x >= 0, snp.expm1(x), x),
        lambda x: snp.where(x > 0, x, snp.expm1(x)),
        lambda x: snp.logaddexp(x, 1.0),
        lambda x: x * F.hardsigmoid(x + 1),
    ],
)
def test_what_is_like_them_is_not(f):
    known = {"LeakyRelu", "Elu", "Softplus", "HardSwish"}
    assert not known & {*agrees(f, X, exact=False)}


def test_groups_are_normalized_by_one_operator():
    layer = nn.GroupNorm(2, 6)
    layer.weight, layer.bias = (
        nn.Parameter(snp.array(normal(6))),
        nn.Parameter(snp.array(normal(6))),
    )
    x = normal(2, 6, 4, 5)
    assert "LayerNormalization" in agrees(layer, x)
    assert agrees(nn.InstanceNorm2d(6), x) == ["LayerNormalization"]


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 4)])
def test_elements_repeated_are_a_resize(shape):
    x = normal(*shape)
    assert agrees(lambda x: F.interpolate(x, scale_factor=2), x) == ["Resize"]
    assert operators(export.onnx(lambda x: snp.repeat(x, 3, -1), x))[-1] in ("Resize", "Reshape")
    agrees(lambda x: snp.repeat(x, 3, -1), x)
    agrees(lambda x: snp.repeat(x, 2, 1), x)
