"""The method of Broyden, Fletcher, Goldfarb and Shanno, in its product form.

A factor J of the estimate J J^T of the inverse Hessian is kept, so that it stays positive definite
and accurate even where the curvature varies by many orders of magnitude. Source: Powell, Updating
conjugate directions by the BFGS formula (1987).
"""

from __future__ import annotations

from collections.abc import Callable

import stretto.numpy as snp
from stretto._engine.core.typing import Array, ArrayLike
from stretto.scipy.optimize.descent import Estimate, State, Stop, curvature, descend

__all__ = ["minimize_bfgs"]


def minimize_bfgs(fun: Callable[[Array], ArrayLike], x: Array, stop: Stop) -> tuple[State, Array]:
    """The state at the end of the search from the vector ``x``, and the inverse Hessian."""
    end = descend(fun, x, Estimate(_start, _product, _updated), stop)
    return end, end.estimate @ end.estimate.T


def _start(x: Array) -> Array:
    return snp.eye(x.size, dtype=x.dtype)


def _product(j: Array, g: Array) -> Array:
    return j @ (g @ j)


def _updated(j: Array, s: Array, y: Array, b: Array) -> Array:
    """(1 + s q^T) J with q = b / sqrt(c s^T b) - y / c and c = y^T s; J unless c is positive."""
    is_curved, c, _ = curvature(s, y)
    along = snp.dot(s, b)
    is_curved &= along > 0
    q = b / (snp.sqrt(c) * snp.sqrt(snp.where(is_curved, along, 1))) - y / c
    out = j + snp.outer(s, q @ j)
    return snp.where(is_curved & snp.all(snp.isfinite(out)), out, j)
