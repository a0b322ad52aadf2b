"""Arrays from files on the devices that they are asked to be on: each gets what it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from stretto._engine import xla
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.api.sharding.shardings import fit
from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.mesh import PartitionSpec
from stretto._engine.core.shardings import Sharding, SingleDeviceSharding
from stretto._engine.core.types import ArrayType, array_type, canonical_dtype
from stretto._engine.core.typing import Tree
from stretto._engine.ops.sharding_constraint import named_here
from stretto._engine.xla.array import Array
from stretto._engine.xla.device import Device, as_device
from stretto.files.elements import Type, is_number, restored
from stretto.files.names import Damaged
from stretto.files.opening import Entry, File

__all__ = ["Places", "of_like", "places_of", "put", "read_leaf"]

Places: TypeAlias = dict[str, Sharding]
"""Where arrays are asked to be, by name."""


def places_of(
    asked: Tree, root: Tree, names: Sequence[str], entries: Mapping[str, Entry], caller: str
) -> Places:
    """Where ``load`` is asked to put the arrays of these names, which are the leaves of a tree.

    Raises ``TypeError`` for what is not a place, ``ValueError`` for a device that is not there, an
    array that cannot be split so, or what is not a prefix of the tree.
    """
    if asked is None:
        return {}
    if callable(asked) and not isinstance(asked, (Sharding, Device)):
        each = [asked(name, ShapeDtypeStruct(*_typed(entries[name].type))) for name in names]
    else:
        each = tree.prefix_leaves(asked, root, caller, "sharding")
    places = {}
    for name, where in zip(names, each, strict=True):
        if where is None:
            continue
        if isinstance(where, (Sharding, PartitionSpec)):
            sharding = named_here(where, caller, "sharding")
        elif isinstance(where, (Device, str)):
            sharding = SingleDeviceSharding(as_device(where, caller, "sharding"))
        else:
            raise TypeError(
                f"{caller}: sharding must be a sharding, such as NamedSharding(mesh, P('data')), a "
                f"device, a tree of these, or a function of name and type; for {name} it is "
                f"{where!r}"
            )
        if not is_number(entries[name].kind):
            type = entries[name].type
            fit(sharding, _array_type(type, None, name), f"{caller}: {name}, {type},")
            places[name] = sharding
    return places


def of_like(leaves: Sequence[Any], names: Sequence[str]) -> Places:
    """Where the leaves of a tree are, those that were put anywhere."""
    there = [getattr(leaf, "_sharding", None) for leaf in leaves]
    return {name: s for name, s in zip(names, there, strict=True) if s is not None}


def read_leaf(
    file: File, name: str, entry: Entry, kind: str | None, place: Sharding | None, lost: list[str]
) -> Tree:
    """The leaf of this kind, where it is asked to be; raises as ``restored`` does."""
    if place is None or is_number(kind):
        return restored(file.read(name, entry), entry.type, kind, name, lost)
    weak = "weak" if kind == "weak" else None
    if _is_usual(place):
        return restored(file.read(name, entry), entry.type, weak, name, lost)
    shape = entry.type.shape
    tail = tuple([slice(0, n) for n in entry.grid.shape[len(shape) :]])  # parts of an element
    type = _array_type(entry.type, weak, name)
    seen: dict[Any, np.ndarray] = {}
    parts = []
    for device, index in zip(place.device_list, place.indices(shape), strict=True):
        if device.is_local:
            key = tuple([(s.start, s.stop) for s in index])
            if key not in seen:
                raw = file.read(name, entry, (*index, *tail))
                part = Type(place.shard_shape(shape), entry.type.dtype)
                made = restored(raw, part, weak, name, lost)
                seen[key] = as_value(made, "load", name).to_host()
            parts.append(seen[key])
    return xla.sharded.of_parts(type, xla.partitions.put(parts, type, place), place)


def put(x: Array, place: Sharding) -> Array:
    """An array that is here, where it is asked to be."""
    return x if _is_usual(place) else xla.sharded.placed(x, place)


def _is_usual(place: Sharding) -> bool:
    """Whether it is where arrays are that were not put anywhere."""
    return place == SingleDeviceSharding(as_device(None, "load"))


def _typed(type: Type) -> tuple[tuple[int, ...], np.dtype]:
    return type.shape, canonical_dtype(type.dtype)


def _array_type(type: Type, kind: str | None, name: str) -> ArrayType:
    try:
        np.broadcast_to(np.empty(()), type.shape)
    except ValueError as error:
        raise Damaged(f"{name} is {type}, which no array can be: {error}") from None
    return array_type(*_typed(type), kind == "weak")
