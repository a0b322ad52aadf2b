"""``jax.numpy``: ``stretto.numpy``, whose functions that move elements take typed keys too."""

from __future__ import annotations

from typing import Any

from stretto import numpy as snp
from stretto.as_jax.keys import TAKING_KEYS
from stretto.as_jax.naming import names_of
from stretto.as_jax.types import Array
from stretto.numpy.dtypes import ScalarType

__all__: list[str]

ndarray = Array
_get, __dir__ = names_of("stretto.numpy")


def iscomplexobj(x: Any) -> bool:
    """Whether the elements of an array, or those of a dtype by its name, are complex."""
    if isinstance(x, ScalarType):
        return snp.issubdtype(x, snp.complexfloating)
    return snp.iscomplexobj(x)


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """NaN replaced first, then infinities, those that NaN was replaced by among them."""
    del copy
    without_nan = snp.nan_to_num(x, nan=nan, posinf=snp.inf, neginf=-snp.inf)
    return snp.nan_to_num(without_nan, nan=nan, posinf=posinf, neginf=neginf)


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [n for n in __dir__() if not n.startswith("_")]
    return TAKING_KEYS[name] if name in TAKING_KEYS else _get(name)
