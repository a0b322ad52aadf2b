"""The method of Broyden, Fletcher, Goldfarb and Shanno, in its product form.

A factor J of the estimate J J^T of the inverse Hessian is kept, so that it stays positive definite,
and exact, where the curvature differs by many orders of magnitude. Next, read ``lbfgs``. Source:
Powell, Updating conjugate directions by the BFGS formula (1987).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stretto.numpy as snp
from stretto.scipy.optimize.descent import Estimate, State, Stop, curvature, descend

__all__ = ["minimize_bfgs"]


def minimize_bfgs(fun: Callable[[Any], Any], x: Any, stop: Stop) -> tuple[State, Any]:
    """The state at the end of the search from the vector ``x`` on; the inverse Hessian."""
    end = descend(fun, x, Estimate(_start, _product, _updated), stop)
    return end, end.estimate @ end.estimate.T


def _start(x: Any) -> Any:
    return snp.eye(x.size, dtype=x.dtype)


def _product(j: Any, g: Any) -> Any:
    return j @ (g @ j)


def _updated(j: Any, s: Any, y: Any, b: Any) -> Any:
    """(1 + s q^T) J with q = b / sqrt(c s^T b) - y / c and c = y^T s; J unless c is positive."""
    curved, c, _ = curvature(s, y)
    along = snp.dot(s, b)
    curved &= along > 0
    q = b / (snp.sqrt(c) * snp.sqrt(snp.where(curved, along, 1))) - y / c
    out = j + snp.outer(s, q @ j)
    return snp.where(curved & snp.all(snp.isfinite(out)), out, j)
