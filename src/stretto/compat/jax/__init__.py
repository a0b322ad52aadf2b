"""Stretto under JAX's names: ``stretto.as_jax`` is the way in.

Nothing here imports JAX, and nothing below imports this. Read ``finder`` first, then ``presented``,
which has a file for each module that differs.
"""
