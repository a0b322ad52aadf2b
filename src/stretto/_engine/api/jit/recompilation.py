"""The differences between the signatures of a function; the warning where there are too many.

``jit`` calls ``warn`` when a function has more signatures than ``config.recompilation_warning``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from stretto._engine.api.jit.entry import Entry
from stretto._engine.api.jit.signature import Signature
from stretto._engine.core.caches import room
from stretto._engine.core.config import shaping
from stretto._engine.core.errors import RecompilationWarning
from stretto._engine.core.position import user_stack_level


class Difference(NamedTuple):
    """One thing that differed: its values, in the order in which they occurred."""

    what: str
    values: Sequence[Any]
    remedy: str


_traced: dict[CodeType, int] = {}
"""The number of jitted functions of a piece of code of which a first signature was traced."""


def note_traced(fun: Any) -> None:
    """Count a jitted function that is traced for the first time."""
    code = getattr(fun, "__code__", None)
    if code is not None:
        room(_traced)[code] = _traced.get(code, 0) + 1


def jitted_at(fun: Any) -> int:
    """Return how many jitted functions of this one's code were traced."""
    return _traced.get(getattr(fun, "__code__", None), 0)  # type: ignore[arg-type]


def warn(name: str, entries: Sequence[tuple[Signature, Entry]]) -> None:
    """Warn, at the user's line, that the function was compiled for all of these."""
    difference = max(differences(entries), key=lambda d: len(d.values))
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


def differences(entries: Sequence[tuple[Signature, Entry]]) -> list[Difference]:
    """Return everything that may differ; of equal counts, the likelier explanation first."""
    signatures = [s for s, _ in entries]
    found = []
    for which in _distinct(p for s in signatures for p, _ in s.static):
        what = f"the value of the static argument {which!r}"
        values = _distinct(v for s in signatures for p, v in s.static if p == which)
        found.append(Difference(what, values, _remedy_of_static(values)))
    # Leaves can only be compared between equal structures: those with the most common one are.
    structures = _distinct(s.structure for s in signatures)
    common = max(structures, key=[s.structure for s in signatures].count)
    alike = [(s, e) for s, e in entries if s.structure == common]
    for k, path in enumerate(alike[0][1].names):
        types = [s.types[k] for s, _ in alike]
        found += [
            Difference(
                f"the shape of {path}",
                _distinct(t.shape for t in types),
                f"Pad or split {path} to one shape, or a few; or say which of its axes vary: "
                f"st.jit(..., dynamic_axes=...).",
            ),
            Difference(
                f"the dtype of {path}",
                _distinct(t.dtype.name for t in types),
                f"Convert {path} to one dtype before the call: snp.asarray({path}, dtype).",
            ),
            Difference(
                f"the weak type of {path}",
                _distinct(
                    "a Python number" if t.weak_type else "an array of a dtype" for t in types
                ),
                f"Pass {path} always as a number, or always as an array: snp.asarray({path}, "
                f"dtype).",
            ),
        ]
    return [
        *found,
        Difference(
            "the tree structure of the arguments",
            structures,
            "Give containers the same keys and lengths, and pass the same arguments by position "
            "and by name.",
        ),
        Difference(
            "where the arguments are",
            _distinct(s.shardings for s in signatures),
            "Put them there before the first call, stretto.device_put(x, sharding).",
        ),
        _settings(signatures),
    ]


def _remedy_of_static(values: Sequence[Any]) -> str:
    """Return what to do about the values of a static argument."""
    if len(values) > 1 and len({_without_address(v) for v in values}) == 1:
        return (
            "They look alike and are not equal: give their class __eq__ and __hash__, or make the "
            "object once and not at each call."
        )
    return (
        "Where it decides no shape and no branch, pass it as an array, not static; where it is a "
        "function or an object, make it once and not at each call."
    )


def _without_address(value: Any) -> str:
    return re.sub(r"0x[0-9a-f]+", "", str(value))


def _settings(signatures: Sequence[Signature]) -> Difference:
    """Return the settings and the named axes in force, those that differ."""
    keys = _distinct(s.settings for s in signatures)
    every = [_named(key) for key in keys]
    names = _distinct(name for values in every for name in values)
    vary = [n for n in names if len(_distinct(values.get(n) for values in every)) > 1]
    return Difference(
        "the settings (stretto.config) in force",
        [", ".join(f"{n}={values.get(n)!r}" for n in vary) for values in every],
        "Set them once, before the first call.",
    )


def _named(key: Any) -> dict[str, Any]:
    """Return the settings of a key by name, and the sizes of the axes that were mapped."""
    names = list(shaping())
    named = dict(zip(names, key.settings, strict=False))
    return {**named, **{f"axis {name}": n for name, n in key.settings[len(names) :]}}


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return the values without repetitions, in the order in which they occurred."""
    return list(dict.fromkeys(values))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


_WIDTH = 80
