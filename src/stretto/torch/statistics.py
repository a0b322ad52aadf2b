"""Batch normalization in an imported program: running statistics as plain means over batches.

A program has the momentum of each layer as a number. ``stretto.ensemble.update_batch_norm`` wants
the mean of all batches instead, whatever it is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

from stretto.torch.graph import Graph, Node, Ref
from stretto.torch.program import Program

__all__ = ["COUNTED", "with_counts", "with_plain_means"]

COUNTED = math.nan
"""The momentum of a layer whose statistics are plain means anyhow (``momentum=None``)."""

_BATCH_NORM = "aten._native_batch_norm_legit_functional.default"
_MEAN, _TRAINING, _MOMENTUM = 3, 5, 6
"""The places of the running mean, among arguments and results, of the mode, and of the momentum."""


def with_plain_means(program: Program) -> tuple[Program, tuple[str, ...]]:
    """The program with the count of batches in place of each momentum; and its layers' names.

    These are all layers of batch normalization that keep statistics and count batches.
    """
    graph, layers = _counting(program.graph, lambda momentum: True)
    single = program.single and with_plain_means(program.single)[0]
    return dataclasses.replace(program, graph=graph, single=single), layers


def with_counts(graph: Graph) -> Graph:
    """The graph with the count of batches in place of each momentum that is ``COUNTED``.

    Raises ``NotImplementedError`` where a layer in train mode counts no batches.
    """
    counting, _ = _counting(graph, _is_counted)
    for node in counting.nodes:
        if node.op == _BATCH_NORM and node.args[_TRAINING] and _is_counted(node.args[_MOMENTUM]):
            raise NotImplementedError(
                f"from_torch: batch normalization with momentum=None, in {node.place}, does not "
                f"count its batches in num_batches_tracked: give it a momentum"
            )
    return counting


def _is_counted(momentum: Any) -> bool:
    return isinstance(momentum, float) and math.isnan(momentum)


def _counting(graph: Graph, chosen: Callable[[Any], bool]) -> tuple[Graph, tuple[str, ...]]:
    """The graph with counts in place of the momenta that are chosen; and the layers' names."""
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
                if chosen(args[_MOMENTUM]):
                    args[_MOMENTUM] = Ref(count)
                    nodes[norm - start] = dataclasses.replace(node, args=tuple(args))
    return dataclasses.replace(graph, nodes=tuple(nodes)), tuple(layers)


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
