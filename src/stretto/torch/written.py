"""What an imported program writes into its arguments: returned, or refused.

PyTorch's modules may write into a tensor that they are given, such as a cache. Arrays never change
here, so what is written is a result, or the module is refused. Next, read ``program``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from stretto.torch.graph import Graph, Output, Ref
from stretto.torch.signature import Signature
from stretto.torch.structure import Structure

__all__ = ["WAYS", "with_written"]

WAYS = ("refuse", "return", "ignore")
"""What may become of it."""


def with_written(
    graph: Graph, signature: Signature, way: str, caller: str
) -> tuple[Graph, Signature]:
    """The program whose outputs of the kind ``"written"`` are results, or are not there.

    With ``"return"`` the results are a pair: those of the module, and a dictionary of the arguments
    that it writes into, as it leaves them, nested as they are given.

    Raises:
        NotImplementedError: the way is ``"refuse"``, and what is written is not among the results.
    """
    written = {out.name: out.value for out in graph.outputs if out.kind == "written"}
    rest = tuple([out for out in graph.outputs if out.kind != "written"])
    if not written:
        return graph, signature
    results = [out.value for out in rest if out.kind == "result"]
    lost = {name for name, value in written.items() if value not in results}
    leaves = list(_leaves(graph, signature))
    arguments = dict.fromkeys([argument for argument, name, _ in leaves if name in written])
    if way == "refuse" and lost:
        named = ", ".join(dict.fromkeys([a for a, name, _ in leaves if name in lost]))
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
