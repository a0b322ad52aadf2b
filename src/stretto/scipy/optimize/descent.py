"""The search that quasi-Newton methods share: a direction, a length, what is learnt of the curve.

One ``while_loop``; a method gives the estimate of the inverse Hessian that the direction comes
from. Next, read ``line_search``. Source: Nocedal and Wright, Numerical Optimization (2006), chapter
6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.derivatives import value_and_grad
from stretto._engine.control.while_loop import while_loop
from stretto._engine.core import tree
from stretto._engine.ops.convert import convert
from stretto.scipy.optimize.line_search import line_search

__all__ = ["Estimate", "State", "Stop", "curvature", "descend"]

_INT = np.dtype(np.int32)


class Estimate(NamedTuple):
    """How a method estimates the inverse Hessian H.

    ``start(x)`` stands for the identity, ``product(h, g)`` is H g, and ``updated(h, s, y, b)`` what
    a step ``s`` teaches along which the gradient changed by ``y``, with ``b`` = H⁻¹ s.
    """

    start: Callable[[Any], Any]
    product: Callable[[Any, Any], Any]
    updated: Callable[[Any, Any, Any, Any], Any]


class Stop(NamedTuple):
    """When a search ends, and how many values a line search may take."""

    steps: Any
    gtol: Any
    norm: Any
    tries: int
    ftol: Any = None
    evaluations: Any = None


class State(NamedTuple):
    """Where the search stands."""

    x: Any
    value: Any
    gradient: Any
    estimate: Any
    renewed: Any
    """The norm of the gradient where the estimate was last that of the start."""
    before: Any
    """The value one step before, which says how far the first try of the next one goes."""
    step: Any
    evaluations: Any
    converged: Any
    stuck: Any

    def status(self) -> Any:
        """0 for convergence, 5 where no lower value was found, 1 after too many steps."""
        return convert(snp.where(self.converged, 0, snp.where(self.stuck, 5, 1)), _INT)


def descend(fun: Callable[[Any], Any], x: Any, method: Estimate, stop: Stop) -> State:
    """The state at the end of the search from the vector ``x`` on."""

    def evaluate(x: Any) -> tuple[Any, Any]:
        value, gradient = value_and_grad(fun)(x)
        return convert(value, x.dtype), gradient

    def small(gradient: Any) -> Any:
        return snp.linalg.norm(gradient, stop.norm) < stop.gtol

    def earlier(value: Any, gradient: Any) -> Any:
        # So that the first try goes about half a unit of length.
        return value + snp.linalg.norm(gradient) / 2

    value, gradient = evaluate(x)
    begin = State(
        x=x,
        value=value,
        gradient=gradient,
        estimate=method.start(x),
        renewed=snp.linalg.norm(gradient),
        before=earlier(value, gradient),
        step=snp.array(0),
        evaluations=snp.array(1),
        converged=small(gradient),
        stuck=~snp.isfinite(value),
    )

    def go_on(state: State) -> Any:
        more = ~state.converged & ~state.stuck & (state.step < stop.steps)
        return more if stop.evaluations is None else more & (state.evaluations < stop.evaluations)

    def advance(state: State) -> State:
        direction = -method.product(state.estimate, state.gradient)
        found = line_search(
            evaluate, state.x, direction, state.value, state.gradient, state.before, stop.tries
        )
        x = state.x + found.length * direction
        estimate = method.updated(
            state.estimate,
            x - state.x,
            found.gradient - state.gradient,
            -found.length * state.gradient,
        )
        # Nothing lower: once more along the gradient itself, if it has fallen since.
        size = snp.linalg.norm(state.gradient)
        again = found.failed & (size < state.renewed / 2)
        renew = lambda new, old: tree.map(lambda a, b: snp.where(again, a, b), new, old)
        converged = small(found.gradient)
        if stop.ftol is not None:
            most = snp.maximum(snp.maximum(abs(state.value), abs(found.value)), 1)
            converged |= ~found.failed & (state.value - found.value <= stop.ftol * most)
        return State(
            x=x,
            value=found.value,
            gradient=found.gradient,
            estimate=renew(method.start(x), estimate),
            renewed=renew(size, state.renewed),
            before=renew(earlier(state.value, state.gradient), state.value),
            step=state.step + 1,
            evaluations=state.evaluations + found.evaluations,
            converged=converged,
            stuck=found.failed & ~again,
        )

    return while_loop(go_on, advance, begin)


def curvature(s: Any, y: Any) -> tuple[Any, Any, Any]:
    """Whether y^T s is so far above zero that it teaches something; it; and y^T s / y^T y."""
    c, square = snp.dot(y, s), snp.dot(y, y)
    curved = (c > float(snp.finfo(s.dtype).eps) * square) & snp.isfinite(square)
    return curved, snp.where(curved, c, 1), snp.where(curved, c, 1) / snp.where(curved, square, 1)
