"""Distances, similarities and their losses: PyTorch's figures, zeros, messages."""

import math

import numpy as np
import pytest
from scipy.spatial import distance

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
CASES = [
    (
        "pairwise_distance",
        {"x1": (3, 4), "x2": (3, 4)},
        {"p": 2.0, "keepdim": False},
        [(3,), 1.62595, -0.98768, 0.98768],
    ),
    (
        "pairwise_distance",
        {"x1": (3, 4), "x2": (4,)},
        {"p": 1.0, "keepdim": True},
        [(3, 1), 2.51195, -0.8322, 2.23165],
    ),
    (
        "pairwise_distance",
        {"x1": (3, 4), "x2": (3, 4)},
        {"p": 3.0, "keepdim": False},
        [(3,), 1.37433, -0.85962, 0.85962],
    ),
    (
        "pairwise_distance",
        {"x1": (3, 4), "x2": (3, 4)},
        {"p": 0.5, "keepdim": False},
        [(3,), 11.34392, -3.34364, 3.34364],
    ),
    (
        "cosine_similarity",
        {"x1": (2, 3, 2), "x2": (2, 3, 2)},
        {"dim": 1},
        [(2, 2), -0.15361, 2.06126, -0.62122],
    ),
    (
        "cosine_similarity",
        {"x1": (2, 3, 2), "x2": (1, 3, 2)},
        {"dim": -1},
        [(2, 3), -0.46599, 1.03786, -0.5969],
    ),
    (
        "cosine_similarity",
        {"x1": (2, 3, 2), "x2": (2, 3, 2)},
        {"dim": 0},
        [(3, 2), -0.09219, 0.98392, -0.56942],
    ),
    (
        "cosine_embedding_loss",
        {"input1": (4, 3), "input2": (4, 3), "target": [1, -1, -1, 1]},
        {"margin": 0.2, "reduction": "none"},
        [(4,), 0.15492, -1.48208, 0.72135],
    ),
    (
        "cosine_embedding_loss",
        {"input1": (4, 3), "input2": (4, 3), "target": [1, -1, -1, 1]},
        {"margin": 0.2, "reduction": "mean"},
        [(), 0.50628, -0.09376, 0.14716],
    ),
    (
        "cosine_embedding_loss",
        {"input1": (3,), "input2": (3,), "target": 1},
        {},
        [(), 0.62859, -0.98669, 0.1316],
    ),
    (
        "triplet_margin_loss",
        {"anchor": (4, 3), "positive": (4, 3), "negative": (4, 3)},
        {"p": 2.0, "swap": False, "reduction": "none"},
        [(4,), 0.36353, -0.72442, 1.29556, -0.57114],
    ),
    (
        "triplet_margin_loss",
        {"anchor": (4, 3), "positive": (4, 3), "negative": (4, 3)},
        {"p": 1.0, "swap": True, "reduction": "mean"},
        [(), 1.01263, 0.45684, -1.20371, 0.74688],
    ),
    (
        "triplet_margin_loss",
        {"anchor": (4, 3), "positive": (4, 3), "negative": (4, 3)},
        {"p": 3.0, "swap": True, "reduction": "sum"},
        [(), 3.97035, 1.20338, -3.70463, 2.50125],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_equals_scipy(p):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 5)).astype("f")
    got = F.pairwise_distance(snp.array(x), snp.array(y), p, eps=0.0)
    want = distance.chebyshev(x, y) if p == math.inf else distance.minkowski(x, y, p)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    got = F.cosine_similarity(snp.array(x), snp.array(y), dim=0)
    np.testing.assert_allclose(got, 1 - distance.cosine(x, y), rtol=1e-5)


def test_hamming():
    x, y = snp.array([[1.0, 2.0, 3.0]]), snp.array([[1.0, 0.0, 0.0]])
    assert F.pairwise_distance(x, y, 0, eps=0.0).tolist() == [2]


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_derivative_at_no_distance_is_finite(p):
    x = snp.ones((2, 3))
    slope = st.grad(lambda x: F.pairwise_distance(x, snp.ones((2, 3)), p, eps=0.0).sum())(x)
    assert slope.tolist() == [[0] * 3] * 2
    second = st.hessian(lambda x: F.pairwise_distance(x, snp.zeros((1, 2)), 2, eps=0.0).sum())
    np.testing.assert_allclose(
        second(snp.array([[3.0, 4.0]]))[0, :, 0], [[0.128, -0.096], [-0.096, 0.072]], rtol=1e-5
    )


def test_similarity_to_nothing():
    x, y = snp.zeros((1, 2)), snp.array([[3.0, 4.0]])
    value, slope = st.value_and_grad(lambda x: F.cosine_similarity(x, y).sum())(x)
    assert value == 0
    np.testing.assert_allclose(slope, [[6e7, 8e7]], rtol=1e-5)  # y / (|y| eps)


def test_cosines_where_a_norm_overflows_or_is_not_finite():
    # From PyTorch 2.13.0.
    x = snp.array([[1e20, 1e20], [1e20, -1e20], [1.0, 2.0], [np.inf, 1.0], [np.nan, 1.0]])
    y = snp.array([[1e20, 1e20], [3.0, 4.0], [1e20, 1e20], [1.0, 1.0], [1.0, 1.0]])
    want = [0, 0, 0, np.nan, np.nan]
    for f in (F.cosine_similarity, st.jit(F.cosine_similarity)):
        np.testing.assert_array_equal(f(x, y), want)
        np.testing.assert_array_equal(f(y, x), want)


def test_messages():
    x = snp.ones((2, 3))
    with pytest.raises(ValueError, match="pairwise_distance: p must not be negative, got -1"):
        F.pairwise_distance(x, x, -1)
    with pytest.raises(ValueError, match="pairwise_distance: expected vectors"):
        F.pairwise_distance(snp.array(1.0), snp.array(2.0))
    with pytest.raises(ValueError, match=r"cosine_similarity: shapes .* do not broadcast"):
        F.cosine_similarity(x, snp.ones((2, 4)))
    with pytest.raises(ValueError, match=r"cosine_embedding_loss: expected two inputs \(N, D\)"):
        F.cosine_embedding_loss(x, x, snp.ones(3))


def test_a_message_names_the_function_that_was_called():
    x = snp.ones((2, 4))
    with pytest.raises(ValueError, match=r"^pairwise_distance: shapes .* do not broadcast"):
        F.pairwise_distance(x, snp.ones((3, 4)))
    with pytest.raises(ValueError, match=r"^triplet_margin_loss: p must not be negative"):
        F.triplet_margin_loss(x, x, x, p=-1)
    with pytest.raises(ValueError, match=r"^triplet_margin_loss: shapes .* do not broadcast"):
        F.triplet_margin_loss(x, x, snp.ones((3, 4)))
    with pytest.raises(TypeError, match=r"^triplet_margin_loss: positive must be an array"):
        F.triplet_margin_loss(x, [1.0], x)
