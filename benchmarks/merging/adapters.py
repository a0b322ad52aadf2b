"""What PEFT makes of LoRA adapters, by recipes of ours.

Into a model it merges W + (α/r) B A, and several adapters of its kind "cat" are task vectors: both
are merges of models with adapters. Its other kinds, "linear", "ties", "magnitude_prune", treat the
matrices A and B one by one, each with the root of its adapter's weight: these are merges of the
adapters' files, with a base of zeros. Its "ties" elects signs before weights, and divides by the
number of those that agree, so that ours is the same only for equal weights.
"""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import stretto as st
from benchmarks.merging.cases import ALPHA, BOTH, DENSITY, MATRICES, RANK
from benchmarks.process import ROOT, environment

__all__ = ["NEAR", "Found", "compared", "recipes"]


TRIMMED = ("matrices-ties", "matrices-magnitude_prune")
NEAR = {"float32": 1e-6, "bfloat16": 2**-7}
"""How far results may be apart: PEFT rounds B A, and then the sum."""


class Found(NamedTuple):
    """How far a result of ours is from PEFT's."""

    name: str
    apart: float
    """The largest difference, in parts of the largest element."""


def recipes(folder: Path) -> dict[str, dict[str, Any]]:
    """Return our recipes, by the names of PEFT's files."""
    base = str(folder / "base.safetensors")
    adapted = [{"path": base, "adapter": str(folder / name)} for name in ("first", "second")]
    files = [str(folder / name / "adapter_model.safetensors") for name in ("first", "second")]

    def weighted(models: list[dict[str, Any]], weights: tuple[float, ...]) -> list[dict[str, Any]]:
        return [{**m, "weight": w} for m, w in zip(models, weights, strict=True)]

    def of_matrices(kind: str) -> list[dict[str, Any]]:
        roots = tuple(math.sqrt(w * ALPHA / RANK) for w in MATRICES[kind])
        return weighted([{"path": path} for path in files], roots)

    zeros = str(folder / "zeros.safetensors")
    root = math.sqrt(MATRICES["ties"][0] * ALPHA / RANK)
    return {
        "with-first": {"method": "passthrough", "models": adapted[:1]},
        "cat": {"method": "task_arithmetic", "base": base, "models": weighted(adapted, BOTH)},
        "matrices-linear": {
            "method": "linear", "models": of_matrices("linear"), "parameters": {"normalize": False},
        },
        "matrices-ties": {
            "method": "ties", "base": zeros,
            "models": weighted([{"path": path} for path in files], (1, 1)),
            "parameters": {"density": DENSITY, "lambda": root},
        },
        "matrices-magnitude_prune": {
            "method": "breadcrumbs", "base": zeros, "models": of_matrices("magnitude_prune"),
            "parameters": {"density": DENSITY, "gamma": 0, "normalize": False},
        },
    }  # fmt: skip


def compared(python: str, folder: Path, dtype: str) -> list[Found]:
    """Merge with PEFT in its own process, and with ours here."""
    subprocess.run(
        [python, "-m", "benchmarks.merging.peft_worker", str(folder), dtype],
        cwd=ROOT, env=environment(), check=True, stdout=sys.stderr,
    )  # fmt: skip
    adapter = st.merge.Checkpoint(folder / "first" / "adapter_model.safetensors")
    zeros = {name: np.zeros_like(np.asarray(adapter[name])) for name in adapter}
    st.save(folder / "zeros.safetensors", zeros)
    found = []
    for name, recipe in recipes(folder).items():
        if dtype == "bfloat16" and name in TRIMMED:
            continue  # many are equal in bfloat16, of which PEFT keeps some, and we all
        out = folder / f"ours-{name}.safetensors"
        st.merge.run(recipe, out)
        theirs = st.merge.Checkpoint(folder / f"{name}.safetensors")
        ours = st.merge.Checkpoint(out)
        if ours.keys() != theirs.keys():
            raise ValueError(f"{name}: expected {sorted(theirs)}, got {sorted(ours)}")
        apart = 0.0
        for key in theirs:
            x, y = (np.asarray(m[key]).astype(np.float64) for m in (ours, theirs))
            apart = max(apart, float(np.max(abs(x - y)) / np.max(abs(y))))
        found.append(Found(name, apart))
    return found
