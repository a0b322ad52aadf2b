"""The methods of NumPy's universal functions, for those that NumPy has.

``snp.add`` is the function of ``arithmetic``; here it gets ``reduce`` and the others as attributes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

from stretto._engine.core.types import inexact_dtype
from stretto._engine.core.typing import Array
from stretto._engine.ops.convert import convert
from stretto._engine.ops.reducing import reduce
from stretto._engine.ops.reducing.cumulative import cumlogsumexp, cummax, cummin
from stretto.numpy import (
    arithmetic,
    bits,
    clipping,
    complex_parts,
    cumulative,
    elementary,
    extrema,
    logic,
    reductions,
    remainders,
    rounding,
    trigonometric,
)
from stretto.numpy.index_updates import IndexUpdate
from stretto.numpy.normalized import logsumexp
from stretto.numpy.ufunc import METHODS, ufunc

__all__ = [
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "divide",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "power",
    "subtract",
    "true_divide",
]


P = ParamSpec("P")
R = TypeVar("R")

if TYPE_CHECKING:

    class _Signed(ufunc, Generic[P, R]):
        """A ``ufunc`` that takes and gives what the function does."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


def _with_methods(function: Callable[P, R], name: str = "", **operations: Any) -> _Signed[P, R]:
    """The function itself, with the methods and numbers of NumPy's function of its name."""
    like = getattr(np, name or function.__name__)
    with_methods = ufunc(function, like.nin, like.nout, identity=like.identity, **operations)
    for attribute in (*METHODS, "nin", "nout", "nargs", "identity"):
        setattr(function, attribute, getattr(with_methods, attribute))
    function.__ufunc__ = with_methods  # type: ignore[attr-defined]
    return cast("_Signed[P, R]", function)


def _sum(x: Array, axes: tuple[int, ...]) -> Array:
    return reductions.sum(x, axes)


def _prod(x: Array, axes: tuple[int, ...]) -> Array:
    return reductions.prod(x, axes)


def _max(x: Array, axes: tuple[int, ...]) -> Array:
    return extrema.max(x, axes)


def _min(x: Array, axes: tuple[int, ...]) -> Array:
    return extrema.min(x, axes)


def _all(x: Array, axes: tuple[int, ...]) -> Array:
    return reductions.all(x, axes)


def _any(x: Array, axes: tuple[int, ...]) -> Array:
    return reductions.any(x, axes)


def _odd(x: Array, axes: tuple[int, ...]) -> Array:
    return reduce.reduce_xor(logic.truth(x, "logical_xor.reduce"), axes)


def _log_sum_exp(x: Array, axes: tuple[int, ...]) -> Array:
    return logsumexp(x, axes)


_LN2 = math.log(2)


def _log2_sum_exp2(x: Array, axes: tuple[int, ...]) -> Array:
    return _log_sum_exp(x * _LN2, axes) / _LN2


def _running_log_sum_exp(x: Array, axis: int) -> Array:
    return cumlogsumexp(convert(x, inexact_dtype(x.dtype), x.weak_type), axis)


def _running_sum(x: Array, axis: int) -> Array:
    return cumulative.cumsum(x, axis)


def _running_product(x: Array, axis: int) -> Array:
    return cumulative.cumprod(x, axis)


# Those with operations of their own

add = _with_methods(arithmetic.add, collapse=_sum, run=_running_sum, update=IndexUpdate.add)
subtract = _with_methods(arithmetic.subtract, update=IndexUpdate.subtract)
multiply = _with_methods(
    arithmetic.multiply, collapse=_prod, run=_running_product, update=IndexUpdate.multiply
)
divide = true_divide = _with_methods(arithmetic.true_divide)
power = _with_methods(arithmetic.power)
maximum = _with_methods(clipping.maximum, collapse=_max, run=cummax, update=IndexUpdate.max)
minimum = _with_methods(clipping.minimum, collapse=_min, run=cummin, update=IndexUpdate.min)
negative = _with_methods(arithmetic.negative)
logaddexp = _with_methods(elementary.logaddexp, collapse=_log_sum_exp, run=_running_log_sum_exp)
logaddexp2 = _with_methods(elementary.logaddexp2, collapse=_log2_sum_exp2)
logical_and = _with_methods(logic.logical_and, collapse=_all)
logical_or = _with_methods(logic.logical_or, collapse=_any)
logical_xor = _with_methods(logic.logical_xor, collapse=_odd)
bitwise_and = _with_methods(bits.bitwise_and, collapse=reduce.reduce_and)
bitwise_or = _with_methods(bits.bitwise_or, collapse=reduce.reduce_or)
bitwise_xor = _with_methods(bits.bitwise_xor, collapse=reduce.reduce_xor)

# The others


def attach(module: ModuleType) -> None:
    """Give the functions of a module the methods of NumPy's universal functions of their names."""
    for name in module.__all__:
        function = getattr(module, name)
        if isinstance(getattr(np, name, None), np.ufunc) and not isinstance(function, ufunc):
            _with_methods(function, name)


for _module in (
    arithmetic,
    bits,
    logic,
    clipping,
    logic,
    complex_parts,
    elementary,
    logic,
    remainders,
    rounding,
    trigonometric,
):
    attach(_module)
