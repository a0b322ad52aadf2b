"""The user's data: examples that are kept and drawn from in batches, or batches as they come."""

from __future__ import annotations

import dataclasses
import inspect
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from stretto._engine.api.varying_sizes.ragged import Ragged, is_ragged
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.typing import Array, Tree
from stretto._engine.ops.layout import reshape
from stretto.ensemble.score_arguments import is_table
from stretto.ensemble.training.train_state import read

_INT32 = np.dtype(np.int32)


@tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class Own:
    """Data of which each member has its own: the examples of all, those of one behind the other."""

    data: Any
    """A tree of arrays with the examples along axis 0."""
    starts: Any
    """Where those of each member begin: int32."""
    counts: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    """How many each has."""


def is_examples(data: Tree) -> bool:
    """Whether the data are a tree of arrays: an array, a tuple or a dictionary."""
    return isinstance(data, (Value, np.ndarray, Ragged, tuple, dict))


def refuse_table(data: Tree, argument: str) -> None:
    """Raise ``TypeError`` for a table such as a DataFrame, which gives the names of its columns."""
    if not is_examples(data) and is_table(data):
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
    paths, values, structure = _arrays_of(data, argument, "the examples along axis 0")
    sizes = {len(x) if is_ragged(x) or x.ndim else None for x in values}
    if len(sizes) > 1 or None in sizes:
        described = ", ".join(f"{p}: {_type(x)}" for p, x in zip(paths, values, strict=True))
        raise ValueError(
            f"fit: the arrays of {argument} must have the same number of examples along axis 0; "
            f"got {described}"
        )
    (size,) = sizes
    if not size:
        raise ValueError(f"fit: {argument} has no examples")
    return tree.unflatten(structure, values), size


def own_examples_of(data: Tree, members: int, argument: str) -> Own:
    """The data of which each member has its own: ragged, or with the members along axis 0."""
    paths, values, structure = _arrays_of(
        data, argument, "the members along axis 0, and their examples along axis 1"
    )
    numbers: dict[str, tuple[int, ...]] = {}
    rows = []
    for path, x in zip(paths, values, strict=True):
        if not is_ragged(x) and x.ndim < 2:
            raise ValueError(
                f"fit: each=True, so that {path} must be ragged or have the members along axis 0 "
                f"and examples along axis 1; got {_type(x)}"
            )
        if len(x) != members:
            raise ValueError(
                f"fit: each=True, so that {path} must have an entry for each of {members} members; "
                f"got {_type(x)}"
            )
        if is_ragged(x):
            numbers[path] = tuple(np.asarray(x.lengths).tolist())
            rows.append(x.values)
        else:
            numbers[path] = (x.shape[1],) * members
            rows.append(reshape(x, (members * x.shape[1], *x.shape[2:])))
    counts = numbers[paths[0]]
    for path, others in numbers.items():
        if others != counts:
            place = next(i for i, (n, m) in enumerate(zip(counts, others, strict=True)) if n != m)
            raise ValueError(
                f"fit: the arrays of {argument} must have the same numbers of examples for each "
                f"member; member {place} has {counts[place]} in {paths[0]} and {others[place]} in "
                f"{path}"
            )
    if not min(counts):
        raise ValueError(f"fit: {argument} has no examples")
    starts = np.cumsum((0, *counts[:-1])).astype(_INT32)
    return Own(tree.unflatten(structure, rows), as_value(starts), counts)


def _arrays_of(data: Tree, argument: str, where: str) -> tuple[list[str], list[Any], Any]:
    """The paths of the arrays, the arrays, ragged ones among them, and the structure."""
    refuse_table(data, argument)
    if not is_examples(data):
        raise TypeError(
            f"fit: {argument} must be an array, or a tuple or dictionary of arrays with {where}; "
            f"got {type(data).__name__}"
        )
    leaves, structure = tree.flatten(data, is_ragged)
    if not leaves:
        raise ValueError(f"fit: {argument} has no arrays")
    paths = tree.paths(tree.unflatten(structure, range(len(leaves))), argument)
    arrays = list(zip(leaves, paths, strict=True))
    for x, path in arrays:
        if isinstance(x, np.ndarray) and x.dtype.kind in "OSUMm":
            raise TypeError(
                f"fit: {path} has the dtype {x.dtype}, which holds no numbers: {path}.astype(np."
                f"float32) makes them of what looks like such, and names of classes are numbered "
                f"by names, labels = np.unique({path}, return_inverse=True)"
            )
    return paths, [x if is_ragged(x) else as_value(x, "fit", p) for x, p in arrays], structure


def _type(x: Tree) -> str:
    return repr(x) if is_ragged(x) else str(x.type)


def rows_of(data: Tree, places: Array) -> Tree:
    """The examples at these places, of any shape; ragged arrays give wide ones."""
    lengths: dict[int, Array] = {}  # of those whose lengths are one array, so that they stay one

    def rows(x: Tree) -> Tree:
        if is_ragged(x):
            wide = x._at(places)
            own = lengths.setdefault(id(x.lengths), wide.lengths)
            return wide.like(Ragged._of(None, own, x._most, True, x._least))
        flat = places.reshape(-1)  # twice as fast on the CPU as rows and columns
        return x.at[flat].get(mode="promise_in_bounds").reshape(*places.shape, *x.shape[1:])

    return tree.map(rows, data, is_leaf=is_ragged)


def with_rectangles(batch: Tree) -> Tree:
    """The batch with its ragged arrays wide, so that all leaves have the arrays along axis 0."""
    return tree.map(lambda x: x._spread() if is_ragged(x) else x, batch, is_leaf=is_ragged)


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
