"""Which modules may take new buffers inside a transformation, and loading arrays by name.

``Module`` asks here; ``state`` opens.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.interpreter import Tracer, Value, as_value, state
from stretto._engine.ops.convert import convert

__all__ = ["LoadedKeys", "check", "load", "places", "updates_of"]


class _Open(threading.local):
    """Modules, by identity, that are run by a call which keeps their buffers, or drops them."""

    def __init__(self) -> None:
        self.kept: frozenset[int] = frozenset()
        self.dropped: frozenset[int] = frozenset()
        self.interpreter: Any = None


_open = _Open()


def check(module: Any, name: str) -> None:
    """Raise ``RuntimeError`` where the buffer's new value would be lost."""
    caller = f"{type(module).__name__}: the buffer {name} would be updated"
    if id(module) in _open.dropped:
        raise RuntimeError(
            f"{caller}, and functional_call loses the update. Pass return_buffers=True, which "
            "gives "
            f"(output, buffers), or put the module in evaluation mode by .eval()"
        )
    if state.interpreter is state.eager:
        return
    if id(module) not in _open.kept:
        raise RuntimeError(
            f"{caller} inside a transformation, and the update would be lost. Call the model by "
            f"`output, model = nn.stateful_call(model, ...)`, which returns it "
            f"(func.functional_call has return_buffers=True, and an Ensemble a stateful_call of "
            f"its own), or use model.eval()"
        )
    if state.interpreter is not _open.interpreter:
        raise RuntimeError(
            f"{caller} inside a transformation that began within the call which keeps buffers "
            "(a jit, "
            f"vmap, checkpoint, loop or branch), and the update lost. Call the part that is "
            f"transformed by nn.stateful_call, inside that transformation, and return its result"
        )


@contextmanager
def updates_of(modules: Iterable[Any], kept: bool = True) -> Iterator[None]:
    """Let these modules, and no others, take new buffers inside the block; or refuse just these."""
    outer = _open.kept, _open.dropped, _open.interpreter
    those = frozenset(map(id, modules))
    none: frozenset[int] = frozenset()
    try:
        _open.kept, _open.dropped = (those, none) if kept else (none, those)
        _open.interpreter = state.interpreter
        yield
    finally:
        _open.kept, _open.dropped, _open.interpreter = outer


def places(module: Any, prefix: str = "") -> dict[str, tuple[Any, str, Any]]:
    """(module, attribute, array) of each parameter and buffer, by dotted name.

    What is in two places has both names.
    """
    lead = f"{prefix}." if prefix else ""
    out = {f"{lead}{name}": (module, name, value) for name, value in module._arrays()}
    for name, child in module.named_children():
        out |= places(child, f"{lead}{name}")
    return out


class LoadedKeys(NamedTuple):
    """The names that a state dictionary lacked, and those that it had in excess.

    Args:
        missing_keys: names of the module that the dictionary lacked.
        unexpected_keys: names of the dictionary that the module lacks.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]


def load(module: Any, arrays: Any, strict: bool) -> LoadedKeys:
    """Assign arrays by name to the places that are saved; all of them, or none.

    An array in two places that gets the same values for both stays one array.
    """
    caller = f"{type(module).__name__}.load_state_dict"
    if not isinstance(arrays, Mapping):
        raise TypeError(
            f"{caller}: expected a dictionary of names and arrays, got {type(arrays).__name__}"
        )
    here = {name: at for name, at in places(module).items() if at[1] not in at[0]._unsaved}
    missing = [n for n in here if n not in arrays]
    unexpected = [n for n in arrays if n not in here]
    problems = []
    if strict and missing:
        problems.append(f"missing: {', '.join(missing)}")
    if strict and unexpected:
        problems.append(f"unexpected: {', '.join(map(str, unexpected))}")
    way = "; strict=False loads the names in common" if problems else ""
    values = {}
    for name, (_, _, old) in here.items():
        if name in arrays:
            array = arrays[name]
            value = as_value(array if isinstance(array, Value) else np.asarray(array), caller, name)
            if value.shape != old.shape:
                way = ""
                problems.append(
                    f"{name}: expected shape {old.shape}, got {value.shape} of {value.type}"
                )
            else:
                values[name] = convert(value, old.dtype)
    if problems:
        raise ValueError(f"{caller}: nothing was loaded. " + "; ".join(problems) + way)
    loaded: dict[int, Any] = {}
    for name, value in values.items():
        owner, attribute, old = here[name]
        first = loaded.setdefault(id(old), value)
        if not isinstance(value, Tracer) and np.array_equal(first, value):
            value = first
        owner.__dict__[attribute] = value
    return LoadedKeys(missing, unexpected)
