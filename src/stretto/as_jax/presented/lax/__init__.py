"""``jax.lax``: functions of ``stretto.lax``, and primitives as jaxprs name them."""

from typing import Any

from stretto.as_jax.calls import with_sharding_constraint as with_sharding_constraint
from stretto.as_jax.jaxprs.tables.named import primitive_of
from stretto.as_jax.naming import names_of

_get, __dir__ = names_of("stretto.lax")


def __getattr__(name: str) -> Any:
    if name.endswith("_p"):
        return primitive_of(name.removesuffix("_p"))
    return _get(name)
