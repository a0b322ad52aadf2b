"""``stretto.scipy.interpolate``: interpolation between the points of a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import inexact_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import promote_values

__all__ = ["RegularGridInterpolator"]

_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """A function known at the points of a grid, at any point between them.

    Points, values and coordinates may be traced, and are differentiable.

    Args:
        points: for each axis of the grid its coordinates, ascending.
        values: the function's values, ``[n0, n1, ..., *outputs]``.
        method: ``"linear"`` or ``"nearest"``.
        bounds_error: must be False.
        fill_value: the value outside the grid; None to extrapolate.

    Raises:
        ValueError: the points are not ascending, or do not match the values.
        NotImplementedError: there is no such method, or ``bounds_error`` is True: values raise no
            exceptions.

    As SciPy's ``RegularGridInterpolator``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> x, y = snp.array([0.0, 1.0, 3.0]), snp.array([0.0, 2.0])
    >>> f = st.scipy.interpolate.RegularGridInterpolator((x, y), x[:, None] + y)
    >>> f(snp.array([[2.0, 1.0], [0.5, 9.0]]))
    Array([ 3., nan], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = math.nan,
    ) -> None:
        caller = "RegularGridInterpolator"
        if bounds_error:
            raise NotImplementedError(
                f"{caller}: bounds_error must be False, as values raise no exceptions; pass a "
                f"fill_value, or None to extrapolate"
            )
        self.method = _check_method(method)
        samples = as_value(values, caller, "values")
        self.values = convert(samples, inexact_dtype(samples.dtype))
        self.grid = tuple(as_value(p, caller, f"points[{i}]") for i, p in enumerate(points))
        if len(self.grid) > samples.ndim:
            raise ValueError(
                f"{caller}: {len(self.grid)} axes of points, but values {samples.type}"
            )
        for i, p in enumerate(self.grid):
            if p.ndim != 1 or p.size != samples.shape[i] or p.size < 2:
                raise ValueError(
                    f"{caller}: points[{i}] must have rank 1 and at least 2 points, as many as "
                    f"axis {i} of values {samples.type}; got {p.type}"
                )
            if not isinstance(p, Tracer) and not np.all(np.asarray(p)[1:] > np.asarray(p)[:-1]):
                raise ValueError(f"{caller}: points[{i}] must be ascending")
        self.fill_value = fill_value

    def __call__(self, xi: ArrayLike | tuple[ArrayLike, ...], method: str | None = None) -> Array:
        """Compute the function at points.

        Args:
            xi: the points, ``[..., d]``, or a tuple of ``d`` arrays that broadcast.
            method: ``"linear"`` or ``"nearest"``; by default the interpolator's.

        Returns:
            The values, ``[..., *outputs]``.

        Raises:
            ValueError: the grid does not have ``d`` axes.
            NotImplementedError: there is no such method.
        """
        kind = self.method if method is None else _check_method(method)
        points = self._coordinates(xi)
        corners = [self._along(p, g, kind) for p, g in zip(points, self.grid, strict=True)]
        outputs = (1,) * (self.values.ndim - len(self.grid))
        total: Any = 0
        for corner in itertools.product(*corners):
            part = self.values.at[tuple(i for i, _ in corner)].get(mode="promise_in_bounds")
            for _, weight in corner:
                if weight is not None:
                    part = part * weight.reshape(*weight.shape, *outputs)
            total = part + total
        if self.fill_value is None:
            return total
        inside: Any = True
        for p, g in zip(points, self.grid, strict=True):
            inside = (p >= g[0]) & (p <= g[-1]) & inside
        return snp.where(inside.reshape(*inside.shape, *outputs), total, self.fill_value)

    def _coordinates(self, xi: ArrayLike | tuple[ArrayLike, ...]) -> list[Array]:
        caller = "RegularGridInterpolator"
        if isinstance(xi, tuple):
            points = promote_values(caller, *xi, inexact=True)
        else:
            x = as_value(xi, caller, "xi")
            x = convert(x, inexact_dtype(x.dtype))
            if not x.ndim:
                x = x.reshape(1)
            points = [x[..., i] for i in range(x.shape[-1])]
        if len(points) != len(self.grid):
            raise ValueError(
                f"{caller}: the grid has {len(self.grid)} axes, but the points of xi have "
                f"{len(points)} coordinates"
            )
        return points

    @staticmethod
    def _along(p: Array, grid: Array, kind: str) -> list[tuple[Array, Array | None]]:
        """Return the indices to read along one axis, and their weights."""
        low = snp.clip(snp.searchsorted(grid, p, side="right") - 1, 0, grid.size - 2)
        left = grid.at[low].get(mode="promise_in_bounds")
        right = grid.at[low + 1].get(mode="promise_in_bounds")
        fraction = (p - left) / (right - left)
        if kind == "nearest":
            return [(snp.where(fraction <= 0.5, low, low + 1), None)]
        return [(low, 1 - fraction), (low + 1, fraction)]


def _check_method(method: str) -> str:
    if method not in _METHODS:
        raise NotImplementedError(
            f"RegularGridInterpolator: method must be 'linear' or 'nearest'; got {method!r}"
        )
    return method


exports(__name__)
