"""Distances, and losses with margins: PyTorch's values and slopes, messages."""

from __future__ import annotations

import itertools
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
        "hinge_embedding_loss",
        {"input": (5,), "target": [1, -1, 1, -1, -1]},
        {"margin": 0.7, "reduction": "none"},
        [(5,), -2.62342, -0.23416],
    ),
    (
        "hinge_embedding_loss",
        {"input": (5,), "target": [1, -1, 1, -1, -1]},
        {"margin": 0.7, "reduction": "mean"},
        [(), 0.69734, 0.4455],
    ),
    (
        "margin_ranking_loss",
        {"input1": (5,), "input2": (5,), "target": [1, -1, 1, -1, -1]},
        {"margin": 0.4, "reduction": "none"},
        [(5,), 0.88756, 0.27201, -0.27201],
    ),
    (
        "margin_ranking_loss",
        {"input1": (5,), "input2": (5,), "target": [1, -1, 1, -1, -1]},
        {"margin": 0.4, "reduction": "sum"},
        [(), 2.55401, -1.44969, 1.44969],
    ),
    (
        "soft_margin_loss",
        {"input": (2, 3), "target": [[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]]},
        {},
        [(), 0.63212, -0.10038],
    ),
    (
        "multilabel_soft_margin_loss",
        {"input": (2, 3), "target": [[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]], "weight": [0.5, 1.0, 2.0]},
        {"reduction": "none"},
        [(2,), 1.1686, 0.0409],
    ),
    (
        "multi_margin_loss",
        {"input": (3, 4), "target": [0, 3, 1]},
        {"p": 1, "margin": 0.8, "reduction": "none"},
        [(3,), 0.54392, -1.18452],
    ),
    (
        "multi_margin_loss",
        {"input": (3, 4), "target": [0, 3, 1]},
        {"p": 2, "margin": 0.8, "reduction": "mean"},
        [(), 1.54088, 0.01989],
    ),
    (
        "multi_margin_loss",
        {"input": (3, 4), "target": [0, 3, 1], "weight": [0.5, 2.0, 1.0, 0.1]},
        {},
        [(), 1.15694, 0.12893],
    ),
    ("multi_margin_loss", {"input": (4,), "target": 2}, {}, [(), 0.48314, 0.59315]),
    (
        "multilabel_margin_loss",
        {"input": (3, 4), "target": [[3, 0, -1, 1], [-1, 0, 0, 0], [3, 2, 1, 0]]},
        {"reduction": "none"},
        [(3,), 2.08341, 0.05707],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


def test_multilabel_by_its_definition():
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=5).astype("f"), [4, 0, 2]
    others = set(range(5)) - set(labels)
    want = sum(max(0, 1 - x[t] + x[i]) for t, i in itertools.product(labels, others)) / 5
    target = snp.array([*labels, -1, 1])
    np.testing.assert_allclose(F.multilabel_margin_loss(snp.array(x), target), want, rtol=1e-5)


def test_at_the_corner_the_slope_is_that_of_the_loss():
    # From PyTorch 2.13.0.
    slope = st.grad(lambda x: F.hinge_embedding_loss(x, snp.array([-1, -1, 1]), reduction="sum"))
    assert slope(snp.array([1.0, 2.0, 3.0])).tolist() == [-1, 0, 1]
    one = snp.ones(1)
    assert st.grad(lambda x: F.margin_ranking_loss(x, one, one).sum())(one).tolist() == [-1]


def test_soft_margin_does_not_overflow():
    x, t = snp.array([-1e4, 1e4]), snp.array([1.0, 1.0])
    loss, slope = st.value_and_grad(lambda x: F.soft_margin_loss(x, t, reduction="sum"))(x)
    assert loss == 1e4 and slope.tolist() == [-1, 0]


def test_messages():
    x = snp.ones((2, 3))
    with pytest.raises(ValueError, match="multi_margin_loss: p must be 1 or 2, got 3"):
        F.multi_margin_loss(x, snp.zeros(2, int), p=3)
    with pytest.raises(ValueError, match=r"multi_margin_loss: expected an input \(N, C\)"):
        F.multi_margin_loss(snp.ones((2, 3, 4)), snp.zeros(2, int))
    with pytest.raises(ValueError, match="multi_margin_loss: expected target as integer classes"):
        F.multi_margin_loss(x, snp.zeros(3, int))
    with pytest.raises(ValueError, match="one element for each of 3 classes"):
        F.multi_margin_loss(x, snp.zeros(2, int), weight=snp.ones(2))
    with pytest.raises(ValueError, match="multilabel_margin_loss: expected target as integer cl"):
        F.multilabel_margin_loss(x, snp.ones((2, 3)))
    with pytest.raises(ValueError, match="soft_margin_loss: expected input and target of one"):
        F.soft_margin_loss(x, snp.ones(2))


def test_hinges_of_each_kind_of_target():
    x, t = snp.array([0.25, -0.5, 3.0, 0.25, np.nan, np.inf]), snp.array([1, 1, -1, 0.0, 1, 1])
    f = lambda x: F.hinge_embedding_loss(x, t, reduction="none")
    # 0 is neither, and counts as both.
    for g in (f, st.jit(f)):
        np.testing.assert_array_equal(g(x), [0.25, -0.5, 0, 1.0, np.nan, np.inf])
        np.testing.assert_array_equal(st.vjp(g, x)[1](snp.ones(6))[0], [1, 1, 0, 0, 1, 1])


# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
DISTANCES_CASES = [
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


@pytest.mark.parametrize("case", DISTANCES_CASES, ids=names(DISTANCES_CASES))
def test_equals_pytorch_of_distances(case):
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


def test_messages_of_distances():
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
