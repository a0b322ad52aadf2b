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
from stretto._engine.passes.rolling.roll_loops import roll
from stretto._engine.passes.simplify import simplified

if TYPE_CHECKING:  # loaded when the first program is compiled
    from stretto._engine.core.shardings import Placement
    from stretto._engine.passes import barrier_before_choices
    from stretto._engine.passes import delay_writes as delayed
    from stretto._engine.passes import factor_dot_sums as contracted
    from stretto._engine.passes import hoist_products as gathered
    from stretto._engine.passes import inline_sized_calls as expanded
    from stretto._engine.passes import materialize_shared as stored
    from stretto._engine.passes import merge_all_reduces as together
    from stretto._engine.passes import rematerialize as recomputed
    from stretto._engine.passes import run_on_xla_thread as apart
    from stretto._engine.passes import split_chained_products as separated
else:
    apart = LazyModule("stretto._engine.passes.run_on_xla_thread")
    barrier_before_choices = LazyModule("stretto._engine.passes.barrier_before_choices")
    contracted = LazyModule("stretto._engine.passes.factor_dot_sums")
    delayed = LazyModule("stretto._engine.passes.delay_writes")
    expanded = LazyModule("stretto._engine.passes.inline_sized_calls")
    gathered = LazyModule("stretto._engine.passes.hoist_products")
    recomputed = LazyModule("stretto._engine.passes.rematerialize")
    separated = LazyModule("stretto._engine.passes.split_chained_products")
    stored = LazyModule("stretto._engine.passes.materialize_shared")
    together = LazyModule("stretto._engine.passes.merge_all_reduces")

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
