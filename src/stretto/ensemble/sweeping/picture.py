"""The picture of a sweep: scores against hyperparameters."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # it is above, and drawn by this
    from matplotlib.figure import Figure

    from stretto.ensemble.sweeping.results import Sweep


_COLORS = {"finished": "#1f5f8b", "stopped": "#b0b8bf"}


def drawn(sweep: Sweep) -> Figure:
    """A panel for each hyperparameter, with a point for each configuration that did not diverge."""
    try:
        import_module("matplotlib.backends.backend_agg")
        figures: Any = import_module("matplotlib.figure")
    except ModuleNotFoundError as error:
        raise ImportError(
            "Sweep.plot: drawing needs matplotlib: pip install 'stretto[demo]'"
        ) from error
    rows = [row for row in sweep.table() if np.isfinite(row["score"])]
    names = list(sweep.configurations[0])
    figure = figures.Figure(figsize=(3.2 * len(names) + 0.6, 3.2), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, names, strict=True):
        values = [row[name] for row in rows]
        for status, color in _COLORS.items():
            here = [(x, row["score"]) for x, row in zip(values, rows) if row["status"] == status]
            if here:
                xs, ys = zip(*_at(here, values), strict=True)
                panel.plot(xs, ys, "o", color=color, markersize=4, label=status)
        if rows:
            ((x, y),) = _at([(values[0], rows[0]["score"])], values)
            panel.plot([x], [y], "*", color="#c7602a", markersize=12, label="best")
        if not _numbers(values):
            labels = _labels(values)
            panel.set_xticks(range(len(labels)), labels)
        elif _wide(values):
            panel.set_xscale("log")
        panel.set_xlabel(name)
    panels[0].set_ylabel(sweep.monitor)
    if _wide([row["score"] for row in rows]):
        panels[0].set_yscale("log")  # of all, which share it
    panels[-1].legend(framealpha=0.8, edgecolor="none")
    return figure


def _wide(numbers: list[float]) -> bool:
    return bool(numbers) and min(numbers) > 0 and max(numbers) / min(numbers) > 100


def _numbers(values: list[Any]) -> bool:
    return all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in values)


def _labels(values: list[Any]) -> list[str]:
    return list(dict.fromkeys(str(x) for x in values))


def _at(points: list[tuple[Any, float]], values: list[Any]) -> list[tuple[float, float]]:
    """Where points lie: at their number, or at the place of their label."""
    if _numbers(values):
        return points
    labels = _labels(values)
    return [(float(labels.index(str(x))), y) for x, y in points]
