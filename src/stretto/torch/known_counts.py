"""How many elements a constant mask selects, which is known when the module is imported.

PyTorch gives the result of every mask a size of its own, u0, u1, ..., of which only a run tells how
large it is. Where the mask is a constant it is as large in each.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from stretto.torch.graph import Graph, Node, Ref, TensorType, replaced
from stretto.torch.sizes import value_of

__all__ = ["with_known_counts"]

_COPIES = (
    "aten.alias.default",
    "aten.clone.default",
    "aten.detach.default",
    "aten.lift_fresh_copy.default",
)
_OPEN = re.compile(r"\bu\d+\b")


def with_known_counts(graph: Graph, constants: Mapping[str, np.ndarray]) -> Graph:
    """The graph, in whose types the sizes that constant masks tell are numbers.

    What is selected by such a mask refers to the constant itself, whose values are there while a
    program is compiled, and to no copy of it.
    """
    origins = {k: k for k, x in enumerate(graph.inputs) if x.kind == "constant"}
    sizes: dict[str, int] = {}
    nodes = []
    for k, node in enumerate(graph.nodes, len(graph.inputs)):
        if node.op in _COPIES and isinstance(node.args[0], Ref) and node.args[0].index in origins:
            origins[k] = origins[node.args[0].index]
        mask = _mask_of(node)
        if mask in origins:
            values = constants[graph.inputs[origins[mask]].name]
            if values.dtype == bool:
                shape = [n for type in node.types if type for n in type.shape]
                names = {n for n in shape if isinstance(n, str) and _OPEN.fullmatch(n)}
                sizes |= dict.fromkeys(names - sizes.keys(), int(values.sum()))
                direct = replaced(node.args, lambda x, old=mask: _moved(x, old, origins[old]))
                node = dataclasses.replace(node, args=direct)
        nodes.append(node)
    if not sizes:
        return graph
    return dataclasses.replace(graph, nodes=tuple([_with(node, sizes) for node in nodes]))


def _moved(x: Any, old: int, new: int) -> Any:
    return Ref(new) if isinstance(x, Ref) and x.index == old else x


def _mask_of(node: Node) -> int:
    """The value by which a node selects, if it is one alone; -1 otherwise."""
    if node.op not in ("aten.index.Tensor", "aten._unsafe_index.Tensor"):
        return -1
    used = [i for i in node.args[1] if i is not None]
    return used[0].index if len(used) == 1 and isinstance(used[0], Ref) else -1


def _with(node: Node, sizes: Mapping[str, int]) -> Node:
    def size(n: Any) -> Any:
        if not isinstance(n, str) or not set(_OPEN.findall(n)) & sizes.keys():
            return n
        text = _OPEN.sub(lambda found: str(sizes.get(found[0], found[0])), n)
        return text if re.search(r"[a-z]", text) else value_of(text, {})

    def known(type: TensorType | None) -> TensorType | None:
        return type and TensorType(type.dtype, tuple([size(n) for n in type.shape]))

    return dataclasses.replace(node, types=tuple([known(type) for type in node.types]))
