"""The workloads in NumPy: the floor of eager overheads, and a third opinion on the results."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from benchmarks import workloads
from benchmarks.worker import Case, Registry, serve

cases = Registry()


@cases.add("eager-add")
def eager_add() -> Case:
    """`x + y` on 4 floats."""
    return Case(partial(operator.add, *workloads.eager_add_inputs()))


@cases.add("product")
def product() -> Case:
    """`x @ y` on square matrices."""
    return Case(partial(operator.matmul, *workloads.product_inputs()))


def ensemble_forward(batch: workloads.Batch) -> Case:
    """All members by broadcasting, as one writes it without `vmap`."""
    params, x, _ = workloads.ensemble_inputs(batch)

    def forward() -> Any:
        hidden = x
        for weights, bias in params[:-1]:
            hidden = np.maximum(hidden @ weights + bias[:, None], 0)
        weights, bias = params[-1]
        return hidden @ weights + bias[:, None]

    return Case(forward)


for _batch in workloads.BATCHES:
    cases.add(f"ensemble-forward-{_batch}")(partial(ensemble_forward, _batch))


if __name__ == "__main__":
    serve("numpy", ["numpy"], "import numpy", cases)
