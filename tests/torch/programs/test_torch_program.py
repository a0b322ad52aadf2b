"""Programs: equality, calls, and JSON."""

import dataclasses

import numpy as np
import pytest

from stretto.torch.programs.torch_graph import (
    Condition,
    Graph,
    Input,
    Node,
    Output,
    Ref,
    TensorType,
)
from stretto.torch.programs.torch_program import Program, differs_for_one
from tests.torch.sample_programs import counting, linear

X = np.ones((4, 3), np.float32)
ARRAYS = {"layer.weight": np.ones((2, 3), np.float32), "layer.bias": np.float32([0, 1])}


def test_equal_by_what_they_compute():
    assert linear() == linear() and hash(linear()) == hash(linear())
    assert linear() != linear(scale=2.0) and linear() != linear(0.5) and linear() != 1
    assert repr(linear()).startswith("<Program of 2 operations, ")


def test_results_and_updates():
    results, updates = linear(scale=2.0)("Net", ARRAYS.__getitem__, (X,), {})
    np.testing.assert_array_equal(results["y"], [[6, 8]] * 4)
    assert updates == {}
    result, updates = counting()("Net", {"count": np.int32(4)}.__getitem__, (), {"x": 3.0})
    assert float(result) == 3 and int(updates["count"]) == 5


def only(program, n):
    """The program for so many examples alone."""
    fixed = [
        dataclasses.replace(x, type=TensorType("float32", (n, 3))) if x.kind == "argument" else x
        for x in program.graph.inputs
    ]
    return dataclasses.replace(
        program, graph=dataclasses.replace(program.graph, inputs=tuple(fixed))
    )


def test_another_program_for_one_example():
    program = linear(scale=2.0).with_single(only(linear(scale=5.0), 1))
    for n, expected in ((4, [6, 8]), (1, [15, 20])):
        results, _ = program("Net", ARRAYS.__getitem__, (X[:n],), {})
        np.testing.assert_array_equal(results["y"], [expected] * n)
    assert program != linear(scale=2.0) and hash(program) == hash(dataclasses.replace(program))
    again = Program.from_json(program.to_json(), program.constants)
    assert again == program and again.single == program.single
    with pytest.raises(ValueError, match=r"expected the shape \(any, 3\), got \(1, 2\)"):
        program("Net", ARRAYS.__getitem__, (X[:1, :2],), {})


def test_where_one_example_may_differ():
    program = linear()
    assert not differs_for_one(program.graph, program.signature)
    for text, differs in (("s0 > 1", True), ("s0 != 7", False), ("7 // (s0 - 1) == 1", True)):
        asking = dataclasses.replace(program.signature, conditions=(Condition(text),))
        assert differs_for_one(program.graph, asking) == differs
    shape = TensorType("float32", ("s0", 1, 3))
    for axes, differs in (((), True), ((0,), True), ((1,), False), (((1, 2),), False)):
        graph = Graph(
            (Input("argument", "x", shape),),
            (Node("aten.squeeze.dims", (Ref(0), *axes), (), (None,), ""),),
            (Output("result", "", Ref(1)),),
        )
        assert differs_for_one(graph, program.signature) == differs
        number = Input("argument", "x", TensorType("float32", ()))
        graph = dataclasses.replace(graph, inputs=(number,))
        assert not differs_for_one(graph, program.signature)


def test_json_and_back():
    program = linear(0.5)
    again = Program.from_json(program.to_json(), program.constants)
    assert again == program
    with pytest.raises(ValueError, match="constants are not there: scale"):
        Program.from_json(program.to_json(), {})
    with pytest.raises(ValueError, match="not a program"):
        Program.from_json({"graph": 1}, {})
