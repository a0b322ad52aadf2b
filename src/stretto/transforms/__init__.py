"""Layer 3: transformations of functions and programs.

Read ``evaluate``, ``jvp``, ``linearize``, ``transpose``, ``vmap``, ``simplify``.
"""
