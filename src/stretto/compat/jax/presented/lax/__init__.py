"""``jax.lax``: functions of ``stretto.lax``, and primitives as jaxprs name them.

Functions that move elements take typed keys too.
"""

from typing import Any

from stretto.compat.jax.calls import with_sharding_constraint as with_sharding_constraint
from stretto.compat.jax.jaxprs.tables.named import primitive_of
from stretto.compat.jax.keys import LAX_TAKING_KEYS
from stretto.compat.jax.naming import names_of
from stretto.lax import top_k as largest

_get, __dir__ = names_of("stretto.lax")


def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Any]:
    """The ``k`` largest elements along an axis, and their indices, as a list."""
    return list(largest(operand, k, axis=axis))


def __getattr__(name: str) -> Any:
    if name.endswith("_p"):
        return primitive_of(name.removesuffix("_p"))
    return LAX_TAKING_KEYS[name] if name in LAX_TAKING_KEYS else _get(name)
