"""Typed keys in jaxprs: variables say that they are keys, and equations work on their words."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.types import ArrayType, array_type
from stretto.compat.jax.avals import ShapedArray
from stretto.compat.jax.types import is_key
from stretto.random.key_arrays import KeyArray

__all__ = ["as_aval", "type_of_aval", "unwrapped", "wrapped"]

_WORD = np.dtype(np.uint32)


def type_of_aval(aval: Any) -> ArrayType:
    """The type for an abstract value; for that of keys, the type of their words."""
    implementation = getattr(aval.dtype, "implementation", None)
    if implementation is not None:
        return array_type((*aval.shape, implementation.size), _WORD)
    return array_type(aval.shape, np.dtype(aval.dtype), bool(aval.weak_type))


def unwrapped(x: Any) -> Any:
    """The words of keys; anything else as it is."""
    return x._words if is_key(x) else x


def wrapped(words: Any, aval: Any) -> Any:
    """The keys of these words, if that is what the abstract value says."""
    implementation = getattr(aval.dtype, "implementation", None)
    return words if implementation is None or is_key(words) else KeyArray(words, implementation)


def as_aval(keys: Any) -> ShapedArray:
    """The abstract value of keys."""
    return ShapedArray(keys.shape, keys.dtype)
