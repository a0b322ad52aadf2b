"""Updates of buffers inside a transformation, and who may make them; loading arrays by name.

``Module`` checks here before an update; ``updates_of`` permits updates.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.interpreter import Tracer, Value, as_value, state
from stretto._engine.core.typing import Array, Tree
from stretto._engine.ops.convert import convert
from stretto.nn.module_tree import BORROWED


class _Open(threading.local):
    """The modules, by identity, in a call that keeps their buffers, or in one that drops them."""

    def __init__(self) -> None:
        self.kept: frozenset[int] = frozenset()
        self.dropped: frozenset[int] = frozenset()
        self.interpreter: Any = None


_open = _Open()


def check(module: Tree, name: str) -> None:
    """Raise ``RuntimeError`` where the buffer's new value would be lost."""
    caller = f"{type(module).__name__}: the buffer {name} would be updated"
    if id(module) in _open.dropped:
        raise RuntimeError(
            f"{caller}, and functional_call loses the update. Put the module in "
            f"evaluation mode with .eval(), or pass return_buffers=True to get (output, buffers)"
        )
    if state.interpreter.at_rest:
        return
    if id(module) not in _open.kept:
        raise RuntimeError(
            f"{caller} inside a transformation, and the update would be lost. Call the model with "
            f".eval() before, in evaluation mode; or, to train it, by `output, model = "
            f"nn.stateful_call(model, ...)`, which returns the update (func.functional_call has "
            f"return_buffers=True, and an Ensemble a stateful_call of its own)"
        )
    if state.interpreter is not _open.interpreter:
        raise RuntimeError(
            f"{caller} inside a transformation (a jit, vmap, checkpoint, loop or branch) that "
            f"began within the call which keeps buffers, and the update would be lost. Inside that "
            f"transformation, call the module with nn.stateful_call, and return its result"
        )


def refuse_borrowed(module: Tree, name: str) -> None:
    """Raise ``AttributeError`` for a change of a member of an ensemble, which would be lost.

    Modes may change, and what the module's own methods assign, such as buffers in a call.
    """
    if name != "training" and sys._getframe(2).f_locals.get("self") is not module:
        raise _lost(module, name)


def _lost(module: Tree, name: str) -> AttributeError:
    return AttributeError(
        f"{type(module).__name__}.{name}: this module was taken from an Ensemble, which a change "
        f"would not reach. Change a copy and put it back: member = ensemble[i].clone(), change it, "
        f"ensemble[i] = member; or all members at once by ensemble.replace"
    )


@contextmanager
def updates_of(modules: Iterable[Tree], kept: bool = True) -> Iterator[None]:
    """Let only these modules update buffers inside the block; or, not ``kept``, refuse them."""
    outer = _open.kept, _open.dropped, _open.interpreter
    chosen = frozenset(map(id, modules))
    none: frozenset[int] = frozenset()
    try:
        _open.kept, _open.dropped = (chosen, none) if kept else (none, chosen)
        _open.interpreter = state.interpreter
        yield
    finally:
        _open.kept, _open.dropped, _open.interpreter = outer


def named_arrays(module: Tree, prefix: str = "") -> dict[str, tuple[Tree, str, Array]]:
    """Return (module, attribute, array) of each parameter and buffer, by dotted name.

    An array held in two places has both names.
    """
    lead = f"{prefix}." if prefix else ""
    out = {f"{lead}{name}": (module, name, value) for name, value in module._arrays()}
    for name, child in module.named_children():
        out |= named_arrays(child, f"{lead}{name}")
    return out


class LoadedKeys(NamedTuple):
    """The names that a state dictionary lacked, and its names that the module lacks.

    Args:
        missing_keys: names of the module that the dictionary lacked.
        unexpected_keys: names of the dictionary that the module lacks.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]


def load(module: Tree, arrays: object, strict: bool) -> LoadedKeys:
    """Assign arrays by name to parameters and persistent buffers: all of them, or none.

    An array held in two places stays one array if both get the same values.
    """
    if BORROWED in module.__dict__:
        raise _lost(module, "load_state_dict")
    caller = f"{type(module).__name__}.load_state_dict"
    if not isinstance(arrays, Mapping):
        raise TypeError(
            f"{caller}: expected a dictionary of names and arrays, got {type(arrays).__name__}"
        )
    here = {name: at for name, at in named_arrays(module).items() if at[1] not in at[0]._unsaved}
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
    loaded: dict[int, Array] = {}
    for name, value in values.items():
        owner, attribute, old = here[name]
        first = loaded.setdefault(id(old), value)
        if not isinstance(value, Tracer) and np.array_equal(first, value):
            value = first
        owner.__dict__[attribute] = value
    return LoadedKeys(missing, unexpected)
