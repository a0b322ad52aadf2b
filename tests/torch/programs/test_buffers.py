"""Programs that are made for the values of buffers."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.torch.programs.buffers import guarded, with_guards, with_totals
from stretto.torch.programs.torch_graph import Graph, Input, Node, Output, Ref, TensorType
from stretto.torch.programs.torch_program import run

X = np.float32([1, 2])
MADE = Graph(
    (
        Input("argument", "x", TensorType("float32", (2,))),
        Input("buffer", "n", TensorType("float32", (2,))),
    ),
    (Node("aten.neg.default", (Ref(0),), (), (TensorType("float32", (2,)),), ""),),
    (Output("result", "", Ref(2)), Output("result", "", 3)),
)


def test_results_are_those_of_the_values():
    graph = with_guards(MADE, {"n": np.float32([5, np.nan]), "unused": np.zeros(1)})
    assert guarded([graph, MADE]) == {"n"} and not guarded([MADE])
    same, other = np.float32([5, np.nan]), np.float32([5, 6])
    f = lambda n: run(graph, (snp.asarray(X), n))[0]
    for g in (f, st.jit(f)):
        np.testing.assert_array_equal(g(snp.asarray(same)), -X)
    with pytest.raises(ValueError, match="its buffer n had"):
        f(snp.asarray(other))
    assert np.isnan(st.jit(f)(snp.asarray(other))).all()
    assert run(graph, (snp.asarray(X), snp.asarray(same)))[1] == 3


def test_nothing_is_guarded():
    assert with_guards(MADE, {}) is MADE


def test_rows_that_are_repeated():
    nodes = (
        Node("aten.repeat_interleave.Tensor", (Ref(1),), (("output_size", 3),), (None,), ""),
        Node("aten.index_select.default", (Ref(0), 0, Ref(2)), (), (None,), ""),
        Node("aten.index_select.default", (Ref(0), 0, Ref(1)), (), (None,), ""),
    )
    inputs = (Input("argument", "x", None), Input("argument", "repeats", None))
    graph = with_totals(Graph(inputs, nodes, (Output("result", "", Ref(3)),)))
    assert [node.op.partition(".")[0] for node in graph.nodes] == ["aten", "stretto", "aten"]
    f = lambda repeats: run(graph, (snp.asarray(X), repeats))[0]
    for g in (f, st.jit(f)):
        np.testing.assert_array_equal(g(snp.asarray([1, 2])), [1, 2, 2])
    assert np.isnan(st.jit(f)(snp.asarray([1, 1]))).all()
