"""The picture: how far confidence can be trusted, and where the members disagree."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core.files import write_whole
from stretto.demo.data import Dataset
from stretto.demo.errors import DemoError
from stretto.demo.extras import require
from stretto.demo.scoring import Comparison
from stretto.ensemble.calibration_error import reliability
from stretto.ensemble.uncertainty import mutual_information

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = ["check_picture", "draw"]

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
    """Accuracy against confidence, and below it how the confidences are distributed."""
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
