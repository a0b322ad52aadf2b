"""The user's data: examples that are kept, from which batches are drawn, or batches as they come.

Next, read ``loop``.
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.typing import Tree
from stretto.ensemble.training.reading import read

__all__ = ["batches_of", "checksum", "examples_of", "is_examples", "refuse_list", "refuse_table"]


def is_examples(data: Tree) -> bool:
    """Whether the data are a tree of arrays: an array, a tuple or a dictionary."""
    return isinstance(data, (Value, np.ndarray, tuple, dict))


def refuse_table(data: Tree, argument: str) -> None:
    """Raise ``TypeError`` for a table such as a DataFrame, which gives the names of its columns."""
    if not is_examples(data) and (hasattr(data, "__array__") or hasattr(data, "__dataframe__")):
        raise TypeError(
            f"fit: {argument} is a {type(data).__name__}; give its numbers as an array, such as "
            f"{argument}.to_numpy(), or as a tuple or dictionary of arrays, one for each argument "
            f"of the loss"
        )


def refuse_list(loss: Callable[..., Any], data: Tree) -> None:
    """Raise ``TypeError`` for a list of arrays, each of which would be taken for a batch.

    Only where the loss takes several arrays, so that a tuple of them was meant.
    """
    arrays = isinstance(data, list) and all(isinstance(x, (Value, np.ndarray)) for x in data)
    if not arrays or not data:
        return
    try:
        signature = inspect.signature(loss)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None, None)
    except TypeError:
        raise TypeError(
            f"fit: data is a list of {len(data)} arrays, and the loss takes (member, "
            f"{', '.join(list(signature.parameters)[1:])}); a list is taken for batches, one after "
            f"another: for arrays with one example a row give a tuple, (x, y)"
        ) from None


def examples_of(data: Tree, argument: str) -> tuple[Any, int]:
    """The arrays as values, and the number of examples, which all must have along axis 0."""
    refuse_table(data, argument)
    if not is_examples(data):
        raise TypeError(
            f"fit: {argument} must be an array, or a tuple or dictionary of arrays with the "
            f"examples along axis 0; got {type(data).__name__}"
        )
    paths = tree.paths(data, argument)
    values = [as_value(x, "fit", p) for x, p in zip(tree.leaves(data), paths, strict=True)]
    if not values:
        raise ValueError(f"fit: {argument} has no arrays")
    sizes = {x.shape[0] if x.ndim else None for x in values}
    if len(sizes) > 1 or None in sizes:
        described = ", ".join(f"{p}: {x.type}" for p, x in zip(paths, values, strict=True))
        raise ValueError(
            f"fit: the arrays of {argument} must have the same number of examples along axis 0; "
            f"got {described}"
        )
    (size,) = sizes
    if not size:
        raise ValueError(f"fit: {argument} has no examples")
    return tree.unflatten(tree.structure(data), values), size


def batches_of(data: Iterable[Any], skip: int) -> Iterator[tuple[Any, bool]]:
    """The batches of one epoch from number ``skip``, each with whether it is the last.

    Those before it are drawn and discarded.
    """
    batches = iter(data)
    last: Any = None
    number = 0
    for batch in batches:
        if number > skip:
            yield last, False
        last = tree.map(lambda x: as_value(x, "fit", "a batch"), batch)
        number += 1
    if number > skip:
        yield last, True


def checksum(data: Tree) -> int:
    """A number that tells data apart: CRC-32 of all bytes."""
    total = 0
    for x in tree.leaves(data):
        total = zlib.crc32(np.ascontiguousarray(read(x)).view(np.uint8).data, total)
    return total
