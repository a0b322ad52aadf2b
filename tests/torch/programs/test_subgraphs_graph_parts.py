"""Parts of graphs: what lies between values, what it reads, and what nothing needs."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto.torch.programs.subgraphs import with_parts
from stretto.torch.programs.torch_graph import Graph, Input, Node, Output, Ref, TensorType
from stretto.torch.programs.torch_program import run

F = TensorType("float32", (3,))


def graph(*nodes, result):
    inputs = (Input("argument", "x", F), Input("argument", "y", F))
    made = [Node(op, args, (), (F,), "here") for op, args in nodes]
    return Graph(inputs, tuple(made), (Output("result", "", Ref(result)),))


def gradient(**other):
    """The gradient by x of sum(sin(x) y)."""
    return graph(
        ("aten.cos.default", (Ref(1),)),
        ("aten.sin.default", (Ref(0),)),
        ("aten.mul.Tensor", (Ref(3), Ref(1))),
        ("stretto.grad.default", ((Ref(4),), (Ref(0),), (None,))),
        ("operator.getitem", (Ref(5), 0)),
        result=6,
    )


def test_a_part_has_what_lies_between():
    made = with_parts(gradient(), "test")
    (part,) = made.subgraphs
    assert [node.op for node in part.nodes] == ["aten.sin.default", "aten.mul.Tensor"]
    assert [node.op for node in made.nodes] == ["stretto.grad.default", "operator.getitem"]
    x, y = np.float32([0.1, 0.2, 0.3]), np.float32([1, 2, 3])
    (out,) = run(made, [snp.asarray(x), snp.asarray(y)])
    np.testing.assert_allclose(out, np.cos(x) * y, rtol=1e-6)
    assert Graph.from_json(made.to_json()) == made


def test_what_a_graph_without_parts_is():
    plain = graph(("aten.sin.default", (Ref(0),)), result=2)
    assert with_parts(plain, "test") is plain


def test_refusals():
    lost = graph(
        ("aten.sin.default", (Ref(1),)),
        ("stretto.grad.default", ((Ref(2),), (Ref(0),), (None,))),
        ("operator.getitem", (Ref(3), 0)),
        result=4,
    )
    with pytest.raises(NotImplementedError, match="its input 0 leads to none of its outputs"):
        with_parts(lost, "test")
    twice = graph(
        ("aten.mul.Tensor", (Ref(0), Ref(0))),
        ("stretto.grad.default", ((Ref(2),), (Ref(0), Ref(0)), (None,))),
        result=3,
    )
    with pytest.raises(NotImplementedError, match=r"two of its inputs are one tensor: clone\(\)"):
        with_parts(twice, "test")
    drawn = graph(
        ("aten.rand_like.default", (Ref(0),)),
        ("aten.mul.Tensor", (Ref(0), Ref(2))),
        ("stretto.grad.default", ((Ref(3),), (Ref(0),), (None,))),
        result=4,
    )
    with pytest.raises(NotImplementedError, match=r"rand_like.*draws random numbers inside"):
        with_parts(drawn, "test")
