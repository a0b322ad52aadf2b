"""Where rounding decides single numbers: results beside those in float64, by the norms of rows.

Of a gradient with ReLU or maxima, no bound on its elements holds in float32: near a kink rounding
decides whether a unit is on, which moves some elements by as much as they are. In float64 that does
not happen, and all is compared, number by number. What is timed is in float32: there the distance
of each parameter's gradient from that in float64 grows as the root of the number of units that
rounding turned, and is alike for all that round alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import Workload

__all__ = ["FACTOR", "apart", "exactly", "singles"]

Results: TypeAlias = Sequence[NDArray[Any]]

FACTOR = 4.0
"""How much farther from float64 than the others one may be, where that is beyond the tolerance.

The number of units that are turned is in proportion to the rounding errors, and the distance to its
root: four times as far is sixteen times the error, four bits of 24. In a ResNet-50 in float64 whose
parameters are multiplied by 1 + u·noise, the parameter that is farthest is 1.4e-2, 5.0e-2, 0.15 and
0.46 away for u of 1e-7, 1e-6, 1e-5 and 1e-4. Programs in float32 are 1.2e-2 to 3.9e-2 away.
How many bits one may lose is a choice: at twice as far, TorchInductor's ResNet-50 was out by a
hair, at 2.03. With u below 1e-7 a few units decide, and there is no law.
"""


def exactly(workload: Workload) -> Workload:
    """The row as it is compared in float64: every number, with the tolerance for that."""
    assert workload.exact is not None
    tolerance = workload.exact.tolerance
    return replace(workload, rtol=tolerance, atol=tolerance, of_largest=0.0)


def apart(
    workload: Workload, results: Mapping[str, Results], target: Results
) -> tuple[dict[str, Results], dict[str, str]]:
    """What is compared number by number, by contestant, and what is wrong with the rest.

    `target` is the result in float64. Matrices that the row compares by norm are left out of the
    first; a contestant is in the second if a row of one is farther from `target` than the row's
    tolerance, and than `FACTOR` times as far as any other contestant's.
    """
    assert workload.exact is not None
    places = workload.exact.by_norm
    shaped = {name: _as(target, arrays) for name, arrays in results.items()}
    wrong = {
        name: f"expected {_shapes(target)}, got {_shapes(results[name])}"
        for name, arrays in shaped.items()
        if arrays is None
    }
    fit = {name: arrays for name, arrays in shaped.items() if arrays is not None}
    for place in places:
        distances = {name: _distances(arrays[place], target[place]) for name, arrays in fit.items()}
        for name, own in distances.items():
            others = [one.max() for other, one in distances.items() if other != name]
            finite = [float(one) for one in others if np.isfinite(one)]
            bound = max(workload.atol, FACTOR * max(finite, default=0.0))
            far = np.flatnonzero(~(own <= bound))  # NaN is far
            if far.size and name not in wrong:
                wrong[name] = (
                    f"array {place} of {len(target)} differs from float64: {far.size} of "
                    f"{own.size} rows by more than {bound:.2g}; row {far[0]} by {own[far[0]]:.2g}"
                )
    return {name: singles(workload, arrays) for name, arrays in fit.items()}, wrong


def singles(workload: Workload, results: Results) -> Results:
    """The results, as float32, but those that the row compares by norm."""
    assert workload.exact is not None
    return [
        array.astype(np.float32)
        for place, array in enumerate(results)
        if place not in workload.exact.by_norm
    ]


def _distances(result: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
    """The norm of each row's difference."""
    return np.linalg.norm(result.astype(np.float64) - target, axis=1)


def _as(target: Results, results: Results) -> Results | None:
    """The results in the shapes of `target`, also if they come as one vector; None if they differ.

    A first program tells its results so.
    """
    if len(results) == 1 and sum(array.size for array in target) == results[0].size:
        ends = np.cumsum([array.size for array in target])[:-1]
        parts = np.split(results[0].reshape(-1), ends)
        return [part.reshape(array.shape) for part, array in zip(parts, target, strict=True)]
    if [array.shape for array in results] != [array.shape for array in target]:
        return None
    return results


def _shapes(arrays: Results) -> str:
    return ", ".join(str(array.shape) for array in arrays)
