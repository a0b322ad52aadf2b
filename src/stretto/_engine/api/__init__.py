"""The transformations as users call them, on functions of trees.

Read ``arguments`` (trees to flat values), then ``jit``, ``autodiff``, ``vectorize`` and ``graph``.
"""
