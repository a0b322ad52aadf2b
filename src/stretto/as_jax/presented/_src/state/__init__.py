"""``jax._src.state``."""

from stretto._engine.higher_order.refs import View as TransformedRef
from stretto.as_jax.avals import AbstractRef

__all__ = ["AbstractRef", "TransformedRef"]
