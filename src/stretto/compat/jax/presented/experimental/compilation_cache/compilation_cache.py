"""``jax.experimental.compilation_cache.compilation_cache``.

Stretto keeps compiled programs by itself, in the folder that ``STRETTO_CACHE_DIR`` names;
``jax_enable_compilation_cache`` turns that off.
"""

from stretto.compat.jax.settings import config

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: object) -> None:
    """Set ``jax_compilation_cache_dir``, which is kept; the folder stays Stretto's own."""
    config.update("jax_compilation_cache_dir", str(path))


def reset_cache() -> None:
    """Do nothing: nothing of the folder is kept open."""
