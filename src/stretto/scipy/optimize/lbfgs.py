"""BFGS with limited memory: the estimate is made from the last steps alone.

For many variables: a step takes time and memory proportional to their number. Source: Nocedal and
Wright, Numerical Optimization (2006), algorithm 7.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import stretto.numpy as snp
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.scan import scan
from stretto.scipy.optimize.descent import Estimate, State, Stop, curvature, descend

__all__ = ["minimize_lbfgs"]


class _Memory(NamedTuple):
    """Steps and changes of the gradient, the last ones at the end; rows of zeros for none."""

    s: Array
    y: Array
    weight: Array
    """1 / y^T s of each, 0 for none."""
    scale: Array
    """The inverse curvature along the last step."""


def minimize_lbfgs(fun: Callable[[Array], ArrayLike], x: Array, stop: Stop, memory: int) -> State:
    """The state at the end of the search from the vector ``x``; ``memory`` is a number of steps."""

    def start(x: Array) -> _Memory:
        rows = snp.zeros((memory, x.size), x.dtype)
        return _Memory(rows, rows, snp.zeros(memory, x.dtype), snp.ones((), x.dtype))

    return descend(fun, x, Estimate(start, _product, _updated), stop)


def _product(m: _Memory, g: Array) -> Array:
    """H g, from the last step to the first and back."""

    def backward(q: Array, step: tuple[Array, ...]) -> tuple[Array, Array]:
        s, y, weight = step
        part = weight * snp.dot(s, q)
        return q - part * y, part

    def forward(r: Array, step: tuple[Array, ...]) -> tuple[Array, None]:
        s, y, weight, part = step
        return r + (part - weight * snp.dot(y, r)) * s, None

    q, parts = scan(backward, g, (m.s, m.y, m.weight), reverse=True)
    return scan(forward, m.scale * q, (m.s, m.y, m.weight, parts))[0]


def _updated(m: _Memory, s: Array, y: Array, b: Array) -> _Memory:
    """With this step in place of the oldest; unchanged unless y^T s is positive."""
    is_curved, c, scale = curvature(s, y)
    appended = lambda old, new: snp.where(is_curved, snp.concatenate([old[1:], new[None]]), old)
    return _Memory(
        appended(m.s, s),
        appended(m.y, y),
        appended(m.weight, 1 / c),
        snp.where(is_curved, scale, m.scale),
    )
