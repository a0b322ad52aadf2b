"""The step of all members as one program against the same step looped over the members."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

import stretto as st
from stretto.demo.classifier import Params, step
from stretto.demo.errors import DemoError
from stretto.demo.training import Trained, step_all

__all__ = ["Timing", "measure", "timing_note", "timing_table"]

ROUNDS = 7
STEPS = 10
# Both ways sum in different orders; over STEPS steps of Adam the rounding grows to about 1e-5.
TOLERANCE = 1e-3

_step = st.jit(step)


class Timing(NamedTuple):
    """Seconds for one step of all members: the median over the rounds."""

    members: int
    together: float
    looped: float
    difference: float
    """The largest difference between the two ways' parameters after the same steps."""

    @property
    def ratio(self) -> float:
        """The factor by which one program is faster."""
        return self.looped / self.together


def measure(trained: Trained) -> Timing:
    """Time both ways in alternate rounds, after checking that they compute the same.

    Each round goes on from where the training ended, STEPS steps on one batch a member.

    Raises:
        DemoError: the two ways' parameters differ.
    """
    everyone, rates, images, labels, rows = trained
    each = st.unstack((everyone, rates, rows))

    def together() -> Params:
        members = everyone
        for _ in range(STEPS):
            members, _losses = step_all(members, rates, images, labels, rows)
        return st.block_until_ready(members.params)

    def looped() -> list[Params]:
        members = [member for member, _rate, _own_rows in each]
        for _ in range(STEPS):
            for i, (_start, rate, own_rows) in enumerate(each):
                members[i], _loss = _step(members[i], rate, images, labels, own_rows)
        return st.block_until_ready([member.params for member in members])

    difference = _largest_difference(together(), st.stack(looped()))  # also compiles both
    if not difference <= TOLERANCE:
        raise DemoError(
            f"one program and the loop differ in a parameter by {difference:.2g} after {STEPS} "
            f"steps; expected at most {TOLERANCE:.2g}"
        )
    seconds = [(_seconds(together), _seconds(looped)) for _ in range(ROUNDS)]
    together_median, looped_median = (statistics.median(times) / STEPS for times in zip(*seconds))
    return Timing(len(each), together_median, looped_median, difference)


def timing_table(timing: Timing, steps: int) -> Table:
    """Return both ways, a row each; a member is trained when it has taken so many steps."""
    table = Table(
        title=f"Speed, medians of {ROUNDS} alternate rounds of {STEPS} steps", title_justify="left"
    )
    table.add_column("training")
    for heading in ("ms a step of all", "member-steps/s", "members/s"):
        table.add_column(heading, justify="right")
    ways = {"as one program": timing.together, "looped over the members": timing.looped}
    for name, seconds in ways.items():
        rate = timing.members / seconds
        table.add_row(name, f"{seconds * 1e3:.2f}", f"{rate:,.0f}", f"{rate / steps:.3g}")
    return table


def timing_note(timing: Timing, steps: int) -> str:
    """Return the ratio, and what was checked first."""
    agreement = f"to {timing.difference:.0e}" if timing.difference else "to the last bit"
    return (
        f"One program is {timing.ratio:.2f} times as fast as the loop. First, both gave the same "
        f"parameters, {agreement}. Members/s: members trained for {steps:,} steps."
    )


def _seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _largest_difference(xs: Params, ys: Params) -> float:
    """Return the largest absolute difference between corresponding elements."""
    pairs = zip(st.tree.leaves(xs), st.tree.leaves(ys))
    return float(max(np.abs(np.asarray(x) - np.asarray(y)).max() for x, y in pairs))
