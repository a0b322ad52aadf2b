"""``explain``: which formulation an ensemble's operations have, and what they cost.

What the planner chose is in the program; time and memory are those of the compiled form. The rest
is what ``st.explain`` says of any function.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from stretto._engine.api.explain import explain
from stretto._engine.api.jit.jit import Jitted
from stretto._engine.api.sharding.placement import block_until_ready
from stretto._engine.core import cost
from stretto._engine.core.config import config
from stretto._engine.core.lazy import shown
from stretto._engine.core.program import Program
from stretto._engine.passes.formulations.mapped import Mapped
from stretto._engine.passes.formulations.members import Decision, peak_bytes

_ROUNDS = 5


@shown("stretto._engine.api.cards", "card_of_report", "text_of_report")
@dataclasses.dataclass(frozen=True)
class Explanation:
    """The choices for each product and convolution, and the cost of the whole.

    Printed, it is a table.
    """

    decisions: tuple[Decision, ...]
    predicted_microseconds: float
    """The estimates of what was chosen, together; element-wise work is in it for turns only."""
    measured_microseconds: float
    """The median of a few calls."""
    temporary_bytes: int
    """The bytes that the compiled program needs beside arguments and results."""
    predicted_bytes: int
    """The estimate, as if nothing were fused, that ``chunk_size="auto"`` goes by."""
    chunk_size: Any
    plan: str
    machine: str
    """The kind of processor whose costs the estimates are made of, and whether measured on one."""
    program: explain.Explanation
    """The report of ``st.explain`` on the compiled program."""

    def __str__(self) -> str:
        lines = [
            f"plan {self.plan!r}, chunk_size {self.chunk_size}: "
            f"{self.measured_microseconds:,.0f} us measured, "
            f"{self.predicted_microseconds:,.0f} us predicted for products and convolutions; "
            f"{self.temporary_bytes / 1e6:,.1f} MB of temporaries, "
            f"{self.predicted_bytes / 1e6:,.1f} MB predicted",
            f"predicted by the costs of {self.machine}",
        ]
        for d in self.decisions:
            lines.append(f"{d.operation}  at {d.position}" if d.position else d.operation)
            for name, microseconds in d.choices:
                mark = "->" if name == d.chosen else "  "
                lines.append(f"  {mark} {microseconds:12,.0f} us  {name}")
        return "\n".join([*lines, *self.program.lines()])


def explain_run(
    jitted: Jitted[..., Any], args: Sequence[Any], chunk_size: int | str | None
) -> Explanation:
    """Return what a jitted function does with these arguments."""
    traced = jitted.trace(*args)
    compiled = traced.lower().compile()
    decisions, predicted, microseconds, plan = [], 0, 0.0, config.plan
    for mapped in _mapped_calls(traced.program):
        program, choices = mapped.plan()
        decisions += choices
        whole = [d for d in choices if d.all_in_all] or choices
        microseconds += sum(dict(d.choices)[d.chosen] for d in whole)
        plan = mapped.form.value
        predicted = max(predicted, peak_bytes(program))
    return Explanation(
        tuple(decisions),
        microseconds,
        1e6 * _seconds(lambda: block_until_ready(compiled(*args))),
        int(compiled.memory_analysis().temp_size_in_bytes),
        predicted or peak_bytes(traced.program),
        chunk_size,
        plan,
        cost.current().name,
        # The ensemble keeps its weights, so nothing can be donated.
        dataclasses.replace(explain.explain_jitted(jitted, tuple(args), {}), donations=()),
    )


def _mapped_calls(program: Program) -> Iterator[Mapped]:
    """Yield every mapped call in a program, and in those inside it."""
    for equation in program.equations:
        primitive: Any = equation.primitive
        if isinstance(primitive, Mapped):
            yield primitive
        elif primitive.holds_programs:
            for inner in primitive.programs():
                yield from _mapped_calls(inner)


def _seconds(run: Callable[[], Any]) -> float:
    run()
    times = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return float(np.median(times))
