"""Loops found in straight-line code.

Read ``roll_loops`` (the pass), ``stretches`` (what repeats), ``operands`` (whether it is a loop),
``liveness`` and ``profit`` (whether it is worth it), ``selection``, ``rewrite``.
"""
