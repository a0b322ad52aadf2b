"""Activations are one operator where tails may be the runtime's; else they keep NaN and digits."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto import export, lax, nn
from stretto.nn import functional as F
from tests.onnx_graphs import agrees, operators, run, spelled

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


# Formulas of activations, and what differs from them in one place


def f32(value):
    return np.asarray(value, np.float32)


def elu(scale=1.0, above=0.0, top=0.0, of=lambda x: x, grown=snp.expm1):
    return lambda x: snp.where(of(x) > above, x, scale * grown(snp.minimum(x, top)))


def softplus(rest=0.0, above=0.0, other=None, turned=snp.negative, log=snp.log1p, outer=None):
    def f(x):
        y = x if other is None else other(x)
        test = x > above
        grown = log(snp.exp(snp.where(test if outer is None else outer(x), turned(x), y)))
        return snp.where(test, x, rest) + grown

    return f


ROOT, FACTOR = np.sqrt(0.5), np.sqrt(8 / np.pi)


def gelu(half=0.5, one=1.0, root=-ROOT, of=lambda x: x):
    return lambda x: x * (f32(half) * (one - lax.erf(of(x) * f32(root))))


def tanh_gelu(factor=FACTOR, small=0.044715, cube=lambda x: x * x * x, of=lambda x: x,
              turned=False):  # fmt: skip
    def f(x):
        y = of(x)
        cubic = cube(y) * f32(small)
        total = cubic + y if turned else y + cubic
        return F.sigmoid(total * f32(factor)) * x

    return f


def hard(add=3.0, low=0.0, high=6.0, by=6.0):
    return lambda x: snp.clip(x + f32(add), low, high) / f32(by)


FORMULAS = [
    (lambda x: snp.where(x > 0, x, 0.2 * x), ["LeakyRelu"]),
    (lambda x: snp.where(x > 0, x, x * SLOPES), ["PRelu"]),
    (lambda x: snp.where(x > 0.1, x, 0.2 * x), None),
    (lambda x: snp.where(x < 0, x, 0.2 * x), None),
    (lambda x: snp.where(x > 0, x, snp.sin(x)), None),
    (lambda x: snp.clip(x, 0, 6) / f32(6), ["Clip", "Div"]),
    (lambda x: snp.sin(x) / f32(6), ["Sin", "Div"]),
    (lambda x: snp.where(-x > 0, x, 0.2 * x), None),
    (lambda x: snp.where(x > 0, x, 0.2 * -x), None),
    (lambda x: snp.where(x > 0, x, x * snp.sin(x)), None),
    (lambda x: snp.where(x > 0, x, x * SLOPES[:2, None, None]), None),
    (elu(), ["Elu"]),
    (elu(0.5), ["Elu"]),
    (elu(above=0.5), None),
    (elu(top=0.5), None),
    (elu(of=snp.negative), None),
    (elu(SLOPES), None),
    (lambda x: snp.where(x > 0, x, snp.expm1(snp.minimum(snp.sin(x), 0))), None),
    (lambda x: snp.where(x > 0, x, snp.expm1(snp.abs(x))), None),
    (lambda x: snp.where(snp.sin(x) > 0, x, snp.expm1(snp.minimum(x, 0))), None),
    (lambda x: 1.5 * elu(0.5)(x), ["Selu"]),
    (lambda x: elu(0.5)(x) * 1.5, ["Selu"]),
    (lambda x: elu(0.5)(x) * SLOPES, ["Elu", "Mul"]),
    (softplus(), ["Softplus"]),
    (lambda x: snp.log1p(snp.exp(snp.where(x > 0, -x, x))) + snp.where(x > 0, x, 0), ["Softplus"]),
    (softplus(rest=1.0), None),
    (softplus(above=1.0), None),
    (softplus(other=snp.sin), None),
    (softplus(turned=snp.sin), None),
    (softplus(turned=lambda x: -snp.sin(x)), None),
    (softplus(log=lambda x: snp.log1p(2 * x)), None),
    (softplus(outer=lambda x: x > 1), None),
    (lambda x: snp.where(x > 0, x, 0.0) + snp.where(x > 1, x, 0.5) * snp.sin(x), None),
    (lambda x: snp.where(x > 0, x, 0.0) + snp.sin(x) * snp.where(x > 1, x, 0.5), None),
    (lambda x: snp.where(x > 20, x, softplus()(x)), ["Softplus"]),
    (lambda x: snp.where(x > 17, x, softplus()(x)), ["Softplus"]),
    (lambda x: snp.where(x > 16, x, softplus()(x)), ["Greater", "Softplus", "Where"]),
    (lambda x: snp.where(x > 20, 2 * x, softplus()(x)), ["Greater", "Mul", "Softplus", "Where"]),
    (lambda x: snp.where(-x > 20, x, softplus()(x)), ["Neg", "Greater", "Softplus", "Where"]),
    (gelu(), ["Gelu"]),
    (gelu(half=0.6), None),
    (gelu(one=2.0), None),
    (gelu(root=-0.7), None),
    (gelu(root=ROOT), None),
    (gelu(of=snp.sin), None),
    (tanh_gelu(), ["Gelu"]),
    (tanh_gelu(turned=True), ["Gelu"]),
    (tanh_gelu(cube=lambda x: x**3), ["Gelu"]),
    (tanh_gelu(factor=1.6), None),
    (tanh_gelu(small=0.0448), None),
    (tanh_gelu(cube=lambda x: x**2), None),
    (tanh_gelu(cube=lambda x: snp.sin(x) * x * x), None),
    (tanh_gelu(cube=lambda x: x * x * snp.sin(x)), None),
    (tanh_gelu(cube=snp.sin), None),
    (tanh_gelu(of=snp.sin), None),
    (hard(), ["HardSigmoid"]),
    (hard(add=2.0), ["Add", "Clip", "Div"]),
    (hard(low=-1.0), ["Add", "Clip", "Div"]),
    (hard(high=5.0), ["Add", "Clip", "Div"]),
    (hard(by=5.0), ["Add", "Clip", "Div"]),
    (hard(add=SLOPES), ["Add", "Clip", "Div"]),
    (lambda x: hard()(x) * x, ["HardSwish"]),
    (lambda x: x * hard()(x), ["HardSwish"]),
    (lambda x: hard()(x) * SLOPES, ["HardSigmoid", "Mul"]),
]


@pytest.mark.parametrize(("f", "names"), FORMULAS)
def test_formulas(f, names):
    found = agrees(f, X, exact=False, rtol=2e-4)
    one = {"LeakyRelu", "PRelu", "Elu", "Selu", "Softplus", "Gelu", "HardSigmoid", "HardSwish"}
    assert found == names if names else not one & {*found}


def test_what_is_read_elsewhere_too_stays():
    names = agrees(lambda x: (elu()(x), 1.5 * elu()(x)), X, exact=False)
    assert names == ["Elu", "Mul"]


def test_float64_has_no_operator_of_its_own():
    x = X.astype(np.float64)
    sloped = lambda n, x: n("Where", n("Greater", x, 0.0), x, n("Mul", x, 0.5))
    assert spelled(sloped, x) == ["Greater", "Mul", "Where"]
    gate = lambda n, x: n("Add", x, n("Mul", n("Pow", x, 3.0), 0.044715))
    tanh_gelu = lambda n, x: n("Mul", x, n("Sigmoid", n("Mul", gate(n, x), FACTOR)))
    assert spelled(tanh_gelu, x) == ["Pow", "Mul", "Add", "Mul", "Sigmoid", "Mul"]
    clipped = lambda n, x: n("Div", n("Clip", n("Add", x, 3.0), 0.0, 6.0), 6.0)
    assert spelled(clipped, x, exact=False) == ["Add", "Clip", "Div"]


def test_a_small_number_with_more_axes_keeps_them():
    f = lambda n, x: n("Div", n("Clip", n("Add", x, f32([[[3]]])), f32(0), f32(6)), f32(6))
    assert spelled(f, X, exact=False) == ["Add", "Clip", "Div"]
    f = lambda n, x: n("Where", n("Greater", x, f32(0)), x, n("Mul", x, f32([[[0.5]]])))
    assert spelled(f, X) == ["Greater", "Mul", "Where"]
