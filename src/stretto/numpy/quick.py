"""The short way from a function to NumPy, for arrays at rest and Python numbers.

Layer 7 (numpy). Promotion and broadcasting cost more than a small array's arithmetic. Operands of
one dtype, or one with a Python number that takes its dtype, need no promotion, and at rest NumPy
broadcasts. Next, read ``methods``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto.core.interpreter import Value, state
from stretto.core.program import repeated
from stretto.core.types import ArrayType, array_type
from stretto.ops.broadcast import broadcast_to
from stretto.ops.elementwise import Elementwise, broadcast_shapes
from stretto.runtime.array import Array
from stretto.runtime.eager import EAGER, quiet

__all__ = ["array_of", "at_rest", "element_of", "quick", "same_dtype", "splat"]

_TAKES = {
    "bool": (),
    "int": (int,),
    "uint": (int,),
    "float": (int, float),
    "complex": (int, float, complex),
    "float0": (),
}
_CAPACITY = 4096


def at_rest(*values: Any) -> bool:
    """Whether these are concrete arrays and nothing is being traced: NumPy may do the work."""
    return state.interpreter is EAGER and all(v.__class__ is Array for v in values)


def array_of(result: Any, dtype: np.dtype, weak: bool = False) -> Array:
    """The array that holds what NumPy gave, which is of this dtype."""
    host = result if result.__class__ is np.ndarray else np.asarray(result)
    return Array(host, array_type(host.shape, dtype, weak))


def same_dtype(x: ArrayType, y: ArrayType) -> bool:
    """Whether two types differ in shape alone."""
    return x.dtype is y.dtype and x.weak_type == y.weak_type


def splat(element: Any, type: ArrayType) -> Array:
    """The array of this type, each element this NumPy scalar of its dtype; takes no memory."""
    one = np.asarray(element)
    return Array(repeated(one, type.shape), type)


def element_of(x: Any, type: ArrayType) -> Any:
    """The Python number in the dtype of this type; None where promotion or a refusal is due."""
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
    reference: Callable[[Any, Any], Any] | None = None,
) -> Callable[[Any, Any], Any]:
    """``general``, a function of two arguments, with a short way.

    It is taken for arguments of one dtype whose kind is among ``kinds`` (by default those that
    ``primitive`` accepts), and for one such argument with a Python number that takes its dtype. At
    rest it is NumPy by ``reference``, the primitive's by default; while tracing, the primitive,
    unless ``reference`` is another function than its own.
    """
    accepted = primitive.accepts if kinds is None else kinds
    host_function: Any = primitive.reference if reference is None else reference
    short_traced = reference is None
    outs: dict[ArrayType, Any] = {}

    def out_type(type: ArrayType) -> Any:
        if len(outs) > _CAPACITY:
            outs.clear()
        fits = type.kind in accepted
        outs[type] = primitive.out_types((type, type))[0] if fits else None
        return outs[type]

    def apply(x: Any, y: Any) -> Any:  # noqa: PLR0912 (each further call costs)
        traced = state.interpreter is not EAGER
        if isinstance(x, Value):
            type = x.type
            out = outs[type] if type in outs else out_type(type)
            if out is None:
                return general(x, y)
            if isinstance(y, Value):
                if y.type is not type and not same_dtype(type, y.type):
                    return general(x, y)
                if traced or not x.__class__ is y.__class__ is Array:
                    if not short_traced:
                        return general(x, y)
                    if y.type is type:
                        return primitive(x, y)
                    shape = broadcast_shapes(primitive.name, type.shape, y.type.shape)
                    return primitive(broadcast_to(x, shape), broadcast_to(y, shape))
                left, right = x.to_host(), y.to_host()
            else:
                left, right = x, element_of(y, type)
                if right is None:
                    return general(x, y)
                if traced or x.__class__ is not Array:
                    return primitive(x, splat(right, type)) if short_traced else general(x, y)
                left = x.to_host()
        elif isinstance(y, Value):
            type = y.type
            out = outs[type] if type in outs else out_type(type)
            if out is None:
                return general(x, y)
            left = element_of(x, type)
            if left is None:
                return general(x, y)
            if traced or y.__class__ is not Array:
                return primitive(splat(left, type), y) if short_traced else general(x, y)
            right = y.to_host()
        else:
            return general(x, y)
        try:
            made = quiet.run(host_function, left, right)
        except (ValueError, RuntimeError):
            # The shapes do not fit, to be said in words; or a finalizer runs inside NumPy.
            return general(x, y)
        if made.__class__ is not np.ndarray:
            made = np.asarray(made)
        if made.shape != out.shape:
            out = array_type(made.shape, out.dtype, out.weak_type)
        return Array(made, out)

    return apply
