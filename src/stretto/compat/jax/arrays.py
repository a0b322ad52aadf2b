"""Small modules of arrays: ``jax.ref``, ``dlpack``, ``dtypes``, ``errors`` and ``typing``.

Convolutions and polynomials are as JAX has them, of integers and booleans in floats: those of
``jax.scipy.signal`` are here, and ``jax.numpy`` makes its own by ``in_floats``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from stretto import freeze
from stretto import new_ref as _new_ref
from stretto import numpy as snp
from stretto._engine.core.types import is_inexact
from stretto.compat.jax.avals import Array
from stretto.numpy import zeros
from stretto.typing import Ref


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """Call ``stretto.new_ref`` with JAX's parameters."""
    if kind not in (None, "anselm_ref"):
        raise NotImplementedError(f"jax.new_ref: kind={kind!r} is not in Stretto: leave it out")
    del memory_space
    return _new_ref(init_val)


def empty_ref(ty: Any, *, memory_space: Any = None) -> Ref:
    """Return a reference to an array of this shape and dtype, whose elements are zeros."""
    del memory_space
    return _new_ref(zeros(ty.shape, np.dtype(ty.dtype)))


def free_ref(ref: Ref) -> None:
    """Give up a reference, which cannot be used afterwards."""
    freeze(ref)


def get(ref: Any, idx: Any = ..., /) -> Any:
    """Read elements of a reference."""
    return ref[... if idx is None else idx]


def set(ref: Any, idx: Any, value: Any) -> None:
    """Write elements of a reference."""
    ref[... if idx is None else idx] = value


def swap(ref: Any, idx: Any, value: Any) -> Any:
    """Write elements of a reference, and return what they were."""
    before = get(ref, idx)
    set(ref, idx, value)
    return before


def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add to elements of a reference."""
    if isinstance(ref, Ref):
        ref.addupdate(x, ... if idx is None else idx)
    else:
        ref[idx] = ref[idx] + x


def to_dlpack(x: Any, stream: Any = None, **options: Any) -> Any:
    """Return the capsule for an array's memory."""
    del stream
    return x.__dlpack__(**options)


def is_supported_dtype(dtype: Any) -> bool:
    """Say whether arrays of a dtype can be handed over."""
    return snp.dtype(dtype).kind in "biufc"


ExtendedDType = type("ExtendedDType", (), {"__doc__": "Dtypes that are not of numbers."})


def supports_inf(dtype: object) -> bool:
    """Say whether a dtype has infinities."""
    number = np.dtype(dtype)  # type: ignore[call-overload]
    return is_inexact(number) and bool(np.isinf(np.asarray(np.inf).astype(number)))


class JAXTypeError(TypeError):
    """The base of JAX's errors about types."""


class JAXIndexError(IndexError):
    """The base of JAX's errors about indices."""


class KeyReuseError(RuntimeError):
    """A key was used twice; Stretto does not look for that."""


ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
Shape: TypeAlias = tuple[int, ...]


class LiteralArray:
    """No value is one."""


class TypedNdArray:
    """No value is one."""


class TypedInt(int):
    """No value is one."""


class TypedFloat(float):
    """No value is one."""


class TypedComplex(complex):
    """No value is one."""


def floats(*arrays: Any) -> list[Any]:
    """Return the arrays, in the float dtype by default where all are integers or booleans."""
    values = [snp.asarray(x) for x in arrays]
    dtype = snp.result_type(*values)
    if snp.issubdtype(dtype, snp.inexact):
        return values
    return [x.astype(snp.result_type(dtype, float)) for x in values]


def in_floats(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of two arrays, which come as floats where both are integers or booleans."""
    signature = inspect.signature(fun)
    first, second, *_ = signature.parameters

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        x, y = floats(given.pop(first), given.pop(second))
        return fun(x, y, **given)

    return call


def __getattr__(name: str) -> Any:
    if name not in ("convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = in_floats(getattr(importlib.import_module("stretto.scipy.signal"), name))
    return globals().setdefault(name, made)
