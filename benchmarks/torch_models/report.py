"""Figures as a line, as JSON, and as the page ``docs/pytorch-models.md``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from importlib.metadata import version

from benchmarks.torch_models.comparing import BOUNDS, Figures

__all__ = ["line", "page", "to_json", "versions"]

_PACKAGES = ("torch", "torchvision", "timm", "transformers", "diffusers", "torch-geometric")

_HEAD = """\
# PyTorch's models here

Written by `make torch-models ARGS="--page docs/pytorch-models.md"`. Models of PyTorch's libraries,
with random weights and mostly in small configurations, are imported by `stretto.from_torch` and
compared with PyTorch's own results in float64. Errors are relative to the largest element of each
array, or to a thousandth of the largest of all arrays where that is more, because gradients that
are 0 are so only but for rounding; the largest of all arrays is shown.

- *float32*: outputs in evaluation mode, computed here in float32.
- *outputs*: the same in float64.
- *loss*, *gradients*: in train mode, of all outputs and all parameters.
- *buffers*: after one step, such as BatchNorm's statistics.
- *parameters*: after ten steps of AdamW.

There is no dropout, because random numbers are others than PyTorch's. What a model computes in
float32 whatever its weights are, such as norms of language models, is computed in float64 on both
sides, and so is the derivative of hardsigmoid, whose slope PyTorch takes from float32 always. A
parameter that the loss does not depend on decays here, as one whose gradient is 0, and in
this comparison in PyTorch too, whose optimizers would pass it over. AdamW's rate is 1e-4, and its
epsilon 1e-6: Adam divides gradients by their size, so with a rate of 1e-3 and an epsilon of 1e-8
ten steps of ResNet-50 and of CLIP multiplied rounding errors to 2e-7.

`python -m benchmarks.torch_models.published` runs two models with published weights from end to
end: WordLlama's sentence encoder gives the similarities of its documentation to their four digits,
and Silero's speech detector PyTorch's probabilities, over 93 chunks of sound, to 1e-6.
"""

_OWN_ERROR = """\
† Where parameters are beyond their bound, the bound is three times PyTorch's distance from itself,
from weights that differ by 1e-15: steps of deep networks with batch normalization over few numbers
multiply rounding errors."""


def line(figures: Figures) -> str:
    """A model's figures in a line."""
    errors = [f"{name} {error:.0e}" for name, (error, _) in figures.errors.items()]
    refused = [f"train mode not exported: {figures.refused}"] if figures.refused else []
    failed = [f"failed: {figures.failed}"] if figures.failed else []
    return f"{figures.name:32} {figures.seconds:5.1f} s  " + ", ".join([*errors, *refused, *failed])


def to_json(all_figures: Sequence[Figures]) -> str:
    """All figures, with their bounds."""
    models = [dataclasses.asdict(figures) for figures in all_figures]
    return json.dumps({"bounds": BOUNDS, "models": models}, indent=1) + "\n"


def versions() -> str:
    """The packages that models are from, with their versions."""
    return ", ".join([f"{name} {version(name)}" for name in _PACKAGES])


def page(all_figures: Sequence[Figures], packages: str) -> str:
    """All figures as a page: a table, and what is not in it."""
    rows = [["model", *BOUNDS], ["---"] * (1 + len(BOUNDS))]
    rows.append(["*bound*", *[f"{bound:.0e}" for bound in BOUNDS.values()]])
    for figures in all_figures:
        rows.append([figures.name, *[_cell(figures, name) for name in BOUNDS]])
    lines = [_HEAD, f"{len(all_figures)} models, {packages}:", ""]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    if any([figures.own_error for figures in all_figures]):
        own = [f"{f.name} {f.own_error:.0e}" for f in all_figures if f.own_error]
        lines += ["", f"{_OWN_ERROR} It is: {', '.join(own)}."]
    refused = [figures for figures in all_figures if figures.refused]
    if refused:
        lines += ["", "PyTorch's own export refuses these in train mode:", ""]
        lines += [f"- {figures.name}: `{figures.refused}`" for figures in refused]
    problems = [text for figures in all_figures for text in figures.problems()]
    if problems:
        lines += ["", "These do not agree, or fail:", "", *[f"- {text}" for text in problems]]
    return "\n".join(lines) + "\n"


def _cell(figures: Figures, name: str) -> str:
    if name not in figures.errors:
        return ""
    mark = "†" if figures.own_error and name == "parameters" else ""
    return f"{figures.errors[name][0]:.0e}{mark}"
