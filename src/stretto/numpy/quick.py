"""The short way from an operator to its primitive, for eager arrays and Python numbers.

Layer 7 (numpy). Promotion and broadcasting cost more than a small array's arithmetic. Operands of
one type, or one with a Python number that takes its dtype, need neither. Next, read ``methods``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto.core.interpreter import Value, state
from stretto.core.types import ArrayType
from stretto.ops.elementwise import Elementwise
from stretto.runtime.array import Array
from stretto.runtime.eager import EAGER, quiet

__all__ = ["array_of", "quick", "splat"]

_TAKES = {
    "bool": (),
    "int": (int,),
    "uint": (int,),
    "float": (int, float),
    "complex": (int, float, complex),
    "float0": (),
}
_CAPACITY = 4096


def array_of(result: Any, type: ArrayType) -> Array:
    """The array that holds what NumPy gave."""
    return Array(result if result.__class__ is np.ndarray else np.asarray(result), type)


def splat(element: Any, type: ArrayType) -> Array:
    """The array of this type, each element this NumPy scalar of its dtype; takes no memory."""
    one = np.asarray(element)
    return Array(np.ndarray(type.shape, type.dtype, one, 0, (0,) * type.ndim), type)


def _element(x: Any, type: ArrayType) -> Any:
    """The Python number in this dtype; None where promotion or a refusal is due."""
    if x.__class__ in _TAKES[type.kind]:
        try:
            return quiet.run(type.dtype.type, x)
        except (OverflowError, ValueError):
            pass
    return None


def quick(
    primitive: Elementwise,
    general: Callable[[Any, Any], Any],
    kinds: frozenset[str] | None = None,
) -> Callable[[Any, Any], Any]:
    """``general``, a function of two arguments, with a short way to ``primitive``.

    The short way is taken for arguments of one type whose kind is among ``kinds`` (by default those
    the primitive accepts), and for one such argument with a Python number that takes its dtype.
    """
    accepted = primitive.accepts if kinds is None else kinds
    reference = primitive.reference
    outs: dict[ArrayType, ArrayType | None] = {}

    def out_type(type: ArrayType) -> ArrayType | None:
        if len(outs) > _CAPACITY:
            outs.clear()
        fits = type.kind in accepted
        outs[type] = primitive.out_types((type, type))[0] if fits else None
        return outs[type]

    def apply(x: Any, y: Any) -> Any:
        if isinstance(x, Value):
            type = x.type
            out = outs[type] if type in outs else out_type(type)
            if out is not None:
                if isinstance(y, Value):
                    if y.type is type:
                        if x.__class__ is y.__class__ is Array and state.interpreter is EAGER:
                            return array_of(quiet.run(reference, x.to_host(), y.to_host()), out)
                        return primitive(x, y)
                elif (element := _element(y, type)) is not None:
                    if x.__class__ is Array and state.interpreter is EAGER:
                        return array_of(quiet.run(reference, x.to_host(), element), out)
                    return primitive(x, splat(element, type))
        elif isinstance(y, Value):
            type = y.type
            out = outs[type] if type in outs else out_type(type)
            if out is not None and (element := _element(x, type)) is not None:
                if y.__class__ is Array and state.interpreter is EAGER:
                    return array_of(quiet.run(reference, element, y.to_host()), out)
                return primitive(splat(element, type), y)
        return general(x, y)

    return apply
