"""Stretto under JAX's names: ``stretto.as_jax`` is the way in.

Nothing here imports JAX, and nothing below imports this. Read ``finder`` first, then ``table``,
which says where the names of each module are from, and ``root``, ``jax`` itself.
"""
