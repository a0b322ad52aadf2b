"""What depends on values is refused when a module is imported, with its line and a way out."""

import dataclasses

import numpy as np
import pytest

import stretto as st
from stretto.torch.programs.torch_graph import Graph, Input, Node, Ref, TensorType
from stretto.torch.programs.torch_program import dependent


def graph(op, args, shape, kind="argument", dtype="bool"):
    """An operation on a value and a mask of this kind, or an index."""
    inputs = (
        Input("argument", "x", TensorType("float32", (3,))),
        Input(kind, "mask", TensorType(dtype, (3,))),
    )
    copy = Node("aten.lift_fresh_copy.default", (Ref(1),), (), (TensorType(dtype, (3,)),), "")
    return Graph(inputs, (copy, Node(op, args, (), (TensorType("float32", shape),), "net")), ())


def test_only_sizes_of_values_are_dependent():
    index = "aten.index.Tensor"
    for at in (Ref(1), Ref(2)):
        open_ = graph(index, (Ref(0), (at,)), ("u0",))
        ((node, words),) = dependent(open_, {index})
        assert node.op == index and "torch.where(mask, x, 0)" in words
        assert list(dependent(Graph((), (), (), (open_,)), {index})) == [(node, words)]
        assert not list(dependent(graph(index, (Ref(0), (at,)), ("u0",), "constant"), {index}))
    for shape in ((3,), ("s0",), ("unlike",), (None,)):
        args = (Ref(0), (Ref(1),))
        assert not list(dependent(graph(index, args, shape, dtype="int64"), {index}))
        assert len(list(dependent(graph(index, args, shape), {index}))) == 1
    assert not list(dependent(graph("aten.neg.default", (Ref(0),), ("u0",)), {"aten.neg.default"}))
    later = Node(index, (Ref(0), (Ref(1),)), (), (TensorType("float32", ("u0",)),), "later")
    both = dataclasses.replace(
        (first := graph("aten.nonzero.default", (Ref(1),), ("u0",), dtype="int64")),
        nodes=(*first.nodes, later),
    )
    assert [node.op for node, _ in dependent(both, {index})] == ["aten.nonzero.default"]
    ((_, words),) = dependent(graph("aten._local_scalar_dense.default", (Ref(0),), ()), {index})
    assert ".item()" in words


torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize(
    "function, op",
    [
        (lambda x: x * x.sum().item(), "aten._local_scalar_dense.default"),
        (lambda x: x.tolist(), "aten._local_scalar_dense.default"),
        (lambda x: x.repeat_interleave(x[:, 0].long(), dim=0), "aten.repeat_interleave.Tensor"),
    ],
)
def test_operations(function, op):
    pattern = f"cannot be compiled, .*{op}, in .*, line .*: it "
    with pytest.raises(NotImplementedError, match=pattern):
        st.from_torch(Calls(function), torch.ones(3, 4))


def test_masks_that_are_constants_come_in():
    def function(x):
        return x[:, torch.tensor([True, False, True, False])]

    ours = st.from_torch(Calls(function), torch.ones(3, 4))
    x = np.arange(8.0, dtype=np.float32).reshape(2, 4)
    for f in (ours, st.jit(ours), st.jit(lambda x: st.vmap(ours)(x[None])[0])):
        np.testing.assert_array_equal(f(x), x[:, ::2])
