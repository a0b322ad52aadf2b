"""``stretto.custom_batching``: functions whose ``vmap`` the user gives.

The names of ``jax.custom_batching``.
"""

from stretto._engine.core.guarded import guard_module
from stretto._engine.higher_order.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]

guard_module(__name__)
