"""Constant folding: operations on small constant arrays are done before anything is compiled.

Operations on literals already fold while a program is recorded (``core/recorder``); here the same
is done for ``iota`` and small arrays, in the walk of ``common``. Results must equal the compiled
program's, bit by bit, so functions of floats, which the compiler may round differently, are left to
it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.program import Atom, Equation, Literal, as_literal
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.constant import Constant, Held
from stretto._engine.ops.elementwise import Elementwise

_MOST_ELEMENTS = 256
"""The largest result that is folded: written into the lowered text it takes a kilobyte or two."""

_INEXACT = ("float", "complex")


class Constants(dict[Atom, np.ndarray]):
    """Maps variables to their constant values, if known."""

    def __init__(self) -> None:
        self.atoms: dict[Any, Atom] = {}
        """The first variable for each value, by its type and bytes."""


def folded(equation: Equation, known: Constants) -> Equation | Atom:
    """If all operands are known: an equation that holds the result, or an atom equal to it.

    Otherwise the equation itself.
    """
    if any([a not in known and type(a) is not Literal for a in equation.inputs]):
        return equation
    if len(equation.outputs) != 1:
        return equation
    (out,) = equation.outputs
    if not _folds(equation, out.type):
        return equation
    arrays = [a.array() if isinstance(a, Literal) else known[a] for a in equation.inputs]
    with np.errstate(all="ignore"):
        result = np.asarray(equation.primitive.reference(*arrays))
    value = np.ascontiguousarray(result.astype(out.type.dtype, copy=False))
    bits = value.tobytes()
    if bits == bits[: value.itemsize] * value.size:  # all elements are the same
        literal = as_literal(value.reshape(-1)[:1], out.type)
        assert literal is not None
        return literal
    same = known.atoms.setdefault((out.type, bits), out)
    if same is not out:
        return same
    known[out] = value
    if not equation.inputs:
        return equation
    return Equation(Constant(Held(value, out.type)), (), equation.outputs, equation.place)


def _folds(equation: Equation, out: ArrayType) -> bool:
    """Whether the operation is exact, and its result small."""
    primitive: Any = equation.primitive
    if out.size > _MOST_ELEMENTS:
        return False
    if not equation.inputs:
        return not (primitive.calls_python or primitive.holds_programs or primitive.effects)
    if not primitive.splat:
        return False
    inexact = any([t.kind in _INEXACT for t in (out, *[a.type for a in equation.inputs])])
    return not (inexact and isinstance(primitive, Elementwise))
