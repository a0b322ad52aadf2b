"""What a program writes into its arguments: refused, returned, or ignored."""

import numpy as np
import pytest

from stretto.torch.programs.signature import LEAF, Argument, Signature, Structure, with_written
from stretto.torch.programs.torch_graph import Graph, Input, Node, Output, Ref, TensorType
from stretto.torch.programs.torch_program import Program

VECTOR = TensorType("float32", ("s0",))
X, C, D = np.float32([1, 2]), np.float32([3, 4]), np.float32([5, 6])


def program(*results):
    """Adds x to the first array of a cache, which has a second and a flag."""
    graph = Graph(
        (
            Input("argument", "x", VECTOR),
            Input("argument", "cache_first", VECTOR),
            Input("argument", "cache_second", VECTOR),
        ),
        (Node("aten.add.Tensor", (Ref(1), Ref(0)), (), (VECTOR,), ""),),
        (
            Output("written", "cache_first", Ref(3)),
            *[Output("result", "", Ref(k)) for k in results],
        ),
    )
    cache = Structure("dict", keys=("first", "second", "flag"), children=(LEAF,) * 3)
    arguments = Argument("x", LEAF, ((),)), Argument("cache", cache, ((), (), (True,)))
    nested = Structure("tuple", children=(LEAF,) * len(results)) if len(results) > 1 else LEAF
    return graph, Signature(("x", "cache"), "", (), arguments, nested)


def called(way, *results):
    made = Program(*with_written(*program(*results), way, "Net"), {})
    cache = {"first": C, "second": D, "flag": True}
    return made("Net", {}.__getitem__, (X, cache), {})[0]


def test_it_is_refused():
    with pytest.raises(
        NotImplementedError, match=r"Net writes into its argument cache, .*'return'"
    ):
        with_written(*program(0), "refuse", "Net")


def test_it_is_returned_in_the_form_of_the_argument():
    result, written = called("return", 0)
    np.testing.assert_array_equal(result, X)
    assert list(written) == ["cache"] and written["cache"]["flag"] is True
    np.testing.assert_array_equal(written["cache"]["first"], C + X)
    np.testing.assert_array_equal(written["cache"]["second"], D)


def test_it_is_ignored():
    np.testing.assert_array_equal(called("ignore", 0), X)


def test_nothing_is_lost_that_is_a_result():
    x, new = called("refuse", 0, 3)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(new, C + X)


def test_a_program_that_writes_into_nothing_stays():
    graph, signature = program(0)
    graph = Graph(graph.inputs, graph.nodes, graph.outputs[1:])
    assert with_written(graph, signature, "return", "Net") == (graph, signature)


torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

import stretto as st  # noqa: E402

LAYERS = [
    nn.ReLU(inplace=True),
    nn.ReLU6(inplace=True),
    nn.LeakyReLU(0.1, inplace=True),
    nn.SiLU(inplace=True),
    nn.Threshold(0.1, 0.0, inplace=True),
    nn.Hardswish(inplace=True),
    nn.Sequential(nn.Dropout(0.5, inplace=True), nn.ReLU(inplace=True)),
    nn.RReLU(inplace=True),
]


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_activations_in_place_come_in(layer):
    torch.manual_seed(0)
    theirs = nn.Sequential(layer, nn.Linear(4, 2)).double().eval()
    x = torch.randn(3, 4, dtype=torch.float64)
    with (
        st.config(enable_x64=True),
        pytest.warns(UserWarning, match="into its argument .*inplace=True.*writes='ignore'"),
    ):
        ours = st.from_torch(theirs, x.clone(), train=True)
        given = x.numpy().copy()
        for f in (ours, st.jit(ours)):
            np.testing.assert_allclose(f(given), theirs(x.clone()).detach(), rtol=1e-12)
        np.testing.assert_array_equal(given, x)
        leaf = x.clone().requires_grad_()
        theirs(leaf * 1).sum().backward()
        slope = st.jit(st.grad(lambda x: ours(x).sum()))(given)
        np.testing.assert_allclose(slope, leaf.grad, rtol=1e-12)


class AndCounts(nn.Module):
    def forward(self, x, seen):
        seen.add_(1)
        return torch.relu_(x) / seen


def test_what_else_is_written_is_refused_still():
    example = torch.ones(2, 3), torch.zeros(1)
    with pytest.raises(NotImplementedError, match="writes into its argument seen, and"):
        st.from_torch(AndCounts(), example)
    result, written = st.from_torch(AndCounts(), example, writes="return")(
        np.float32([[-1, 2, 3]]), np.ones(1, np.float32)
    )
    np.testing.assert_array_equal(result, [[0, 1, 1.5]])
    assert float(written["seen"][0]) == 2


def test_written_activations_are_returned_if_wanted():
    theirs = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2))
    _, written = st.from_torch(theirs, torch.ones(2, 3), writes="return")(np.float32([[-1, 2, 3]]))
    np.testing.assert_array_equal(written["input"], [[0, 2, 3]])
