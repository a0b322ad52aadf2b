"""Eager evaluation on another device than the first: the interpreter of ``default_device``.

Short ways for arrays at rest ask whether the current interpreter is ``EAGER``, so that all of them
leave what is done under this one to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stretto._engine.core.config import settings
from stretto._engine.core.effects import meshes
from stretto._engine.core.interpreter import Interpreter, state
from stretto._engine.core.lazy import LazyModule
from stretto._engine.eager.interpreter import EAGER
from stretto._engine.xla.array import Array

if TYPE_CHECKING:  # loaded when arrays are put on devices
    from stretto._engine.core.shardings import Sharding
    from stretto._engine.eager import checked
    from stretto._engine.xla import sharded
else:
    checked = LazyModule("stretto._engine.eager.checked")
    sharded = LazyModule("stretto._engine.xla.sharded")


class OnDevice(Interpreter):
    """Evaluates operations on arrays that were not put anywhere on one device of choice."""

    __slots__ = ("sharding",)

    ended = False
    at_rest = True

    def __init__(self, sharding: Sharding) -> None:
        self.sharding = sharding

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Put the arrays on the device, unless one has a place already, and run it there."""
        run = checked.CHECKED if settings.key.debugged else EAGER
        if meshes(primitive.effects):
            return run.process(primitive, args)
        if all([a.__class__ is Array for a in args]):
            args = [self.put(a) for a in args]
        outs = run.process(primitive, args)
        return tuple([self.put(out) for out in outs]) if primitive.multiple else self.put(outs)

    def put(self, x: Any) -> Any:
        """Put the array on the device, unless it was put anywhere; leave other values alone."""
        return sharded.placed(x, self.sharding) if x.__class__ is Array else x


def default_sharding() -> Sharding | None:
    """Say where arrays made here are put; None for the first device, or inside a trace."""
    here = state.interpreter
    return here.sharding if here.__class__ is OnDevice else None


def at_home(x: Any) -> Any:
    """Put the value on the default device if it was not put anywhere."""
    here = state.interpreter
    return here.put(x) if here.__class__ is OnDevice else x
