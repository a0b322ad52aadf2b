"""Functions of two operands, with a short way to NumPy for arrays at rest and Python numbers.

Promotion and broadcasting cost more than a small array's arithmetic. Operands of one dtype, or one
with a Python number that takes its dtype, need no promotion, and at rest NumPy broadcasts. The
types that the function of an operator met so are entered in the table of eager calls (``table``),
by which the operator then calls NumPy at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.core.boundary import reraise_foreign
from stretto._engine.core.caches import room
from stretto._engine.core.config import settings
from stretto._engine.core.interpreter import Value, state
from stretto._engine.core.interpreter import splat as constant
from stretto._engine.core.program import repeated
from stretto._engine.core.types import ArrayType, differ
from stretto._engine.core.typing import ArrayLike, Tree
from stretto._engine.eager.interpreter import EAGER, at_rest, quiet, wide
from stretto._engine.eager.table import Operator
from stretto._engine.native import native
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.elementwise import Elementwise, broadcast_shapes
from stretto._engine.xla.array import Array

_TAKES = {
    "bool": (),
    "int": (int,),
    "uint": (int,),
    "float": (int, float),
    "complex": (int, float, complex),
    "float0": (),
}
_LARGE = 1 << 14
"""From so many elements on, NumPy's product of integers takes longer than that of their floats."""


def same_dtype(x: ArrayType, y: ArrayType) -> bool:
    """Say whether two types differ in shape alone."""
    return x.dtype is y.dtype and x.weak_type == y.weak_type


def splat(element: np.ndarray | np.generic, type: ArrayType) -> Array:
    """Give the array of this type with this scalar of its dtype everywhere; it takes no memory."""
    one: Any = np.asarray(element)
    if type.varies:
        return constant(one, type)
    return state.maker.constant(repeated(one, type.shape), type)


def element_of(x: ArrayLike, type: ArrayType) -> np.generic | None:
    """Give the number in the dtype of this type; None where promotion or a refusal is due."""
    if x.__class__ in _TAKES[type.kind]:
        try:
            return quiet.run(type.dtype.type, x)
        except (OverflowError, ValueError) as error:
            reraise_foreign(error)
    return None


_numbers: dict[Any, Array] = {}


def number_of(x: ArrayLike, type: ArrayType) -> Array | None:
    """Give the Python number as an array of this type; None where promotion or a refusal is due.

    It is kept, since programs use few numbers, and use them often.
    """
    kind = x.__class__
    if kind not in _TAKES[type.kind]:
        return None
    # 0.0 and -0.0 are equal, but not the same number.
    key = type, kind, x if kind is int or (kind is float and x) else repr(x)
    is_noted = state.maker is not EAGER
    number = None if is_noted else _numbers.get(key)
    if number is None:
        element = element_of(x, type)
        if element is None:
            return None
        number = splat(element, type)
        if not (type.varies or is_noted):  # that would be a constant of the program being recorded
            room(_numbers)[key] = number
    return number


def _is_large(primitive: Elementwise, type: ArrayType) -> bool:
    """Say whether arrays of this type are so large that they do not run in NumPy's own loop."""
    return primitive.compiled((type, type)) or (primitive.widens and wide(type))


def binary_function(
    primitive: Elementwise,
    general: Callable[[Any, Any], Any],
    kinds: frozenset[str] | None = None,
    reference: Callable[[Any, Any], Any] | None = None,
    operator: str = "",
    caller: str = "",
) -> Callable[[Any, Any], Any]:
    """Put a short way in front of ``general``, a function of two arguments.

    It is taken for arguments of one dtype whose kind is among ``kinds`` (by default those that
    ``primitive`` accepts), and for one such argument with a Python number that takes its dtype. At
    rest it is NumPy by ``reference``, the primitive's by default; while tracing, the primitive,
    unless ``reference`` is another function than its own. ``operator``: the name of the operator
    that this is. ``caller``: the function that messages name, by default the primitive.
    """
    accepted = primitive.accepts if kinds is None else kinds
    host_function: Any = primitive.reference if reference is None else reference
    short_traced = reference is None
    outs: dict[ArrayType, Any] = {}
    entered = Operator(operator, host_function) if operator else None

    def out_type(type: ArrayType) -> ArrayType | None:
        fits = type.kind in accepted and not _is_large(primitive, type)
        out = primitive.out_types((type, type))[0] if fits else None
        room(outs)[type] = out
        return out

    def apply(x: ArrayLike, y: ArrayLike) -> Array:  # noqa: PLR0912 (each further call costs)
        interpreter = state.interpreter
        traced = interpreter is not EAGER
        if isinstance(x, Value):
            type = x.type
            out = outs[type] if type in outs else out_type(type)
            if out is None:
                return general(x, y)
            if isinstance(y, Value):
                if y.type is not type and (
                    not same_dtype(type, y.type)
                    or (settings.ranks != "allow" and differ(type.shape, y.type.shape))
                ):
                    return general(x, y)
                if traced or not x.__class__ is y.__class__ is Array:
                    if not short_traced:
                        return general(x, y)
                    if y.type is type:
                        return interpreter.process(primitive, (x, y))
                    shape = broadcast_shapes(caller or primitive.name, type.shape, y.type.shape)
                    return primitive(
                        x if type.shape == shape else broadcast_to(x, shape),
                        y if y.type.shape == shape else broadcast_to(y, shape),
                    )
                left, right = x.to_host(), y.to_host()
            elif traced or x.__class__ is not Array:
                number = number_of(y, type) if short_traced else None
                return general(x, y) if number is None else primitive(x, number)
            else:
                left, right = x.to_host(), element_of(y, type)
                if right is None:
                    return general(x, y)
        elif isinstance(y, Value):
            type = y.type
            out = outs[type] if type in outs else out_type(type)
            if out is None:
                return general(x, y)
            if traced or y.__class__ is not Array:
                number = number_of(x, type) if short_traced else None
                return general(x, y) if number is None else primitive(number, y)
            left, right = element_of(x, type), y.to_host()
            if left is None:
                return general(x, y)
        else:
            return general(x, y)
        try:
            result = quiet.run(host_function, left, right)
        except ValueError as error:  # the shapes do not fit; the message comes from there
            reraise_foreign(error)
            return general(x, y)
        result = result if result.__class__ is np.ndarray else np.asarray(result)
        if result.shape != out.shape:
            out = out.with_shape(result.shape)
        if (entered is not None and native is not None) and (
            out.shape == type.shape or not _is_large(primitive, type.with_shape(out.shape))
        ):
            entered.met(x, y, type, out)
        return Array(result, out)

    if entered is not None:
        entered.apply = apply
    return apply


def matrix_product(general: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Enter types that NumPy alone multiplies, for the operator; ``general`` is the product."""
    entered = Operator("matmul", np.dot)

    def apply(x: Tree, y: Tree) -> Array:
        out = general(x, y)
        if at_rest(x, y) and same_dtype(x.type, y.type) and x.dtype.itemsize >= 4:
            small = x.type.size < _LARGE and y.type.size < _LARGE
            fast = small or x.type.kind in ("float", "complex")
            ranks = 0 < x.ndim <= 2 and 0 < y.ndim <= 2
            one = x.type.size == 1 or y.type.size == 1  # which np.dot gets wrong: `DotGeneral`
            if fast and ranks and not one and out.type.dtype is x.type.dtype:
                entered.keep(x, y, out.type)
        return out

    entered.apply = apply
    return apply
