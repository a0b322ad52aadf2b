"""Layer 3: transformations of functions and programs.

Read ``evaluate`` (run a program), ``closed`` (record what is derived from one), ``jvp``,
``linearize`` and ``transpose`` (derivatives), ``vmap``, then ``simplify``, ``common`` and
``folding`` (less work for the same result).
"""
