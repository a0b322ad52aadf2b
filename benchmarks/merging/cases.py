"""The recipes, which Stretto and mergekit read from one file, and how near the values must be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["ALPHA", "BOTH", "CASES", "DENSITY", "MATRICES", "RANK", "Case"]

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Case(NamedTuple):
    """A way to merge, on models that are the same for all."""

    method: str
    models: int
    """How many tuned models there are."""
    base: bool
    shared: Mapping[str, Any] = NOTHING
    each: Mapping[str, tuple[Any, ...]] = NOTHING
    """Settings with one value for each model."""
    units: Mapping[str, int | None] = MappingProxyType({"float32": 0, "bfloat16": 1})
    """The most units in the last place that a value may differ by; none where numbers are drawn."""
    near: Mapping[str, float] = NOTHING
    """The most that a value may differ by, in parts of the largest of its tensor."""
    dtype: str = "float32"
    """What mergekit computes in."""
    loop: bool = False
    """Whether there is a loop in PyTorch for it."""

    def recipe(self, folder: Path, out_dtype: str) -> dict[str, Any]:
        """Return the recipe, as mergekit's YAML has it, for the models in a folder."""
        models: list[dict[str, Any]] = []
        for k in range(self.models):
            own = {name: values[k] for name, values in self.each.items()}
            models.append({"model": str(folder / f"tuned-{k + 1}")})
            if own:
                models[-1]["parameters"] = own
        said = {
            "merge_method": self.method, "models": models, "dtype": self.dtype,
            "out_dtype": out_dtype,
        }  # fmt: skip
        if self.base:
            said["base_model"] = str(folder / "base")
            if self.method == "slerp":  # whose base is one of the two
                models.insert(0, {"model": said["base_model"]})
        if self.shared:
            said["parameters"] = dict(self.shared)
        return said


WEIGHTS = {"weight": (0.47, 0.29, 0.41)}
OTHERS = MappingProxyType({"float32": None, "bfloat16": None})
"""Where random numbers are others; mergekit rounds each step to bfloat16; or, in fusion, the
divergence of rows that are nearly equal is mostly rounding, and decides what is moved."""
TRIMMED = MappingProxyType({"float32": 0, "bfloat16": None})
"""Where many differences in bfloat16 are equal, and mergekit keeps some of them by no rule."""
NEAR = MappingProxyType({"float32": 2.0**-21, "bfloat16": 2.0**-7})
"""Where sums over a tensor enter, which PyTorch rounds as it likes: near 0 these are many units."""

CASES = {
    "linear": Case("linear", 3, False, each=WEIGHTS, loop=True),
    "linear in bfloat16": Case(
        "linear", 3, False, each=WEIGHTS, dtype="bfloat16", units=OTHERS,
    ),
    "task_arithmetic": Case("task_arithmetic", 3, True, {"lambda": 0.8}, WEIGHTS),
    "ties": Case("ties", 3, True, {"density": 0.5}, WEIGHTS, TRIMMED, loop=True),
    "ties in bfloat16": Case(
        "ties", 3, True, {"density": 0.5}, WEIGHTS, dtype="bfloat16", units=OTHERS,
    ),
    "dare_ties": Case("dare_ties", 3, True, {"density": 0.5}, WEIGHTS, OTHERS),
    "della": Case("della", 3, True, {"density": 0.5, "epsilon": 0.1}, WEIGHTS, OTHERS),
    "breadcrumbs": Case("breadcrumbs", 3, True, {"density": 0.8, "gamma": 0.01}, WEIGHTS, TRIMMED),
    "sce": Case("sce", 3, True, {"select_topk": 0.1}, units=OTHERS, near=NEAR),
    "slerp": Case("slerp", 1, True, {"t": 0.4}, units=OTHERS, near=NEAR),
    "karcher": Case("karcher", 3, False, units=OTHERS, near=NEAR),
    "model_stock": Case("model_stock", 3, True, units=OTHERS, near=NEAR),
    "arcee_fusion": Case("arcee_fusion", 1, True, units=OTHERS),
}  # fmt: skip

# Adapters

RANK, ALPHA, DENSITY = 8, 12, 0.5
BOTH = (0.7, 0.4)
"""The weights of two adapters."""
MATRICES = {"linear": BOTH, "ties": (0.6, 0.6), "magnitude_prune": BOTH}
"""The weights of the kinds of PEFT's that treat A and B one by one."""
