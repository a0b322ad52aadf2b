"""Functions applied along axes, and by pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from stretto._engine.api.vectorize import vmap
from stretto._engine.core.integers import entries_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.cond import switch
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full, full_like
from stretto._engine.ops.comparison import where as choose_by
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import canonical_axis, expand_dims, reshape
from stretto.numpy.logic import truth
from stretto.numpy.manipulation import ravel

_INT32 = np.dtype(np.int32)


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Array:
    """Apply a function to every vector along an axis, as under ``vmap``.

    Args:
        func1d: a function of an array of rank 1; what it returns takes the place of ``axis``.
        axis: the axis.
        arr: an array.
        *args: further arguments of the function.
        **kwargs: further keywords of the function.

    Returns:
        The results.

    Raises:
        TypeError: ``arr`` is not an array or a number.
        ValueError: ``axis`` is out of bounds.

    As NumPy's ``apply_along_axis``.

    >>> import stretto.numpy as snp
    >>> snp.apply_along_axis(lambda v: v[::-1], 1, snp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    x = as_value(arr, "apply_along_axis", "arr")
    along = canonical_axis(axis, x.ndim, "apply_along_axis")

    def fun(v: Array) -> Array:
        return func1d(v, *args, **kwargs)

    for _ in range(along, x.ndim - 1):  # the axes after it
        fun = vmap(fun, -1, -1)
    for _ in range(along):
        fun = vmap(fun)
    return fun(x)


def apply_over_axes(
    func: Callable[[Any, int], Any], a: ArrayLike, axes: int | Iterable[int]
) -> Array:
    """Apply a function of an array and an axis to one axis after the other.

    Args:
        func: a function such as ``snp.sum``, which keeps the axis or removes it.
        a: an array.
        axes: an axis, or several.

    Returns:
        The last result, of the rank of ``a``: an axis that the function removes comes back with
        size 1.

    Raises:
        ValueError: the function returns an array of another rank, or an axis is out of bounds.
        TypeError: ``a``, or what the function returns, is not an array or a number.

    As NumPy's ``apply_over_axes``.

    >>> import stretto.numpy as snp
    >>> snp.apply_over_axes(snp.sum, snp.ones((2, 3, 4)), (0, 2)).shape
    (1, 3, 1)
    """
    x = as_value(a, "apply_over_axes", "a")
    for axis in entries_of(axes):
        along = canonical_axis(axis, x.ndim, "apply_over_axes")
        result = as_value(func(x, along), "apply_over_axes", "the function's result")
        if result.ndim == x.ndim - 1:
            result = expand_dims(result, along)
        if result.ndim != x.ndim:
            raise ValueError(
                f"apply_over_axes: the function must keep the axis or remove it; given {x.type} it "
                f"returned {result.type}"
            )
        x = result
    return x


def piecewise(
    x: ArrayLike,
    condlist: Sequence[ArrayLike] | ArrayLike,
    funclist: Sequence[ArrayLike | Callable[..., Any]],
    *args: Any,
    **kw: Any,
) -> Array:
    """Evaluate a function that is defined by pieces.

    A function gets one element at a time, as under ``vmap``; its derivative is that of the function
    chosen.

    Args:
        x: an array, or a number.
        condlist: a boolean array, or a sequence of them; where several hold, the last counts.
        funclist: a function or number for each condition, and perhaps one more for where none
            holds, which is 0 otherwise.
        *args: further arguments of the functions.
        **kw: further keywords of the functions.

    Returns:
        The values, of the shape and dtype of ``x``.

    Raises:
        ValueError: ``funclist`` does not have one function for each condition, or one more.
        TypeError: ``x``, or what a function returns, is not an array or a number.

    As NumPy's ``piecewise``.

    >>> import stretto.numpy as snp
    >>> x = snp.array([-4.0, 4.0])
    >>> snp.piecewise(x, [x < 0, x >= 0], [-1, snp.sqrt])
    Array([-1.,  2.], dtype=float32)
    """
    v = as_value(x, "piecewise")
    masks: Any = condlist
    if not isinstance(masks, (list, tuple)) and np.ndim(masks) == v.ndim:
        masks = [masks]
    conditions = [truth(c, "piecewise", f"condlist[{i}]") for i, c in enumerate(masks)]
    functions: list[ArrayLike | Callable[..., Any]] = list(funclist)
    if len(functions) == len(conditions):
        functions.append(0)
    if len(functions) != len(conditions) + 1:
        raise ValueError(
            f"piecewise: with {len(conditions)} conditions, {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected; got {len(funclist)}"
        )

    def branch(function: ArrayLike | Callable[..., Any]) -> Callable[[Any], Any]:
        def apply(element: Array) -> Array:
            out = function(element, *args, **kw) if callable(function) else function
            return convert(as_value(out, "piecewise", "a function's result"), v.dtype)

        return apply

    number = full(v.shape, len(conditions), _INT32)
    for i, condition in enumerate(conditions):
        number = choose_by(broadcast_to(condition, v.shape), full_like(number, i), number)
    branches = [branch(f) for f in functions]
    one = vmap(lambda i, element: switch(i, branches, element))
    return reshape(one(ravel(number), ravel(v)), v.shape) if v.ndim else one(
        reshape(number, (1,)), reshape(v, (1,)))[0]  # fmt: skip
