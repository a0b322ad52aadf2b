"""What is shown of objects whose fields are trees of arrays, such as states of optimizers.

Their ``repr`` says of large trees only how much there is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.interpreter import Tracer, Value
from stretto._engine.core.showing.card import Card, Item, line
from stretto._engine.core.showing.words import counted, one_line, size

_FEW_LEAVES, _FEW_ELEMENTS = 12, 60
"""What is printed whole has at most so many leaves, of so many elements together."""


def text_of(x: Any) -> str:
    """The ``repr`` of such an object: whole if it is small, else with sizes in place of arrays."""
    show = repr if _is_small(x) else short
    inside = ", ".join([f"{name}={show(value)}" for name, value in _fields(x)])
    return f"{type(x).__name__}({inside})"


def card_of(x: Any) -> Card:
    """Its fields, and the arrays in each."""
    body: list[Item] = []
    for name, value in _fields(x):
        leaves = tree.leaves(value)
        if len(leaves) == 1 and leaves[0] is value:
            body.append(line(f"{name}: {short(value)}"))
        else:
            lines = zip(tree.paths(value), leaves, strict=True)
            inside = tuple([line(f"{path}  {type_words(leaf)}") for path, leaf in lines])
            body.append(Card(name, (amount(value),), inside, open=False))
    return Card(type(x).__name__, (amount(x),), tuple(body))


def _fields(x: Any) -> list[tuple[str, Any]]:
    if dataclasses.is_dataclass(x):
        return [(f.name, getattr(x, f.name)) for f in dataclasses.fields(x) if f.repr]
    return list(zip(x._fields, x, strict=True))


def _is_small(x: Any) -> bool:
    leaves = tree.leaves(x)
    return len(leaves) <= _FEW_LEAVES and numbers_in(leaves) <= _FEW_ELEMENTS


def short(x: Any) -> str:
    """A tree on one line: as it is if it is small, and otherwise how much is in it."""
    if isinstance(x, _ARRAYS):
        return type_words(x) if numbers_in([x]) > 4 else one_line(repr(x))
    has_arrays = any([isinstance(leaf, _ARRAYS) for leaf in tree.leaves(x)])
    return f"<{type(x).__name__} of {amount(x)}>" if has_arrays else one_line(repr(x))


def amount(x: Any) -> str:
    """How much is in a tree: ``3 arrays, 1,200 numbers, 4.8 kB``."""
    arrays = [leaf for leaf in tree.leaves(x) if isinstance(leaf, _ARRAYS)]
    count = counted(len(arrays), "array")
    if not arrays:
        return count
    return f"{count}, {counted(numbers_in(arrays), 'number')}, {size(bytes_in(arrays))}"


_ARRAYS = (Value, np.ndarray)


def numbers_in(leaves: Iterable[Any]) -> int:
    """The elements of those leaves that are arrays; sizes that vary do not count."""
    return sum([x.size for x in leaves if isinstance(x, _ARRAYS) and isinstance(x.size, int)])


def bytes_in(leaves: Iterable[Any]) -> int:
    """The bytes of the same."""
    return sum([numbers_in([x]) * x.dtype.itemsize for x in leaves if isinstance(x, _ARRAYS)])


def type_words(x: Any) -> str:
    """The type of an array, or another leaf as it is."""
    if isinstance(x, np.ndarray):
        return f"NumPy {x.dtype}[{','.join(map(str, x.shape))}]"
    is_array = isinstance(x, Value) and not isinstance(x, Tracer)
    return repr(x.type) if is_array else one_line(repr(x))
