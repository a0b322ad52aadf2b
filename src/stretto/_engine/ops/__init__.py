"""The first-order operations, each primitive in one class beside its function.

Read ``elementwise`` for the pattern, then ``broadcast``, where an operation meets its transpose.
Element-wise families lie here; ``linalg convolution index reducing special random collective`` are
folders.
"""
