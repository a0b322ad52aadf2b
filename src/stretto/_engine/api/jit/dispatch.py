"""The fast path of a jitted call: from the arguments' fingerprint to what was compiled for them.

A fingerprint identifies a signature without flattening the arguments. The C extension, if it was
built, can take that of most trees: of arrays, NumPy's too, and numbers in containers, named tuples
and registered classes, beside static arguments. Its Python twin can only take that of positional
arguments that are arrays. A call whose fingerprint has no record goes through the general path in
``jit``.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine import xla
from stretto._engine.api.jit.entry import BufferRunner, Entry, PlacedRunner
from stretto._engine.api.jit.stages import on_device
from stretto._engine.core import tree
from stretto._engine.core.boundary import hide_frames
from stretto._engine.core.config import settings
from stretto._engine.core.interpreter import as_value, state
from stretto._engine.core.nodes import APART
from stretto._engine.core.types import ArrayType, array_type, canonical_dtype
from stretto._engine.eager.interpreter import EAGER
from stretto._engine.native import native
from stretto._engine.xla import pjrt
from stretto._engine.xla.array import SHARDED, Absent, Array
from stretto._engine.xla.patience import unusual


class _Record:
    """The way in which a call is run whose fingerprint is known.

    Args:
        interpret: gives the list of results for the list of arrays passed; if it is None,
            ``run(buffers).consume_with_handlers(handlers)`` gives the results' buffers.
        run: see ``interpret``.
        handlers: see ``interpret``.
        leaves: which leaves are passed, as the walk numbers them.
        constants: the arrays passed after them.
        out_types: the types of what ``run`` gives.
        unflatten: makes the result of the list of results; None for one that is in no container.
        tidy: is called now and then to free what the runtime keeps.
        alive: names, classes and shardings, kept alive as fingerprints have their addresses.
    """

    __slots__ = (
        "alive",
        "constants",
        "handlers",
        "interpret",
        "leaves",
        "out_types",
        "run",
        "tidy",
        "unflatten",
    )

    def __init__(
        self,
        *,
        interpret: Callable[[list[Any]], list[Any]] | None,
        run: Any,
        handlers: Any,
        leaves: tuple[int, ...],
        constants: tuple[Any, ...],
        out_types: tuple[ArrayType, ...],
        unflatten: Callable[[list[Any]], Any] | None,
        tidy: Callable[[], None],
        alive: tuple[Any, ...],
    ) -> None:
        self.interpret, self.run, self.handlers = interpret, run, handlers
        self.leaves, self.constants, self.out_types = leaves, constants, out_types
        self.unflatten, self.tidy, self.alive = unflatten, tidy, alive


class _Dispatcher:
    """Calls what was compiled for its arguments, or otherwise its method ``_general``."""

    _table: dict[Any, _Record]
    _general: Callable[[Any, Any], Any]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the function's results, from the compiled form for these arguments."""
        if state.interpreter is EAGER:
            fingerprint = self._fingerprint(args, kwargs)
            record = None if fingerprint is None else self._table.get(fingerprint)
            if record is not None:
                arrays = [args[i] for i in record.leaves]
                arrays += record.constants
                if record.interpret is not None:
                    outs = record.interpret(arrays)
                else:
                    buffers = [
                        x.to_buffer()
                        if x._buffer is None or isinstance(x._buffer, Absent)
                        else x._buffer
                        for x in arrays
                    ]
                    record.tidy()
                    ran = record.run(buffers).consume_with_handlers(record.handlers)
                    outs = [Array(None, t, b) for t, b in zip(record.out_types, ran, strict=True)]
                return outs[0] if record.unflatten is None else record.unflatten(outs)
        try:
            return self._general(args, kwargs)
        except Exception as error:
            hide_frames(error)  # also the frame of this function
            raise

    def _attach(self, numbers: tuple[int, ...], names: tuple[str, ...]) -> None:
        del numbers, names  # of calls with static arguments it takes no fingerprint
        self._table = {}

    def _fingerprint(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs or not all([x.__class__ is Array or x.__class__ in SHARDED for x in args]):
            return None
        return (settings.key, *[(x.type, id(getattr(x, "_sharding", None))) for x in args])

    def _remember(self, fingerprint: Any, record: _Record) -> None:
        self._table[fingerprint] = record

    def _forget(self) -> None:
        self._table.clear()


if TYPE_CHECKING or native is None:
    Dispatcher = _Dispatcher
    Record = _Record
else:
    Dispatcher = native.Dispatcher
    Record = native.CallRecord


_PLAIN = frozenset(map(np.dtype, "?bhilqBHILQefdFD"))
_MOST = 2**31 - 1
"""The largest whole number of which an array is made here: others may not fit."""


def leaf_of(leaf: Any) -> Any:
    """Return an array for a number, the type for a NumPy array, None for the general way."""
    cls = leaf.__class__
    if cls is np.ndarray:
        return array_type(leaf.shape, canonical_dtype(leaf.dtype)) if leaf.dtype in _PLAIN else None
    if cls is float or cls is bool or cls is complex or (cls is int and -_MOST <= leaf <= _MOST):
        return as_value(leaf)
    return as_array(leaf) if isinstance(leaf, np.generic) and leaf.dtype in _PLAIN else None


def as_array(leaf: np.ndarray | np.generic) -> Any:
    """Return the array for a NumPy array, or None for integers that do not fit.

    Those go the general way, whose error names the argument.
    """
    try:
        return as_value(on_device(leaf))
    except OverflowError:
        return None


if native is not None:
    native.attach_jit(settings=settings, apart=APART, leaf_of=leaf_of, as_array=as_array)


def recordable(entry: Entry) -> bool:
    """Say if there can be a record for calls of an entry, of which it is decided how they run."""
    if unusual or entry.runner is None:  # a thread is about it
        return False
    return not (entry.taken or entry.has_tracers or entry.quick) and bool(entry.out_types)


def record_of(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Record:
    """Return the record for calls like this one, of an entry for which there can be one.

    The static arguments have been taken out.
    """
    order, alive = _order(args, kwargs)
    kept = order if entry.kept is None else [order[i] for i in entry.kept]
    runner: Any = entry.runner
    interpret, run, handlers = runner, None, None
    if isinstance(runner, BufferRunner):
        interpret, run, handlers = None, runner.executable.run, runner.executable.handlers
    elif isinstance(runner, PlacedRunner):
        leaves = tree.leaves((args, kwargs) if kwargs else args)
        there = [xla.sharded.sharding_if_any(x) for x in leaves]
        taken = there if entry.kept is None else [there[i] for i in entry.kept]
        taken = [*taken, *map(xla.sharded.sharding_if_any, entry.constants)]
        interpret = xla.sharded.runner(runner.executable, taken)
        alive += there
    return Record(
        interpret=interpret,
        run=run,
        handlers=handlers,
        leaves=tuple(kept),
        constants=tuple(entry.constants),
        out_types=entry.out_types,
        unflatten=None if entry.single else entry.out_structure.unflatten,
        tidy=pjrt.tidy,
        alive=tuple(alive),
    )


def record_by(
    interpret: Callable[[list[Any]], list[Any]], entry: Entry, args: Any, kwargs: Any
) -> Record:
    """Return the record for such calls, run by a function of all leaves and captured arrays."""
    order, alive = _order(args, kwargs)
    return Record(
        interpret=interpret,
        run=None,
        handlers=None,
        leaves=tuple(order),
        constants=tuple(entry.captured),
        out_types=(),
        unflatten=None if entry.single else entry.out_structure.unflatten,
        tidy=pjrt.tidy,
        alive=tuple(alive),
    )


def _order(args: Any, kwargs: Any) -> tuple[list[int], list[Any]]:
    """Number the leaves as the walk meets them, and list the names and classes that it meets."""
    numbers, alive = itertools.count(), []
    order = _numbers(args, numbers, alive)
    return (order + _numbers(kwargs, numbers, alive) if kwargs else order), alive


def _numbers(node: Any, numbers: Any, alive: list[Any]) -> list[int]:
    """Return the numbers of the leaves in the order of the walk, in the order of flattening."""
    cls = node.__class__
    if cls is dict:
        alive += [sys.intern(name) for name in node]
        parts = {name: _numbers(child, numbers, alive) for name, child in node.items()}
        return [i for name in sorted(parts) for i in parts[name]]
    if node is None:
        return []
    children: Any = node if cls is tuple or cls is list else None
    take_apart = APART.get(cls)
    if take_apart is not None:
        children = take_apart(node)[0]
        alive.append(cls)
    elif isinstance(node, tuple):
        children = node
        alive.append(cls)
    if children is None:
        return [next(numbers)]
    return [i for child in children for i in _numbers(child, numbers, alive)]
