"""``jax.lib``."""

from stretto.compat.jax.presented.version import __version__

__all__ = ["__version__"]
