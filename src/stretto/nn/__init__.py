"""``stretto.nn``: modules with PyTorch's names, and functions of neural networks.

Layer 7. Read ``module`` first, then ``containers`` and ``state``. ``functions`` has JAX's functions
of arrays, ``functional`` PyTorch's.
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from stretto.nn.containers import *
from stretto.nn.functions import *
from stretto.nn.module import *
from stretto.nn.state import *
from stretto.random.streams import keys as keys
