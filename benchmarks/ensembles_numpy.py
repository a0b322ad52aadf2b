"""The ensembles in NumPy: forward passes of the MLPs, a third opinion on the results."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks import workloads_ensembles as ensembles
from benchmarks.worker import Case, Registry

__all__ = ["register"]


def ensemble(task: ensembles.Task) -> Case:
    """All members by broadcasting, as one writes it without `vmap`."""
    params, x, _ = ensembles.inputs(task.ensemble, task.batch)

    def forward() -> Any:
        hidden = x
        for weights, bias in params[:-1]:
            hidden = np.maximum(hidden @ weights + bias[:, None], 0)
        weights, bias = params[-1]
        return hidden @ weights + bias[:, None]

    return Case(forward)


def register(cases: Registry) -> None:
    """Add the forward pass of every ensemble of MLPs."""
    for task in ensembles.all_tasks():
        if task.ensemble.model == "mlp" and task.kind == "forward":
            cases.add(task.name)(partial(ensemble, task))
