"""The fast path of a jitted call: from the arguments' fingerprint to what was compiled for them.

Layer 7 (api). A fingerprint identifies a signature without flattening the arguments. The C
extension, if it was built, can take that of trees of arrays in plain containers; its Python twin
only that of positional arguments that are arrays. A call whose fingerprint has no record goes
through the general path in ``jit``. Next, read ``jit``.
"""

from __future__ import annotations

import itertools
import struct
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from stretto._engine.api.entry import Entry
from stretto._engine.core import tree
from stretto._engine.core.boundary import hide_frames
from stretto._engine.core.config import settings
from stretto._engine.core.interpreter import state
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.native import native
from stretto._engine.runtime import pjrt
from stretto._engine.runtime.array import SHARDED, Array, Donated
from stretto._engine.runtime.eager import EAGER

if TYPE_CHECKING:  # loaded when a program is run on several devices
    from stretto._engine.runtime import sharded
else:
    sharded = LazyModule("stretto._engine.runtime.sharded")

__all__ = ["Dispatcher", "record_by", "record_of"]

Record = tuple[Any, ...]
"""Everything that a call needs.

``(interpret, run, handlers, places, constants, out_types, unflatten, tidy, kept alive)``: names and
shardings are kept alive, as fingerprints have their addresses;
``interpret`` maps the list of arrays to the list of results; if it is None,
``run(buffers).consume_with_handlers(handlers)`` gives the results' buffers. ``places`` says which
leaves, in the order of the walk, are passed, as machine integers; ``constants`` are the arrays
passed after them; ``unflatten`` is None for a single result that is not in a container; ``tidy`` is
to be called now and then to free what the runtime keeps.
"""


class _Dispatcher:
    """Calls what was compiled for its arguments, or otherwise its method ``_general``."""

    _table: dict[Any, Record]
    _general: Callable[[Any, Any], Any]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The function's results, from the compiled form for these arguments."""
        if state.interpreter is EAGER:
            fingerprint = self._fingerprint(args, kwargs)
            record = None if fingerprint is None else self._table.get(fingerprint)
            if record is not None:
                interpret, run, handlers, places, constants, out_types, unflatten, *_ = record
                arrays = args if places is None else [args[i] for i in places]
                if constants:
                    arrays = [*arrays, *constants]
                if interpret is not None:
                    outs = interpret(arrays)
                else:
                    buffers = [
                        x.to_buffer()
                        if x._buffer is None or x._buffer.__class__ is Donated
                        else x._buffer
                        for x in arrays
                    ]
                    pjrt.tidy()
                    ran = run(buffers).consume_with_handlers(handlers)
                    outs = [Array(None, t, b) for t, b in zip(out_types, ran, strict=True)]
                return outs[0] if unflatten is None else unflatten(outs)
        try:
            return self._general(args, kwargs)
        except Exception as error:
            hide_frames(error)  # also the frame of this function
            raise

    def _attach(self, *about: Any) -> None:
        self._table = {}

    def _fingerprint(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs or not all([x.__class__ is Array or x.__class__ in SHARDED for x in args]):
            return None
        return (settings.key, *[(x.type, id(getattr(x, "_sharding", None))) for x in args])

    def _remember(self, fingerprint: Any, record: Record) -> None:
        places = struct.unpack(f"{len(record[3]) // struct.calcsize('n')}n", record[3])
        in_order = places == tuple(range(len(fingerprint) - 1))
        self._table[fingerprint] = (*record[:3], None if in_order else places, *record[4:])

    def _forget(self) -> None:
        self._table.clear()


if TYPE_CHECKING or native is None:
    Dispatcher = _Dispatcher
else:
    Dispatcher = native.Dispatcher


def record_of(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Record | None:
    """The record for calls like this one; None if they need the general path."""
    if entry.taken or entry.has_tracers or entry.quick or not entry.out_types:
        return None
    order, names = _order(args, kwargs)
    kept = order if entry.kept is None else [order[i] for i in entry.kept]
    executable = entry.executable
    interpret, alive = entry.small, names
    if entry.placement:
        leaves = tree.leaves((args, kwargs) if kwargs else args)
        there = [sharded.sharding_if_any(x) for x in leaves]
        taken = there if entry.kept is None else [there[i] for i in entry.kept]
        taken = [*taken, *map(sharded.sharding_if_any, entry.constants)]
        interpret = sharded.runner(executable, taken)
        alive = [*names, *there]
    return (
        interpret,
        None if interpret else executable.run,
        None if interpret else executable.handlers,
        struct.pack(f"{len(kept)}n", *kept),
        tuple(entry.constants),
        entry.out_types,
        None if entry.single else entry.out_structure.unflatten,
        pjrt.tidy,
        tuple(alive),
    )


def record_by(
    interpret: Callable[[list[Any]], list[Any]], entry: Entry, args: Any, kwargs: Any
) -> Record:
    """The record for calls like this one, run by a function of all leaves and captured arrays."""
    order, names = _order(args, kwargs)
    return (
        interpret,
        None,
        None,
        struct.pack(f"{len(order)}n", *order),
        tuple(entry.captured),
        (),
        None if entry.single else entry.out_structure.unflatten,
        pjrt.tidy,
        tuple(names),
    )


def _order(args: Any, kwargs: Any) -> tuple[list[int], list[str]]:
    """For each leaf, when the walk meets it; and the names that the walk meets."""
    names: list[str] = []
    numbered = _numbered((args, kwargs) if kwargs else args, itertools.count(), names)
    return tree.leaves(numbered), names


def _numbered(node: Any, numbers: Any, names: list[str]) -> Any:
    """The same containers, with leaves replaced by their numbers in the order of the walk."""
    if isinstance(node, dict):
        names += [sys.intern(name) for name in node]
        return {key: _numbered(child, numbers, names) for key, child in node.items()}
    if isinstance(node, (tuple, list)):
        children: Sequence[Any] = [_numbered(child, numbers, names) for child in node]
        return tuple(children) if isinstance(node, tuple) else children
    return None if node is None else next(numbers)
