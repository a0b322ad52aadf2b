"""The optimization barrier: asks the compiler to keep the work on its two sides separate.

XLA merges and moves work, but not across a barrier. It may still start the work behind one before
the work in front of another: work that must wait goes into a call of its own, as in
``higher_order/checkpoint``. ``passes/barriers`` puts barriers into programs.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, TypeVar

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.position import Place
from stretto._engine.core.primitive import CARRIED, Kernel, Primitive
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.rewriting import with_equations
from stretto._engine.core.types import ArrayType

T = TypeVar("T")


class OptimizationBarrier(Primitive):
    """The operands, behind a barrier."""

    padded = CARRIED

    kernel = Kernel.ONE
    multiple = True
    keeps_zeros = True
    mergeable = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return types

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """The operands: NumPy neither merges nor moves work."""
        return arrays

    def lower(self, b: Any, *operands: Any) -> Any:
        """StableHLO ``optimization_barrier``; nothing in a program that combines scalars."""
        return b.barrier(operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """One barrier for the values, one for the tangents, so that each can be run alone."""
        return self(*primals), self._present(tangents)

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        return self._present(cts)

    def _present(self, values: Sequence[Any]) -> list[Any]:
        """A barrier for the values that are not None, which stands for zero."""
        present = [v for v in values if v is not None]
        outputs = iter(self(*present) if present else ())
        return [None if v is None else next(outputs) for v in values]

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(*args), axes


OPTIMIZATION_BARRIER = OptimizationBarrier()


def with_barriers(program: Program, barred: Set[Atom]) -> Program:
    """Return the program with barriers behind these values, in front of all that reads them."""
    renamed: dict[Atom, Var] = {}
    result: list[Equation] = []

    def keep(value: Atom, place: Place | None) -> None:
        copy = renamed[value] = Var(value.type)
        result.append(Equation(OPTIMIZATION_BARRIER, [value], [copy], place))

    for value in program.inputs:
        if value in barred:
            keep(value, None)
    for e in program.equations:
        if renamed and not renamed.keys().isdisjoint(e.inputs):
            e = Equation(e.primitive, [renamed.get(a, a) for a in e.inputs], e.outputs, e.place)
        result.append(e)
        for value in e.outputs:
            if value in barred:
                keep(value, e.place)
    return with_equations(program, result)


def optimization_barrier(operand: T, /) -> T:
    """Keep the compiler from moving work across these values.

    Args:
        operand: a tree of arrays.

    Returns:
        The same values, with the derivatives of the identity.

    Raises:
        TypeError: a leaf is not an array.

    Source: StableHLO, ``optimization_barrier``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.lax.optimization_barrier({"x": snp.ones(2)})
    {'x': Array([1., 1.], dtype=float32)}
    """
    leaves, structure = tree.flatten(operand)
    caller = "optimization_barrier"
    values = [
        as_value(leaf, caller, path)
        for leaf, path in zip(leaves, tree.paths(operand, "operand"), strict=True)
    ]
    return tree.unflatten(structure, OPTIMIZATION_BARRIER(*values) if values else ())
