"""Masks that select, and which of them are one: ``x[y > 0]`` and ``z[y > 0]`` are as long.

PyTorch's exporter gives what each mask selects a size of its own, also where a module computes a
mask twice.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from stretto.torch.graph import Graph, Node, Ref, TensorType, replaced
from stretto.torch.table import (
    activations,
    arithmetic,
    creation,
    indexing,
    products,
    reductions,
    shapes,
)

__all__ = ["SELECTS", "mask_of", "open_sizes", "with_masks_shared"]

SELECTS = {"aten.index.Tensor", "aten.masked_select.default", "aten.nonzero.default"}
"""The operations whose results are as large as a mask says."""

_TABLES = (activations, arithmetic, creation, indexing, products, reductions, shapes)
_PURE = {"operator.getitem"}.union(*[table.TABLE for table in _TABLES])
"""Operations that draw no random numbers: equal arguments give equal results."""

_OF_VALUES = re.compile(r"\bu\d+\b")


def open_sizes(node: Node) -> set[str]:
    """The sizes that depend on values, in the types of a node."""
    sizes = [n for t in node.types if t is not None for n in t.shape if isinstance(n, str)]
    return {name for n in sizes for name in _OF_VALUES.findall(n)}


def mask_of(graph: Graph, node: Node) -> int:
    """The value by which a node selects, if it does; -1 otherwise."""
    match node.op:
        case "aten.nonzero.default":
            return node.args[0].index
        case "aten.masked_select.default":
            return node.args[1].index
        case "aten.index.Tensor":
            for index in node.args[1]:
                type = graph.type_at(index.index) if isinstance(index, Ref) else None
                if type is not None and type.dtype in ("bool", "uint8"):
                    return index.index
    return -1


def with_masks_shared(graph: Graph) -> Graph:
    """The graph, in which masks that are computed alike are one, and so are the sizes they give."""
    first = len(graph.inputs)
    same: dict[Any, int] = {}
    places = [*range(first)]
    of_mask: dict[int, str] = {}
    names: dict[str, str] = {}
    nodes = []
    change = lambda x: Ref(places[x.index]) if isinstance(x, Ref) else x
    for k, node in enumerate(graph.nodes, first):
        dtypes = tuple([t and t.dtype for t in node.types])
        key = node.op, replaced(node.args, change), replaced(node.kwargs, change), dtypes
        places.append(same.setdefault(key, k) if node.op in _PURE else k)
        mask = mask_of(graph, node)
        new = open_sizes(node) - names.keys()
        names |= {name: name for name in new}
        if mask >= 0 and len(new) == 1:
            (name,) = new
            names[name] = of_mask.setdefault(places[mask], name)
            shared = lambda x, old=mask: Ref(places[old]) if x == Ref(old) else x
            node = dataclasses.replace(node, args=replaced(node.args, shared))
        nodes.append(node)
    if all([old == new for old, new in names.items()]):
        return graph
    return dataclasses.replace(graph, nodes=tuple([_renamed(node, names) for node in nodes]))


def _renamed(node: Node, names: dict[str, str]) -> Node:
    def size(n: Any) -> Any:
        return _OF_VALUES.sub(lambda x: names[x[0]], n) if isinstance(n, str) else n

    def renamed(type: TensorType | None) -> TensorType | None:
        return type and TensorType(type.dtype, tuple(map(size, type.shape)))

    return dataclasses.replace(node, types=tuple(map(renamed, node.types)))
