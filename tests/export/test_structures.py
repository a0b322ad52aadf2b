"""Structures of arguments and results as data."""

import collections
import re

import pytest

import stretto as st
from stretto._engine.core import tree
from stretto._engine.core.errors import ExportError
from stretto.export.structures import Mismatch, build, count, describe, order
from stretto.files.names import Damaged

Pair = collections.namedtuple("Pair", "first second")
TREE = ({"b": 1, "a": [2, None]}, Pair(3, (4,)), collections.OrderedDict(z=5, y=6))


def described(x):
    return describe(tree.structure(x), "program")


def test_a_description_has_all_leaves():
    assert count(described(TREE)) == 6


def test_build_gives_plain_containers():
    leaves, _ = tree.flatten(TREE)
    made = build(described(TREE), iter(leaves))
    assert made == ({"a": [2, None], "b": 1}, {"first": 3, "second": (4,)}, {"z": 5, "y": 6})
    assert type(made[1]) is dict


def test_a_module_is_its_arrays_by_name():
    model = st.nn.Sequential(st.nn.Linear(2, 3), st.nn.ReLU())
    node = described(model)
    assert node["names"][0] == "Sequential"
    assert order(node, node, "model") == [0, 1]


@pytest.mark.parametrize(
    "given", [TREE, (TREE[0], {"second": (4,), "first": 3}, {"y": 6, "z": 5}), list(TREE)]
)
def test_order_finds_each_leaf(given):
    leaves, spec = tree.flatten(given)
    places = order(described(TREE), describe(spec, "program"), "the arguments")
    assert [leaves[i] for i in places] == tree.leaves(TREE)


@pytest.mark.parametrize(
    ("expected", "given", "words"),
    [
        ((1, 2), (1,), "x must be a tuple of 2, got a tuple of 1"),
        ((1, {"a": 2}), (1, {"b": 2}), "x[1] must be a dictionary of a, got a dictionary of b"),
        (({"a": 2},), (3,), "x[0] must be a dictionary of a, got an array"),
        ((1,), ({"a": 2},), "x[0] must be an array, got a dictionary of a"),
        ((None,), (1,), "x[0] must be None, got an array"),
        ((Pair(1, 2),), ((1, 2),), "x[0] must be a Pair of first, second, got a tuple of 2"),
        (([],), ({},), "x[0] must be a list of 0, got a dictionary of nothing"),
    ],
)
def test_mismatches(expected, given, words):
    with pytest.raises(Mismatch) as caught:
        order(described(expected), described(given), "x")
    assert str(caught.value) == words


def test_keys_are_text_or_integers():
    assert described({1: 2})["dict"] == [[1, "leaf"]]
    for key in (1.5, True, "a\x1b[2J"):
        with pytest.raises(ExportError, match=re.escape(f"one is {key!r}")):
            described({key: 2})


@pytest.mark.parametrize(
    "node",
    [
        "root", 7, {"set": []}, {"list": "leaf"}, {"dict": ["leaf"]}, {"dict": [[[], "leaf"]]},
        {"dict": [["a", "leaf"], ["a", "leaf"]]}, {"names": ["A"]}, {"names": [1, []]},
        {"list": [], "tuple": []}, {"names": ["A", [[0, "leaf"]]]}, {"dict": [["\x1b[2J", "leaf"]]},
    ],
    ids=str,
)  # fmt: skip
def test_damaged_descriptions(node):
    with pytest.raises(Damaged, match="its description of arguments or results is damaged"):
        count(node)


def test_descriptions_are_not_deep():
    node = "leaf"
    for _ in range(200):
        node = {"list": [node]}
    with pytest.raises(Damaged, match="too many levels"):
        count(node)
