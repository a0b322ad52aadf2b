"""Which gathers become operations of their own, and which stay XLA's."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.ops.fused_gather import Bag, FusedGather
from stretto._engine.passes.fuse_gathers import fuse_gathers
from stretto._engine.passes.prepare import prepare
from stretto.nn import functional as F

W = np.random.default_rng(0).standard_normal((50, 64)).astype(np.float32)
AT = np.random.default_rng(1).integers(0, 50, (16, 5)).astype(np.int32)
FACTORS = np.random.default_rng(2).standard_normal((16, 5)).astype(np.float32)
X = np.random.default_rng(3).standard_normal((4096, 32)).astype(np.float32)
LABELS = np.random.default_rng(4).integers(0, 32, 4096).astype(np.int32)


def found(function, *args):
    """The operations for kernels in the program of a function, whose values are as before."""
    before = prepare(st.make_graph(function)(*args))
    after = fuse_gathers(before)
    assert after.in_types == before.in_types and after.out_types == before.out_types
    with st.config(kernels=False):
        plain = st.jit(function)(*args)
    for x, y in zip(st.tree.leaves(st.jit(function)(*args)), st.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-4)
    return [e.primitive for e in after.equations if isinstance(e.primitive, FusedGather)]


@pytest.mark.parametrize(
    ("function", "bag"),
    [
        (lambda w, i: w[i], None),
        (lambda w, i: snp.take(w, i, axis=0, mode="clip"), None),
        (lambda w, i: F.embedding(i, w), None),
        (lambda w, i: F.embedding(i, w, padding_idx=3), None),
        (lambda w, i: w[i].reshape(-1, 64) @ snp.ones((64, 8)), None),
        (lambda w, i: snp.reshape(w, (64, 50)).T[i], None),
        (lambda w, i: w[i].sum(1), Bag("sum", (1,), False)),
        (lambda w, i: w[i].sum(0), Bag("sum", (0,), False)),
        (lambda w, i: w[i].mean(1), Bag("sum", (1,), False, 5.0)),
        (lambda w, i: w[i].max(1), Bag("greatest", (1,), False)),
        (lambda w, i: F.embedding_bag(i, w), Bag("sum", (1,), False, 5.0)),
        (
            lambda w, i: F.embedding_bag(i, w, mode="sum", padding_idx=2),
            Bag("sum", (1,), True),
        ),
        (
            lambda w, i: snp.where((i > 7)[..., None], w[i], -snp.inf).max(1),
            Bag("greatest", (1,), True),
        ),
        (lambda w, i: 2 / w[i].sum(1), Bag("sum", (1,), False)),
    ],
)
def test_what_is_found(function, bag):
    (op,) = found(function, W, AT)
    assert op.bag == bag


def test_weights():
    for bags in (
        lambda w, i, f: F.embedding_bag(i, w, mode="sum", per_sample_weights=f),
        lambda w, i, f: (f[:, :, None] * w[i]).sum(1),
    ):
        assert [op.bag for op in found(bags, W, AT, FACTORS)] == [Bag("weighted", (1,), False)]
    both = lambda w, i, f: F.embedding_bag(i, w, mode="sum", per_sample_weights=f, padding_idx=2)
    assert [op.bag for op in found(both, W, AT, FACTORS)] == [Bag("weighted", (1,), True)]


def test_indices_as_they_were_given():
    (op,) = found(lambda w, i: w[i], W, AT)
    assert op.wraps and not op.vectors and op.program.in_types[1].shape == AT.shape
    (op,) = found(lambda w, i: w[i], W, AT.astype(np.uint32))
    assert not op.wraps and not op.vectors
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    (op,) = found(lambda w, i: lax.gather(w, i, numbers, (1, 64)), W, AT.reshape(-1, 1))
    assert op.vectors and not op.wraps and op.program.in_types[1].shape == (80, 1)
    (op,) = found(lambda x, i: x[snp.arange(4096), i], X, LABELS)
    assert op.wraps and op.counting == ((0, 0),) and op.program.in_types[1].shape == (4096,)
    (op,) = found(lambda x, i: x[i, snp.arange(32)[:, None]], X.T, LABELS[:80])
    assert op.counting == ((1, 0),)


def test_vectors_of_indices():
    cube = np.random.default_rng(0).standard_normal((9, 8, 64)).astype(np.float32)
    (op,) = found(lambda x, i, j: x[i, j], cube, AT % 9, AT % 8)
    assert op.vectors and not op.wraps and op.program.in_types[1].shape == (16, 5, 2)


def test_single_elements_where_they_lie_apart():
    along = lambda x, i: snp.take_along_axis(x, i, 1)
    assert len(found(along, X, LABELS[:, None])) == 1
    assert not found(along, X[:2000], LABELS[:2000, None])  # few
    assert not found(along, X[:, :8].copy(), LABELS[:, None] % 8)  # near
    assert not found(along, X.astype(np.float16), LABELS[:, None])


@pytest.mark.parametrize(
    "function",
    [
        lambda w, i: w[i] + 1,  # XLA adds where it reads
        lambda w, i: snp.sin(w[i].reshape(-1)),
        lambda w, i: st.jit(snp.sin)(w[i]),
        lambda w, i: (w * 2)[i],  # XLA multiplies what is read alone
        lambda w, i: st.jit(snp.sin)(w)[i].sum(1),
        lambda w, i: w[i[:2, :3]],  # little is read
        lambda w, i: w[:, :8][i],  # short rows
        lambda w, i: (w[i] * w[i]).sum(1),
        lambda w, i: w[i].sum((1, 2)),
        lambda w, i: snp.where((i > 7)[..., None], w[i], 1).sum(1),
        lambda w, i: (w[i] * w[0]).sum(1),
        lambda w, i: w[i].min(1),
    ],
)
def test_what_stays(function):
    assert not found(function, W, AT)


def test_a_program_without_any_is_the_same():
    program = prepare(st.make_graph(snp.sin)(W))
    assert fuse_gathers(program) is program
    program = prepare(st.make_graph(lambda w, i: w[i] + 1)(W, AT))
    assert fuse_gathers(program) is program


def test_gradients_are_as_before():
    def loss(w, i):
        return (w[i].mean(1) ** 2).sum()

    expected = np.zeros(W.shape)
    slope = 2 * W[AT].astype(np.float64).mean(1) / 5
    np.add.at(expected, AT, slope[:, None])
    np.testing.assert_allclose(st.jit(st.grad(loss))(W, AT), expected, rtol=1e-5, atol=1e-5)
