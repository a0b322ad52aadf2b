"""``jax.lib.xla_extension``."""

from stretto.as_jax.trees import PyTreeDef

__all__ = ["PyTreeDef", "XlaRuntimeError"]

XlaRuntimeError = RuntimeError
