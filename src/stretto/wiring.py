"""Wiring: the eager interpreter becomes the one at rest, values get operators, the planner a clock.

Layer 8. The one place where the layers meet; nothing else may reach up.
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
