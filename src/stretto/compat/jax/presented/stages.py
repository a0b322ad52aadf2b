"""``jax.stages``."""

from collections.abc import Mapping
from typing import Any

from stretto.compat.jax.naming import names_of

__all__ = ["CompilerOptions"]

CompilerOptions = Mapping[str, Any]

__getattr__, __dir__ = names_of("stretto.stages")
