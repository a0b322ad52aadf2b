"""What an imported program writes into its arguments: returned, or refused.

PyTorch's modules may write into a tensor that they are given, such as a cache. Arrays never change
here, so what is written is a result, or the module is refused. Activations in place, such as
``ReLU(inplace=True)``, use an argument as scratch, and nobody wants what they leave there: the
module comes in, with a warning.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Iterator

from stretto._engine.core.position import user_stack_level
from stretto.torch.graph import Graph, Output, Ref
from stretto.torch.signature import Signature
from stretto.torch.structure import Structure

__all__ = ["WAYS", "with_written"]

WAYS = ("refuse", "return", "ignore")
"""What may become of it."""

_NAMES = "celu elu hardsigmoid hardswish hardtanh leaky_relu mish relu relu6 selu sigmoid silu tanh"
_ACTIVATIONS = {f"aten.{name}.default" for name in _NAMES.split()}
_LAYER = re.compile(
    r"\((\w*Dropout\w*|\w*ReLU6?|C?ELU|GELU|Hard\w+|Mish|SELU|SiLU|Sigmoid|Tanh|Threshold)\), "
)
"""In the place of an operation, one of PyTorch's layers that work in place."""


def with_written(
    graph: Graph, signature: Signature, way: str, caller: str
) -> tuple[Graph, Signature]:
    """The program whose outputs of the kind ``"written"`` are results, or are not there.

    With ``"return"`` the results are a pair: those of the module, and a dictionary of the arguments
    that it writes into, as it leaves them, nested as they are given.

    It warns of activations in place, the way being ``"refuse"``, and leaves out what they write.

    Raises:
        NotImplementedError: the way is ``"refuse"``, and what else is written is not among the
            results.
    """
    written = {out.name: out.value for out in graph.outputs if out.kind == "written"}
    rest = tuple([out for out in graph.outputs if out.kind != "written"])
    if not written:
        return graph, signature
    results = [out.value for out in rest if out.kind == "result"]
    lost = {name for name, value in written.items() if value not in results}
    leaves = list(_leaves(graph, signature))
    arguments = dict.fromkeys([argument for argument, name, _ in leaves if name in written])
    scratch = {name for name in lost if _is_scratch(graph, name, written[name])}
    named_by = lambda names: ", ".join(dict.fromkeys([a for a, name, _ in leaves if name in names]))
    if way == "refuse" and lost and lost == scratch:
        warnings.warn(
            f"{caller} writes an activation into its argument {named_by(scratch)} (inplace=True), "
            f"and arrays never change here: the result is the same, and the argument stays as it "
            f"is. writes='ignore' says that this is meant, writes='return' gives what is written",
            stacklevel=user_stack_level(),
        )
    elif way == "refuse" and lost:
        named = named_by(lost - scratch)
        raise NotImplementedError(
            f"{caller} writes into its argument {named}, and arrays never change here: return it "
            f"from forward, or give writes='return', and calls give the result and a dictionary "
            f"of the new arguments; writes='ignore' gives the result alone"
        )
    graph = dataclasses.replace(graph, outputs=rest)
    if way != "return":
        return graph, signature
    more = [
        Output("result", "", written.get(name, value))
        for argument, name, value in leaves
        if argument in arguments
    ]
    nested = tuple([a.structure for a in signature.arguments if a.name in arguments])
    results = Structure(
        "tuple",
        children=(signature.results, Structure("dict", keys=tuple(arguments), children=nested)),
    )
    return (
        dataclasses.replace(graph, outputs=(*rest, *more)),
        dataclasses.replace(signature, results=results),
    )


def _is_scratch(graph: Graph, name: str, value: object) -> bool:
    """Whether what is written into an argument is an activation of it."""
    while isinstance(value, Ref) and value.index >= len(graph.inputs):
        node = graph.nodes[value.index - len(graph.inputs)]
        if _LAYER.search(node.place):
            return True
        if node.op not in _ACTIVATIONS:
            return False
        value = node.args[0]
    return isinstance(value, Ref) and graph.inputs[value.index].name == name


def _leaves(graph: Graph, signature: Signature) -> Iterator[tuple[str, str, object]]:
    """Each leaf of the arguments: whose it is, the name of its input, and its value."""
    inputs = iter([(k, x) for k, x in enumerate(graph.inputs) if x.kind == "argument"])
    for argument in signature.arguments:
        for constant in argument.constants:
            if constant:
                yield argument.name, "", constant[0]
            else:
                k, x = next(inputs)
                yield argument.name, x.name, Ref(k)
