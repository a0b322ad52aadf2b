"""``jax.ref``: mutable references, which are ``stretto.typing.Ref``."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto import freeze
from stretto import new_ref as _new_ref
from stretto.compat.jax.avals import AbstractRef
from stretto.numpy import zeros
from stretto.typing import Ref

__all__ = [
    "AbstractRef",
    "Ref",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """``stretto.new_ref`` with JAX's parameters."""
    if kind not in (None, "anselm_ref"):
        raise NotImplementedError(f"jax.new_ref: kind={kind!r} is not in Stretto: leave it out")
    del memory_space
    return _new_ref(init_val)


def empty_ref(ty: Any, *, memory_space: Any = None) -> Ref:
    """A reference to an array of this shape and dtype, whose elements are zeros."""
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
