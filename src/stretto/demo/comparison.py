"""The command ``stretto demo``: load, train, compare members, ensemble and soup, measure, draw.

The speed measured is that of the step of all members as one program, against the same step looped
over the members. The picture shows how far confidence can be trusted, and where the members
disagree.
"""

from __future__ import annotations

import argparse
import os
import statistics
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
import stretto.numpy as snp
from stretto._engine.core.files import write_whole
from stretto.demo import training
from stretto.demo.data import CLASSES, Dataset, Labeled, load
from stretto.demo.options import DemoError, require
from stretto.ensemble.scores import accuracy, ece, nll, reliability
from stretto.ensemble.uncertainty import mutual_information

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = ["Comparison", "Scores", "Timing", "check_picture", "compare", "draw", "measure", "run",
           "score", "score_notes", "score_table", "soup", "timing_note",
           "timing_table"]  # fmt: skip

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


def _plan(options: argparse.Namespace, data: Dataset) -> training.Plan:
    """Return the options, and the data set's recipe for those not given."""
    recipe = data.recipe
    low, high = options.rates or recipe.rates
    return training.Plan(
        members=options.members,
        draws=options.draws or recipe.draws,
        epochs=options.epochs or recipe.epochs,
        batch=options.batch or recipe.batch,
        rates=(low, high),
        seed=options.seed,
    )


def _describe(data: Dataset, plan: training.Plan) -> str:
    examples, pixels = data.train.images.shape
    sizes = "-".join(str(size) for size in (pixels, *training.HIDDEN, CLASSES))
    height, width = data.image_shape
    low, high = plan.rates
    return (
        f"{data.name}: {examples:,} training, {len(data.validation.labels):,} validation and "
        f"{len(data.test.labels):,} test images of {height}×{width} pixels.\n"
        f"{plan.members} classifiers {sizes}, each from its own key, on its own bootstrap of "
        f"{plan.draws:,} draws, by Adam at its own learning rate, from {low:g} to {high:g}; "
        f"{plan.epochs} epochs, {plan.steps:,} steps of {plan.batch} images a member.\n"
    )


def _train_with_progress(console: Console, data: Dataset, plan: training.Plan) -> training.Trained:
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

        return training.train(data, plan, on_step)


ROUNDS = 7
STEPS = 10
# Both ways sum in different orders; over STEPS steps of Adam the rounding grows to about 1e-5.
TOLERANCE = 1e-3

_step = st.jit(training.step)


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


def measure(trained: training.Trained) -> Timing:
    """Time both ways in alternate rounds, after checking that they compute the same.

    Each round goes on from where the training ended, STEPS steps on one batch a member.

    Raises:
        DemoError: the two ways' parameters differ.
    """
    everyone, rates, images, labels, rows = trained
    each = st.unstack((everyone, rates, rows))

    def together() -> training.Params:
        members = everyone
        for _ in range(STEPS):
            members, _losses = training.step_all(members, rates, images, labels, rows)
        return st.block_until_ready(members.params)

    def looped() -> list[training.Params]:
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


def _largest_difference(xs: training.Params, ys: training.Params) -> float:
    """Return the largest absolute difference between corresponding elements."""
    pairs = zip(st.tree.leaves(xs), st.tree.leaves(ys))
    return float(max(np.abs(np.asarray(x) - np.asarray(y)).max() for x, y in pairs))


class Scores(NamedTuple):
    """Three scores of one predictor, or the same of many along a leading axis."""

    accuracy: np.ndarray
    nll: np.ndarray
    ece: np.ndarray


class Comparison(NamedTuple):
    """The scores on the test images, and the predictions behind them."""

    members: Scores
    """The scores of each member."""
    best: int
    """The member with the lowest NLL on the validation images."""
    ensemble: Scores
    """The score of the mean of the members' probabilities."""
    soup: Scores
    """The score of one model with the mean of the members' weights."""
    member_probs: np.ndarray
    """(members, examples, classes)."""

    @property
    def mean_member(self) -> Scores:
        """The means over the members of their scores."""
        return Scores(*(values.mean() for values in self.members))

    @property
    def best_member(self) -> Scores:
        """The scores of the best member."""
        return Scores(*(values[self.best] for values in self.members))


def soup(params: training.Params) -> training.Params:
    """Return the uniform soup: the mean of the members' weights (Wortsman et al., 2022)."""
    return st.tree.mean(st.unstack(params))


def score(probs: st.Array | np.ndarray, labels: np.ndarray) -> Scores:
    """Score probabilities (..., examples, classes): accuracy, NLL in nats and ECE in 15 bins."""
    return Scores(*(np.asarray(measure(probs, labels)) for measure in (accuracy, nll, ece)))


def compare(members: training.Member, data: Dataset) -> Comparison:
    """Choose the best member on the validation images; score all on the test images."""
    probs, labels = training.predict(members, data.test.images), data.test.labels
    return Comparison(
        members=score(probs, labels),
        best=int(np.argmin(_validation_nll(members, data.validation))),
        ensemble=score(probs.mean(axis=0), labels),
        soup=score(
            training.probabilities(soup(members.params), snp.asarray(data.test.images)), labels
        ),
        member_probs=probs,
    )


def _validation_nll(members: training.Member, validation: Labeled) -> np.ndarray:
    return np.asarray(nll(training.predict(members, validation.images), validation.labels))


def score_table(comparison: Comparison, images: int) -> Table:
    """Return the four predictors, a row each."""
    table = Table(title=f"On {images:,} test images", title_justify="left")
    table.add_column("predictor")
    for heading in ("accuracy", "NLL", "ECE"):
        table.add_column(heading, justify="right")
    rows = {
        "mean member": comparison.mean_member,
        f"best member (number {comparison.best})": comparison.best_member,
        "ensemble mean": comparison.ensemble,
        "uniform soup": comparison.soup,
    }
    for name, scores in rows.items():
        style = "bold" if scores is comparison.ensemble else ""
        figures = f"{scores.accuracy:.2%}", f"{scores.nll:.4f}", f"{scores.ece:.4f}"
        table.add_row(name, *figures, style=style)
    return table


def score_notes(comparison: Comparison, validation_images: int) -> str:
    """Return what the rows mean, and why the soup is what it is."""
    notes = (
        "Mean member: the mean of the members' scores. Best member: the lowest NLL on "
        f"{validation_images:,} validation images. Ensemble mean: the mean of the members' "
        "probabilities. Uniform soup: one model with the mean of their weights. NLL in nats; ECE "
        "in 15 bins of equal width."
    )
    if comparison.soup.accuracy < comparison.mean_member.accuracy:
        notes += (
            " The soup is worse than its members because each started from its own key: they lie "
            "in different basins of the loss, and the mean of their weights lies in none. Soups "
            "need members that share a start."
        )
    return notes


_ROWS, _COLUMNS = 3, 4
_LEAST_IN_BIN = 10  # with fewer, the accuracy in a bin is mostly chance
_MEMBER_COLOR, _ENSEMBLE_COLOR = "#c7602a", "#1f5f8b"


def check_picture(path: Path) -> None:
    """Find out before the training whether a picture can be drawn into this file.

    Raises:
        DemoError: matplotlib is missing, or knows no such format, or the file cannot be written.
    """
    formats = _figure_class()().canvas.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in formats:
        raise DemoError(
            f"{path}: expected a name that ends in one of .{', .'.join(sorted(formats))}"
        )
    if path.is_dir():
        raise DemoError(f"{path}: is a directory, expected a file to draw into")
    if not path.parent.is_dir():
        raise DemoError(f"{path.parent}: no such directory, to draw {path.name} in")
    if path.exists() and not path.is_file():
        raise DemoError(f"{path}: is not a regular file, and a picture is drawn into one")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise DemoError(f"{path}: cannot be written")


def draw(path: Path, comparison: Comparison, data: Dataset) -> None:
    """Write the reliability diagram and the images that the members disagree on most.

    Raises:
        DemoError: matplotlib is missing, or the file cannot be written.
    """
    figure = _figure_class()(figsize=(13, 6.2), layout="constrained")
    panels: Any = figure.subfigures(1, 2, width_ratios=(0.42, 0.58))
    left, right = panels
    _draw_reliability(left, comparison, data.test.labels)
    _draw_disagreement(right, comparison, data)
    form = path.suffix.removeprefix(".").lower()
    try:
        write_whole(path, lambda file: figure.savefig(file, dpi=110, format=form), "demo")
    except OSError as error:
        raise DemoError(error.strerror or str(error)) from None


def _figure_class() -> type[Figure]:
    """Return ``Figure`` on the Agg canvas, without pyplot: no window system or global state."""
    purpose = "drawing the picture"
    require("matplotlib.backends.backend_agg", "matplotlib", purpose)
    return require("matplotlib.figure", "matplotlib", purpose).Figure


def _draw_reliability(figure: SubFigure, comparison: Comparison, labels: np.ndarray) -> None:
    """Draw accuracy against confidence, and below it how the confidences are distributed."""
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    above.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle="--", label="calibrated")
    probs = comparison.member_probs
    curves = (
        ("mean member", _MEMBER_COLOR, probs, comparison.mean_member),
        ("ensemble mean", _ENSEMBLE_COLOR, probs.mean(axis=0)[None], comparison.ensemble),
    )
    for name, color, probs, scores in curves:
        in_bins = reliability(probs, labels)
        share, confidence, accuracy = (np.asarray(values) for values in in_bins)
        # Over members: the means weighted by how many images each has in the bin.
        total = share.sum(axis=0)
        filled = total * len(labels) >= _LEAST_IN_BIN - 0.5
        mean_confidence = (share * confidence).sum(axis=0)[filled] / total[filled]
        mean_accuracy = (share * accuracy).sum(axis=0)[filled] / total[filled]
        label = f"{name}: ECE {scores.ece:.4f}, NLL {scores.nll:.3f}"
        above.plot(mean_confidence, mean_accuracy, "o-", color=color, markersize=4, label=label)
        heights, bins = share.mean(axis=0), share.shape[-1]
        below.stairs(heights, np.linspace(0, 1, bins + 1), color=color, linewidth=1.5)
    title = f"Reliability, bins of {_LEAST_IN_BIN} images or more"
    above.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy", title=title)
    above.legend(loc="lower right", framealpha=0.8, edgecolor="none")
    below.set(xlabel="confidence", ylabel="share of images", ylim=(0, None))


def _draw_disagreement(figure: SubFigure, comparison: Comparison, data: Dataset) -> None:
    """Draw the test images with the highest mutual information, and the members' votes on each."""
    probs, names = comparison.member_probs, data.class_names
    information = np.asarray(mutual_information(probs))
    votes = probs.argmax(axis=-1)  # (members, examples)
    places = np.argsort(-information, kind="stable")[: _ROWS * _COLUMNS]
    figure.suptitle("Most disagreement: label (mutual information in nats), members' votes")
    axes = figure.subplots(_ROWS, _COLUMNS).ravel()
    for ax in axes:
        ax.axis("off")
    for ax, i in zip(axes, places):
        ax.imshow(data.test.images[i].reshape(data.image_shape), cmap="gray_r")
        counts = np.bincount(votes[:, i], minlength=len(names))
        order = [c for c in np.argsort(-counts, kind="stable") if counts[c]]
        shares = ", ".join(f"{names[c]}\N{NO-BREAK SPACE}×{counts[c]}" for c in order)
        ax.set_title(
            f"{names[data.test.labels[i]]} ({information[i]:.2f})\n"
            + textwrap.fill(shares, 26, max_lines=2, placeholder=" …"),
            fontsize=8.5,
        )
