"""``jax.extend.source_info_util``."""

from stretto.compat.jax.traceback import register_exclusion

__all__ = ["register_exclusion"]
