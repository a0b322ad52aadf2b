"""What is done to a program before it is lowered: work that need not be done is left out.

Layer 5 (plan). Each step can be switched off by a setting, and none changes a result. Next, read
``lower/stablehlo``.
"""

from __future__ import annotations

from stretto._engine.core.config import config
from stretto._engine.core.program import Program
from stretto._engine.rolling.rolling import roll
from stretto._engine.transforms.common import simplified
from stretto._engine.transforms.simplify import live

__all__ = ["prepare"]


def prepare(program: Program) -> Program:
    """The program as it is to be lowered: the same inputs and outputs, no more equations."""
    program = live(program)
    if config.simplify:
        program = simplified(program)
    if config.roll_loops:
        program = roll(program)
    return program
