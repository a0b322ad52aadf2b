"""``stretto.custom_batching``: functions whose ``vmap`` the user gives.

The names of ``jax.custom_batching``. Next, read ``control/custom_vmap``.
"""

from stretto._engine.control.custom_vmap import custom_vmap, sequential_vmap
from stretto._engine.core.guarded import guard_module

__all__ = ["custom_vmap", "sequential_vmap"]

guard_module(__name__)
