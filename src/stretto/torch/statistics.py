"""Batch normalisation in an imported program: running statistics as plain means over batches.

A program has the momentum of each layer as a number. ``stretto.ensemble.update_batch_norm`` wants
the mean of all batches instead, whatever it is. Before this, read ``program``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from stretto.torch.graph import Graph, Node, Ref
from stretto.torch.program import Program

__all__ = ["with_plain_means"]

_BATCH_NORM = "aten._native_batch_norm_legit_functional.default"
_MEAN, _MOMENTUM = 3, 6
"""The places of the running mean, among arguments and results, and of the momentum."""


def with_plain_means(program: Program) -> tuple[Program, tuple[str, ...]]:
    """The program with the count of batches in place of each momentum; and its layers' names.

    These are all layers of batch normalisation that keep statistics and count batches.
    """
    graph = program.graph
    nodes, start = list(graph.nodes), len(graph.inputs)
    after = {x.name: x.value for x in graph.outputs if x.kind == "buffer"}
    layers: list[str] = []
    for name, value in after.items():
        lead, _, attribute = name.rpartition("running_mean")
        counted = after.get(f"{lead}num_batches_tracked")
        if attribute or counted is None:
            continue
        norms = list(_steps(graph, value, _BATCH_NORM))
        counts = list(_steps(graph, counted, "aten.add.Tensor"))
        if norms and len(norms) == len(counts):
            layers.append(lead.rstrip("."))
            for norm, count in zip(norms, counts, strict=True):
                node = nodes[norm - start]
                args = list(node.args)
                args[_MOMENTUM] = Ref(count)
                nodes[norm - start] = dataclasses.replace(node, args=tuple(args))
    counting = dataclasses.replace(graph, nodes=tuple(nodes))
    single = program.single and with_plain_means(program.single)[0]
    return dataclasses.replace(program, graph=counting, single=single), tuple(layers)


def _steps(graph: Graph, value: Any, op: str) -> Iterator[int]:
    """The numbers of the operations that update a buffer, the last first, if all are ``op``."""
    while isinstance(value, Ref) and value.index >= len(graph.inputs):
        node = _node(graph, value)
        if node.op == "operator.getitem" and node.args[1] == _MEAN:
            value = node.args[0]
            node = _node(graph, value)
        if node.op != op:
            return
        yield value.index
        value = node.args[_MEAN if op == _BATCH_NORM else 0]


def _node(graph: Graph, value: Ref) -> Node:
    return graph.nodes[value.index - len(graph.inputs)]
