"""Imported modules made by hand, for tests without PyTorch."""

import numpy as np

from stretto.torch.imported_module import Held, assembled
from stretto.torch.programs.signature import LEAF, Argument, Signature, Structure
from stretto.torch.programs.torch_graph import Graph, Input, Node, Output, Ref, TensorType
from stretto.torch.programs.torch_program import Program

OUT = TensorType("float32", ("s0", 2))


def linear(dropout=0.0, scale=1.0):
    """A linear layer, with a constant and with dropout; its results are a dictionary."""
    nodes = [
        Node("aten.linear.default", (Ref(2), Ref(0), Ref(1)), (), (OUT,), "layer (Linear)"),
        Node("aten.mul.Tensor", (Ref(4), Ref(3)), (), (OUT,), "the module (Net)"),
    ]
    if dropout:
        kept = TensorType("bool", ("s0", 2))
        nodes += [
            Node("aten.native_dropout.default", (Ref(5), dropout, True), (), (OUT, kept), "drop"),
            Node("operator.getitem", (Ref(6), 0), (), (OUT,), "drop"),
        ]
    graph = Graph(
        (
            Input("parameter", "layer.weight", TensorType("float32", (2, 3))),
            Input("parameter", "layer.bias", TensorType("float32", (2,))),
            Input("argument", "x", TensorType("float32", ("s0", 3))),
            Input("constant", "scale", TensorType("float32", ())),
        ),
        tuple(nodes),
        (Output("result", "", Ref(3 + len(nodes))),),
    )
    results = Structure("dict", keys=("y",), children=(LEAF,))
    signature = Signature(("x",), "", (), (Argument("x", LEAF, ((),)),), results)
    return Program(graph, signature, {"scale": np.float32(scale)})


def counting():
    """A program that adds 1 to the buffer ``count``, and gives its argument."""
    number = TensorType("int64", ())
    graph = Graph(
        (Input("buffer", "count", number), Input("argument", "x", None)),
        (Node("aten.add.Tensor", (Ref(0), 1), (), (number,), ""),),
        (Output("buffer", "count", Ref(2)), Output("result", "", Ref(1))),
    )
    return Program(graph, Signature(("x",), "", (), (Argument("x", LEAF, ((),)),), LEAF), {})


def module(seed=0, *, ties=(), **programs):
    """An imported module with the parameters of ``linear``."""
    rng = np.random.default_rng(seed)
    arrays = {
        "layer.weight": Held("parameter", rng.normal(size=(2, 3)).astype(np.float32)),
        "layer.bias": Held("parameter", rng.normal(size=2).astype(np.float32)),
        "frozen": Held("buffer", np.float32([1, 2])),
        "hidden": Held("buffer", np.arange(3, dtype=np.int32), False),
    }
    evaluation = programs.get("evaluation", linear())
    return assembled("Net", evaluation, programs.get("training"), ties, arrays, {"layer": "Linear"})
