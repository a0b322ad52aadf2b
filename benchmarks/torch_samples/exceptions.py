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


def _is_not_determined(call: Call) -> bool:
    """Whether singular values are equal, so that any turn of their vectors will do."""
    values = call.expected[1]
    return values.shape[-1] > 1 and bool(np.any(values[..., 1:] == values[..., :-1]))


def _unpools_twice(rank: int) -> Callable[[Call], bool]:
    def twice(call: Call) -> bool:
        _, places = call.arrays[:2]
        planes = places.reshape(-1, int(np.prod(places.shape[-rank:])))
        return any([len(np.unique(plane)) < len(plane) for plane in planes])

    return twice


def _counts_by_fractions(call: Call) -> bool:
    """Whether a range of integers, but not of int64, has a bound or step that is none."""
    dtype = call.expected[0].dtype
    return dtype.kind in "iu" and dtype != np.int64 and any([x != int(x) for x in call.node.args])


def _sums_within_roundings(call: Call) -> bool:
    """Whether products summed in float32 are off by no more than four roundings of their sizes.

    No order of summation in float32 is sure to be nearer.
    """
    if call.expected[0].dtype not in (np.float32, np.complex64):
        return False
    asked = call.asked.in_float64()
    (exact,), (size,) = asked.arrays(), asked.of_sizes().arrays()
    (found,) = call.run()
    return bool(np.all(np.abs(np.asarray(found) - exact) <= 4 * 2.0**-24 * size))


VALUES = {
    **{
        name: Known(
            "counts are as many as minlength says: an element that is not below it is refused",
            _counts_too_few,
        )
        for name in ("aten.bincount.default", "bincount")
    },
    **{
        f"aten.arange.{name}": Known(
            "a range of int32 that ends at a fraction is refused: in PyTorch it has one element "
            "more than that of int64",
            _counts_by_fractions,
        )
        for name in ("default", "start", "start_step")
    },
    "aten.convolution.default": Known(
        "products are summed in another order, and are within four roundings of their sizes",
        _sums_within_roundings,
    ),
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
    "aten._linalg_svd.default": Known(
        "vectors of equal singular values have slopes of NaN in PyTorch, and do not turn here",
        _is_not_determined,
    ),
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
