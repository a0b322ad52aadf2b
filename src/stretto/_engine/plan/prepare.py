"""What is done to every program before it is lowered: unnecessary work is removed.

Layer 5 (plan). Calls whose sizes vary are written in place, and dead work is dropped. Sums of
products become products, equal work is done once, products are gathered out of loops, what is cheap
is computed again rather than kept, repeated code is rolled into loops, writes in loops wait for the
next turn, products that one kernel would repeat are kept apart, and values that several kernels
read are stored; these can be switched off by settings. Next, read ``lower/stablehlo``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto._engine.core.config import config
from stretto._engine.core.effects import meshes
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.program import Program
from stretto._engine.core.rewriting import holds_programs, live
from stretto._engine.rolling.rolling import roll
from stretto._engine.transforms.common import simplified

if TYPE_CHECKING:  # loaded when the first program is compiled
    from stretto._engine.core.shardings import Placement
    from stretto._engine.plan import (
        apart,
        barrier_before_choices,
        contracted,
        delayed,
        expanded,
        gathered,
        recomputed,
        separated,
        stored,
        together,
    )
else:
    apart = LazyModule("stretto._engine.plan.apart")
    barrier_before_choices = LazyModule("stretto._engine.plan.barrier_before_choices")
    contracted = LazyModule("stretto._engine.plan.contracted")
    delayed = LazyModule("stretto._engine.plan.delayed")
    expanded = LazyModule("stretto._engine.plan.expanded")
    gathered = LazyModule("stretto._engine.plan.gathered")
    recomputed = LazyModule("stretto._engine.plan.recomputed")
    separated = LazyModule("stretto._engine.plan.separated")
    stored = LazyModule("stretto._engine.plan.stored")
    together = LazyModule("stretto._engine.plan.together")

__all__ = ["for_platform", "prepare"]


def prepare(program: Program) -> Program:
    """The program to lower: the same inputs and outputs, and no more equations."""
    if holds_programs(program):
        program = expanded.expanded(program)
    program = live(program)
    if config.simplify:
        program = simplified(contracted.contracted(program))
        program = recomputed.recomputed(gathered.gathered(program))
    if config.roll_loops:
        program = roll(program)
    if config.simplify:
        program = stored.stored(separated.separated(delayed.delayed(program)))
        if meshes(program.effects):
            program = together.together(program)
    return program


def for_platform(program: Program, placement: Placement | None) -> Program:
    """A prepared program as it is lowered for these devices; without any, for the CPU."""
    program = barrier_before_choices.barrier_before_choices(program)
    if placement is None or placement.devices[0].platform == "cpu":
        return apart.apart(program)
    return program
