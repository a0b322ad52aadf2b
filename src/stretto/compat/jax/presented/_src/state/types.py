"""``jax._src.state.types``."""

from stretto._engine.higher_order.refs import View as TransformedRef
from stretto.compat.jax.avals import AbstractRef

__all__ = ["AbstractRef", "TransformedRef"]
