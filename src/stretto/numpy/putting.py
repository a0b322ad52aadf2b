"""Copies with elements replaced: by place, by mask, along an axis, on the diagonal.

NumPy's functions of these names change their argument. Arrays are immutable, so here
``inplace=False`` is required, and the copy is returned; ``x.at[index].set(y)`` is shorter.
"""

from __future__ import annotations

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import fixed, lesser
from stretto._engine.core.types import default_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import canonical_axis, reshape
from stretto.numpy.arguments import refuse_inplace
from stretto.numpy.clipping import clip
from stretto.numpy.cumulative import cumsum
from stretto.numpy.index_updates import At
from stretto.numpy.logic import truth
from stretto.numpy.remainders import remainder
from stretto.numpy.taking import resize, take


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Copy an array with values put at places in row-major order.

    Args:
        a: an array.
        ind: the places, integers; negative ones count from the end.
        v: the values, repeated as needed.
        mode: what happens out of bounds: nothing is put by default; ``"clip"`` puts at the nearest
            place, ``"wrap"`` wraps around, ``"raise"`` raises.
        inplace: must be False: a copy is returned.

    Returns:
        A copy of ``a``.

    Raises:
        IndexError: a place is out of bounds in mode ``"raise"``.
        ValueError: ``inplace`` is not False; or there are places but no values.

    As NumPy's ``put``, which changes its argument.

    >>> import stretto.numpy as snp
    >>> snp.put(snp.zeros(3), snp.array([0, 2]), 5, inplace=False)
    Array([5., 0., 5.], dtype=float32)
    """
    refuse_inplace("put", inplace)
    x, places = as_value(a, "put", "a"), as_value(ind, "put", "ind")
    values = as_value(v, "put", "v")
    if not places.size:
        return x
    if not values.size:
        raise ValueError(f"put: there is nothing to put, {values.type}, at {places.size} places")
    places = reshape(places, (places.size,))
    if mode == "clip":
        places, mode = clip(places, 0, x.size - 1), None
    elif mode == "wrap":
        places, mode = remainder(places, x.size), None
    values = resize(values, places.size)
    updated = At(reshape(x, (x.size,)))[places].set(convert(values, x.dtype), mode=mode)
    return reshape(updated, x.shape)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Copy an array with values put at indices along an axis, each line by itself.

    Args:
        arr: an array.
        indices: integers of the rank of ``arr``; the other axes broadcast.
        values: what to put; broadcasts with ``indices``.
        axis: the axis to put along; None takes the elements in row-major order.
        inplace: must be False: a copy is returned.
        mode: what happens out of bounds, as for ``x.at[...].set``.

    Returns:
        A copy of ``arr``.

    Raises:
        ValueError: ``inplace`` is not False; or ``axis`` is out of bounds; or ``indices`` is not of
            integers, or of another rank.

    As NumPy's ``put_along_axis``, which changes its argument; the inverse of ``take_along_axis``.

    >>> import stretto.numpy as snp
    >>> x, at = snp.zeros((2, 3)), snp.array([[1], [2]])
    >>> snp.put_along_axis(x, at, 5, axis=1, inplace=False)
    Array([[0., 5., 0.],
           [0., 0., 5.]], dtype=float32)
    """
    caller = "put_along_axis"
    refuse_inplace(caller, inplace)
    x, at = as_value(arr, caller, "arr"), as_value(indices, caller, "indices")
    new = as_value(values, caller, "values")
    if axis is None:
        flat = put_along_axis(reshape(x, (x.size,)), at, new, 0, False, mode=mode)
        return reshape(flat, x.shape)
    along = canonical_axis(axis, x.ndim, caller)
    if at.ndim != x.ndim or at.type.kind not in ("int", "uint"):
        raise ValueError(
            f"{caller}: indices must be integers of the rank of {x.type}, got {at.type}"
        )
    others = tuple([1 if d == along else n for d, n in enumerate(x.shape)])
    own = tuple([1 if d == along else n for d, n in enumerate(at.shape)])
    shape = list(broadcast_shapes(caller, others, own))
    shape[along] = at.shape[along]
    at = broadcast_to(at, tuple(shape))
    index = [
        at if d == along else broadcasted_iota(default_dtype("int"), tuple(shape), d)
        for d in range(x.ndim)
    ]
    new = broadcast_to(convert(new, x.dtype), tuple(shape))
    return At(x)[tuple(index)].set(new, mode=mode)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Copy an array with values put where a mask holds.

    Args:
        arr: an array.
        mask: an array of the same size; elements that are not zero hold.
        vals: the values, repeated as needed.
        inplace: must be False: a copy is returned.

    Returns:
        A copy of ``arr``.

    Raises:
        ValueError: ``inplace`` is not False; or ``mask`` has another size, or ``vals`` is empty.

    As NumPy's ``place``, which changes its argument.

    >>> import stretto.numpy as snp
    >>> x = snp.arange(4)
    >>> snp.place(x, x > 1, snp.array([7, 8]), inplace=False)
    Array([0, 1, 7, 8], dtype=int32)
    """
    refuse_inplace("place", inplace)
    x, holds = as_value(arr, "place", "arr"), truth(mask, "place", "mask")
    values = as_value(vals, "place", "vals")
    if x.size != holds.size:
        raise ValueError(f"place: the mask must have the size of {x.type}, got {holds.type}")
    if not values.size:
        if x.size:
            raise ValueError("place: there is nothing to put, vals is empty")
        return x
    holds = reshape(holds, (x.size,))
    # The n-th place where the mask holds takes the n-th value, starting over after the last.
    rank = cumsum(convert(holds, default_dtype("int"))) - 1
    new = take(reshape(values, (values.size,)), remainder(rank, values.size), 0, mode="clip")
    return reshape(choose(holds, convert(new, x.dtype), reshape(x, (x.size,))), x.shape)


def putmask(a: ArrayLike, mask: ArrayLike, values: ArrayLike, *, inplace: bool = True) -> Array:
    """Copy an array with elements of another put where a mask holds.

    Args:
        a: an array.
        mask: an array of the same size; elements that are not zero hold.
        values: what to put, element for element; of another size it is repeated as needed.
        inplace: must be False: a copy is returned.

    Returns:
        A copy of ``a``.

    Raises:
        ValueError: ``inplace`` is not False; or ``mask`` has another size.

    As NumPy's ``putmask``, which changes its argument.

    >>> import stretto.numpy as snp
    >>> x = snp.arange(4)
    >>> snp.putmask(x, x > 1, snp.array([5, 6, 7, 8]), inplace=False)
    Array([0, 1, 7, 8], dtype=int32)
    """
    refuse_inplace("putmask", inplace)
    x, holds = as_value(a, "putmask", "a"), truth(mask, "putmask", "mask")
    new = as_value(values, "putmask", "values")
    if x.size != holds.size:
        raise ValueError(f"putmask: the mask must have the size of {x.type}, got {holds.type}")
    if not new.size or not x.size:
        return x
    new = convert(resize(new, x.shape), x.dtype)
    return choose(reshape(holds, x.shape), new, x)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Copy an array with values put on its main diagonal.

    Args:
        a: an array of rank 2, or of a higher rank with axes of one size.
        val: the values, repeated as needed.
        wrap: whether to go on below the end of a tall matrix, after one free row each time.
        inplace: must be False: a copy is returned.

    Returns:
        A copy of ``a``.

    Raises:
        ValueError: ``inplace`` is not False; or the rank is below 2, or more than two axes differ
            in size.

    As NumPy's ``fill_diagonal``, which changes its argument.

    >>> import stretto.numpy as snp
    >>> snp.fill_diagonal(snp.zeros((2, 3)), snp.array([1, 2]), inplace=False)
    Array([[1., 0., 0.],
           [0., 2., 0.]], dtype=float32)
    """
    refuse_inplace("fill_diagonal", inplace)
    x, values = as_value(a, "fill_diagonal", "a"), as_value(val, "fill_diagonal", "val")
    if x.ndim < 2:
        raise ValueError(f"fill_diagonal: expected two axes or more, got {x.type}")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ValueError(f"fill_diagonal: more than two axes must have one size, got {x.type}")
    step = 1 + x.shape[1] if x.ndim == 2 else sum(x.shape[0] ** d for d in range(x.ndim))
    end = x.size if wrap or x.ndim > 2 else lesser(x.shape[1] ** 2, x.size)
    where = "fill_diagonal", "the places on the diagonal", "use snp.where with snp.eye"
    places = np.arange(0, fixed(end, *where), fixed(step, *where), dtype=np.int32)
    return put(x, places, values, inplace=False)
