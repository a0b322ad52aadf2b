"""``jax.extend.core.primitives``: the primitives that programs consist of."""

from __future__ import annotations

from typing import Any

from stretto.compat.jax.jaxprs.tables.named import NAMES, primitive_of


def __getattr__(name: str) -> Any:
    if name.startswith("__") or not name.endswith("_p"):
        raise AttributeError(name)
    return primitive_of(name.removesuffix("_p"))


def __dir__() -> list[str]:
    return [f"{name}_p" for name in NAMES]
