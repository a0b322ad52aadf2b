"""``jax.flatten_util``."""

from stretto.flatten_util import ravel_pytree

__all__ = ["ravel_pytree"]
