"""``jax.stages``."""

from collections.abc import Mapping
from typing import Any

from stretto._engine.api.jit.jitted import Jitted as Wrapped
from stretto._engine.api.jit.stages import ArgInfo, Compiled, Lowered
from stretto._engine.api.jit.stages import TracedCall as Traced

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

CompilerOptions = Mapping[str, Any]
