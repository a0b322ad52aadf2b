"""``jax._src.state``."""

from stretto._engine.higher_order.refs import View as TransformedRef
from stretto.compat.jax.avals import AbstractRef

__all__ = ["AbstractRef", "TransformedRef"]
