"""``jax._src.traceback_util``."""

from stretto.compat.jax.traceback import (
    _exclude_paths,
    api_boundary,
    include_frame,
    register_exclusion,
)

__all__ = ["_exclude_paths", "api_boundary", "include_frame", "register_exclusion"]
