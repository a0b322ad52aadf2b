"""Names of arrays in files, and the description that rebuilds a tree."""

import collections
import dataclasses
import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import stretto as st
from stretto.files.names import Damaged, describe, leaf_names, parse, rebuild


class Pair(NamedTuple):
    one: Any
    two: Any


@st.tree.register_dataclass
@dataclasses.dataclass
class Dense:
    weight: Any
    bias: Any


KEYS = hs.sampled_from(["a", "b", "fc1.weight", "", 3, -1, "ü"])
TREES = hs.recursive(
    hs.none() | hs.integers(),
    lambda t: hs.one_of(
        hs.lists(t, max_size=3),
        hs.tuples(t, t),
        hs.just(()),
        hs.dictionaries(KEYS, t, max_size=3),
        hs.builds(collections.OrderedDict, hs.lists(hs.tuples(KEYS, t), max_size=2)),
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(TREES)
def test_description_rebuilds_what_is_data(tree):
    names = leaf_names(tree, "save")
    found = dict(zip(names, st.tree.leaves(tree), strict=True))
    node, kinds, dtypes, ties = parse(describe(tree, {"x": "int"}, {}, {"y": "x"}))
    back = rebuild(node, found)
    assert back == tree and st.tree.structure(back) == st.tree.structure(tree)
    assert (kinds, dtypes, ties) == ({"x": "int"}, {}, {"y": "x"})


def test_ragged_arrays_come_back():
    tree = {"x": [st.ragged([[1.0, 2.0], [3.0]])], "y": 1}
    names = leaf_names(tree, "save")
    assert names == ["x.0.values", "x.0.lengths", "y"]
    node = parse(describe(tree, {}, {}, {})).node
    back = rebuild(node, dict(zip(names, st.tree.leaves(tree), strict=True)))
    assert st.tree.structure(back) == st.tree.structure(tree)
    with pytest.raises(Damaged, match="not in the file"):
        rebuild({"ragged": 16}, {"values": 1})
    with pytest.raises(Damaged, match="no node is written"):
        rebuild({"ragged": "16"}, {"values": 1, "lengths": 2})


def test_names_of_fields_attributes_and_indices():
    tree = {"opt": (Pair(1, [2]), Dense(3, None)), 7: {"fc1.weight": 4}}
    with pytest.raises(ValueError, match="cannot be the name"):
        leaf_names({"a": {"b": 1}, "a.b": 2}, "save")
    assert leaf_names({"opt": tree["opt"]}, "save") == ["opt.0.one", "opt.0.two.0", "opt.1.weight"]
    assert leaf_names({7: tree[7]}, "save") == ["7.fc1.weight"]
    assert leaf_names(5, "save") == ["value"] and leaf_names(None, "save") == []


def test_objects_become_dictionaries_by_name():
    tree = [Pair({"w": 1}, 2), Dense(Pair(3, 4), None), collections.deque([5])]
    found = dict(zip(leaf_names(tree, "save"), st.tree.leaves(tree), strict=True))
    back = rebuild(parse(describe(tree, {}, {}, {})).node, found)
    assert back == [{"one.w": 1, "two": 2}, {"weight.one": 3, "weight.two": 4}, {"0": 5}]


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"a": {"b": 1}, "a.b": 2}, r"'a\.b'.*tree\['a'\]\['b'\] and tree\['a\.b'\]"),
        ({1: 0, "1": 2}, r"tree\[1\] and tree\['1'\]"),
        ({"__metadata__": 1}, "the format keeps this name"),
    ],
    ids=["dots", "number and text", "reserved"],
)
def test_names_that_collide(tree, words):
    with pytest.raises(ValueError, match=words):
        leaf_names(tree, "save")


WHOLE = {"version": 1, "tree": {"dict": [["a", "leaf"]]}, "kinds": {}, "dtypes": {}}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "3",
        "null",
        json.dumps(WHOLE | {"kinds": ["a"]}),
        json.dumps(WHOLE | {"kinds": {"a": 1}}),
        json.dumps(WHOLE | {"ties": {"a": 1}}),
        json.dumps({k: v for k, v in WHOLE.items() if k != "tree"}),
        json.dumps(WHOLE | {"version": 2}),
        "[" * 100_000,
    ],
    ids=["cut", "list", "number", "null", "kinds", "kind", "ties", "no tree", "version", "deep"],
)
def test_texts_that_are_no_description(text):
    with pytest.raises(Damaged, match="description"):
        parse(text)


def deep(n):
    node: Any = "leaf"
    for _ in range(n):
        node = {"list": [node]}
    return node


@pytest.mark.parametrize(
    "node",
    [
        "leaves",
        7,
        [],
        {},
        {"set": []},
        {"list": "leaf"},
        {"list": ["leaf"], "tuple": []},
        {"dict": [["a"]]},
        {"dict": {"a": "leaf"}},
        {"dict": [[["a"], "leaf"]]},
        {"dict": [["b", "leaf"]]},
        {"dict": [["a", "leaf"], ["a", "leaf"]]},
        {"names": [1]},
        {"names": ["b"]},
        None,
        deep(5_000),
    ],
    ids=range(16),
)
def test_nodes_that_are_none(node):
    with pytest.raises(Damaged, match="description of the tree is damaged"):
        rebuild(node, {"a": 1})
