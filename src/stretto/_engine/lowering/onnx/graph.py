"""ONNX graphs while they are written: nodes, what they read, and constants.

Names are unique in a whole model, so that the graphs inside of loops and branches can read what is
outside. A node that was written before, in the same graph or one around it, is not written again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.types import ArrayType

Shape = tuple[Any, ...]
"""Integers, and sizes that vary."""


FINITE = "finite"
"""How the names of graphs begin that run where all values are finite: by operators as they are."""


@dataclasses.dataclass(slots=True, eq=False)
class Operand:
    """A value of the program, and the tensor that stands for it.

    The tensor may be smaller: of a shape that broadcasts to the value's, as NumPy broadcasts.
    """

    name: str
    type: ArrayType
    shape: Shape
    value: np.ndarray | None = None
    """The elements, where they are constant; of this shape."""
    origin: str = ""
    """The name of the constant that the elements were those of, before they had other places."""

    @property
    def is_whole(self) -> bool:
        """Say whether the tensor has the shape of the value."""
        return self.shape == self.type.shape

    def seen_as(self, type: ArrayType, shape: Shape) -> Operand:
        """Return the same tensor as one that stands for a value of another type."""
        return Operand(self.name, type, shape, self.value, self.origin)

    def moved(self, value: np.ndarray, type: ArrayType, shape: Shape) -> Operand:
        """Return a constant of the elements of this one, in other places."""
        return Operand("", type, shape, value, self.name or self.origin)


@dataclasses.dataclass(slots=True, eq=False)
class Pair:
    """A complex value: its real and its imaginary part."""

    type: ArrayType
    real: Operand
    imag: Operand


@dataclasses.dataclass(slots=True)
class Node:
    """An operator, the names of the tensors that it reads and makes, and its attributes."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    domain: str = ""


@dataclasses.dataclass(slots=True)
class Value:
    """A tensor by name, with what is known of it."""

    name: str
    dtype: np.dtype
    shape: Shape


class Graph:
    """Nodes in order, with named inputs and outputs."""

    def __init__(self, name: str, outer: Graph | None = None) -> None:
        self.name = name
        self.outer = outer
        self.nodes: list[Node] = []
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self._written: dict[Any, tuple[str, ...]] = {}

    def known(self, key: Any) -> tuple[str, ...] | None:
        """Return the outputs of a node like this one, of this graph or those around it."""
        graph: Graph | None = self
        while graph is not None:
            if key in graph._written:
                return graph._written[key]
            graph = graph.outer
        return None

    def add(self, node: Node, key: Any) -> None:
        """Append a node; ``key`` says what it is, but for the names of its outputs."""
        self.nodes.append(node)
        if key is not None:
            self._written[key] = node.outputs


def key_of(op: str, inputs: Sequence[str], attributes: Mapping[str, Any], outputs: int) -> Any:
    """Return what two nodes that give the same have in common; None for those with graphs."""
    if any(isinstance(v, Graph) for v in attributes.values()):
        return None
    fixed = [(k, tuple(v) if isinstance(v, list) else v) for k, v in sorted(attributes.items())]
    return op, tuple(inputs), tuple(fixed), outputs


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the shape that these broadcast to; sizes that vary are equal where they meet."""
    ndim = max(map(len, shapes))
    out: list[Any] = [1] * ndim
    for shape in shapes:
        for i, n in enumerate(shape, ndim - len(shape)):
            if n != 1:
                out[i] = n
    return tuple(out)
