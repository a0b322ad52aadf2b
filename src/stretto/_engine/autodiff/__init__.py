"""Derivatives and vectorization of values and programs: jvp, linearization, transposition, vmap.

Read ``evaluate`` (run a program), ``closed`` (record what is derived from one), ``jvp``,
``linearize`` and ``transpose`` (derivatives), then ``vmap``. ``masked`` keeps cotangents zero where
a choice has made them so, and ``padded`` gives programs of sizes that vary the sizes of a bucket.
"""
