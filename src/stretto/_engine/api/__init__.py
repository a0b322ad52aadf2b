"""The transformations as users call them, on functions of trees.

Read ``arguments`` (trees to flat values), then ``jit`` with ``entry`` and ``dispatch``,
``derivatives`` with ``flat``, ``vectorize``, and ``graph``.
"""
