"""Values that several kernels need are computed once, where XLA would compute them in each.

XLA fuses element-wise work into whatever reads it. Where several kernels read a value, each
computes it again, with all that led to it: the cotangents of a network with residual connections
are long sums, and the kernels of each layer begin with those of all layers after it. A barrier
behind such a value keeps the work before it in one kernel. ``prepare`` calls this; decision 38 has
the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stretto._engine.core.primitive import Kernel
from stretto._engine.core.program import Atom, Program, Var
from stretto._engine.core.rewriting import (
    changed_inside,
    remembered,
    types_made,
)
from stretto._engine.core.types import bytes_of
from stretto._engine.higher_order.call import Call
from stretto._engine.ops.barrier import with_barriers
from stretto._engine.ops.elementwise import Elementwise

_READS = 2
"""How many arrays of its size a value is made of, at least, to be worth storing.

To compute it again is to read them again; to store it is to write it once, and read it.
"""

_LEAST = 1 << 12
"""The bytes of the smallest value that is stored: below, a kernel costs more than what it saves."""

_FEWEST = _LEAST // 16
"""The fewest elements, of the widest dtype, that such a value has."""

_SMALL = 4
"""Operands this many times smaller than the value cost nothing to read."""

_MOST = 16
"""How many operands of a value are counted."""


def materialize_shared(program: Program) -> Program:
    """The program with barriers behind values that several kernels would compute; the same values.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> def f(x, y):
    ...     s = x + y
    ...     return s.sum(), s.max(0)
    >>> x = snp.ones((64, 64))
    >>> print(materialize_shared(make_graph(f)(x, x)))
    { f(a:f32[64,64], b:f32[64,64])
      c:f32[64,64] = add a b
      d:f32[64,64] = optimization_barrier c
      e:f32[] = reduce_sum d [axes=(0, 1)]
      f:f32[64] = reduce_max d [axes=(0,)]
      return e, f }
    """
    return remembered(program, "materialize_shared", _materialize_shared)


def _materialize_shared(program: Program) -> Program:
    program = changed_inside(program, materialize_shared)
    types = types_made(program)
    if any([t.size >= _FEWEST for t in types]):
        shared = {v for v in _shared(program) if bytes_of(v.type) >= _LEAST}
        if shared:
            return with_barriers(program, _worth_storing(program, shared))
    return program


def _worth_storing(program: Program, shared: set[Atom]) -> set[Atom]:
    """Keep those of the shared values that are worth storing."""
    made_of: dict[Atom, tuple[Var, ...]] = {}
    stored: set[Atom] = set()
    for e in program.equations:
        fused = _fused(e.primitive)
        if not fused and shared.isdisjoint(e.outputs):
            continue
        read = _sources(e.inputs, made_of)
        for value in e.outputs:
            sources = _of_size(read, bytes_of(value.type))
            if value in shared:
                if e.primitive.kernel is Kernel.LONG:
                    continue  # XLA does not repeat it
                if _bytes(sources) >= _READS * bytes_of(value.type):
                    stored.add(value)
                    continue
            if fused:
                made_of[value] = sources
    return stored


def _fused(primitive: Any) -> bool:
    """Whether XLA makes it part of the kernels that read its result."""
    return isinstance(primitive, Elementwise) or primitive.kernel is Kernel.VIEW


def _shared(program: Program) -> set[Atom]:
    """The values that are parts of several kernels.

    They are results of element-wise operations, or of calls, which XLA inlines. A kernel is named
    by its result; a shared value is taken for one.
    """
    outputs = set(program.outputs)
    readers: dict[Atom, tuple[Var, ...]] = {}
    shared: set[Atom] = set()
    for e in reversed(program.equations):
        if not e.outputs:
            continue
        primitive: Any = e.primitive
        kernels: tuple[Var, ...] = (e.outputs[0],)
        for value in e.outputs:
            read_by = readers.get(value, ())
            if value in outputs:
                continue
            if len(read_by) < 2 or not _storable(primitive, value):
                if _fused(primitive):
                    kernels = read_by
            else:
                shared.add(value)
        for a in e.inputs:
            if a.__class__ is Var:
                known = readers.get(a, ())
                if len(known) < 2 and known != kernels:
                    readers[a] = (*known, *[k for k in kernels if k not in known])
    return shared


def _storable(primitive: Any, value: Atom) -> bool:
    """Whether it may be stored for the kernels that read it, at a gain.

    A kernel that reads truth values is not vectorized, whereas one that compares again is.
    """
    return isinstance(primitive, Elementwise | Call) and value.type.dtype != bool


def _sources(operands: Iterable[Atom], made_of: dict[Atom, tuple[Var, ...]]) -> list[Var]:
    """The stored arrays that an operation on these operands reads, once fused."""
    sources: dict[Var, None] = {}
    for a in operands:
        if isinstance(a, Var):
            sources.update(dict.fromkeys(made_of.get(a, (a,))))
    return list(sources)


def _of_size(sources: list[Var], size: int) -> tuple[Var, ...]:
    """Those that take time to read, beside a value of so many bytes."""
    return tuple([s for s in sources if _SMALL * bytes_of(s.type) >= size][:_MOST])


def _bytes(sources: Iterable[Var]) -> int:
    return sum([bytes_of(s.type) for s in sources])
