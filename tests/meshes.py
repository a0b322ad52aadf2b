"""Meshes for tests that need several devices, made when they are asked for."""

import functools

import stretto as st

__all__ = ["mesh"]


@functools.cache
def mesh(**sizes):
    """A mesh with axes of these names and sizes."""
    return st.make_mesh(tuple(sizes.values()), tuple(sizes))
