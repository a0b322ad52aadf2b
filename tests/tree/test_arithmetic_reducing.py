"""Structure: flattened and back, mapped, reduced, turned inside out; registered classes."""

import collections
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs
from hypothesis.extra import numpy as hnp

import stretto as st
from stretto._engine.core.nodes import keystr


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


@settings(max_examples=60)
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


def test_map_and_kin():
    tree = {"w": [1, (2, None)], "p": Pair(3, 4)}
    assert st.tree.map(lambda x, y: x * y, tree, tree) == {"w": [1, (4, None)], "p": Pair(9, 16)}
    paths = st.tree.map_with_path(lambda path, x: (keystr(path), x), tree)
    assert paths["w"][1][0] == ("['w'][1][0]", 2) and len(st.tree.leaves(tree)) == 4
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
    "call, error, message", [(lambda: st.tree.reduce(lambda x, y: x, {}), TypeError, "empty")]
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
