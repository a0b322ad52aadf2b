"""Derivatives and vectorization of values and programs: jvp, linearization, transposition, vmap.

Read ``evaluate`` (run a program), ``jvp``, ``linearize`` and ``transpose`` (derivatives), then
``vmap``. ``masked`` keeps cotangents zero where a choice has made them so.
"""
