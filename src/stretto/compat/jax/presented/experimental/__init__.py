"""``jax.experimental``."""

from stretto.typing import Ref
from stretto.compat.jax.callbacks import io_callback
from stretto.compat.jax.hijax import cur_qdd
from stretto.compat.jax.presented import enable_x64

__all__ = ["MutableArray", "cur_qdd", "disable_x64", "enable_x64", "io_callback"]

MutableArray = Ref


def disable_x64() -> object:
    """Set ``jax_enable_x64`` to false inside a ``with`` block."""
    return enable_x64(False)
