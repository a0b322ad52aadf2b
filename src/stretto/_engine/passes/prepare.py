"""Run the passes over every program before it is lowered, in their order.

A pass is a function from a program to one with the same inputs and outputs, in a module that is
loaded when it is first run. ``PREPARING`` has those for any platform: their result is kept
with the program. ``FINISHING`` has those that go by where it runs, and ``PLANNED`` those for the
program of all members, which there is only once a mapped call is lowered. ``WRITTEN`` has those for
each program, body or branch in the moment in which it is written. Settings switch some off;
``tests/property`` holds results to be the same without them.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence

from stretto._engine.core.config import config
from stretto._engine.core.primitive import meshes
from stretto._engine.core.program import Program
from stretto._engine.core.rewriting import holds_programs
from stretto._engine.core.shardings import Placement


@dataclasses.dataclass(frozen=True)
class Pass:
    """A pass over programs: where it is, and when it is run."""

    name: str
    """The name of the function, and of its module."""
    setting: str | None = None
    """The setting that has to be on."""
    platform: str | None = None
    """The platform that it is for; all, if none is given."""
    needed: Callable[[Program], object] | None = None
    """Says whether the program may have what the pass looks for."""
    home: str = ""
    """Its module, if not that of its name in this package."""
    once: bool = False
    """Says whether it is for programs alone that no loop repeats."""

    def runs_on(self, program: Program, platform: str | None = None) -> bool:
        """Tell whether settings, platform and program ask for the pass."""
        if self.setting is not None and not getattr(config, self.setting):
            return False
        if self.platform not in (None, platform):
            return False
        return self.needed is None or bool(self.needed(program))

    def __call__(self, program: Program) -> Program:
        """Return the program after the pass."""
        module = importlib.import_module(self.home or f"stretto._engine.passes.{self.name}")
        return getattr(module, self.name)(program)


_BARRIERS = "stretto._engine.passes.barriers"
_SIMPLIFY = "stretto._engine.passes.simplify"

PREPARING = (
    Pass("fuse_ragged", "kernels", needed=holds_programs),
    Pass(
        "inline_sized_calls",
        needed=holds_programs,
        home="stretto._engine.higher_order.sized_call",
    ),
    Pass("live", home="stretto._engine.core.rewriting"),
    Pass("update_whole", "simplify"),
    Pass("factor_dot_sums", "simplify", home=_SIMPLIFY),
    Pass("simplify", "simplify"),
    # Products are gathered before loops are found: a loop that is found has none of its own.
    Pass("hoist_products", "simplify"),
    Pass("rematerialize", "simplify"),
    Pass("roll_loops", "roll_loops", home="stretto._engine.passes.rolling.roll_loops"),
    Pass("delay_writes", "simplify"),
    Pass("split_chained_products", "simplify", home=_BARRIERS),
    Pass("materialize_shared", "simplify", home=_BARRIERS),
    Pass(
        "merge_all_reduces",
        "simplify",
        needed=lambda program: meshes(program.effects),
        home=_SIMPLIFY,
    ),
)
FINISHING = (
    Pass("barrier_before_choices", home=_BARRIERS),
    Pass("store_beside_copies", home=_BARRIERS),
    Pass("fuse_alone", "kernels", platform="cpu", home="stretto._engine.passes.fuse_updates"),
    Pass("run_on_xla_thread", platform="cpu", home=_BARRIERS),
)
PLANNED = (
    Pass("materialize_shared", home=_BARRIERS),
    Pass("store_beside_copies", home=_BARRIERS),
)
WRITTEN = (
    Pass("fuse_scans", "kernels", platform="cpu"),
    Pass("fuse_attention", "kernels", platform="cpu"),
    Pass("align_axes", "kernels", platform="cpu"),
    Pass("fuse_products", "kernels", platform="cpu"),
    Pass("fuse_rows", "kernels", platform="cpu"),
    Pass(
        "fuse_small_rows",
        "kernels",
        platform="cpu",
        home="stretto._engine.passes.fuse_rows",
        once=True,
    ),
    Pass("fuse_gathers", "kernels", platform="cpu"),
    Pass("fuse_updates", "kernels", platform="cpu"),
    Pass("join_axes", "simplify", platform="cpu"),
)


def prepare(program: Program) -> Program:
    """Return the program to lower: the same inputs and outputs, and no more equations."""
    return _run(PREPARING, program)


def for_platform(program: Program, placement: Placement | None) -> Program:
    """Return a prepared program as it is lowered for these devices; without any, for the CPU."""
    platform = "cpu" if placement is None else placement.devices[0].platform
    return _run(FINISHING, program, platform)


def finish_planned(program: Program) -> Program:
    """Return the program of all members, in the form that was chosen, as it is lowered."""
    return _run(PLANNED, program)


def as_written(program: Program, in_loop: bool = True) -> Program:
    """Return a program, of whatever holds it, as it is written where there are kernels.

    ``in_loop`` says whether a loop may repeat it.
    """
    return _run([p for p in WRITTEN if not (p.once and in_loop)], program, "cpu")


def _run(passes: Sequence[Pass], program: Program, platform: str | None = None) -> Program:
    for step in passes:
        if step.runs_on(program, platform):
            program = step(program)
    return program
