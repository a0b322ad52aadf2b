"""Exponentials of what is below its greatest, as in softmax: where padding need not be replaced.

With -inf as the padding of x, that of exp(x - max(x)) is 0. It is NaN only where the greatest is
NaN or -inf, and then all that is valid beside it is NaN, too. So whatever adds it up along the axes
of the maximum gives the same as without padding, and so it is with the quotient by its sum. This
spares selections over all scores of an attention, which keep XLA from computing the exponential,
the sum and the product in one kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from stretto._engine.core.program import Atom, Equation, Program
from stretto._engine.core.sizes import Size
from stretto._engine.ops.arithmetic import DIV, SUB
from stretto._engine.ops.broadcast import BroadcastInDim, ReduceSum
from stretto._engine.ops.exponential import EXP
from stretto._engine.ops.layout import Reshape
from stretto._engine.ops.reducing.reduce import ReduceMax

Axes = tuple[int, ...]


class BelowGreatest(NamedTuple):
    """What is known of values of a program, by the axes along which it is so."""

    differences: dict[Atom, Axes]
    """Values less their greatest; padding of these values is to be -inf."""
    zeros: dict[Atom, Axes]
    """Values whose padding then counts as 0."""


def below_greatest(program: Program) -> BelowGreatest:
    """The values less their greatest, their exponentials, and quotients of these by their sums."""
    known = BelowGreatest({}, {})
    makers: dict[Any, Equation] = {v: e for e in program.equations for v in e.outputs}
    for equation in program.equations:
        primitive: Any = equation.primitive
        if primitive is SUB:
            x, y = equation.inputs
            axes = _spread(y, ReduceMax, x, makers)
            if axes and all(map(_has_elements, x.type.shape)):
                known.differences[equation.outputs[0]] = axes
        elif primitive is EXP:
            axes = known.differences.get(equation.inputs[0])
            if axes:
                known.zeros[equation.outputs[0]] = axes
        elif primitive is DIV:
            x, y = equation.inputs
            axes = known.zeros.get(x)
            if axes and _spread(y, ReduceSum, x, makers) == axes:
                known.zeros[equation.outputs[0]] = axes
    return known


def _has_elements(n: Any) -> bool:
    return n.bounds()[0] >= 1 if isinstance(n, Size) else True


def _spread(y: Atom, kind: type[Any], x: Atom, makers: Mapping[Atom, Equation]) -> Axes | None:
    """The axes of a reduction of this kind of ``x``, if ``y`` repeats that along them."""
    repeat = makers.get(y)
    if repeat is None or not isinstance(repeat.primitive, BroadcastInDim):
        return None
    shape, dims = x.type.shape, repeat.primitive.dims
    (inner,) = repeat.inputs
    maker = makers.get(inner)
    kept = False
    if maker is not None and isinstance(maker.primitive, Reshape):
        kept, maker = True, makers.get(maker.inputs[0])
    if maker is None or not isinstance(maker.primitive, kind) or y.type.shape != shape:
        return None
    if _same(maker.inputs[0], makers) is not x:
        return None
    reduction: Any = maker.primitive
    axes = tuple(reduction.axes)
    if kept:  # with 1 in the place of the axes
        ones = tuple([1 if d in axes else n for d, n in enumerate(shape)])
        fits = inner.type.shape == ones and dims == tuple(range(len(shape)))
    else:
        fits = dims == tuple([d for d in range(len(shape)) if d not in axes])
    return axes if fits else None


def _same(atom: Atom, makers: Mapping[Atom, Equation]) -> Atom:
    """The value that operations without an effect on it were applied to."""
    maker = makers.get(atom)
    while maker is not None and maker.primitive.same:
        (atom,) = maker.inputs
        maker = makers.get(atom)
    return atom
