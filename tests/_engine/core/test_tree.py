"""Trees: what is a node, paths, prefixes, and where two trees part."""

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple

import hypothesis
import pytest
from hypothesis import strategies as some

from stretto._engine.core import tree

Point = namedtuple("Point", ["x", "y"])


@tree.register_dataclass
@dataclasses.dataclass
class Dense:
    weight: object
    bias: object
    name: str = dataclasses.field(default="dense", metadata={"static": True})


@tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object


@tree.register_pytree_node_class
class Pair:
    def __init__(self, left, right, tag):
        self.left, self.right, self.tag = left, right, tag

    def tree_flatten(self):
        return (self.left, self.right), self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(*children, tag)


trees = some.recursive(
    some.integers() | some.none(),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.lists(inner, max_size=3).map(tuple)
        | some.dictionaries(some.text(max_size=3), inner, max_size=3)
        | some.tuples(inner, inner).map(lambda p: Point(*p))
        | some.tuples(inner, inner).map(lambda p: Dense(*p))
    ),
    max_leaves=8,
)


@hypothesis.given(trees)
def test_flatten_and_back(t):
    leaves, structure = tree.flatten(t)
    assert leaves == tree.leaves(t)
    assert tree.structure(t) == structure
    assert tree.unflatten(structure, leaves) == t
    assert tree.map(lambda x: x, t) == t
    assert len(tree.paths(t)) == len(leaves)
    assert [leaf for _, leaf in tree.flatten_with_path(t)[0]] == leaves


@hypothesis.given(trees)
def test_paths_lead_to_their_leaves(t):
    for path, leaf in zip(tree.paths(t, "t"), tree.leaves(t), strict=True):
        assert eval(path, {"t": t}) is leaf


@pytest.mark.parametrize(
    "t, leaves",
    [
        (None, []),
        ((), []),
        ({"b": 1, "a": 2}, [2, 1]),
        (OrderedDict([("b", 1), ("a", 2)]), [1, 2]),
        (defaultdict(list, {"b": 1, "a": [2]}), [2, 1]),
        (Point(1, (2, None)), [1, 2]),
        (Dense(1, 2), [1, 2]),
        (Pair(1, [2], "t"), [1, 2]),
        ("text", ["text"]),
        ({1, 2}, [{1, 2}]),
    ],
)
def test_nodes_and_leaves(t, leaves):
    assert tree.leaves(t) == leaves


def test_structures_hold_what_is_static():
    assert tree.structure(Dense(1, 2)) == tree.structure(Dense(3, 4))
    assert tree.structure(Dense(1, 2)) != tree.structure(Dense(1, 2, "other"))
    assert tree.structure(Pair(1, 2, "a")) != tree.structure(Pair(1, 2, "b"))
    assert tree.structure(Point(1, 2)) != tree.structure((1, 2))
    assert hash(tree.structure(Dense(1, 2))) == hash(tree.structure(Dense(3, 4)))


def test_containers_keep_their_kind():
    twice = lambda t: tree.map(lambda x: 2 * x, t)
    assert twice(Point(1, 2)) == Point(2, 4)
    ordered = twice(OrderedDict([("b", 1), ("a", 2)]))
    assert type(ordered) is OrderedDict and list(ordered) == ["b", "a"]
    assert twice(Dense(1, 2, "n")) == Dense(2, 4, "n")
    assert twice(Frozen(1)) == Frozen(2)
    assert twice(Pair(1, 2, "t")).tag == "t"


def test_is_leaf():
    assert tree.leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]
    assert tree.map(len, [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [2, 1]


def test_map_takes_subtrees_of_the_rest():
    assert tree.map(lambda x, s: (x, s), {"a": 1}, {"a": [2, 3]}) == {"a": (1, [2, 3])}
    assert tree.map(lambda x, y, z: x + y + z, [1], [2], [3]) == [6]


@pytest.mark.parametrize(
    "one, other, where",
    [
        ({"a": [1, 2]}, {"a": [1]}, r"tree\['a'\]: a list of length 2 and a list of length 1"),
        ({"a": 1}, {"b": 1}, r"tree: a dict with keys \['a'\] and a dict with keys \['b'\]"),
        ([1, {"x": (1,)}], [1, {"x": [1]}], r"tree\[1\]\['x'\]: a tuple of length 1 and a list"),
        (Point(1, [2]), Point(1, None), r"tree\.y: a list of length 1 and None"),
        (Dense(1, (2,)), Dense(1, 2), r"tree\.bias: a tuple of length 1 and a int"),
        ({"w": [1]}, 5, r"tree: a dict with keys \['w'\] and a int"),
    ],
)
def test_where_trees_part(one, other, where):
    with pytest.raises(
        ValueError, match=f"trees differ in structure: tree 0 and tree 1 part at {where}"
    ):
        tree.map(lambda *x: x, one, other)


def test_the_tree_that_parts_is_numbered():
    with pytest.raises(ValueError, match="tree 0 and tree 2 part at tree"):
        tree.map(lambda *x: x, [1], [2], [3, 4])


@pytest.mark.parametrize(
    "prefix, t, leaves",
    [
        (0, (1, [2, 3]), [0, 0, 0]),
        (None, (1, [2, 3]), [None, None, None]),
        ((0, None), (1, [2, 3]), [0, None, None]),
        ([0, 1], (1, [2, 3]), [0, 1, 1]),
        ((0, [1, None]), (1, [2, 3]), [0, 1, None]),
        ({"a": 1, "b": None}, {"b": (1, 2), "a": 3}, [1, None, None]),
        ((0, 0), (None, 1), [0]),
        (Point(0, 1), Point([1, 2], 3), [0, 0, 1]),
        (1, (), []),
    ],
)
def test_prefixes(prefix, t, leaves):
    assert tree.prefix_leaves(prefix, t, "vmap", "in_axes") == leaves


@pytest.mark.parametrize(
    "prefix, t, where",
    [
        ((0, 1), (1,), r"in_axes: a tuple of length 2 in in_axes, a tuple of length 1 in the tree"),
        ((0, [1, 2]), (1, [2]), r"in_axes\[1\]: a list of length 2 in in_axes, a list of length 1"),
        (([0],), (1,), r"in_axes\[0\]: a list of length 1 in in_axes, a int in the tree"),
        (
            ({"a": 0},),
            ([1],),
            r"in_axes\[0\]: a dict with keys \['a'\] in in_axes, a list of length",
        ),
    ],
)
def test_what_is_not_a_prefix(prefix, t, where):
    message = f"vmap: in_axes must be a prefix of the tree it describes; they part at {where}"
    with pytest.raises(ValueError, match=message):
        tree.prefix_leaves(prefix, t, "vmap", "in_axes")


def test_prefix_with_other_keys():
    with pytest.raises(ValueError, match="in_axes must be a prefix"):
        tree.prefix_leaves({"a": 0}, {"b": 1}, "vmap", "in_axes")


def test_the_static_data_of_a_node():
    point = namedtuple("point", ["x", "y"])
    assert tree.flatten_one_level(point(1, 2))[1] is point
    assert tree.flatten_one_level((1, 2))[1] is None
    assert tree.flatten_one_level({"b": 1, "a": 2})[1] == ("a", "b")
