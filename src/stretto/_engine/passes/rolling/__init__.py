"""Loops found in straight-line code.

Read ``rolling`` (the pass), ``stretches`` (what repeats), ``operands`` (whether it is a loop),
``liveness``, ``profit`` and ``compiling`` (whether it is worth it), ``selection``, ``rewrite``.
"""
