"""Activations in pieces: PyTorch's values and slopes, at corners too; types, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F
from tests.nn.functional.activations import finite_at_extremes, nan_stays, same_as_pytorch

# From PyTorch 2.13.0 in float64: for x = torch.tensor(X) of ``activations``, and f of this name in
# torch.nn.functional, y = f(x, **settings); y.sum().backward(); (y, x.grad) to five digits.
FIGURES = [
    (
        "relu",
        {},
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 3.0, 6.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    ),
    (
        "relu6",
        {},
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 3.0, 6.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0],
    ),
    (
        "leaky_relu",
        {},
        [-0.06, -0.03, -0.01, -0.005, 0.0, 0.5, 3.0, 6.0],
        [0.01, 0.01, 0.01, 0.01, 0.01, 1.0, 1.0, 1.0],
    ),
    (
        "elu",
        {},
        [-0.99752, -0.95021, -0.63212, -0.39347, 0.0, 0.5, 3.0, 6.0],
        [0.00248, 0.04979, 0.36788, 0.60653, 1.0, 1.0, 1.0, 1.0],
    ),
    (
        "selu",
        {},
        [-1.75374, -1.67057, -1.11133, -0.69176, 0.0, 0.52535, 3.1521, 6.30421],
        [0.00436, 0.08753, 0.64677, 1.06634, 1.7581, 1.0507, 1.0507, 1.0507],
    ),
    (
        "celu",
        {},
        [-0.99752, -0.95021, -0.63212, -0.39347, 0.0, 0.5, 3.0, 6.0],
        [0.00248, 0.04979, 0.36788, 0.60653, 1.0, 1.0, 1.0, 1.0],
    ),
    (
        "hardtanh",
        {},
        [-1.0, -1.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.0],
        [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0],
    ),
    (
        "hardswish",
        {},
        [0.0, 0.0, -0.33333, -0.20833, 0.0, 0.29167, 3.0, 6.0],
        [0.0, 0.0, 0.16667, 0.33333, 0.5, 0.66667, 1.0, 1.0],
    ),
    (
        "hardsigmoid",
        {},
        [0.0, 0.0, 0.33333, 0.41667, 0.5, 0.58333, 1.0, 1.0],
        [0.0, 0.0, 0.16667, 0.16667, 0.16667, 0.16667, 0.0, 0.0],
    ),
    (
        "softshrink",
        {},
        [-5.5, -2.5, -0.5, 0.0, 0.0, 0.0, 2.5, 5.5],
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0],
    ),
    (
        "hardshrink",
        {},
        [-6.0, -3.0, -1.0, 0.0, 0.0, 0.0, 3.0, 6.0],
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0],
    ),
    (
        "rrelu",
        {},
        [-1.375, -0.6875, -0.22917, -0.11458, 0.0, 0.5, 3.0, 6.0],
        [0.22917, 0.22917, 0.22917, 0.22917, 0.22917, 1.0, 1.0, 1.0],
    ),
    (
        "leaky_relu",
        {"negative_slope": 0.3},
        [-1.8, -0.9, -0.3, -0.15, 0.0, 0.5, 3.0, 6.0],
        [0.3, 0.3, 0.3, 0.3, 0.3, 1.0, 1.0, 1.0],
    ),
    (
        "elu",
        {"alpha": 1.7},
        [-1.69579, -1.61536, -1.0746, -0.6689, 0.0, 0.5, 3.0, 6.0],
        [0.00421, 0.08464, 0.6254, 1.0311, 1.7, 1.0, 1.0, 1.0],
    ),
    (
        "celu",
        {"alpha": 0.6},
        [-0.59997, -0.59596, -0.48667, -0.33924, 0.0, 0.5, 3.0, 6.0],
        [5e-05, 0.00674, 0.18888, 0.4346, 1.0, 1.0, 1.0, 1.0],
    ),
    (
        "hardtanh",
        {"min_val": -0.5, "max_val": 3.0},
        [-0.5, -0.5, -0.5, -0.5, 0.0, 0.5, 3.0, 3.0],
        [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0],
    ),
    (
        "threshold",
        {"threshold": 0.5, "value": 7.0},
        [7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 3.0, 6.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0],
    ),
    (
        "softshrink",
        {"lambd": 1.0},
        [-5.0, -2.0, 0.0, 0.0, 0.0, 0.0, 2.0, 5.0],
        [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0],
    ),
    (
        "hardshrink",
        {"lambd": 1.0},
        [-6.0, -3.0, 0.0, 0.0, 0.0, 0.0, 3.0, 6.0],
        [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0],
    ),
    (
        "rrelu",
        {"lower": 0.1, "upper": 0.2},
        [-0.9, -0.45, -0.15, -0.075, 0.0, 0.5, 3.0, 6.0],
        [0.15, 0.15, 0.15, 0.15, 0.15, 1.0, 1.0, 1.0],
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


def test_integers():
    assert F.relu(snp.array([-1, 2])).dtype == snp.int32
    assert F.threshold(snp.array([0, 5]), 1, 9).tolist() == [9, 5]
    assert F.threshold(snp.array([0, 5]), 1, 9).dtype == snp.int32


def test_prelu():
    x = snp.array([[[-2.0, 2.0], [-4.0, 4.0]]])
    np.testing.assert_array_equal(F.prelu(x, snp.array([0.5, 0.25])), [[[-1.0, 2.0], [-1.0, 4.0]]])
    assert F.prelu(x, snp.array(0.5)).tolist() == [[[-1, 2], [-2, 4]]]
    assert F.prelu(snp.array([-2.0, -2.0]), snp.array([0.5, 1.0])).tolist() == [-1, -2]
    slope = st.grad(lambda w: F.prelu(x, w).sum())(snp.array([0.5, 0.25]))
    assert slope.tolist() == [-2, -4]
    with pytest.raises(ValueError, match=r"prelu: weight must have one .* float32\[3\] for input"):
        F.prelu(x, snp.ones(3))


def test_random_slopes():
    x, key = -snp.ones((1000,)), st.random.PRNGKey(0)
    out = -np.asarray(F.rrelu(x, 0.25, 0.75, training=True, key=key))
    assert 0.25 <= out.min() < 0.26 and 0.74 < out.max() <= 0.75 and abs(out.mean() - 0.5) < 0.02
    assert (F.rrelu(x, 0.25, 0.75, True, key=key) == -out).all()
    with st.nn.keys(key):
        first, second = (F.rrelu(x, training=True) for _ in range(2))
    assert (first != second).any()
    with pytest.raises(ValueError, match=r"rrelu: lower must not exceed upper, got 0.5 and 0.1"):
        F.rrelu(x, 0.5, 0.1)


def test_inplace_changes_nothing():
    x = snp.array([-1.0, 1.0])
    assert F.relu(x, inplace=True).tolist() == [0, 1] and x.tolist() == [-1, 1]


def test_messages():
    x = snp.ones(2)
    with pytest.raises(ValueError, match="hardtanh: min_val must not exceed max_val, got 2 and 1"):
        F.hardtanh(x, 2, 1)
    with pytest.raises(ValueError, match="softshrink: lambd must not be negative, got -1"):
        F.softshrink(x, -1)
    with pytest.raises(TypeError, match="leaky_relu"):
        F.leaky_relu([1.0])


@pytest.mark.parametrize(
    "name", ["relu", "relu6", "elu", "selu", "celu", "hardsigmoid", "hardswish", "hardtanh"]
)
def test_a_message_names_the_function_that_was_called(name):
    with pytest.raises(TypeError, match=f"^{name}: input must be an array"):
        getattr(F, name)([1.0])
