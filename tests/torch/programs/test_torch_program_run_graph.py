"""Graphs that are run, and operations that no program can have."""

import dataclasses

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.torch.programs.torch_graph import DType, Graph, Input, Node, Output, Ref, TensorType
from stretto.torch.programs.torch_program import check, run

WHOLE = TensorType("int64", (3,))


def of(*nodes, inputs=1):
    taken = tuple([Input("argument", f"x{k}", None) for k in range(inputs)])
    return Graph(taken, nodes, (Output("result", "", Ref(inputs + len(nodes) - 1)),))


def test_results_have_the_dtypes_that_pytorch_found():
    graph = of(Node("aten.sum.dim_IntList", (Ref(0), ()), (), (TensorType("int64", ()),), ""))
    (out,) = run(graph, [snp.array([True, True, False])])
    assert out.dtype == np.int32 and int(out) == 2
    with st.config(enable_x64=True):
        assert run(graph, [snp.array([True, True, False])])[0].dtype == np.int64


def test_dtypes_among_the_arguments():
    node = Node("aten._to_copy.default", (Ref(0),), (("dtype", DType("float16")),), (None,), "")
    assert run(of(node), [snp.ones(3)])[0].dtype == np.float16


def test_a_result_of_another_shape_is_an_error():
    graph = of(Node("aten.neg.default", (Ref(0),), (), (WHOLE,), "layer 3"))
    with pytest.raises(
        RuntimeError, match=r"should have the shape \(3,\), and has \(4,\)"
    ) as error:
        run(graph, [snp.arange(4)])
    assert error.value.__notes__ == [
        "This was aten.neg.default in layer 3 of an imported PyTorch module."
    ]


def test_sizes_that_are_computed_are_checked():
    types = [TensorType("float32", (text,)) for text in ("s0", "2*s0", "u1")]
    double = Node("aten.repeat.default", (Ref(0), (2,)), (), (types[1],), "")
    graph = Graph(
        (Input("argument", "x", types[0]),),
        (double, Node("aten.neg.default", (Ref(1),), (), (types[2],), "")),
        (Output("result", "", Ref(2)),),
    )
    assert run(graph, [snp.ones(3)])[0].shape == (6,)
    wrong = Graph(graph.inputs, (dataclasses.replace(double, args=(Ref(0), (3,))),), ())
    with pytest.raises(ValueError, match=r"result of the shape \(6,\), and .* has \(9,\): import"):
        run(wrong, [snp.ones(3)])


def test_missing_operations_are_all_named():
    graph = of(
        Node("aten.what.default", (Ref(0),), (), (None,), "layer 1"),
        Node("aten.neg.default", (Ref(1),), (), (None,), "layer 2"),
        Node("aten.ever.default", (Ref(2),), (), (None,), "layer 3"),
    )
    with pytest.raises(
        NotImplementedError,
        match=r"f: 2 of .*: aten.what.default, in layer 1; aten.ever.default, in layer 3",
    ):
        check(graph, "f")
    check(of(graph.nodes[1]), "f")
