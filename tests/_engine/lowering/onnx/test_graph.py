"""Graphs while they are written: equal nodes are written once, also inside of others."""

import numpy as np

from stretto._engine.core.types import array_type
from stretto._engine.lowering.onnx.graph import Graph, Node, Operand, key_of


def test_a_node_like_one_before_is_known_here_and_inside():
    outer = Graph("outer")
    key = key_of("Add", ("a", "b"), {}, 1)
    outer.add(Node("Add", ("a", "b"), ("c",), {}), key)
    inner = Graph("inner", outer)
    assert outer.known(key) == inner.known(key) == ("c",)
    assert inner.known(key_of("Add", ("b", "a"), {}, 1)) is None


def test_what_is_inside_is_not_known_outside():
    outer = Graph("outer")
    inner = Graph("inner", outer)
    key = key_of("Neg", ("a",), {}, 1)
    inner.add(Node("Neg", ("a",), ("b",), {}), key)
    assert outer.known(key) is None


def test_attributes_tell_nodes_apart_and_those_with_graphs_are_never_alike():
    assert key_of("Cast", ("a",), {"to": 1}, 1) != key_of("Cast", ("a",), {"to": 2}, 1)
    assert key_of("If", ("a",), {"then_branch": Graph("g")}, 1) is None


def test_a_constant_that_is_moved_again_has_the_name_of_the_first():
    value = np.zeros((2, 3), np.float32)
    first = Operand("weight", array_type((2, 3), value.dtype), (2, 3), value)
    again = first.moved(value.T, array_type((3, 2), value.dtype), (3, 2))
    last = again.moved(value, first.type, (2, 3))
    assert [(x.name, x.origin) for x in (again, last)] == [("", "weight"), ("", "weight")]
