"""The calls that are known to differ, each by what it is called with, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.torch_samples.calls import Call

__all__ = ["GRADIENTS", "NAN", "VALUES", "Known"]


@dataclasses.dataclass(frozen=True)
class Known:
    """A difference that is on purpose: which calls of an operation have it, and why."""

    why: str
    applies: Callable[[Call], Any]


def _counts_too_few(call: Call) -> bool:
    node = call.node
    least = node.args[2] if len(node.args) > 2 else dict(node.kwargs).get("minlength", 0)
    return bool(call.arrays[0].size) and call.arrays[0].max() >= least > 0


def _is_not_hermitian(call: Call) -> bool:
    a = call.arrays[0]
    told = dict(call.node.kwargs).get("hermitian", False)
    return told and not np.array_equal(a, np.swapaxes(a, -1, -2).conj())


def _has_nan(call: Call) -> bool:
    return any([np.isnan(a).any() for a in call.arrays if a.dtype.kind in "fc"])


def _is_not_finite(call: Call) -> bool:
    return any([not np.isfinite(a).all() for a in call.arrays if a.dtype.kind in "fc"])


def _has_none_to_sum(call: Call) -> bool:
    return any([np.isneginf(np.real(a)).any() for a in call.arrays if a.dtype.kind in "fc"])


def _unpools_twice(rank: int) -> Callable[[Call], bool]:
    def twice(call: Call) -> bool:
        _, places = call.arrays[:2]
        planes = places.reshape(-1, int(np.prod(places.shape[-rank:])))
        return any([len(np.unique(plane)) < len(plane) for plane in planes])

    return twice


VALUES = {
    name: Known(
        "counts are as many as minlength says: an element that is not below it is refused",
        _counts_too_few,
    )
    for name in ("aten.bincount.default", "bincount")
}
"""Operations of which some calls are refused, or give something else."""

GRADIENTS = {
    "aten.linalg_pinv.atol_rtol_tensor": Known(
        "hermitian=True of a matrix that is not: PyTorch mixes the triangle that it reads with the "
        "other one",
        _is_not_hermitian,
    ),
    **{
        f"nn.functional.max_unpool{rank}d": Known(
            "indices repeat: which of the values counts is not defined", _unpools_twice(rank)
        )
        for rank in (1, 2, 3)
    },
}
"""Operations of which some gradients are refused, or something else."""

NAN = {
    **{
        f"aten.{name}": Known("slopes by NaN are NaN in PyTorch, and mostly numbers here", _has_nan)
        for name in ("amax.default", "amin.default")
    },
    "aten.prod.dim_int": Known(
        "a slope is the product of the other elements: PyTorch divides that of all by the element, "
        "which is NaN for infinities and NaN",
        _is_not_finite,
    ),
    **{
        f"aten.{name}.default": Known(
            "slopes of a sum of nothing but exp(-inf) are NaN in PyTorch, and 0 here",
            _has_none_to_sum,
        )
        for name in ("logaddexp", "logsumexp")
    },
}
"""Operations of which some gradients have numbers here where PyTorch has NaN, and only there."""
