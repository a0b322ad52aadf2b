"""Embeddings with ``max_norm``, which shorten rows of their table as they are looked up.

PyTorch writes the shortened rows to the table itself, a parameter. In train mode that is state, as
buffers are. In evaluation mode it changes no result, if the table is used for nothing but such
lookups: a row that was shortened is as long as it would be made again.
"""

from __future__ import annotations

import dataclasses

from stretto.torch.graph import Graph, Node, Ref

__all__ = ["is_table", "with_slopes_of_tables", "without_idle_writes"]

_RENORM = "aten.embedding_renorm.default"
"""The operation that shortens rows."""

_COPIES = (
    "aten.alias.default",
    "aten.clone.default",
    "aten.detach.default",
    "operator.getitem",
)
_WRITE = "stretto.with_backward.default"
"""The operation that gives what was written, its fourth argument, with the slope of what it is in
the place of."""
_LOOKUPS = (
    "aten.embedding.default",
    "aten._embedding_bag.default",
    "aten._embedding_bag_forward_only.default",
)


def is_table(graph: Graph, value: object) -> bool:
    """Whether a value is a table whose rows were shortened."""
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
    """The graph, in which tables are no longer detached where their rows are shortened.

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
    """The graph without those writes to tables that change no result of later calls."""
    kept = [
        output
        for output in graph.outputs
        if output.kind != "buffer" or not _is_idle(graph, output.name, output.value)
    ]
    return dataclasses.replace(graph, outputs=tuple(kept))


def _is_idle(graph: Graph, name: str, value: object) -> bool:
    """Whether a table is read by lookups alone, whose rows all are of one greatest norm."""
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
