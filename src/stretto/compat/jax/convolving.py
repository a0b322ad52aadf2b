"""Convolutions and polynomials as JAX has them: of integers and booleans in floats.

Beside the functions that make them so, this has those of ``jax.scipy.signal``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from stretto import numpy as snp

__all__ = ["floats", "in_floats"]


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
