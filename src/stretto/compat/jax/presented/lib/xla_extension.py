"""``jax.lib.xla_extension``."""

from stretto.compat.jax.trees import PyTreeDef

__all__ = ["PyTreeDef", "XlaRuntimeError"]

XlaRuntimeError = RuntimeError
