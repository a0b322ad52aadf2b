"""What a program writes into its arguments: refused, returned, or ignored."""

import numpy as np
import pytest

from stretto.torch.graph import Graph, Input, Node, Output, Ref, TensorType
from stretto.torch.program import Program
from stretto.torch.signature import Argument, Signature
from stretto.torch.structure import LEAF, Structure
from stretto.torch.written import with_written

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
