"""Scatters that multiply, or keep the least or greatest, and what their derivatives need.

Where an element is multiplied more than once, the derivative by one factor is the product of the
others, for which the factors are sorted by the element that they go to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.primitive import NOT_LINEAR
from stretto._engine.core.types import default_dtype
from stretto._engine.ops.arithmetic import add, divide, multiply
from stretto._engine.ops.bitwise import bitwise_or
from stretto._engine.ops.comparison import eq, full, ne, or_zeros, where
from stretto._engine.ops.convert import convert
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.index.along_axis import take_along_axis
from stretto._engine.ops.index.primitives import ScatterAdd, ScatterFamily, ScatterSet
from stretto._engine.ops.iota import iota
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.recurrence import LinearRecurrence, shifted
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.sort import Sort


def products_of_others(factors: Any, groups: Any) -> Any:
    """Return for each of a line of factors the product of the others in its group.

    Sorted by group, with p[i] = f[i] p[i-1] within one: p[i-1] from one side times that from the
    other. There is no division, so zeros need no special case.
    """
    n = factors.shape[0]
    groups, order = Sort(0)(groups, iota(np.dtype(np.int32), n))
    line = take_along_axis(factors, order, 0, "promise_in_bounds", wrap_negative=False)
    inner = eq(slice_in_dim(groups, 1, n), slice_in_dim(groups, 0, n - 1))
    edge = full((1,), False, np.dtype(bool))
    product = None
    for reverse in (False, True):
        joined = concatenate([inner, edge] if reverse else [edge, inner], 0)
        running = LinearRecurrence(0, reverse)(where(joined, line, 0), where(joined, 0, line))
        before = where(joined, shifted(running, 0, reverse, 1), 1)
        product = before if product is None else multiply(product, before)
    return Sort(0)(order, product)[1]


class ScatterMul(ScatterFamily):
    """The element is multiplied by the update."""

    update = "mul"
    op = "multiply"

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """d(x u v) = dx u v + x v du + x u dv."""
        x, indices, updates = primals
        dx, _, du = tangents
        out = self(*primals)
        total = None if dx is None else self(dx, indices, updates)
        if du is not None:
            part = multiply(self.read(x, indices, updates), du)
            if not self.distinct(indices):
                part = multiply(part, self._others(x, indices, updates))
            total = self.other(ScatterAdd, or_zeros(total, x), indices, part)
        return out, total

    def _others(self, x: Any, indices: Any, updates: Any) -> Any:
        """Return for each update the product of the others of the same element."""
        dtype = default_dtype("int")
        numbers = reshape(add(iota(dtype, x.size), 1), x.shape)
        to = self.read(numbers, indices, updates)
        flat = (updates.size,)
        return reshape(products_of_others(reshape(updates, flat), reshape(to, flat)), updates.shape)

    def transpose(self, ct: Any, x: Any, indices: Any, updates: Any) -> tuple[Any, None, None]:
        """Linear in the operand: the same factors."""
        if isinstance(updates, Linear):
            raise MissingRuleError(
                "scatter_mul is not linear in its updates: elements without any stay as they are"
            )
        return self(ct, indices, updates), None, None

    def kept(self, at: Any, x: Any, indices: Any, updates: Any, axes: Sequence[int]) -> Any:
        """Padding multiplies by 1."""
        return at.filled(updates, at.types[2], 1, axes)


class ScatterExtremum(ScatterFamily, abstract=True):
    """The least or greatest of the element and its updates."""

    transpose = NOT_LINEAR

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the mean of the tangents of those that attain the extremum."""
        x, indices, updates = primals
        dx, _, du = tangents
        out = self(*primals)

        def attains(v: Any, extremum: Any) -> Any:
            return bitwise_or(eq(v, extremum), ne(v, v))

        if self.distinct(indices):  # only the windows change: no pass over the whole array
            total = or_zeros(dx, x)
            new = self.read(out, indices, updates)
            stays, wins = attains(self.read(x, indices, updates), new), attains(updates, new)
            part = where(stays, self.read(total, indices, updates), 0)
            if du is not None:
                part = add(part, where(wins, du, 0))
            count = add(convert(stays, x.dtype), convert(wins, x.dtype))
            return out, self.other(ScatterSet, total, indices, divide(part, maximum(count, 1)))
        elements = attains(x, out)
        winners = attains(updates, self.read(out, indices, updates))
        count = self.other(
            ScatterAdd, convert(elements, x.dtype), indices, convert(winners, updates.dtype)
        )
        total = or_zeros(None if dx is None else where(elements, dx, 0), x)
        if du is not None:
            total = self.other(ScatterAdd, total, indices, where(winners, du, 0))
        return out, divide(total, maximum(count, 1))


class ScatterMin(ScatterExtremum):
    """The lesser of element and update."""

    update = "min"
    op = "minimum"


class ScatterMax(ScatterExtremum):
    """The greater of element and update."""

    update = "max"
    op = "maximum"
