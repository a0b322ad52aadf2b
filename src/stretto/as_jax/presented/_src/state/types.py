"""``jax._src.state.types``."""

from stretto._engine.higher_order.refs import View as TransformedRef
from stretto.as_jax.avals import AbstractRef

__all__ = ["AbstractRef", "TransformedRef"]
