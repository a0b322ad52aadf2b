"""The command ``stretto demo``: load, train, compare, measure, draw.

The speed measured is that of the step of all members as one program, against the same step looped
over the members.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

import stretto as st
from stretto.demo.comparison import check_picture, compare, draw, score_notes, score_table
from stretto.demo.data import CLASSES, Dataset, load
from stretto.demo.options import DemoError
from stretto.demo.training import HIDDEN, Params, Plan, Trained, step, step_all, train

__all__ = ["Timing", "measure", "run", "timing_note", "timing_table"]

_STEPS_BETWEEN_LOSSES = 20


def run(options: argparse.Namespace) -> int:
    """Run the demo with the options of ``stretto.demo.options``; returns the exit status.

    Raises:
        DemoError: an option or a data file is wrong, or a package is missing.
    """
    start = time.perf_counter()
    console = Console(highlight=False)
    check_picture(options.picture)
    data = load(options.data, options.digits)
    plan = _plan(options, data)
    console.print(_describe(data, plan))

    trained = _train_with_progress(console, data, plan)
    comparison = compare(trained.members, data)
    console.print(score_table(comparison, len(data.test.labels)))
    console.print(score_notes(comparison, len(data.validation.labels)), style="dim")
    console.print()

    timing = measure(trained)
    console.print(timing_table(timing, plan.steps))
    console.print(timing_note(timing, plan.steps), style="dim")
    console.print()

    draw(options.picture, comparison, data)
    console.print(f"Picture: {options.picture.resolve()}", soft_wrap=True, markup=False)
    console.print(f"Took {time.perf_counter() - start:.0f} s in all.")
    return 0


def _plan(options: argparse.Namespace, data: Dataset) -> Plan:
    """Return the options, and the data set's recipe for those not given."""
    recipe = data.recipe
    low, high = options.rates or recipe.rates
    return Plan(
        members=options.members,
        draws=options.draws or recipe.draws,
        epochs=options.epochs or recipe.epochs,
        batch=options.batch or recipe.batch,
        rates=(low, high),
        seed=options.seed,
    )


def _describe(data: Dataset, plan: Plan) -> str:
    examples, pixels = data.train.images.shape
    sizes = "-".join(str(size) for size in (pixels, *HIDDEN, CLASSES))
    height, width = data.image_shape
    low, high = plan.rates
    return (
        f"{data.name}: {examples:,} training, {len(data.validation.labels):,} validation and "
        f"{len(data.test.labels):,} test images of {height}×{width} pixels.\n"
        f"{plan.members} classifiers {sizes}, each from its own key, on its own bootstrap of "
        f"{plan.draws:,} draws, by Adam at its own learning rate, from {low:g} to {high:g}; "
        f"{plan.epochs} epochs, {plan.steps:,} steps of {plan.batch} images a member.\n"
    )


def _train_with_progress(console: Console, data: Dataset, plan: Plan) -> Trained:
    """Train all members, showing steps, time and the mean loss."""
    progress = Progress(
        TextColumn("Training {task.fields[members]} members at once"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )
    with progress:
        task = progress.add_task("", total=plan.steps, members=plan.members, loss="–")

        def on_step(done: int, losses: st.Array) -> None:
            if done % _STEPS_BETWEEN_LOSSES == 0 or done == plan.steps:
                progress.update(task, completed=done, loss=f"{float(losses.mean()):.3f}")

        return train(data, plan, on_step)


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
