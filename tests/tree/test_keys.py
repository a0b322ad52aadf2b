"""Keys of leaves, as JAX writes them; kinds of nodes; and what combines leaves."""

import collections
import dataclasses

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import tree
from stretto._engine.core.tree import flatten_one_level

Point = collections.namedtuple("Point", ["a", "b"])
TREE = {"b": [1, (2, None)], "a": Point(3, {"x": 4})}


@tree.register_pytree_node_class
class Plain:
    def __init__(self, x):
        self.x = x

    def tree_flatten(self):
        return (self.x,), "aux"

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


@tree.register_pytree_with_keys_class
class Named(Plain):
    def tree_flatten_with_keys(self):
        return ((tree.GetAttrKey("x"), self.x),), "aux"


@tree.register_static
@dataclasses.dataclass(frozen=True)
class Mode:
    name: str


@tree.register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    n: int = st.tree.static(default=2)


def test_paths_are_those_of_jax():
    nodes = [TREE, Plain(1), Named(2), Layer(3), Mode("train")]
    paths = [path for path, _ in tree.leaves_with_path(nodes)]
    assert [tree.keystr(p) for p in paths] == [
        "[0]['a'].a",
        "[0]['a'].b['x']",
        "[0]['b'][0]",
        "[0]['b'][1][0]",
        "[1][<flat index 0>]",
        "[2].x",
        "[3].w",
    ]
    simple = [tree.keystr(p, simple=True, separator="/") for p in paths]
    assert simple[3:] == ["0/b/1/0", "1/0", "2/x", "3/w"]
    assert repr(paths[0][1:]) == "(DictKey(key='a'), GetAttrKey(name='a'))"
    doubled = tree.map_with_path(lambda p, x: (tree.keystr(p), 2 * x), nodes)
    assert doubled[2].x == ("[2].x", 4) and doubled[4] == Mode("train")


def test_what_is_a_leaf_may_depend_on_the_path():
    shallow = lambda path, node: len(path) == 1
    leaves = tree.leaves_with_path([1, [2], {"a": None}], shallow, is_leaf_takes_path=True)
    assert [(tree.keystr(p), x) for p, x in leaves] == [
        ("[0]", 1),
        ("[1]", [2]),
        ("[2]", {"a": None}),
    ]
    deeper = tree.leaves_with_path(TREE, lambda p, x: p[-1:] == (tree.DictKey("b"),), True)
    assert [x for _, x in deeper] == [3, 4, [1, (2, None)]]
    first = tree.map_with_path(
        lambda p, x: len(p), [1, [2]], is_leaf=shallow, is_leaf_takes_path=True
    )
    assert first == [1, 1]


def test_structures():
    structure = tree.structure(TREE)
    assert (structure.num_leaves, structure.num_nodes) == (4, 10)
    assert [child for _, child in flatten_one_level(Point(1, [2]))[0]] == [1, [2]]
    assert flatten_one_level(Named(5))[1] == "aux"
    with pytest.raises(ValueError, match="expected a node of a tree, got a leaf, 3"):
        flatten_one_level(3)


def test_reductions_and_broadcasts():
    pair = lambda x, y: (x, y)
    assert tree.reduce(pair, [1, 2], 0) == ((0, 1), 2)
    assert tree.reduce(pair, [1, [2]], is_leaf=lambda x: x == [2]) == (1, [2])
    assert tree.reduce_associative(pair, [1, 2, 3]) == (1, (2, 3))
    assert tree.reduce_associative(pair, [], identity=7) == 7
    with pytest.raises(TypeError, match="the tree has no leaves; give identity="):
        tree.reduce_associative(pair, [])
    assert tree.broadcast({"a": 1, "b": 2}, {"a": [1, 2], "b": (3,)}) == {"a": [1, 1], "b": (2,)}
    with pytest.raises(ValueError, match="part at tree: a list of length 1"):
        tree.broadcast([1], [1, 2])
    assert tree.transpose(tree.structure([0, 0]), None, [(1, 2), (3, 4)]) == ([1, 3], [2, 4])
    assert tree.all([True, [0]], is_leaf=lambda x: x == [0])


def test_partial_is_a_tree():
    def scale(x, y, power=1.0):
        return x * y**power

    f = tree.Partial(scale, snp.float32(3.0), power=snp.float32(2.0))
    assert [float(x) for x in tree.leaves(f)] == [3, 2]
    assert float(st.jit(lambda f, x: f(x))(f, 2.0)) == 12
    slope = st.grad(lambda f: f(2.0))(f)
    assert slope.func is scale and float(slope.args[0]) == 4
    assert tree.Partial(tree.Partial(max, 1), 2)(3) == 3
