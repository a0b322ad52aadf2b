"""The command ``stretto demo``: load, train, compare, measure, draw."""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

import stretto as st
from stretto.demo.data import CLASSES, Dataset, load
from stretto.demo.picture import check_picture, draw
from stretto.demo.scoring import compare, score_notes, score_table
from stretto.demo.timing import measure, timing_note, timing_table
from stretto.demo.training import HIDDEN, Plan, Trained, train

__all__ = ["run"]

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
