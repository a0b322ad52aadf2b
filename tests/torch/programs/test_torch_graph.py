"""Graphs as data: JSON and back, equality, and what is refused."""

import math

import pytest

from stretto.torch.programs.torch_graph import (
    DType,
    Graph,
    Input,
    Node,
    Output,
    Ref,
    Subgraph,
    TensorType,
)

MATRIX = TensorType("float32", ("s0", 3))


def graph(place="here", scale=2.0):
    inner = Graph(
        (Input("argument", "y", None),),
        (Node("aten.neg.default", (Ref(0),), (), (TensorType("int32", (None,)),), place),),
        (Output("result", "", Ref(1)),),
    )
    return Graph(
        (Input("parameter", "w", MATRIX), Input("argument", "x", MATRIX)),
        (
            Node("aten.add.Tensor", (Ref(0), Ref(1)), (("alpha", scale),), (MATRIX,), place),
            Node(
                "cond",
                (
                    True,
                    Subgraph(0),
                    (Ref(2), math.inf, -math.inf, 1 + 2j, None, "s", DType("int8")),
                ),
                (),
                (None, MATRIX),
                place,
            ),
        ),
        (Output("result", "", Ref(3)), Output("buffer", "b", Ref(0)), Output("result", "", 4)),
        (inner,),
    )


def test_json_and_back():
    one = graph()
    again = Graph.from_json(one.to_json())
    assert again == one and again.to_json() == one.to_json()
    assert [node.op for node in again.walk()] == ["aten.add.Tensor", "cond", "aten.neg.default"]
    assert again.nodes == one.nodes and again.subgraphs[0].nodes == one.subgraphs[0].nodes


def test_equal_whatever_the_places_are():
    assert graph("here") == graph("there") and hash(graph("here")) == hash(graph("there"))
    assert graph() != graph(scale=3.0) and graph() != 1
    assert repr(graph()) == "<Graph of 2 operations>"


def test_values_are_let_go_after_their_last_use():
    assert graph().last_uses == ((1,), (2,))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("nodes"),
        lambda d: d["nodes"][0].pop(),
        lambda d: d["nodes"][0][1].append({"value": 2}),
        lambda d: d["nodes"][0][1].append({"value": -1}),
        lambda d: d["nodes"][0][1].append({"graph": 1}),
        lambda d: d["nodes"][0][1].append({"what": 1}),
        lambda d: d["outputs"].append(["result", "", {"value": 9}]),
        lambda d: d["inputs"].append(3),
        lambda d: d["nodes"].append(None),
    ],
)
def test_what_is_no_graph_is_refused(change):
    data = graph().to_json(places=False)
    change(data)
    with pytest.raises(ValueError):
        Graph.from_json(data)


def test_only_plain_data_is_part_of_a_graph():
    bad = Graph((), (Node("op", (object(),), (), (), ""),), ())
    with pytest.raises(TypeError, match="a object is no part of a graph"):
        bad.to_json()
