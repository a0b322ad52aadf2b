"""``jax.lax.linalg``: functions of ``stretto.lax.linalg``, and primitives as jaxprs name them."""

from typing import Any

from stretto.compat.jax.jaxprs.tables.named import primitive_of
from stretto.compat.jax.naming import names_of

_get, __dir__ = names_of("stretto.lax.linalg")


def __getattr__(name: str) -> Any:
    if name.endswith("_p"):
        return primitive_of(name.removesuffix("_p"))
    return _get(name)
