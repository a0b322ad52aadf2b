"""Graphs while they are written: equal nodes are written once, also inside of others."""

from stretto._engine.lowering.onnx.graph import Graph, Node, key_of


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
