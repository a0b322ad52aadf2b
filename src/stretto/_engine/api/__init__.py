"""Layer 7: the transformations as users call them, on functions of trees.

Read ``arguments``, then ``jit``, ``derivatives``, ``vectorise``.
"""
