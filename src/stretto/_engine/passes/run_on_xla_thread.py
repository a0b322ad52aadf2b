"""Have programs that may take long run on a thread of XLA's on CPUs, however small they are.

XLA runs a program in the thread that calls it if it counts fewer than a thousand operations in it,
where each loop counts as one step: then nothing is heard of Ctrl-C until the loop has ended. With a
thousand operations more, which take some 0.2 µs, the call returns, and whoever waits can be
interrupted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.primitive import CALLBACK, ORDERED
from stretto._engine.core.program import Atom, Program
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import remembered
from stretto._engine.core.types import kind_of
from stretto._engine.higher_order.family import has_long_loop
from stretto._engine.ops.bitwise import bitwise_and
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import gt, select, zeros_like
from stretto._engine.ops.complex_parts import real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.reduce import reduce_min
from stretto._engine.ops.shape import slice_in_dim

_COUNT = 1024
_LARGE = 1 << 16
"""Outputs of so many elements are not copied for this: what computes them counts more."""


def run_on_xla_thread(program: Program) -> Program:
    """Add so many operations to a program that may be long that XLA hands it to another thread.

    >>> import stretto as st
    >>> loop = st.make_graph(lambda x: st.lax.while_loop(lambda x: x < 9, lambda x: x + x, x))(1.0)
    >>> len(run_on_xla_thread(loop).equations) > len(loop.equations)
    True
    """
    return remembered(program, "run_on_xla_thread", _run_on_xla_thread)


def _run_on_xla_thread(program: Program) -> Program:
    # Python functions are called in the thread of the call, where signals are heard.
    if not has_long_loop(program) or not program.effects.isdisjoint({CALLBACK, ORDERED}):
        return program
    computed = {v for e in program.equations for v in e.outputs}
    outputs = [a for a in program.outputs if a in computed and 0 < a.type.size < _LARGE]
    if not outputs:
        return program
    smallest = min(outputs, key=lambda a: a.type.size)
    added = record(lambda x: ([_after_counting(x)], None), [smallest.type])[0]
    renamed: dict[Atom, Any] = {added.inputs[0]: smallest}
    equations = [
        type(e)(e.primitive, [renamed.get(a, a) for a in e.inputs], e.outputs, None)
        for e in added.equations
    ]
    results = [added.outputs[0] if a is smallest else a for a in program.outputs]
    return Program(program.inputs, [*program.equations, *equations], results, program.name)


def _after_counting(x: Any) -> Any:
    """Return the same value, after operations that the compiler cannot know to be in vain.

    The least of an integer's bits that it has in common with 0, 1, ... is that with 0.
    """
    first = x if not x.ndim else reshape(slice_in_dim(reshape(x, (x.size,)), 0, 1), ())
    if kind_of(x.dtype) == "complex":
        first = real(first)
    number = convert(first, np.dtype(np.int32))
    common = bitwise_and(broadcast_to(number, (_COUNT,)), iota(np.int32, _COUNT))
    never = gt(reduce_min(common), 0)
    return select(broadcast_to(never, x.shape), zeros_like(x), x)
