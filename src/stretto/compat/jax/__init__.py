"""Stretto under JAX's names: ``stretto.as_jax`` is the way in.

Nothing here imports JAX, and nothing below imports this. Read ``finder`` first, then ``naming``,
whose table says where the names of each module are from, and ``root``, ``jax`` itself.
"""
