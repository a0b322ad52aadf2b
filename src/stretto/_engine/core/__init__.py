"""Layer 1: types, trees, programs, primitives and the current interpreter.

Read ``types``, ``program``, ``primitive``, ``interpreter``, then ``recorder``.
"""
