"""Linear maps and rows of tables: PyTorch's values, derivatives, messages."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import laws
from stretto.laws import f32
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
CASES = [
    (
        "linear",
        {"input": (2, 3, 4), "weight": (5, 4), "bias": (5,)},
        {},
        [(2, 3, 5), 28.23728, 0.3473, 1.58798, 3.14534],
    ),
    ("linear", {"input": (4,), "weight": (4,)}, {}, [(), 1.16611, 2.40115, 0.98697]),
    (
        "bilinear",
        {"input1": (2, 3, 4), "input2": (2, 3, 2), "weight": (5, 4, 2), "bias": (5,)},
        {},
        [(2, 3, 5), -2.45208, 0.05476, -0.29768, -8.16486, 3.14534],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


def test_definition():
    rng = np.random.default_rng(0)
    x, y, w = rng.normal(size=(3, 4)), rng.normal(size=(3, 2)), rng.normal(size=(5, 4, 2))
    got = F.bilinear(x.astype("f"), y.astype("f"), w.astype("f"), np.ones(5, "f"))
    want = np.einsum("ni,kij,nj->nk", x, w, y) + 1
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    got = F.linear(x.astype("f"), w[:, :, 0].astype("f"), np.float32(2))
    np.testing.assert_allclose(got, x @ w[:, :, 0].T + 2, rtol=1e-5, atol=1e-5)


def test_laws():
    laws.check(F.linear, [(f32(2, 3), f32(4, 3), f32(4)), (f32(3), f32(3))])
    laws.check(F.bilinear, [(f32(2, 3), f32(2, 2), f32(2, 3, 2), f32(2))])


def test_one_product():
    text = st.jit(F.linear).lower(snp.ones((2, 3)), snp.ones((4, 3)), snp.ones(4)).as_text()
    assert text.count("dot_general") == 1 and "transpose" not in text


def test_messages():
    with pytest.raises(ValueError, match=r"linear: expected input .* float32\[2,3\] and float32"):
        F.linear(snp.ones((2, 3)), snp.ones((4, 5)))
    with pytest.raises(ValueError, match="bilinear: expected input1"):
        F.bilinear(snp.ones((2, 3)), snp.ones((1, 3)), snp.ones((4, 3, 3)))
    with pytest.raises(TypeError, match="linear: weight must be an array"):
        F.linear(snp.ones(2), [[1.0, 2.0]])


# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
LOOKUP_CASES = [
    (
        "embedding",
        {"input": [[1, 4, 0], [1, 1, 3]], "weight": (5, 3)},
        {},
        [(2, 3, 3), 0.45008, 0.13354],
    ),
    (
        "embedding",
        {"input": [[1, 4, 0], [1, 1, 3]], "weight": (5, 3)},
        {"padding_idx": -4},
        [(2, 3, 3), 0.45008, 1.53279],
    ),
    (
        "embedding_bag",
        {"input": [[1, 4, 0], [1, 2, 3]], "weight": (5, 3)},
        {"mode": "sum"},
        [(2, 3), -1.15486, 2.73605],
    ),
    (
        "embedding_bag",
        {"input": [[1, 4, 0], [1, 1, 3]], "weight": (5, 3)},
        {"mode": "mean", "padding_idx": 1},
        [(2, 3), -0.63288, 2.8229],
    ),
    (
        "embedding_bag",
        {"input": [[1, 1, 1], [1, 2, 3]], "weight": (5, 3)},
        {"mode": "max", "padding_idx": 1},
        [(2, 3), -1.11403, -0.40085],
    ),
    (
        "embedding_bag",
        {"input": [[1, 4, 0], [1, 2, 3]], "weight": (5, 3), "per_sample_weights": (2, 3)},
        {"mode": "sum"},
        [(2, 3), -3.85219, -3.56138, -3.93462],
    ),
]


@pytest.mark.parametrize("case", LOOKUP_CASES, ids=names(LOOKUP_CASES))
def test_equals_pytorch_of_lookup(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


TABLE = np.arange(12.0, dtype="f").reshape(4, 3)
IDS = np.array([[0, 3, 3], [1, 1, 2]])


def test_definition_of_lookup():
    np.testing.assert_array_equal(F.embedding(IDS, TABLE), TABLE[IDS])
    for mode in ("sum", "mean", "max"):
        got = F.embedding_bag(IDS, TABLE, mode=mode)
        np.testing.assert_allclose(got, getattr(TABLE[IDS], mode)(1), rtol=1e-6)


def test_padding():
    slopes = st.grad(lambda w: F.embedding(IDS, w, padding_idx=3).sum())(TABLE)
    assert slopes[:, 0].tolist() == [1, 2, 1, 0]
    np.testing.assert_array_equal(F.embedding(IDS, TABLE, padding_idx=-1), TABLE[IDS])
    alone = np.array([[3, 3, 3]])
    for mode in ("sum", "mean", "max"):
        f = lambda w, mode=mode: F.embedding_bag(alone, w, mode=mode, padding_idx=3)
        assert f(TABLE).tolist() == [[0, 0, 0]]
        assert (st.jacrev(f)(TABLE) == 0).all()
    got = F.embedding_bag(IDS, TABLE, mode="mean", padding_idx=1)
    np.testing.assert_array_equal(got[1], TABLE[2])


def test_beyond_the_table():
    for run in (lambda f: f, st.jit):
        out = run(F.embedding)(np.array([4, -1, 0]), TABLE)
        assert np.isnan(out[0]).all()
        np.testing.assert_array_equal(out[1:], TABLE[[3, 0]])
    slopes = st.grad(lambda w: F.embedding(np.array([4, 1]), w)[1].sum())(TABLE)
    assert slopes[:, 0].tolist() == [0, 1, 0, 0]


def test_laws_of_lookup():
    laws.check(F.embedding, [(IDS, f32(4, 2))])
    laws.check(lambda i, w: F.embedding(i, w, 1), [(IDS, f32(4, 2))], difference=False)
    laws.check(F.embedding_bag, [(IDS, f32(4, 2))])
    laws.check(
        lambda i, w, f: F.embedding_bag(i, w, mode="sum", per_sample_weights=f),
        [(IDS, f32(4, 2), f32(2, 3))],
    )


MESSAGES = [
    (lambda: F.embedding(snp.ones(2), TABLE), "embedding: input must be integers"),
    (lambda: F.embedding(IDS, TABLE[0]), "weight must be .rows, features., got float32"),
    (lambda: F.embedding(IDS, TABLE, 4), "padding_idx must be within 4 rows, got 4"),
    (lambda: F.embedding_bag(IDS[0], TABLE), "input must be .bags, length."),
    (lambda: F.embedding_bag(IDS, TABLE, mode="median"), "mode must be 'mean', 'sum' or 'max'"),
    (
        lambda: F.embedding_bag(IDS, TABLE, per_sample_weights=snp.ones((2, 3))),
        "per_sample_weights are for mode 'sum'",
    ),
    (
        lambda: F.embedding_bag(IDS, TABLE, mode="sum", per_sample_weights=snp.ones(3)),
        "must have the shape of input",
    ),
]


@pytest.mark.parametrize("call, words", MESSAGES, ids=range(len(MESSAGES)))
def test_messages_of_lookup(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
