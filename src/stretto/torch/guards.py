"""Buffers that a program was made for: other values of them are refused, or give NaN.

A module that makes a number of Python of a buffer is exported for that number. Each call asks
whether the buffer still has the values of which it was made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np

from stretto.torch.graph import Graph, Node, Ref

__all__ = ["guarded", "with_guards", "with_totals"]

_GUARD = "stretto.as_imported.default"


def with_guards(graph: Graph, values: Mapping[str, np.ndarray]) -> Graph:
    """The graph, whose results are those of these buffers alone."""
    places = {x.name: k for k, x in enumerate(graph.inputs) if x.kind in ("buffer", "parameter")}
    for name, array in values.items():
        if name in places:
            graph = _with_guard(graph, name, places[name], tuple(array.reshape(-1).tolist()))
    return graph


def _with_guard(graph: Graph, name: str, place: int, values: tuple[object, ...]) -> Graph:
    first, count = len(graph.inputs), len(graph.nodes)
    asked = Node(_GUARD, (Ref(place), values, name), (), (), "")
    nodes, outputs = [*graph.nodes, asked], []
    for out in graph.outputs:
        value = out.value
        if isinstance(value, Ref):
            given = Node(
                "stretto.where_as_imported.default", (Ref(first + count), value), (), (), ""
            )
            nodes.append(given)
            value = Ref(first + len(nodes) - 1)
        outputs.append(dataclasses.replace(out, value=value))
    return dataclasses.replace(graph, nodes=tuple(nodes), outputs=tuple(outputs))


def guarded(graphs: Iterable[Graph]) -> set[str]:
    """The names of the buffers for which graphs were made."""
    return {node.args[2] for graph in graphs for node in graph.nodes if node.op == _GUARD}


def with_totals(graph: Graph) -> Graph:
    """The graph, in which rows that are repeated are NaN if the repeats have another total.

    PyTorch makes ``repeat_interleave`` of the indices of rows and a look-up of these.
    """
    first = len(graph.inputs)

    def repeats(node: Node) -> bool:
        if node.op != "aten.index_select.default" or node.args[2].index < first:
            return False
        return graph.nodes[node.args[2].index - first].op == "aten.repeat_interleave.Tensor"

    nodes = [
        dataclasses.replace(node, op="stretto.repeated.default") if repeats(node) else node
        for node in graph.nodes
    ]
    return dataclasses.replace(graph, nodes=tuple(nodes))
