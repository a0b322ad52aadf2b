"""``stretto.custom_batching``: functions whose ``vmap`` the user gives.

The names of ``jax.custom_batching``. Next, read ``control/custom_vmap``.
"""

from stretto._engine.control.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
