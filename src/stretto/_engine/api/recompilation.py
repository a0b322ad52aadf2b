"""The warning about a function compiled too often: what differed between its signatures.

Layer 7 (api). ``jit`` calls ``warn`` when a function has more signatures than
``config.recompilation_warning``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from stretto._engine.api.entry import Entry
from stretto._engine.core.errors import RecompilationWarning
from stretto._engine.core.position import user_stack_level

__all__ = ["Signature", "warn"]


class Signature(NamedTuple):
    """The key under which ``jit`` keeps a trace."""

    structure: Any
    types: tuple[Any, ...]
    static: tuple[tuple[int | str, Any], ...]
    settings: Any
    shardings: tuple[Any, ...] = ()
    """Where the leaves are, if any of them has a sharding."""
    alike: tuple[tuple[int, int], ...] = ()
    """Which leaves are equal lengths of ragged arrays; see ``lengths``."""
    guards: tuple[Any, ...] = ()
    """What was taken to hold of sizes that vary; see ``core/sizes``."""


class _Difference(NamedTuple):
    """One thing that differed: its values, in the order in which they occurred."""

    what: str
    values: Sequence[Any]
    remedy: str


def warn(name: str, entries: Sequence[tuple[Signature, Entry]]) -> None:
    """Warn, at the user's line, that the function was compiled for all of these."""
    difference = max(_differences(entries), key=lambda d: len(d.values))
    values = difference.values
    shown = ", ".join(map(_short, values[:3]))
    more = f", … {_short(values[-1])}" if len(values) > 3 else ""
    warnings.warn(
        f"{name} was compiled for {len(entries)} signatures, each at the cost of a trace and a "
        f"compilation. What differs most is {difference.what}: {len(values)} in all, "
        f"{shown}{more}. {difference.remedy} (stretto.config.recompilation_warning sets how many "
        f"are allowed without this warning; 0 means any number.)",
        RecompilationWarning,
        stacklevel=user_stack_level(),
    )


def _differences(entries: Sequence[tuple[Signature, Entry]]) -> list[_Difference]:
    """Everything that differs; of equal counts, the likelier explanation first."""
    signatures = [s for s, _ in entries]
    differences = []
    for place in _distinct(p for s in signatures for p, _ in s.static):
        what = f"the value of the static argument {place!r}"
        values = _distinct(v for s in signatures for p, v in s.static if p == place)
        differences.append(
            _Difference(
                what,
                values,
                "Where it decides no shape and no branch, pass it as an array, not static; where "
                "it is a function or an object, make it once and not at each call.",
            )
        )
    # Leaves can only be compared between equal structures: those with the most common one are.
    structures = _distinct(s.structure for s in signatures)
    common = max(structures, key=[s.structure for s in signatures].count)
    alike = [(s, e) for s, e in entries if s.structure == common]
    for k, path in enumerate(alike[0][1].names):
        types = [s.types[k] for s, _ in alike]
        differences += [
            _Difference(
                f"the shape of {path}",
                _distinct(t.shape for t in types),
                f"Pad or split {path} to one shape, or a few.",
            ),
            _Difference(
                f"the dtype of {path}",
                _distinct(t.dtype.name for t in types),
                f"Convert {path} to one dtype before the call.",
            ),
            _Difference(
                f"the weak type of {path}",
                _distinct(
                    "a Python number" if t.weak_type else "an array of a dtype" for t in types
                ),
                f"Pass {path} always as a number, or always as an array.",
            ),
        ]
    return [
        *differences,
        _Difference(
            "the tree structure of the arguments",
            structures,
            "Give containers the same keys and lengths, and pass the same arguments by position "
            "and by name.",
        ),
        _Difference(
            "where the arguments are",
            _distinct(s.shardings for s in signatures),
            "Put them there before the first call, stretto.device_put(x, sharding).",
        ),
        _Difference(
            "the settings (stretto.config) in force",
            _distinct(s.settings for s in signatures),
            "Set them once, before the first call.",
        ),
    ]


def _distinct(values: Iterable[Any]) -> list[Any]:
    """The values without repetitions, in the order in which they occurred."""
    return list(dict.fromkeys(values))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


_WIDTH = 80
