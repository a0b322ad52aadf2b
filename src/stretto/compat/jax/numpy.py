"""``jax.numpy``: ``stretto.numpy``, whose functions that move elements take typed keys too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from stretto import lax
from stretto import numpy as snp
from stretto._engine.core.config import config
from stretto.compat.jax.arrays import floats, in_floats
from stretto.compat.jax.avals import Array, is_key
from stretto.compat.jax.keys import TAKING_KEYS
from stretto.compat.jax.modules import names_of
from stretto.numpy.dtypes import ScalarType
from stretto.numpy.einsums import einsum_by

__all__: list[str]

ndarray = Array
iinfo = ml_dtypes.iinfo
convolve, correlate = in_floats(snp.convolve), in_floats(snp.correlate)
polymul = in_floats(snp.polymul)
_get, __dir__ = names_of("stretto.numpy")


def iscomplexobj(x: Any) -> bool:
    """Say whether the elements of an array, or those of a dtype by its name, are complex."""
    if isinstance(x, ScalarType):
        return snp.issubdtype(x, snp.complexfloating)
    return not is_key(x) and snp.iscomplexobj(x)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any]:
    """Return the histogram of the elements, counted in the floating-point dtype of its edges."""
    counts, edges = snp.histogram(a, bins, range, density=density, weights=weights)
    return (counts.astype(edges.dtype) if weights is None else counts), edges


def polyder(p: Any, m: int = 1) -> Any:
    """Call ``stretto.numpy.polyder``, in floats."""
    (p,) = floats(p)
    return snp.polyder(p, m)


def promote_types(a: Any, b: Any) -> Any:
    """Return the dtype that two dtypes promote to, which may have 64 bits whatever the setting.

    Where 64 are not allowed, JAX has only signed integers of fewer and uint32 promote to 32.
    """
    with config(enable_x64=True):
        found = snp.promote_types(a, b)
    if found == np.int64 and all(x is not int and np.dtype(x).itemsize < 8 for x in (a, b)):
        return snp.promote_types(a, b)
    return found


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Say whether a dtype converts to another without loss, as NumPy has it."""
    of = lambda x: np.dtype(x.dtype if hasattr(x, "dtype") else x)
    return np.can_cast(of(from_), of(to), casting)


def take_along_axis(
    arr: Any, indices: Any, axis: int | None = -1, mode: str | None = None, **options: Any
) -> Any:
    """Call ``stretto.numpy.take_along_axis``, which fills with NaN where no mode is given."""
    return snp.take_along_axis(arr, indices, axis, mode or "fill", **options)


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """Call ``stretto.numpy.put``, which puts at the nearest place where no mode is given.

    Negative indices then count from the end first, as they do not in the mode ``"clip"``.
    """
    if mode is None:
        mode, ind = "clip", snp.asarray(ind)
        ind = snp.where(ind < 0, ind + snp.size(a), ind)
    return snp.put(a, ind, v, mode, inplace=inplace)


def finfo(dtype: Any) -> Any:
    """Return the limits of a float dtype, as numbers of that dtype."""
    return ml_dtypes.finfo(snp.finfo(dtype).dtype)


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    _dot_general: Callable[..., Any] = lax.dot_general,
    **options: Any,
) -> Any:
    """Call ``stretto.numpy.einsum``, also with a function of the library's own for the products."""
    if _dot_general is lax.dot_general:
        return snp.einsum(subscripts, *operands, **options)
    return einsum_by(_dot_general, (subscripts, *operands), **options)


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Replace NaN first, then infinities, those that NaN was replaced by among them.

    Typed keys are neither, and come back as they are.
    """
    del copy
    if is_key(x):
        return x
    without_nan = snp.nan_to_num(x, nan=nan, posinf=snp.inf, neginf=-snp.inf)
    return snp.nan_to_num(without_nan, nan=nan, posinf=posinf, neginf=neginf)


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [n for n in __dir__() if not n.startswith("_")]
    return TAKING_KEYS[name] if name in TAKING_KEYS else _get(name)
