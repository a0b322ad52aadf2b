"""Stretto under JAX's names: ``stretto.as_jax`` is the way in.

Nothing here imports JAX, and nothing below imports this. Read ``modules`` first, whose table says
where the names of each module are from, then ``root``, ``jax`` itself.
"""
