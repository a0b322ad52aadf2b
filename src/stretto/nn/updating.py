"""Which modules may take new buffers inside a transformation, and loading arrays by name.

Layer 7. ``Module`` asks here; ``state`` opens.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from stretto.core.interpreter import as_value
from stretto.ops.convert import convert

__all__ = ["LoadedKeys", "allowed", "load", "updates_of"]


class _Open(threading.local):
    """The modules, by identity, whose buffers may be assigned traced values."""

    def __init__(self) -> None:
        self.modules: frozenset[int] = frozenset()


_open = _Open()


def allowed(module: Any) -> bool:
    """Whether the module is run by a call that returns its buffers."""
    return id(module) in _open.modules


@contextmanager
def updates_of(modules: Iterable[Any]) -> Iterator[None]:
    """Let these modules, and no others, take new buffers inside the block."""
    outer = _open.modules
    _open.modules = frozenset(map(id, modules))
    try:
        yield
    finally:
        _open.modules = outer


class LoadedKeys(NamedTuple):
    """The names that a state dictionary lacked, and those it had too many."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def load(module: Any, here: Mapping[str, Any], given: Any, strict: bool) -> LoadedKeys:
    """Assign what is given to the places named in ``here``; all or nothing."""
    who = f"{type(module).__name__}.load_state_dict"
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{who}: expected a dictionary of names and arrays, got {type(given).__name__}"
        )
    missing = [n for n in here if n not in given]
    unexpected = [n for n in given if n not in here]
    problems = []
    if strict and missing:
        problems.append(f"missing: {', '.join(missing)}")
    if strict and unexpected:
        problems.append(f"unexpected: {', '.join(map(str, unexpected))}")
    found = {}
    for name in here:
        if name in given:
            array = given[name]
            value = as_value(array if hasattr(array, "type") else np.asarray(array), who, name)
            if value.shape != here[name].shape:
                problems.append(
                    f"{name}: expected shape {here[name].shape}, got {value.shape} of {value.type}"
                )
            else:
                found[name] = convert(value, here[name].dtype)
    if problems:
        way = "; strict=False loads the names in common" if strict and not found else ""
        raise ValueError(f"{who}: nothing was loaded. " + "; ".join(problems) + way)
    for name, value in found.items():
        path, _, attribute = name.rpartition(".")
        module.get_submodule(path).__dict__[attribute] = value
    return LoadedKeys(missing, unexpected)
