"""Trees: structure, members stacked and unstacked, arithmetic; what differs is named."""

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


@settings(max_examples=60, deadline=None)
@given(TREES)
def test_flatten_and_back(tree):
    leaves, structure = st.tree.flatten(tree)
    back = st.tree.unflatten(structure, leaves)
    assert st.tree.structure(back) == structure == st.tree.structure(tree)
    pairs, _ = st.tree.flatten_with_path(tree)
    assert [leaf is again for (_, leaf), again in zip(pairs, leaves, strict=True)] == [True] * len(
        leaves
    )
    counted = st.tree.map(lambda x: 1, tree)
    assert st.tree.reduce(lambda x, y: x + y, counted, 0) == len(leaves)
    assert st.tree.all(counted)


@settings(max_examples=40, deadline=None)
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


def test_a_list_as_a_stacked_tree():
    """A list of as many entries as weights is a list of trees; others may be a stacked tree."""
    pair = [snp.ones((3, 2)), snp.arange(3.0)]  # one tree of two leaves, three members
    same(st.tree.weighted_sum(pair, [1.0, 2.0, 3.0]), [np.array([6.0, 6.0]), 8.0])
    two = [snp.ones((2, 2)), 2 * snp.ones((2, 2))]
    same(st.tree.weighted_sum(two, [1.0, 10.0]), np.full((2, 2), 21.0))
    same(st.tree.weighted_sum(two, [1.0, 10.0], stacked=True), [np.full(2, 11.0), np.full(2, 22.0)])


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3fn"])
def test_low_precision_is_summed_in_float32(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    trees = [{"w": np.full(3, 0.25, dtype)} for _ in range(256)]
    for total in (
        st.tree.weighted_sum(trees, [1 / 64] * 256),
        st.tree.mean(trees),
        st.tree.mean(st.stack(trees)),
        st.tree.mean(t for t in trees),
    ):
        assert total["w"].dtype == dtype
    np.testing.assert_array_equal(
        np.asarray(st.tree.weighted_sum(trees, [1 / 64] * 256)["w"], "f4"), 1
    )
    np.testing.assert_array_equal(np.asarray(st.tree.mean(trees)["w"], "f4"), 0.25)


def test_integers():
    trees = [{"n": np.array([200], np.uint8)}, {"n": np.array([100], np.uint8)}]
    mean = st.tree.mean(trees)["n"]
    assert mean.dtype == snp.float32 and float(mean[0]) == 150
    total = st.tree.weighted_sum([{"n": 3}, {"n": 4}], [2, 1])["n"]
    assert total.dtype == snp.int32 and int(total) == 10


def test_a_generator_is_consumed_one_by_one():
    alive, most = set(), 0

    class Leaf:
        def __init__(self, n):
            alive.add(n)
            self.n = n

        def __stretto_array__(self):
            return np.float32(self.n)

        def __del__(self):
            alive.discard(self.n)

    def trees():
        nonlocal most
        for n in range(20):
            most = max(most, len(alive))
            yield {"w": Leaf(n)}

    assert float(st.tree.weighted_sum(trees(), [1.0] * 20)["w"]) == 190
    assert float(st.tree.mean(trees())["w"]) == 9.5
    assert most <= 3  # the first, for messages, the one before and this one


def test_arithmetic():
    x, y = {"w": snp.array([1.0, 2.0]), "b": 3.0}, {"w": snp.array([5.0, 6.0]), "b": 7.0}
    same(st.tree.lerp(x, y, 0.25), {"w": np.array([2.0, 3.0]), "b": 4.0})
    same(st.tree.axpy(2.0, x, y), {"w": np.array([7.0, 10.0]), "b": 13.0})
    np.testing.assert_allclose(st.tree.norm({"a": snp.array([3.0 + 4.0j]), "b": 12}), 13)
    np.testing.assert_allclose(st.tree.norm({"a": snp.full((4,), 200.0, snp.float16)}), 400)
    assert st.tree.norm({"a": snp.full((4,), 200.0, snp.float16)}).dtype == snp.float32
    assert float(st.tree.norm({"a": snp.zeros((0, 3))})) == 0
    cast = st.tree.cast({"w": snp.ones(1), "n": 1, "t": True}, snp.bfloat16)
    assert [v.dtype.name for v in st.tree.leaves(cast)] == ["int32", "bool", "bfloat16"]
    np.testing.assert_allclose(
        st.grad(lambda w: st.tree.norm(st.tree.lerp(x, y, w)))(0.0), 4 * 6 / np.sqrt(14), rtol=1e-6
    )


def test_map_and_kin():
    tree = {"w": [1, (2, None)], "p": Pair(3, 4)}
    assert st.tree.map(lambda x, y: x * y, tree, tree) == {"w": [1, (4, None)], "p": Pair(9, 16)}
    paths = st.tree.map_with_path(lambda path, x: (*path, x), tree)
    assert paths["w"][1][0] == ("w", 1, 0, 2) and len(st.tree.leaves(tree)) == 4
    assert st.tree.map_with_path(lambda path, x, y: x + y, [1], [10]) == [11]
    assert st.tree.leaves(tree, is_leaf=lambda x: isinstance(x, Pair))[0] == Pair(3, 4)
    outer, inner = st.tree.structure([0, 0]), st.tree.structure({"a": 0, "b": 0})
    assert st.tree.transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}]) == {
        "a": [1, 3],
        "b": [2, 4],
    }
    with pytest.raises(ValueError, match=r"tree 0 and tree 1 part at tree\['w'\]\[1\]"):
        st.tree.map(lambda x, y: x, tree, {"w": [1, [2, None]], "p": Pair(3, 4)})
    assert not st.tree.all([True, {"a": 0}])


def test_registered_classes():
    @st.tree.register_pytree_node_class
    class Scaled:
        def __init__(self, x, factor):
            self.x, self.factor = x, factor

        def tree_flatten(self):
            return (self.x,), self.factor

        @classmethod
        def tree_unflatten(cls, factor, children):
            return cls(*children, factor)

    out = st.jit(lambda s: Scaled(s.x * s.factor, s.factor))(Scaled(2.0, 3))
    assert (float(out.x), out.factor) == (6.0, 3)
    slope = st.grad(lambda s: s.x**2 * s.factor)(Scaled(2.0, 3))
    assert isinstance(slope, Scaled) and float(slope.x) == 12
    layer = st.vmap(lambda d: d, axis_size=2, in_axes=None)(Dense(1.0, 2.0, "out"))
    assert layer.name == "out" and layer.weight.shape == (2,)
    with pytest.raises(ValueError, match="unknown: \\['nope'\\]"):
        st.tree.register_dataclass(dataclasses.make_dataclass("Other", ["a"]), ["a", "nope"], [])


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
            r"member 1 has another structure than member 0; they part at member\['a'\]",
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
            "tree 1 has another structure",
        ),
        (
            lambda: st.concat([{"a": np.ones((2, 3))}, {"a": np.ones((2, 4))}]),
            ValueError,
            r"1 does not fit tree 0 along axis 0 at tree\['a'\]: .*\[2,4\] and float32\[2,3\]",
        ),
        (
            lambda: st.concat([{"a": 1.0}, {"a": 2.0}]),
            ValueError,
            r"tree 0 does not fit.*tree\['a'\]",
        ),
        (lambda: st.tree.weighted_sum([ONES, ONES], [1]), ValueError, "2 trees and 1 weights"),
        (
            lambda: st.tree.weighted_sum(iter([ONES, ONES]), [1]),
            ValueError,
            "expected 1 trees, one a weight; got more",
        ),
        (
            lambda: st.tree.weighted_sum(iter([ONES]), [1, 2]),
            ValueError,
            "expected 2 trees, one a weight; got 1",
        ),
        (
            lambda: st.tree.weighted_sum({"a": np.ones(3)}, [1, 2]),
            ValueError,
            "has 3 members.* 2 weights",
        ),
        (lambda: st.tree.weighted_sum([], []), ValueError, "at least one tree"),
        (
            lambda: st.tree.weighted_sum([ONES, ONES], np.ones((2, 1))),
            ValueError,
            "weights must be a vector",
        ),
        (
            lambda: st.tree.weighted_sum([ONES, ONES], [np.ones(2), 1]),
            ValueError,
            "each weight must be a scalar",
        ),
        (lambda: st.tree.mean([]), ValueError, "mean: expected at least one tree"),
        (lambda: st.tree.mean(iter([])), ValueError, "mean: expected at least one tree"),
        (
            lambda: st.tree.mean([ONES, {"a": [np.ones(3)], "b": 1.0}]),
            ValueError,
            "mean: member 1 differs",
        ),
        (lambda: st.tree.lerp(ONES, {"a": 1.0}, 0.5), ValueError, "part at"),
        (lambda: st.tree.norm({}), ValueError, "norm: expected a tree with arrays"),
        (lambda: st.tree.reduce(lambda x, y: x, {}), TypeError, "empty"),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
