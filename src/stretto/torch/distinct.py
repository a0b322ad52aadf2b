"""``torch.unique`` and its relatives, as what a mask selects: the first of each run of equal ones.

How many elements differ depends on values. Sorted, those that differ from the one before are the
distinct ones, so a mask of fixed size says which they are, and what is made of them is made of what
that mask selects.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from stretto.torch.graph import Graph, Node, Output, Ref, TensorType, replaced

__all__ = ["with_distinct"]

_OF_ARGUMENTS: dict[str, Callable[..., tuple[int | None, bool]]] = {
    "aten._unique.default": lambda *_: (None, True),
    "aten._unique2.default": lambda *_: (None, True),
    "aten.unique_consecutive.default": lambda inverse=False, counts=False, dim=None: (dim, False),
    "aten.unique_dim.default": lambda dim, *_: (dim, True),
    "aten.unique_dim_consecutive.default": lambda dim, *_: (dim, False),
}
"""For the arguments behind the first, along which axis slices are compared, and whether sorted."""


def with_distinct(graph: Graph) -> Graph:
    """The graph, in which what is distinct is selected by a mask."""
    return _Rewriting(graph).result() if any(map(_is_open, graph.nodes)) else graph


def _is_open(node: Node) -> bool:
    """Whether a node gives distinct elements, and PyTorch knows not how many."""
    of_values = node.op in _OF_ARGUMENTS and node.types[0]
    return bool(of_values) and any([not isinstance(n, int) for n in of_values.shape])


class _Rewriting:
    """Puts others in the place of the operations that give what is distinct."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: list[Node] = []
        self._places = [Ref(k) for k in range(len(graph.inputs))]
        self._results: dict[int, list[Ref]] = {}  # of each such operation
        self._known: dict[Any, list[Ref]] = {}  # of the same elements there are as many

    def result(self) -> Graph:
        """The new graph."""
        graph, first = self._graph, len(self._graph.inputs)
        for k, node in enumerate(graph.nodes, first):
            if _is_open(node):
                self._results[k] = self._distinct(node)
                self._places.append(self._results[k][0])
            elif node.op == "operator.getitem" and node.args[0].index in self._results:
                self._places.append(self._results[node.args[0].index][node.args[1]])
            else:
                self._places.append(self._add(dataclasses.replace(node, **self._changed(node))))
        outputs = [Output(x.kind, x.name, replaced(x.value, self._change)) for x in graph.outputs]
        return Graph(graph.inputs, tuple(self._nodes), tuple(outputs), graph.subgraphs)

    def _change(self, x: Any) -> Any:
        return self._places[x.index] if isinstance(x, Ref) else x

    def _changed(self, node: Node) -> dict[str, Any]:
        kwargs = [(name, replaced(x, self._change)) for name, x in node.kwargs]
        return {"args": replaced(node.args, self._change), "kwargs": tuple(kwargs)}

    def _add(self, node: Node) -> Ref:
        self._nodes.append(node)
        return Ref(len(self._graph.inputs) + len(self._nodes) - 1)

    def _distinct(self, node: Node) -> list[Ref]:
        """The distinct elements, for each element which of them it is, and how often each is."""
        x = self._change(node.args[0])
        axis, is_sorted = _OF_ARGUMENTS[node.op](*node.args[1:], **dict(node.kwargs))
        key = x, axis, is_sorted
        if key in self._known:
            return self._known[key]
        values, type = node.types[0], self._graph.type_at(node.args[0].index)
        assert values is not None and type is not None
        count = values.shape[0 if axis is None else axis]
        types = (
            TensorType("bool", (None,)),
            TensorType("int64", (None,)),
            TensorType("int64", type.shape if axis is None else (type.shape[axis],)),
        )

        def add(op: str, type: TensorType, *args: Any) -> Ref:
            return self._add(Node(op, args, (), (type,), node.place))

        runs = self._add(Node("stretto.runs", (x, axis, is_sorted), (), types, node.place))
        mask, order, inverse = [
            add("operator.getitem", type, runs, k) for k, type in enumerate(types)
        ]
        places = add("aten.nonzero.default", TensorType("int64", (count, 1)), mask)
        found = add("stretto.distinct", values, x, axis, order, places)
        counts = add("stretto.counts", TensorType("int64", (count,)), inverse, places)
        self._known[key] = [found, inverse, counts]
        return self._known[key]
