"""BFGS with limited memory: the estimate is made of the last steps alone.

For many variables: a step takes time and memory proportional to their number. Source: Nocedal and
Wright, Numerical Optimization (2006), algorithm 7.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import stretto.numpy as snp
from stretto._engine.control.scan import scan
from stretto.scipy.optimize.descent import Estimate, State, Stop, curvature, descend

__all__ = ["minimize_lbfgs"]


class _Memory(NamedTuple):
    """Steps and changes of the gradient, the last ones at the end; rows of zeros for none."""

    s: Any
    y: Any
    weight: Any
    """1 / y^T s of each, 0 for none."""
    scale: Any
    """The inverse curvature along the last step."""


def minimize_lbfgs(fun: Callable[[Any], Any], x: Any, stop: Stop, memory: int) -> State:
    """The state at the end of the search from the vector ``x`` on, with so many steps in memory."""

    def start(x: Any) -> _Memory:
        rows = snp.zeros((memory, x.size), x.dtype)
        return _Memory(rows, rows, snp.zeros(memory, x.dtype), snp.ones((), x.dtype))

    return descend(fun, x, Estimate(start, _product, _updated), stop)


def _product(m: _Memory, g: Any) -> Any:
    """H g, from the last step to the first and back."""

    def backward(q: Any, pair: Any) -> tuple[Any, Any]:
        s, y, weight = pair
        part = weight * snp.dot(s, q)
        return q - part * y, part

    def forward(r: Any, pair: Any) -> tuple[Any, None]:
        s, y, weight, part = pair
        return r + (part - weight * snp.dot(y, r)) * s, None

    q, parts = scan(backward, g, (m.s, m.y, m.weight), reverse=True)
    return scan(forward, m.scale * q, (m.s, m.y, m.weight, parts))[0]


def _updated(m: _Memory, s: Any, y: Any, b: Any) -> _Memory:
    """With this step in place of the oldest; as it is unless y^T s is positive."""
    curved, c, scale = curvature(s, y)
    newer = lambda old, new: snp.where(curved, snp.concatenate([old[1:], new[None]]), old)
    return _Memory(
        newer(m.s, s), newer(m.y, y), newer(m.weight, 1 / c), snp.where(curved, scale, m.scale)
    )
