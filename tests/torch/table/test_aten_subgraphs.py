"""Rules in graphs, without PyTorch."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.torch.programs.torch_graph import Graph, Input, Node, Output, Ref, Subgraph, TensorType
from stretto.torch.programs.torch_program import run
from stretto.torch.table.aten_subgraphs import TABLE

VECTOR = TensorType("float32", (3,))


def rule(once=False):
    """The squares of a vector, with the gradient ``ct * (x + y)``, where ``y`` is the result."""
    back = Graph(
        tuple([Input("argument", name, VECTOR) for name in ("ct", "x", "y")]),
        (
            Node("aten.add.Tensor", (Ref(1), Ref(2)), (), (VECTOR,), ""),
            Node("aten.mul.Tensor", (Ref(0), Ref(3)), (), (VECTOR,), ""),
        ),
        (Output("result", "", Ref(4)),),
    )
    arguments = ("Odd", once, (Ref(0),), (Ref(1),), (Ref(0), Ref(1)), Subgraph(0))
    return Graph(
        (Input("argument", "x", VECTOR),),
        (
            Node("aten.mul.Tensor", (Ref(0), Ref(0)), (), (VECTOR,), ""),
            Node("stretto.with_backward.default", arguments, (), (VECTOR,), ""),
            Node("operator.getitem", (Ref(2), 0), (), (VECTOR,), ""),
        ),
        (Output("result", "", Ref(3)),),
        (back,),
    )


X = snp.array([1.0, 2.0, -3.0])


@pytest.mark.parametrize("transform", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_derivatives(transform):
    def f(x):
        return run(rule(), [x])[0]

    np.testing.assert_array_equal(transform(f)(X), X * X)
    slope = st.grad(lambda x: (f(x) * snp.array([1.0, 2.0, 3.0])).sum())
    expected = np.array([1.0, 2.0, 3.0]) * (X + X * X)
    np.testing.assert_allclose(transform(slope)(X), expected)
    rows = snp.stack([X, 2 * X])
    by_rows = transform(st.vmap(slope))(rows)
    np.testing.assert_allclose(by_rows, [1, 2, 3] * np.array(rows + rows * rows))
    # where y is differentiated again, its derivative is the rule's: d(x + y) = 1 + (x + y)
    second = transform(st.grad(lambda x: slope(x).sum()))(X)
    np.testing.assert_allclose(second, [1, 2, 3] * np.array(1 + X + X * X))


def test_a_rule_for_one_derivative():
    slope = st.grad(lambda x: run(rule(once=True), [x])[0].sum())
    np.testing.assert_allclose(slope(X), X + X * X)
    with pytest.raises(NotImplementedError, match="Odd: its backward is once_differentiable"):
        st.grad(lambda x: slope(x).sum())(X)


def test_numbers_among_residuals():
    operation = TABLE["stretto.with_backward.default"]

    def gradients(ct, n, kept):
        return (n * ct * kept,)

    def f(x):
        return operation("Scaled", False, (x,), (x,), (3, X > 0), gradients)[0]

    np.testing.assert_array_equal(f(X), X)
    np.testing.assert_array_equal(st.grad(lambda x: f(x).sum())(X), [3, 3, 0])


def test_complex_cotangents_are_pytorchs():
    operation = TABLE["stretto.with_backward.default"]
    seen = []

    def gradients(ct):
        seen.append(complex(ct))
        return (ct * 2j,)

    z = snp.array(1 + 2j)
    _, back = st.vjp(lambda z: operation("C", False, (z,), (z,), (), gradients)[0], z)
    (slope,) = back(snp.array(3 + 4j))
    assert seen == [3 - 4j] and complex(slope) == complex(np.conj((3 - 4j) * 2j))
