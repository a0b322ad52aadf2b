"""``stretto.as_jax``: libraries that are written for JAX run on Stretto, unchanged.

After ``install()``, or under ``python -m stretto.as_jax script.py``, ``import jax`` gives a view of
Stretto under JAX's names. Nothing else in Stretto imports this package, and nothing here imports
JAX.
"""

from stretto.compat.jax.modules import VERSION, install

__all__ = ["VERSION", "install"]
