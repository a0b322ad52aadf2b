"""``jax.custom_batching``."""

from stretto._engine.higher_order.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
