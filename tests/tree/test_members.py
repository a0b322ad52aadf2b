"""Members stacked and unstacked; what differs is named."""

import collections
import dataclasses
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs
from hypothesis.extra import numpy as hnp

import stretto as st
import stretto.numpy as snp


class Pair(NamedTuple):
    one: Any
    two: Any


@st.tree.register_dataclass
@dataclasses.dataclass
class Dense:
    weight: Any
    bias: Any
    name: str = dataclasses.field(default="dense", metadata={"static": True})


LEAVES = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=0, max_dims=2, max_side=3),
    elements=hs.floats(-4, 4, width=32),
)
TREES = hs.recursive(
    LEAVES | hs.none() | hs.integers(-3, 3),
    lambda t: hs.one_of(
        hs.lists(t, max_size=3),
        hs.tuples(t, t),
        hs.dictionaries(hs.sampled_from("abc"), t, max_size=3),
        hs.builds(Pair, t, t),
        hs.builds(Dense, t, t),
        hs.builds(
            collections.OrderedDict, hs.lists(hs.tuples(hs.sampled_from("xy"), t), max_size=2)
        ),
    ),
    max_leaves=6,
)


def like(tree, rng):
    """A tree of the same structure and shapes with other numbers."""
    return st.tree.map(lambda x: rng.normal(size=np.shape(x)).astype(np.float32), tree)


def same(one, other, rtol=1e-5):
    assert st.tree.structure(one) == st.tree.structure(other)
    for a, b in zip(st.tree.leaves(one), st.tree.leaves(other), strict=True):
        np.testing.assert_allclose(
            np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=rtol, atol=1e-5
        )


@settings(max_examples=40)
@given(TREES, hs.integers(1, 4), hs.integers(0, 2**32 - 1))
def test_members_laws(tree, count, seed):
    rng = np.random.default_rng(seed)
    members = [like(tree, rng) for _ in range(count)]
    if not st.tree.leaves(tree):
        assert st.tree.structure(st.stack(members)) == st.tree.structure(tree)
        return
    stacked = st.stack(members)
    assert st.tree.structure(stacked) == st.tree.structure(tree)
    for member, back, i in zip(members, st.unstack(stacked), range(count), strict=True):
        same(back, member)
        same(st.take(stacked, i), member)
        same(st.take(stacked, i - count), member)
    same(st.stack(st.unstack(stacked)), stacked)
    same(st.concat([stacked, st.stack(members[:1])]), st.stack([*members, members[0]]))
    weights = rng.normal(size=count)
    want = st.tree.map(lambda *xs: sum(w * x for w, x in zip(weights, xs)), *members)
    same(st.tree.weighted_sum(members, list(weights)), want)
    same(st.tree.weighted_sum(members, weights), want)
    same(st.tree.weighted_sum(iter(members), weights), want)
    same(st.tree.weighted_sum(stacked, weights, stacked=True), want)
    average = st.tree.map(lambda *xs: sum(xs) / count, *members)
    for trees, stacked_too in ((members, None), (iter(members), None), (stacked, True)):
        same(st.tree.mean(trees, stacked=stacked_too), average)


def test_stack_along_other_axes():
    trees = [
        {"w": np.full((2, 3), i, np.float32), "b": np.full(2, i, np.float32)} for i in range(4)
    ]
    for axis, shapes in ((1, [(2, 4), (2, 4, 3)]), (-1, [(2, 4), (2, 3, 4)])):
        stacked = st.stack(trees, axis)
        assert [x.shape for x in st.tree.leaves(stacked)] == shapes
        same(st.unstack(stacked, axis)[2], trees[2])
        same(st.take(stacked, -1, axis), trees[3])


def test_members_keep_their_types():
    trees = [
        {"n": 1, "w": np.ones(2, ml_dtypes.bfloat16)},
        {"n": 2, "w": np.ones(2, ml_dtypes.bfloat16)},
    ]
    stacked = st.stack(trees)
    assert (stacked["n"].dtype, stacked["w"].dtype) == (snp.int32, snp.bfloat16)
    np.testing.assert_array_equal(stacked["n"], [1, 2])


def test_under_transformations():
    trees = [{"w": snp.ones(2) * i, "b": snp.float32(i)} for i in range(3)]
    same(st.jit(st.stack)(trees), st.stack(trees))
    same(st.jit(st.unstack)(st.stack(trees)), trees)
    weights = snp.array([1.0, 2.0, 3.0])
    same(st.jit(st.tree.weighted_sum)(trees, weights), {"w": np.array([8.0, 8.0]), "b": 8.0})
    total = lambda w: st.tree.reduce(lambda x, y: x + y.sum(), st.tree.weighted_sum(trees, w), 0.0)
    np.testing.assert_allclose(st.grad(total)(weights), [0, 3, 6])
    np.testing.assert_allclose(st.vmap(total)(snp.eye(3)), [0, 3, 6])
    slopes = st.grad(lambda t: st.tree.norm(st.tree.mean(t)))(trees)
    assert len(slopes) == 3 and st.tree.structure(slopes) == st.tree.structure(trees)
    stacked = st.stack(trees)
    picked = st.jit(st.take)(stacked, 2)
    same(picked, trees[2])
    same(st.vmap(st.take, (None, 0))(stacked, snp.array([2, 0])), st.stack([trees[2], trees[0]]))
    same(st.take(stacked, snp.array(1)), trees[1])


ONES = {"a": [np.ones(2, np.float32)], "b": 1.0}


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: st.stack([]), ValueError, "stack: expected at least one tree, got none"),
        (
            lambda: st.stack([ONES, ONES, {"a": [np.ones(3)], "b": 1.0}]),
            ValueError,
            r"stack: member 2 differs .* at member\['a'\]\[0\]: shape \(3,\), expected \(2,\)",
        ),
        (
            lambda: st.stack([ONES, {"a": [np.ones(2), 1], "b": 1.0}]),
            ValueError,
            r"member 1 differs in structure from member 0; they part at member\['a'\]",
        ),
        (
            lambda: st.stack([ONES, {"a": [np.ones(2)], "b": "x"}]),
            TypeError,
            "must be an array or a number",
        ),
        (lambda: st.stack([ONES], axis=2), ValueError, "stack"),
        (
            lambda: st.unstack({"a": np.ones(2), "b": np.ones(3)}),
            ValueError,
            r"share the size of axis 0; got tree\['a'\]: .*\[2\], tree\['b'\]: .*\[3\]",
        ),
        (lambda: st.unstack({"a": 1.0}), ValueError, "share the size of axis 0"),
        (lambda: st.unstack(None), ValueError, "without leaves"),
        (lambda: st.take(st.stack([ONES, ONES]), 2), IndexError, "take: member 2 of 2"),
        (lambda: st.take(st.stack([ONES, ONES]), -3), IndexError, "take: member -3 of 2"),
        (lambda: st.take(st.stack([ONES, ONES]), 1.0), TypeError, "integer"),
        (lambda: st.concat([]), ValueError, "concat: expected at least one tree"),
        (
            lambda: st.concat([{"a": np.ones(2)}, {"b": np.ones(2)}]),
            ValueError,
            "tree 1 differs in structure",
        ),
        (
            lambda: st.concat([{"a": np.ones((2, 3))}, {"a": np.ones((2, 4))}]),
            ValueError,
            r"1 does not match tree 0 along axis 0 at tree\['a'\]: .*\[2,4\] and float32\[2,3\]",
        ),
        (
            lambda: st.concat([{"a": 1.0}, {"a": 2.0}]),
            ValueError,
            r"tree 0 does not match.*tree\['a'\]",
        ),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_gradients_of_integers_have_members_too():
    trees = {"n": np.arange(3), "x": snp.array([1.0, 2.0, 3.0])}
    slopes = st.grad(lambda t: (t["x"] ** 2).sum(), allow_int=True)(trees)
    for member in (st.take(slopes, 1), st.unstack(slopes)[1]):
        assert member["n"].dtype == st.dtypes.float0 and member["n"].shape == ()
        assert float(member["x"]) == 4
    assert float(st.jit(lambda i: st.take(slopes, i)["x"])(2)) == 6
    model = st.nn.BatchNorm1d(2)
    slopes = st.grad(lambda e: e.eval()(snp.ones((4, 2))).sum())(st.Ensemble([model, model]))
    assert [member.num_batches_tracked.dtype for member in slopes] == [st.dtypes.float0] * 2
