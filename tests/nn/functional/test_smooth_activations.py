"""Smooth activations: PyTorch's values and slopes; second derivatives, types, messages."""

import pytest

import stretto.numpy as snp
from stretto import laws
from stretto.laws import f32
from stretto.nn import functional as F
from tests.nn.functional.activations import finite_at_extremes, nan_stays, same_as_pytorch

# From PyTorch 2.13.0 in float64: for x = torch.tensor(X) of ``activations``, and f of this name in
# torch.nn.functional, y = f(x, **settings); y.sum().backward(); (y, x.grad) to five digits.
FIGURES = [
    (
        "gelu",
        {},
        [0.0, -0.00405, -0.15866, -0.15427, 0.0, 0.34573, 2.99595, 6.0],
        [0.0, -0.01195, -0.08332, 0.1325, 0.5, 0.8675, 1.01195, 1.0],
    ),
    (
        "silu",
        {},
        [-0.01484, -0.14228, -0.26894, -0.18877, 0.0, 0.31123, 2.85772, 5.98516],
        [-0.01233, -0.0881, 0.07233, 0.26004, 0.5, 0.73996, 1.0881, 1.01233],
    ),
    (
        "mish",
        {},
        [-0.01485, -0.14565, -0.3034, -0.22074, 0.0, 0.37525, 2.98654, 5.99993],
        [-0.01236, -0.09339, 0.05922, 0.28951, 0.6, 0.88642, 1.02111, 1.00013],
    ),
    (
        "sigmoid",
        {},
        [0.00247, 0.04743, 0.26894, 0.37754, 0.5, 0.62246, 0.95257, 0.99753],
        [0.00247, 0.04518, 0.19661, 0.235, 0.25, 0.235, 0.04518, 0.00247],
    ),
    (
        "tanh",
        {},
        [-0.99999, -0.99505, -0.76159, -0.46212, 0.0, 0.46212, 0.99505, 0.99999],
        [2e-05, 0.00987, 0.41997, 0.78645, 1.0, 0.78645, 0.00987, 2e-05],
    ),
    (
        "softplus",
        {},
        [0.00248, 0.04859, 0.31326, 0.47408, 0.69315, 0.97408, 3.04859, 6.00248],
        [0.00247, 0.04743, 0.26894, 0.37754, 0.5, 0.62246, 0.95257, 0.99753],
    ),
    (
        "softsign",
        {},
        [-0.85714, -0.75, -0.5, -0.33333, 0.0, 0.33333, 0.75, 0.85714],
        [0.02041, 0.0625, 0.25, 0.44444, 1.0, 0.44444, 0.0625, 0.02041],
    ),
    (
        "logsigmoid",
        {},
        [-6.00248, -3.04859, -1.31326, -0.97408, -0.69315, -0.47408, -0.04859, -0.00248],
        [0.99753, 0.95257, 0.73106, 0.62246, 0.5, 0.37754, 0.04743, 0.00247],
    ),
    (
        "tanhshrink",
        {},
        [-5.00001, -2.00495, -0.23841, -0.03788, 0.0, 0.03788, 2.00495, 5.00001],
        [0.99998, 0.99013, 0.58003, 0.21355, 0.0, 0.21355, 0.99013, 0.99998],
    ),
    (
        "gelu",
        {"approximate": "tanh"},
        [0.0, -0.00364, -0.15881, -0.15429, 0.0, 0.34571, 2.99636, 6.0],
        [0.0, -0.01158, -0.08296, 0.13263, 0.5, 0.86737, 1.01158, 1.0],
    ),
    (
        "softplus",
        {"beta": 2.0, "threshold": 2.0},
        [0.0, 0.00124, 0.06346, 0.15663, 0.34657, 0.65663, 3.0, 6.0],
        [1e-05, 0.00247, 0.1192, 0.26894, 0.5, 0.73106, 1.0, 1.0],
    ),
]
IDS = [f"{case[0]}-{i}" for i, case in enumerate(FIGURES)]


@pytest.mark.parametrize("case", FIGURES, ids=IDS)
def test_equals_pytorch(case):
    same_as_pytorch(case)


@pytest.mark.parametrize("case", FIGURES, ids=IDS)
def test_finite_at_extremes(case):
    finite_at_extremes(case)


def test_not_a_number_stays():
    for case in FIGURES:
        nan_stays(case)


def test_second_derivatives():
    for f in (F.gelu, F.softplus):
        laws.check(f, [(f32(2, 3).within(0.1, 2),)])


def test_integers():
    assert F.gelu(snp.array([1])).dtype == snp.float32


def test_glu():
    x = snp.array([[1.0, 2.0, 0.0, 0.0]])
    assert F.glu(x).tolist() == [[0.5, 1.0]]
    assert F.glu(snp.ones((4, 3)), dim=0).shape == (2, 3)
    with pytest.raises(ValueError, match="odd size"):
        F.glu(snp.ones(3))


def test_messages():
    with pytest.raises(ValueError, match="gelu: approximate must be 'none' or 'tanh', got True"):
        F.gelu(snp.ones(2), True)


@pytest.mark.parametrize(
    "name", ["gelu", "silu", "mish", "sigmoid", "logsigmoid", "tanh", "softsign", "glu"]
)
def test_a_message_names_the_function_that_was_called(name):
    with pytest.raises(TypeError, match=f"^{name}: input must be an array"):
        getattr(F, name)([1.0])
