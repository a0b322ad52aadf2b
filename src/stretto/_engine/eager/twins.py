"""Short ways to NumPy for functions at rest: of two operands, and twins of whole functions.

Promotion and broadcasting cost more than a small array's arithmetic. Operands of one dtype, or one
with a Python number that takes its dtype, need no promotion, and at rest NumPy broadcasts. The
types that the function of an operator met so are entered in the table of eager calls (``table``),
by which the operator then calls NumPy at once.

A function written with operations goes through memory once for each of them; where nothing is being
traced, and NumPy has the function with the same meaning, NumPy needs only one pass (``eager``). The
body of such a function says what it means while it is traced, and handles the arguments that its
twin does not take; the table of all public functions checks that both give the same.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from stretto._engine.core.boundary import reraise_foreign
from stretto._engine.core.caches import room
from stretto._engine.core.config import settings
from stretto._engine.core.interpreter import Value, state
from stretto._engine.core.interpreter import splat as constant
from stretto._engine.core.program import repeated
from stretto._engine.core.types import ArrayType, array_type, default_dtype, differ
from stretto._engine.core.typing import ArrayLike, DType, Tree
from stretto._engine.eager.interpreter import EAGER, array_of, at_rest, quiet, wide
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
"""The elements from which on NumPy's product of integers takes longer than that of their floats."""


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
            ranks = x.ndim <= 2 and y.ndim <= 2
            one = x.type.size == 1 or y.type.size == 1  # which np.dot gets wrong: `DotGeneral`
            if fast and ranks and not one and out.type.dtype is x.type.dtype:
                entered.keep(x, y, out.type)
        return out

    entered.apply = apply
    return apply


BOOL, INT, UINT, FLOAT, COMPLEX = "?", "bhilq", "BHILQ", "fd", "FD"
"""The dtypes that NumPy computes in as XLA does, by their characters: no floats below 32 bits."""

INTEGER = INT + UINT
REAL = INTEGER + FLOAT
NUMERIC = REAL + COMPLEX
ANY = None
"""Every dtype, for twins that only move elements; the result is weakly typed as the array is."""

AS_GIVEN: Any = object()
"""A result's dtype is that of the NumPy array which the twin returns."""

INDEX: Any = object()
"""A result's dtype is the default integer, which ``enable_x64`` decides."""

_SAME: Any = object()
_REFUSALS = (ValueError, TypeError, LookupError, ArithmeticError, RuntimeError)
"""The errors of NumPy; its ``LinAlgError`` is a ``ValueError``."""

F = TypeVar("F", bound=Callable[..., Any])
Host: TypeAlias = np.ndarray | np.generic
"""An operand of NumPy's."""


def eager(
    twin: Callable[..., Any],
    kinds: str | tuple[str, ...] | None,
    dtype: DType | tuple[DType | None, ...] | None = _SAME,
) -> Callable[[F], F]:
    """Decorate a function of arrays with its twin, a function of NumPy arrays.

    Where nothing is being traced, and all arguments by position are concrete, ``twin`` is called
    with their NumPy arrays, and with the same options by keyword. The function itself is called
    otherwise, and where the twin raises one of NumPy's errors or returns None, so that its own
    message is what the user sees.

    Args:
        twin: takes what the function takes, with NumPy arrays, which it must not write to, and
            returns a NumPy array, or a tuple or list of them; None where it has no result.
        kinds: the characters of the dtypes that the arrays may have, all the same; beside one of
            them there may be Python numbers, which take its dtype. A tuple has the characters
            for each array of its own. ``ANY``: all have the same dtype, of any kind.
        dtype: the dtype of the result, by default that of the first array; a tuple has one for
            each of several results, with None for the default; ``AS_GIVEN``: as the twin has it;
            ``INDEX``: the default integer.
    """
    hosts_of = _hosts_of_each(kinds) if isinstance(kinds, tuple) else _hosts_of_one(kinds)

    def decorate(function: F) -> F:
        code = function.__code__  # type: ignore[attr-defined]
        count = None if code.co_flags & inspect.CO_VARARGS else code.co_argcount
        takes_options = bool(code.co_kwonlyargcount)

        def apply(*arrays: Any, **options: Any) -> Tree:
            if state.interpreter is not EAGER or (options and not takes_options):
                return function(*arrays, **options)
            if len(arrays) != count and count is not None:
                return function(*arrays, **options)
            hosts = hosts_of(arrays)
            if hosts is None:
                return function(*arrays, **options)
            try:
                result = quiet.run(twin, *hosts, **options)
            except _REFUSALS as error:
                reraise_foreign(error)
                result = None
            if result is None:
                return function(*arrays, **options)
            first: Any = _first(arrays)
            return _result(result, dtype, first)

        def apply_to_one(*arrays: Any, **options: Any) -> Tree:
            """Do the same with fewer calls, for functions of one array, as most of them are."""
            if len(arrays) == 1 and (takes_options or not options):
                (x,) = arrays
                if x.__class__ is Array and state.interpreter is EAGER:
                    type = x.type
                    if kinds is None or (type.dtype.char in kinds and not type.weak_type):
                        try:
                            result = quiet.run(twin, x.to_host(), **options)
                        except _REFUSALS as error:
                            reraise_foreign(error)
                            result = None
                        if result is not None:
                            return _result(result, dtype, type)
            return function(*arrays, **options)

        wrapper = apply_to_one if count == 1 and not isinstance(kinds, tuple) else apply
        return functools.wraps(function)(wrapper)  # type: ignore[return-value]

    return decorate


def _hosts_of_one(kinds: str | None) -> Callable[[Sequence[Any]], list[Host] | None]:
    """Make a function from arguments of one dtype to their NumPy arrays, or None."""

    def hosts_of(arrays: Sequence[Any]) -> list[Host] | None:
        first = _first(arrays)
        if first is None:
            return None
        if kinds is not None and (first.weak_type or first.dtype.char not in kinds):
            return None
        hosts: list[Host] = []
        for x in arrays:
            if x.__class__ is Array and x.type is first:
                hosts.append(x.to_host())
                continue
            host = _host_beside(x, first)
            if host is None:
                return None
            hosts.append(host)
        return hosts

    return hosts_of


def _hosts_of_each(kinds: tuple[str, ...]) -> Callable[[Sequence[Any]], list[Host] | None]:
    """Make a function from arguments, each with its own dtypes, to their NumPy arrays, or None."""

    def hosts_of(arrays: Sequence[Any]) -> list[Host] | None:
        hosts: list[Host] = []
        for x, chars in zip(arrays, kinds, strict=True):
            if x.__class__ is not Array:
                return None
            type = x.type
            if type.weak_type or type.dtype.char not in chars:
                return None
            hosts.append(x.to_host())
        return hosts

    return hosts_of


def _host_beside(x: Tree, first: ArrayType) -> Host | None:
    """Give NumPy's operand for an argument beside an array of this type; None for no call."""
    if x.__class__ is not Array:
        return element_of(x, first)
    type = x.type
    if type is not first:
        if type.dtype is not first.dtype or type.weak_type != first.weak_type:
            return None
        if differ(first.shape, type.shape):
            return None
    return x.to_host()


def _first(arrays: Sequence[Any]) -> ArrayType | None:
    """Find the type of the first concrete array."""
    for x in arrays:
        if x.__class__ is Array:
            return x.type
    return None


def _result(result: Tree, dtype: Tree, first: ArrayType) -> Tree:
    """Make arrays of what NumPy returned for arrays of which the first has this type."""
    if result.__class__ is tuple or result.__class__ is list:
        if dtype.__class__ is not tuple:
            return result.__class__([_result(part, dtype, first) for part in result])
        dtypes = dtype
        pairs = zip(result, dtypes, strict=True)
        return result.__class__([_result(m, _SAME if d is None else d, first) for m, d in pairs])
    host = result if result.__class__ is np.ndarray else np.asarray(result)
    if dtype is AS_GIVEN:
        return Array(host, array_type(host.shape, host.dtype))
    weak = False
    if dtype is INDEX:
        dtype = default_dtype("int")
    elif dtype is _SAME:
        dtype, weak = first.dtype, first.weak_type
        if host.dtype is dtype and host.shape == first.shape:
            return Array(host, first)
    return array_of(host, dtype, weak)
