"""Buffers in graphs: values that a program is made for, embeddings that write, counted statistics.

A module that makes a number of Python of a buffer is exported for that number. Each call asks
whether the buffer still has the values of which it was made; others are refused, or give NaN.

Embeddings with ``max_norm`` shorten rows of their table, a parameter, as they are looked up. In
train mode that is state, as buffers are. In evaluation mode it changes no result, if the table is
used for nothing but such lookups: a row that was shortened is as long as it would be made again.

A program has the momentum of each batch normalization as a number. ``update_batch_norm`` of
``stretto.ensemble`` wants the mean of all batches instead, whatever the momentum is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from stretto.torch.programs.torch_graph import Graph, Node, Ref
from stretto.torch.programs.torch_program import Program

_GUARD = "stretto.as_imported.default"


def with_guards(graph: Graph, values: Mapping[str, np.ndarray]) -> Graph:
    """Return the graph, whose results are those of these buffers alone."""
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
    """Return the names of the buffers for which graphs were made."""
    return {node.args[2] for graph in graphs for node in graph.nodes if node.op == _GUARD}


def with_totals(graph: Graph) -> Graph:
    """Return the graph, in which rows that are repeated are NaN if the repeats have another total.

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


_RENORM = "aten.embedding_renorm.default"
"""The operation that shortens rows."""

_COPIES = ("aten.alias.default", "aten.clone.default", "aten.detach.default", "operator.getitem")
_WRITE = "stretto.with_backward.default"
"""The operation that gives what was written, its fourth argument, with the slope of what it is in
the place of."""
_LOOKUPS = (
    "aten.embedding.default",
    "aten._embedding_bag.default",
    "aten._embedding_bag_forward_only.default",
)


def is_table(graph: Graph, value: object) -> bool:
    """Say whether a value is a table whose rows were shortened."""
    first = len(graph.inputs)
    while isinstance(value, Ref) and value.index >= first:
        node = graph.nodes[value.index - first]
        if node.op == _WRITE:
            value = node.args[3][0]
        elif node.op in _COPIES:
            value = node.args[0]
        else:
            return node.op == _RENORM
    return False


def with_slopes_of_tables(graph: Graph) -> Graph:
    """Return the graph, in which tables are no longer detached where their rows are shortened.

    PyTorch writes to them without recording it, so that gradients still reach what was there.
    """
    nodes, first = list(graph.nodes), len(graph.inputs)
    for k, node in enumerate(nodes):
        if node.op != _RENORM:
            continue
        table = node.args[0]
        while isinstance(table, Ref) and table.index >= first:
            before = nodes[table.index - first]
            if before.op not in _COPIES:
                break
            table = before.args[0]
        nodes[k] = dataclasses.replace(node, args=(table, *node.args[1:]))
    return dataclasses.replace(graph, nodes=tuple(nodes))


def without_idle_writes(graph: Graph) -> Graph:
    """Return the graph without those writes to tables that change no result of later calls."""
    kept = [
        output
        for output in graph.outputs
        if output.kind != "buffer" or not _is_idle(graph, output.name, output.value)
    ]
    return dataclasses.replace(graph, outputs=tuple(kept))


def _is_idle(graph: Graph, name: str, value: object) -> bool:
    """Say whether a table is read by lookups alone, whose rows all are of one greatest norm."""
    if not is_table(graph, value):
        return False
    first = len(graph.inputs)
    tables = {k for k, x in enumerate(graph.inputs) if x.name == name and x.kind != "argument"}
    norms = set()
    for k, node in enumerate(graph.nodes, first):
        if not _reads(node, tables):
            continue
        if node.op == _RENORM:
            norms.add((*node.args[2:], *node.kwargs))
        elif node.op not in (*_COPIES, *_LOOKUPS, _WRITE):
            return False
        if node.op not in _LOOKUPS:
            tables.add(k)
    results = [x.value for x in graph.outputs if x.kind == "result"]
    read = any([isinstance(x, Ref) and x.index in tables for x in results])
    return len(norms) == 1 and not read


def _reads(node: Node, indices: set[int]) -> bool:
    def within(x: object) -> bool:
        if isinstance(x, tuple):
            return any([within(part) for part in x])
        return isinstance(x, Ref) and x.index in indices

    return within(node.args) or within(node.kwargs)


COUNTED = math.nan
"""The momentum of a layer whose statistics are plain means anyhow (``momentum=None``)."""

_BATCH_NORM = "aten._native_batch_norm_legit_functional.default"
_MEAN, _TRAINING, _MOMENTUM = 3, 5, 6
"""The places of the running mean, among arguments and results, of the mode, and of the momentum."""


def with_plain_means(program: Program) -> tuple[Program, tuple[str, ...]]:
    """Return the program with counts of batches in place of momenta, and its layers' names.

    These are all layers of batch normalization that keep statistics and count batches.
    """
    graph, layers = _counting(program.graph, lambda momentum: True)
    single = program.single and with_plain_means(program.single)[0]
    return dataclasses.replace(program, graph=graph, single=single), layers


def with_counts(graph: Graph) -> Graph:
    """Return the graph with the count of batches in place of each momentum that is ``COUNTED``.

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
    """Return the graph with counts in place of the momenta that are chosen, and the layers."""
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
    """Yield the numbers of operations that update a buffer, the last first, if all are ``op``."""
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
