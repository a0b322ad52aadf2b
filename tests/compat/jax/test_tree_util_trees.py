"""Trees by JAX's rules."""

import collections
import copy
import pickle

import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax import tree_util

Point = collections.namedtuple("Point", "x y")


def test_keys_are_leaves():
    key = st.random.key(0)
    assert tree_util.leaves({"k": key}) == [key] or tree_util.leaves({"k": key})[0] is key
    assert len(st.tree.leaves({"k": key})) == 1 and st.tree.leaves({"k": key})[0] is not key


def test_deques_are_leaves():
    queue = collections.deque([1, 2])
    tree = {"q": queue, "x": (3, None)}
    assert tree_util.leaves(tree) == [queue, 3] and len(st.tree.leaves(tree)) == 3
    assert tree_util.map_(lambda x: x, tree)["q"] is queue
    assert tree_util.structure(queue) == tree_util.structure(0) and tree_util.tree_is_leaf(queue)
    assert tree_util.leaves(tree, is_leaf=lambda x: isinstance(x, tuple)) == [queue, (3, None)]
    pairs, _ = tree_util.flatten_with_path(tree)
    assert [leaf for _, leaf in pairs] == [queue, 3]
    with pytest.raises(ValueError, match="can't flatten a leaf, deque"):
        tree_util.flatten_one_level(queue)


def test_deques_are_leaves_also_where_the_rest_is_known():
    queue = collections.deque([1])
    for _ in range(2):
        assert tree_util.flatten({"b": (1, 2), "a": [3]})[0] == [3, 1, 2]
        flat, definition = tree_util.flatten({"b": (1, queue), "a": [queue]})
        assert flat[0] is queue and flat[1:] == [1, queue] and definition.num_leaves == 3
        assert definition == tree_util.structure({"b": (1, 2), "a": [3]})
        assert list(definition.unflatten([1, 2, 3])) == ["a", "b"]
        assert tree_util.flatten({"b": (1, (2,)), "a": [3]})[0] == [3, 1, 2]


class Static:
    """A node whose static data cannot be compared."""

    def __init__(self, x, how):
        self.x, self.how = x, how

    def __hash__(self):
        return 1


def test_static_data_that_cannot_be_hashed_or_compared():
    class Array(list):
        __hash__ = lambda self: 0

        def __eq__(self, other):
            raise ValueError("which elements?")

    st.tree.register_pytree_node(
        Static, lambda s: ((s.x,), s.how), lambda how, children: Static(*children, how)
    )
    for how in ([1], Array([1]), Array([1]), [1], {"a": [2]}):
        for _ in range(2):
            flat, definition = tree_util.flatten([Static((1, 2), how), 3])
            assert flat == [1, 2, 3]
            made = definition.unflatten([4, 5, 6])
            assert made[0].how is how and made[0].x == (4, 5) and made[1] == 6
            _, definition = tree_util.flatten(Static({"b": 1, "a": 2}, how))
            assert list(definition.unflatten([4, 5]).x) == ["a", "b"]


def test_keys_of_nodes_are_their_own():
    class Box:
        """A node whose keys are not decided by its static data."""

        def __init__(self, key, x):
            self.key, self.x = key, x

    st.tree.register_pytree_with_keys(
        Box,
        lambda b: (((st.tree.GetAttrKey(b.key), b.x),), None),
        lambda _, children: Box("made", *children),
    )
    pairs, definition = tree_util.flatten_with_path({"k": Box("x", [1, Box("y", 2)])})
    assert ["".join(map(str, path)) for path, _ in pairs] == ["['k'].x[0]", "['k'].x[1].y"]
    assert definition == tree_util.structure({"k": Box("z", [0, Box("z", 0)])})
    assert [str(key) for key, _ in tree_util.one_level_with_keys(Box("w", 1))[0]] == [".w"]


def test_dictionaries_come_back_sorted():
    made = tree_util.map_(lambda x: x, {"b": 1, "a": {"d": 2, "c": 3}})
    assert list(made) == ["a", "b"] and list(made["a"]) == ["c", "d"]
    assert list(tree_util.map_(lambda x: x, collections.OrderedDict(b=1, a=2))) == ["b", "a"]
    kept = tree_util.map_(lambda x: x, collections.defaultdict(list, {"b": 1, "a": 2}))
    assert list(kept) == ["a", "b"] and kept.default_factory is list


def test_structures():
    definition = tree_util.structure({"b": 1, "a": (2, None, [3])})
    assert str(definition) == "PyTreeDef({'a': (*, None, [*]), 'b': *})"
    assert definition.node_data() == (dict, ["a", "b"])
    assert [child.num_leaves for child in definition.children()] == [2, 1]
    assert definition == tree_util.structure({"a": (0, None, [0]), "b": 0})
    assert hash(definition) == hash(tree_util.structure({"a": (0, None, [0]), "b": 0}))
    assert tree_util.structure(1).node_data() is None
    assert tree_util.structure(Point(1, 2)).node_data() == (Point, None)
    assert tree_util.structure([0]).compose(tree_util.structure((1, 2))) == tree_util.structure(
        [(1, 2)]
    )
    for again in (pickle.loads(pickle.dumps(definition)), copy.deepcopy(definition)):
        assert again == definition
    summed = definition.walk(lambda children, data: sum(children), lambda x: x, [1, 2, 3])
    assert summed == 6


def test_structures_that_differ():
    with pytest.raises(ValueError, match="Dict key mismatch"):
        tree_util.map_(lambda x, y: x, {"a": 1}, {"b": 1})
    with pytest.raises(ValueError, match="leaf"):
        tree_util.flatten_one_level(1)


def test_paths():
    pairs, _ = tree_util.flatten_with_path({"a": [1, 2]}, lambda path, x: len(path) == 1, True)
    assert [(str(path[0]), leaf) for path, leaf in pairs] == [("['a']", [1, 2])]
    assert [str(key) for key, _ in tree_util.one_level_with_keys(Point(1, 2))[0]] == [".x", ".y"]


def test_classes_registered_before_and_after_are_nodes():
    class Pair:
        def __init__(self, x, y):
            self.x, self.y = x, y

    st.tree.register_pytree_node(Pair, lambda p: ((p.x, p.y), "p"), lambda _, xs: Pair(*xs))
    assert tree_util.leaves([Pair(1, 2), st.tree.Partial(max, 3)]) == [1, 2, 3]
    assert tree_util.structure(Pair(1, 2)).node_data() == (Pair, "p")


def test_dictionaries_with_a_default_are_sorted():
    """As JAX has them: two that differ in the order of their keys alone are alike."""
    one = collections.defaultdict(list, b=2, a=1, c=3)
    other = collections.defaultdict(list, c=30, b=20, a=10)
    assert tree_util.leaves(one) == [1, 2, 3] and tree_util.leaves([one, 4]) == [1, 2, 3, 4]
    assert tree_util.structure(one) == tree_util.structure(other)
    both = tree_util.map_(lambda x, y: x + y, one, other)
    assert type(both) is collections.defaultdict and both.default_factory is list
    assert list(both.items()) == [("a", 11), ("b", 22), ("c", 33)]
    assert [path[0].key for path, _ in tree_util.flatten_with_path(one)[0]] == ["a", "b", "c"]
    assert tree_util.structure(one) != tree_util.structure(collections.defaultdict(int, one))
    with pytest.raises(TypeError, match="not supported between"):
        tree_util.leaves(collections.defaultdict(int, {1: 1, "a": 2}))
    ordered = collections.OrderedDict(b=2, a=1)
    assert tree_util.leaves(ordered) == [2, 1]


def test_a_vector_of_leaves_goes_back_to_a_sorted_tree():
    vector, back = tree_util.ravel_pytree({"w": snp.ones(2), "b": snp.zeros(1)})
    assert vector.tolist() == [0.0, 1.0, 1.0] and list(back(vector)) == ["b", "w"]
