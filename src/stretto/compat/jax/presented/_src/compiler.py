"""``jax._src.compiler``."""

from stretto.compat.jax.refused import RefusedName

__all__ = ["backend_compile_and_load", "compile_or_get_cached"]

_WHY = "compiling is inside of stretto.jit"
backend_compile_and_load = RefusedName("jax._src.compiler.backend_compile_and_load", _WHY)
compile_or_get_cached = RefusedName("jax._src.compiler.compile_or_get_cached", _WHY)
