"""Operations that give back their operands: barriers, names, and marks of examples."""

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
from stretto._engine.ops.fused import Fused

# The optimization barrier: asks the compiler to keep the work on its two sides separate.
#
# XLA merges and moves work, but not across a barrier. It may still start the work behind one
# before the work in front of another: work that must wait goes into a call of its own, as in
# ``higher_order/checkpoint``. ``passes/barriers`` and others put barriers into programs.


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
        """Return the operands: NumPy neither merges nor moves work."""
        return arrays

    def lower(self, b: Any, *operands: Any) -> Any:
        """Write StableHLO ``optimization_barrier``; nothing in a program that combines scalars."""
        return b.barrier(operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Put one barrier for the values, one for the tangents, so that each can run alone."""
        return self(*primals), self._present(tangents)

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        return self._present(cts)

    def _present(self, values: Sequence[Any]) -> list[Any]:
        """Return a barrier for the values that are not None, which stands for zero."""
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


class After(Fused):
    """The first operand, when the second is known, which nobody reads."""

    def infer(self, x: ArrayType, known: ArrayType) -> ArrayType:
        return x

    def reference(self, x: np.ndarray, known: np.ndarray) -> np.ndarray:
        return x

    def lower(self, b: Any, x: Any, known: Any) -> Any:
        """Write a call that does nothing, in the operand's memory; nothing without kernels."""
        call = b.called_kernel("stretto_unwritten", [x, known], [x.type], [0], {0: 0})
        return x if call is None else call[0]


AFTER = After()


# Names for values, by which a checkpoint's policy knows them.


class Marked(Primitive, abstract=True):
    """The operand, which passes of ours know by a mark; no operation in compiled programs."""

    padded = CARRIED
    light = True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        return range(out.ndim)

    def infer(self, x: ArrayType) -> ArrayType:
        return x

    def reference(self, x: np.ndarray) -> np.ndarray:
        return x

    def lower(self, b: Any, x: Any) -> Any:
        return x


class Name(Marked):
    """The operand, under a name."""

    label: str
    hands_on = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """The value has the name; its tangent has none."""
        return self(*primals), tangents[0]

    def transpose(self, ct: Any, x: Any) -> tuple[Any]:
        return (ct,)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(*args), axes[0]


def checkpoint_name(x: T, name: str) -> T:
    """Name the leaves of a tree, so that policies of ``checkpoint`` know them.

    Outside a checkpoint it does nothing.

    Args:
        x: a tree of arrays.
        name: the name.

    Returns:
        The same tree.

    Raises:
        TypeError: ``name`` is not a string, or a leaf is not an array.

    >>> import stretto as st, stretto.numpy as snp
    >>> only = st.checkpoint_policies.save_only_these_names("wave")
    >>> f = st.checkpoint(lambda x: snp.sin(st.checkpoint_name(snp.sin(x), "wave")), policy=only)
    >>> float(st.grad(f)(0.0))
    1.0
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: name must be a string, got {type(name).__name__}")
    primitive = Name(name)
    return tree.map(lambda leaf: primitive(as_value(leaf, "checkpoint_name")), x)


# A mark on values that ``vmap`` maps: along which axis the examples lie, for finding faults.
#
# ``autodiff/vmap`` leaves them while ``config.debug_nans`` or ``debug_infs`` is set, and
# ``eager/checked`` reads them.


class Example(Marked):
    """The operand, whose examples lie along this axis."""

    axis: int
    keeps_zeros = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (dx,) = primals, tangents
        return self(x), self(dx)

    def transpose(self, ct: Any, x: Any) -> tuple[Any]:
        return (self(ct),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The axis is one further, if the new one is in front of it."""
        (x,), (axis,) = args, axes
        assert axis is not None
        return Example(self.axis + (axis <= self.axis))(x), axis
