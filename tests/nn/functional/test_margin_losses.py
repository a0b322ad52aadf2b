"""Losses with a margin: PyTorch's figures, definitions, corners, messages."""

import itertools

import numpy as np
import pytest

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
