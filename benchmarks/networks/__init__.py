"""Whole networks, each alone and as an ensemble of five, in Stretto, JAX and PyTorch.

Begin with `table` (the networks, their sizes, numbers and rows), then `stretto_images` (models as a
user writes them) and `cases_stretto` (what is timed); the other frameworks have the same files.
"""
