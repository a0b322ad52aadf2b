"""How far two sides are apart, and how far they may be."""

from __future__ import annotations

import dataclasses
import gc
import time
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.torch_models import ours, reference
from benchmarks.torch_models.model import Call, Model
from stretto.torch import ImportedModule

__all__ = ["BOUNDS", "Figures", "distance", "look_at", "numbered"]

BOUNDS = {
    "float32": 1e-4,
    "outputs": 1e-9,
    "loss": 1e-9,
    "gradients": 1e-9,
    "buffers": 1e-9,
    "parameters": 1e-7,
}
"""The largest error of each figure: in float32, of outputs in evaluation mode; else in float64."""

OWN_ERROR = 3
"""How many times as far off as PyTorch is from itself parameters may be, if that is more.

Steps of deep networks with batch normalization over few numbers multiply rounding errors: weights
that differ by 1e-15 are 4e-3 apart after ten steps of a GoogLeNet. So where parameters are beyond
their bound, PyTorch trains once more, from such weights.
"""

NEGLIGIBLE = 1e-3
"""Of the largest element of all arrays: what rounding may leave of one that is 0 everywhere."""


@dataclasses.dataclass
class Figures:
    """What was found of a model.

    Args:
        name: the model's.
        errors: the largest relative error of each figure, and in which array it is.
        refused: why PyTorch does not export it in train mode; empty if it does.
        failed: what went wrong otherwise; empty if nothing did.
        own_error: how far PyTorch's parameters are from its own, from weights that differ in their
            last digits; 0 if that was not asked.
        seconds: how long all of it took.
    """

    name: str
    errors: dict[str, tuple[float, str]] = dataclasses.field(default_factory=dict)
    refused: str = ""
    failed: str = ""
    own_error: float = 0.0
    seconds: float = 0.0

    def problems(self) -> list[str]:
        """What went wrong, and which figures are beyond their bounds."""
        bounds = dict(BOUNDS)
        bounds["parameters"] = max(bounds["parameters"], OWN_ERROR * self.own_error)
        beyond = [
            f"{self.name}: {figure} {error:.1e} off, in {where}; the bound is {bounds[figure]:.0e}"
            for figure, (error, where) in self.errors.items()
            if error > bounds[figure]
        ]
        return beyond + ([f"{self.name}: {self.failed}"] if self.failed else [])


def look_at(model: Model, parts: Sequence[str]) -> Figures:
    """Compare a model, in these of the parts ``"evaluation"`` and ``"training"``."""
    start = time.perf_counter()
    figures = Figures(model.name)
    try:
        _look_at(model, parts, figures)
    except Exception as error:  # the others are looked at nevertheless
        figures.failed = _in_words(error)
    gc.collect()
    figures.seconds = time.perf_counter() - start
    return figures


def _look_at(model: Model, parts: Sequence[str], figures: Figures) -> None:
    call = model.made()
    single = []
    if "evaluation" in parts:
        single = ours.outputs(ours.imported(call), call)
    with reference.in_double(call) as double:
        module = _imported(double, "training" in parts, figures)
        if "evaluation" in parts:
            expected = numbered(reference.outputs(double))
            figures.errors["float32"] = distance(numbered(single), expected)
            figures.errors["outputs"] = distance(numbered(ours.outputs(module, double)), expected)
        if module.training_program is not None:
            before = {name: x.clone() for name, x in double.module.state_dict().items()}
            expected_training = reference.trained(double)
            found = ours.trained(module, double, compiled=model.compiled)
            figures.errors |= _errors_in_training(found, expected_training)
            if figures.problems():
                again = reference.trained(reference.nearly(double, before))
                figures.own_error, _ = distance(again.parameters, expected_training.parameters)


def _imported(call: Call, train: bool, figures: Figures) -> ImportedModule:
    """The module here, in train mode too, if that is asked for and PyTorch exports it.

    For these sizes alone, which takes PyTorch a third of the time.
    """
    if train:
        try:
            return ours.imported(call, dynamic_batch=False, train=True)
        except Exception as error:
            notes = getattr(error, "__notes__", ())
            if not any(["PyTorch cannot export" in note for note in notes]):
                raise
            figures.refused = _in_words(error)
    return ours.imported(call, dynamic_batch=False)


def _errors_in_training(
    found: reference.Training, expected: reference.Training
) -> dict[str, tuple[float, str]]:
    errors = {
        "loss": distance({"loss": found.loss}, {"loss": expected.loss}),
        "gradients": distance(found.gradients, expected.gradients),
        "buffers": distance(found.buffers, expected.buffers),
        "parameters": distance(found.parameters, expected.parameters),
    }
    return {name: error for name, error in errors.items() if expected.buffers or name != "buffers"}


def numbered(arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs by name."""
    return {f"output {k}": x for k, x in enumerate(arrays)}


def distance(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]
) -> tuple[float, str]:
    """The largest error of an element, and in which array it is.

    An array's errors are relative to its own largest element, or to ``NEGLIGIBLE`` of the largest
    of all arrays, if that is more: some gradients are 0, but for rounding. An array that is not
    there, or of another shape, is infinitely far off, and so are numbers that are not finite.
    """
    sizes = {name: float(np.abs(x).max(initial=0)) for name, x in expected.items()}
    least = NEGLIGIBLE * max(sizes.values(), default=0.0)
    worst = (0.0, "")
    for name in {**expected, **found}:
        x, y = found.get(name), expected.get(name)
        error = np.inf
        if x is not None and y is not None and x.shape == y.shape and _finite(x) and _finite(y):
            off = float(np.abs(x.astype(float) - y).max(initial=0))
            error = off / (max(sizes[name], least) or 1.0)
        if error > worst[0]:
            worst = (error, name)
    return worst


def _finite(x: np.ndarray) -> bool:
    return bool(np.isfinite(x).all())


def _in_words(error: Exception) -> str:
    first = str(error).strip().splitlines()[:1]
    return " ".join([f"{type(error).__name__}:", *first])
