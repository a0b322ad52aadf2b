"""Wiring: installs the eager interpreter, gives values their operators, and the planner a clock.

Layer 8. The one place where layers meet; nothing else may import from a higher one.
"""

from __future__ import annotations

from stretto._engine.core.interpreter import Value, install_eager
from stretto._engine.plan import measured
from stretto._engine.runtime.eager import EAGER
from stretto._engine.runtime.timing import seconds_of
from stretto.numpy import methods

install_eager(EAGER)
methods.attach(Value)
measured.clock.seconds_of = seconds_of
