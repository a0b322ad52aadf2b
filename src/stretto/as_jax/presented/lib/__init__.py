"""``jax.lib``."""

from stretto.as_jax.presented.version import __version__

__all__ = ["__version__"]
