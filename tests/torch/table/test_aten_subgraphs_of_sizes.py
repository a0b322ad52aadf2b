"""Sizes, parts of results, control flow, and guards of buffers."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.torch.programs.torch_graph import Graph, Input, Node, Output, Ref, Subgraph, TensorType
from stretto.torch.programs.torch_program import run
from stretto.torch.table.aten_subgraphs import TABLE

VECTOR = TensorType("float32", (3,))


def one(op, *args, inputs=1, subgraphs=(), types=(VECTOR,), results=1):
    """The graph of an operation on inputs that are vectors; its results in a tuple if several."""
    taken = tuple([Input("argument", f"x{k}", VECTOR) for k in range(inputs)])
    nodes = [Node(op, args, (), types, "here")]
    outs = [Ref(inputs)]
    if results > 1 or op in ("cond", "while_loop", "wrap_with_set_grad_enabled"):
        outs = []
        for k in range(results):
            nodes.append(Node("operator.getitem", (Ref(inputs), k), (), (VECTOR,), "here"))
            outs.append(Ref(inputs + 1 + k))
    outputs = tuple([Output("result", "", out) for out in outs])
    return Graph(taken, tuple(nodes), outputs, tuple(subgraphs))


def test_sizes():
    assert TABLE["operator.floordiv"](7, 2) == 3
    assert TABLE["operator.getitem"]((4, 5), 1) == 5
    assert TABLE["aten.sym_size.int"](snp.ones((2, 5)), 1) == 5
    assert TABLE["aten.sym_numel.default"](snp.ones((2, 5))) == 10
    assert TABLE["torch.sym_max"](3, 4) == 4
    assert TABLE["math.ceil"](2.5) == 3
    assert TABLE["torch.sym_ite"](False, 1, 2) == 2


@pytest.mark.parametrize("run_", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_branches(run_):
    double = one("aten.mul.Tensor", Ref(0), 2.0)
    negate = one("aten.neg.default", Ref(0))
    graph = Graph(
        (Input("argument", "p", TensorType("bool", ())), Input("argument", "x", VECTOR)),
        (
            Node("cond", (Ref(0), Subgraph(0), Subgraph(1), (Ref(1),)), (), (VECTOR,), ""),
            Node("operator.getitem", (Ref(2), 0), (), (VECTOR,), ""),
        ),
        (Output("result", "", Ref(3)),),
        (double, negate),
    )
    x = snp.array([1.0, 2.0, 3.0])
    f = run_(lambda p, x: run(graph, [p, x])[0])
    np.testing.assert_array_equal(f(snp.array(True), x), 2 * x)
    np.testing.assert_array_equal(f(snp.array(False), x), -x)
    slope = st.grad(lambda x, p: run(graph, [p, x])[0].sum())
    np.testing.assert_array_equal(slope(x, snp.array(True)), [2, 2, 2])


@pytest.mark.parametrize("run_", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_loops(run_):
    below = Graph(
        (Input("argument", "x", VECTOR),),
        (
            Node("aten.amax.default", (Ref(0),), (), (TensorType("float32", ()),), ""),
            Node("aten.lt.Scalar", (Ref(1), 100.0), (), (TensorType("bool", ()),), ""),
        ),
        (Output("result", "", Ref(2)),),
    )
    graph = one(
        "while_loop",
        Subgraph(0),
        Subgraph(1),
        (Ref(0),),
        (),
        subgraphs=(below, one("aten.mul.Tensor", Ref(0), 2.0)),
    )
    (out,) = run_(lambda x: run(graph, [x]))(snp.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(out, [64, 128, 192])


def test_what_was_computed_without_gradients_has_none():
    double = one("aten.mul.Tensor", Ref(0), 2.0)
    for enabled, expected in ((False, 0), (True, 2)):
        graph = one("wrap_with_set_grad_enabled", enabled, Subgraph(0), Ref(0), subgraphs=(double,))
        slope = st.grad(lambda x, graph=graph: run(graph, [x])[0].sum())(snp.ones(3))
        np.testing.assert_array_equal(slope, [expected] * 3)


as_imported = TABLE["stretto.as_imported.default"]
where_as_imported = TABLE["stretto.where_as_imported.default"]


def test_values_that_are_known():
    assert as_imported(snp.asarray([1, 2]), (1, 2), "n") is True
    assert as_imported(snp.asarray(True), (True,), "n") is True
    with pytest.raises(ValueError, match="its buffer n had"):
        as_imported(snp.asarray([1, 2]), (1, 3), "n")


@pytest.mark.parametrize("dtype, lost", [("float32", np.nan), ("int32", -1), ("bool", True)])
def test_values_that_are_traced(dtype, lost):
    x = snp.ones(2, dtype)
    f = st.jit(lambda n: where_as_imported(as_imported(n, (3,), "n"), x))
    np.testing.assert_array_equal(f(snp.asarray([3])), np.ones(2, dtype))
    np.testing.assert_array_equal(f(snp.asarray([4])), np.full(2, lost, dtype))
