"""What ``fit`` makes of its data: the order of the examples, and the types of a member's batch."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.api.varying_sizes.ragged import Ragged, is_ragged
from stretto._engine.api.varying_sizes.sizes import equal_lengths, share_lengths
from stretto._engine.core import tree
from stretto._engine.core.typing import Tree
from stretto.ensemble.over_mesh import OverMesh
from stretto.ensemble.training.order import ORDERS, DataOrder
from stretto.ensemble.training.over_devices import check_examples
from stretto.ensemble.training.training_data import (
    batches_of,
    examples_of,
    is_examples,
    own_examples_of,
    refuse_list,
    refuse_table,
    with_rectangles,
)

_USUAL_BATCH = 32


def planned(
    loss: Callable[..., Any],
    data: Tree,
    order: str | None,
    batch_size: int | None,
    members: int,
    fraction: float,
    drop_last: bool | None,
    each: bool,
    over: OverMesh | None,
) -> tuple[DataOrder | None, Tree, Tree]:
    """The order of examples, if it is ours; the types of a member's batch; and the data."""
    if is_examples(data):
        if each:
            data = own_examples_of(data, members, "data")
            count: Any = data.counts
        else:
            data, count = examples_of(data, "data")
        if drop_last is None:
            drop_last = not (each and len(set(count)) > 1)
        plan = _order(count, batch_size, order or "own", members, fraction, drop_last)
        for step in (0, plan.steps - 1):
            check_examples(over, plan.batch_size_of(step), "fit")
        if plan.uneven:
            _refuse_starved(plan)
            _refuse_parts(over, plan)
        return plan, _batch_of(plan, data.data if each else data), data
    if each:
        raise ValueError(
            f"fit: each=True is for arrays with the members along axis 0, or ragged ones; for an "
            f"iterable whose batches have them say order='own'; got {type(data).__name__}"
        )
    first, data = _first(_iterable(loss, data, order, batch_size))
    if order == "own":
        first = with_rectangles(first)
        _refuse_others_than_members(first, members)
        first = tree.map(lambda x: x[0], first)
    if over is not None:
        check_examples(over, min([x.shape[0] if x.ndim else 1 for x in tree.leaves(first)]), "fit")
    return None, first, data


def _batch_of(plan: DataOrder, data: Tree) -> Tree:
    """The types of a member's batch."""
    size, of = plan.batch_size, ShapeDtypeStruct
    left = of((), np.int32)

    def one(x: Tree) -> Tree:
        if is_ragged(x):
            wide = of((size, x._most, *x._inner), x.dtype)
            return Ragged._of(wide, of((size,), x.lengths.dtype), x._most, True, x._least)
        rows = of((size, *x.shape[1:]), x.dtype)
        return Ragged._of(rows, left, size, True, 1) if plan.uneven else rows

    leaves, structure = tree.flatten(data)
    types = tree.map(one, data, is_leaf=is_ragged)
    return tree.unflatten(
        tree.structure(types), share_lengths(tree.leaves(types), equal_lengths(structure, leaves))
    )


def _refuse_starved(plan: DataOrder) -> None:
    """Raise ``ValueError`` where a member would never have a whole batch."""
    for member, n in enumerate(plan.counts):
        if not n:
            raise ValueError(
                f"fit: member {member} has {plan.sizes[member]} examples, which do not fill a "
                f"batch of {plan.batch_size}, and drop_last=True: give drop_last=False, or a "
                f"batch_size of at most {min(plan.sizes)}"
            )


def _refuse_parts(over: OverMesh | None, plan: DataOrder) -> None:
    """Raise ``NotImplementedError`` where devices would have parts of batches that differ."""
    if over is not None and over.data is not None:
        raise NotImplementedError(
            f"fit: members have different numbers of examples, {plan.sizes}, whose batches the "
            f"axis {over.data!r} of {over.mesh} cannot split evenly: leave the axis out, and split "
            f"the members alone"
        )


def _order(
    count: int | tuple[int, ...],
    batch_size: int | None,
    order: str,
    members: int,
    fraction: float,
    drop_last: bool,
) -> DataOrder:
    try:
        plan = DataOrder(count, 1, order, members, fraction, drop_last)
        size = min(_USUAL_BATCH, plan.size) if batch_size is None else batch_size
        return dataclasses.replace(plan, batch_size=size)
    except ValueError as error:
        raise ValueError(str(error).replace("DataOrder", "fit", 1)) from None


def _iterable(
    loss: Callable[..., Any], data: Tree, order: str | None, batch_size: int | None
) -> Iterable[Any]:
    refuse_table(data, "data")
    if not isinstance(data, Iterable):
        raise TypeError(
            f"fit: data must be an array, a tuple or dictionary of arrays, or an iterable of "
            f"batches; got {type(data).__name__}"
        )
    if order not in (None, "same", "own"):
        raise ValueError(
            f"fit: an iterable of batches has its own order: order must be 'same' or 'own', got "
            f"{order!r} (of {ORDERS})"
        )
    if batch_size is not None:
        raise ValueError("fit: an iterable of batches has its own sizes; leave out batch_size")
    refuse_list(loss, data)
    return data


def _first(data: Tree) -> tuple[Any, Any]:
    """The first batch, and the data with that still in it."""
    batches = iter(data)
    for batch, _ in batches_of(itertools.islice(batches, 1), 0):
        return batch, itertools.chain([batch], batches) if batches is data else data
    raise ValueError("fit: data has no batches")


def types_of(batch: Tree, each: int | None) -> Tree:
    """The types of a batch; with ``each``, where the members are to be put along axis 0."""
    front = () if each is None else (each,)
    leaves, structure = tree.flatten(batch)
    types = [ShapeDtypeStruct((*front, *x.shape), x.dtype) for x in leaves]
    return tree.unflatten(structure, share_lengths(types, equal_lengths(structure, leaves)))


def _refuse_others_than_members(batch: Tree, members: int) -> None:
    for path, x in zip(tree.paths(batch, "batch"), tree.leaves(batch), strict=True):
        if not x.ndim or x.shape[0] != members:
            raise ValueError(
                f"fit: with order='own' the arrays of a batch have the {members} members along "
                f"axis 0; got {path}: {x.type}"
            )
