"""An ensemble in one safetensors file: its arrays by name, and where its members stand.

``stretto.files`` writes the file whole or not at all, and refuses one that is damaged or does not
fit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stretto._engine import VERSION
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.core.files import checked_path
from stretto.ensemble.groups import Group, with_fields
from stretto.ensemble.sequence import Layout
from stretto.files.load_files import load, load_header
from stretto.files.save_files import save

_ENTRY = "stretto.ensemble"
_VERSION = 1


def write(
    path: str | os.PathLike[str],
    layout: Layout,
    arrays: Sequence[Sequence[Any]],
    metadata: Mapping[str, str] | None,
) -> None:
    """Save the arrays by name, and the places and shared parts of each group among the metadata."""
    if metadata and _ENTRY in metadata:
        raise ValueError(f"Ensemble.save: metadata[{_ENTRY!r}] is where the members are described")
    record = {
        "version": _VERSION,
        "stretto": VERSION,
        "members": sum(g.size for g in layout.groups),
        "groups": [
            {
                "places": g.places,
                "shared": [n for n, s in zip(g.names, g.shared, strict=True) if s],
                "ties": g.ties,
            }
            for g in layout.groups
        ],
    }
    flat = [x for column in arrays for x in column]
    arrays_by_name = dict(zip(layout.names, flat, strict=True))
    save(
        path,
        arrays_by_name,
        {**(metadata or {}), _ENTRY: json.dumps(record, separators=(",", ":"))},
    )


def read(
    path: str | os.PathLike[str], like: Layout, arrays: Sequence[Sequence[Any]]
) -> tuple[Layout, list[list[Any]]]:
    """Return the layout and arrays of a file, of members as those that are here."""
    groups = _groups(path, like.groups)
    layout = like.of(groups)
    types: list[ShapeDtypeStruct] = []
    for group, old, column in zip(groups, like.groups, arrays, strict=True):
        for shared, was, x in zip(group.shared, old.shared, column, strict=True):
            shape = x.shape if was else x.shape[1:]
            types.append(ShapeDtypeStruct(shape if shared else (group.size, *shape), x.dtype))
    loaded = load(path, dict(zip(layout.names, types, strict=True)))
    return layout, layout.split([loaded[n] for n in layout.names])


def _groups(path: str | os.PathLike[str], like: Sequence[Group]) -> list[Group]:
    """Return the groups that a file describes, of the architectures that are here."""
    caller = f"Ensemble.load: {checked_path(path, 'Ensemble.load')}"
    text = load_header(path).metadata.get(_ENTRY)
    if text is None:
        raise ValueError(f"{caller}: not an ensemble file; load its arrays with stretto.load")
    try:
        record = json.loads(text)
        version = record["version"]
        if version != _VERSION:
            raise ValueError(f"it is of version {version!r}, and this Stretto knows {_VERSION}")
        kept = [
            (tuple(map(int, g["places"])), set(g["shared"]), tuple(map(tuple, g["ties"])))
            for g in record["groups"]
        ]
        places = [p for group, _, _ in kept for p in group]
        ordered = all(list(p) == sorted(p) and p for p, _, _ in kept)
        if sorted(places) != list(range(record["members"])) or not (places and ordered):
            raise ValueError(f"{record['members']} members stand at {places}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{caller}: its description of the ensemble is damaged: {error}") from None
    if len(kept) != len(like):
        raise ValueError(
            f"{caller} does not match `like`: it has members of {len(kept)} architectures, "
            "`like` has "
            f"{len(like)}"
        )
    groups = []
    for group, (where, shared, ties) in zip(like, kept, strict=True):
        if ties != group.ties:
            raise ValueError(
                f"{caller} does not match `like`: its members tie {_groups_in(ties)}, those of "
                "`like` "
                f"{_groups_in(group.ties)}"
            )
        once = tuple(n in shared for n in group.names)
        groups.append(with_fields(group, places=where, shared=once))
    return groups


def _groups_in(ties: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{place} to {first}" for place, first in ties) or "nothing"
