"""Wiring: the eager interpreter becomes the one at rest, operators are attached to values.

Layer 8. The one place where the layers meet; nothing else may reach up.
"""

from __future__ import annotations

from stretto.core.interpreter import Value, install_eager
from stretto.numpy import methods
from stretto.runtime.eager import EAGER

install_eager(EAGER)
methods.attach(Value)
