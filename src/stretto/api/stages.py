"""The stages of a compiled function: traced, lowered, compiled; and what one signature keeps.

Layer 7 (api). Next, read ``jit``.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto.core import tree
from stretto.core.interpreter import Tracer, as_value
from stretto.core.program import Program
from stretto.core.types import ArrayType, array_type, canonical_dtype
from stretto.lower.stablehlo import lower as lower_program
from stretto.runtime import cache, pjrt
from stretto.runtime.array import Array
from stretto.transforms.simplify import drop_dead, used_inputs

__all__ = ["Compiled", "Entry", "Lowered", "TracedCall", "on_device"]


class Entry:
    """What one signature was traced to, and how to run it."""

    __slots__ = (
        "captured_buffers",
        "captured",
        "executable",
        "has_tracers",
        "kept",
        "lock",
        "out_structure",
        "out_types",
        "program",
        "single",
    )

    executable: Any
    kept: list[int] | None
    captured_buffers: list[Any]

    def __init__(self, program: Program, out_structure: Any, captured: list[Any]) -> None:
        self.program = program
        self.captured = captured
        self.out_structure = out_structure
        self.out_types = program.out_types
        self.single = out_structure == _LEAF
        self.has_tracers = any(isinstance(c, Tracer) for c in captured)
        self.executable = None
        self.lock = threading.Lock()

    def prepare(self) -> Any:
        """Drop what is not used, and compile; once, whichever thread comes first."""
        with self.lock:
            if self.executable is None:
                live = drop_dead(self.program)
                used = used_inputs(live)
                inputs = [v for v, u in zip(live.inputs, used, strict=True) if u]
                slim = Program(inputs, live.equations, live.outputs, live.name)
                own = len(live.inputs) - len(self.captured)
                self.kept = None if all(used[:own]) else [i for i in range(own) if used[i]]
                self.captured_buffers = [
                    c.to_device() for c, u in zip(self.captured, used[own:], strict=True) if u
                ]
                self.executable = cache.executable(slim)
            return self.executable

    def run(self, arrays: Sequence[Array]) -> Any:
        """Run on the arguments' arrays, and build the result."""
        run = self.executable or self.prepare()
        if self.kept is not None:
            arrays = [arrays[i] for i in self.kept]
        buffers = [a.to_device() for a in arrays]
        if self.captured_buffers:
            buffers += self.captured_buffers
        outs = run(buffers)
        if self.single:
            return Array(None, self.out_types[0], outs[0])
        arrays = [Array(None, t, b) for t, b in zip(self.out_types, outs, strict=True)]
        return tree.unflatten(self.out_structure, arrays)


_LEAF = tree.structure(0)


def on_device(leaf: Any) -> Any:
    """A NumPy array as an array on the device, in one copy; anything else as it is."""
    if isinstance(leaf, np.ndarray) and leaf.size and leaf.dtype == canonical_dtype(leaf.dtype):
        type = array_type(leaf.shape, leaf.dtype)
        return Array(None, type, pjrt.to_device(leaf, type, own=False))
    return leaf


class TracedCall:
    """A function traced for one signature."""

    def __init__(
        self, entry: Entry, structure: Any, types: Sequence[ArrayType], plain: bool
    ) -> None:
        self._entry = entry
        self._structure = structure
        self._types = types
        self._plain = plain

    @property
    def program(self) -> Program:
        """The typed program."""
        return self._entry.program

    def lower(self) -> Lowered:
        """As StableHLO."""
        return Lowered(self)

    def __str__(self) -> str:
        return str(self.program)


class Lowered:
    """A traced function as StableHLO text."""

    def __init__(self, traced: TracedCall) -> None:
        self._traced = traced
        self._text = lower_program(drop_dead(traced.program))

    def as_text(self) -> str:
        """The StableHLO module."""
        return self._text

    def compile(self) -> Compiled:
        """Compiled by XLA."""
        return Compiled(self._traced)


class Compiled:
    """A function compiled for one signature; called with the arguments that are not static."""

    def __init__(self, traced: TracedCall) -> None:
        self._traced = traced
        traced._entry.prepare()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results for arguments of the types compiled for."""
        traced = self._traced
        who = traced.program.name
        leaves, structure = tree.flatten(args if traced._plain and not kwargs else (args, kwargs))
        arrays = [as_value(on_device(x), who, "an argument") for x in leaves]
        types = [a.type for a in arrays]
        if structure != traced._structure or [(t.shape, t.dtype) for t in types] != [
            (t.shape, t.dtype) for t in traced._types
        ]:
            raise TypeError(
                f"{who}: compiled for {list(traced._types)} in {traced._structure}, called with "
                f"{types} in {structure}"
            )
        return traced._entry.run(arrays)

    def as_text(self) -> str:
        """The optimised HLO."""
        return self._traced._entry.executable.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates: ``flops``, ``bytes accessed`` and more."""
        return self._traced._entry.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Sizes in bytes of arguments, outputs, temporaries and code."""
        return self._traced._entry.executable.memory_analysis()
