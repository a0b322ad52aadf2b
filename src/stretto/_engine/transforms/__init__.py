"""Layer 3: transformations of functions and programs.

Read ``evaluate``, ``closed``, ``jvp``, ``linearize``, ``transpose``, ``vmap``, ``simplify``.
"""
