"""``stretto.nn``: functions of neural networks.

Layer 7. Read ``functions``.
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from stretto.nn.functions import *
