"""Stretto under JAX's names: ``stretto.as_jax`` is the way in.

Nothing here imports JAX, and nothing below imports this. Read ``finder`` first, then ``table``, of
modules that have the names of others, and ``presented``, which has a file for each that has code.
"""
