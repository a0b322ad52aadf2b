"""The search that quasi-Newton methods share: a direction, a length, an update of the estimate.

One ``while_loop``; each method supplies the estimate of the inverse Hessian that gives the
direction. Source: Nocedal and Wright, Numerical Optimization (2006), chapter 6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import value_and_grad
from stretto._engine.core import tree
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.higher_order.while_loop import while_loop
from stretto._engine.ops.convert import convert
from stretto.scipy.optimize.line_search import line_search

__all__ = ["Estimate", "State", "Stop", "curvature", "descend"]


class Estimate(NamedTuple):
    """How a method estimates the inverse Hessian H.

    ``start(x)`` stands for the identity, ``product(h, g)`` is H g, and ``updated(h, s, y, b)`` is
    the estimate after a step ``s`` along which the gradient changed by ``y``, with ``b`` = H⁻¹ s.
    """

    start: Callable[[Array], Tree]
    product: Callable[[Tree, Array], Array]
    updated: Callable[[Tree, Array, Array, Array], Tree]


class Stop(NamedTuple):
    """When a search ends, and how many values a line search may compute."""

    steps: ArrayLike
    gtol: ArrayLike
    norm: float | str | None
    tries: int
    ftol: ArrayLike | None = None
    evaluations: ArrayLike | None = None


class State(NamedTuple):
    """Where the search stands."""

    x: Array
    value: Array
    gradient: Array
    estimate: Tree
    renewed: Array
    """The norm of the gradient where the estimate was last reset."""
    before: Array
    """The value one step before, which sets the first length that the next step tries."""
    step: Array
    evaluations: Array
    converged: Array
    stuck: Array

    def status(self) -> Array:
        """0 for convergence, 5 where a line search found no lower value, 1 after too many steps."""
        return snp.where(self.converged, 0, snp.where(self.stuck, 5, 1))


def descend(fun: Callable[[Array], ArrayLike], x: Array, method: Estimate, stop: Stop) -> State:
    """The state at the end of the search from the vector ``x``."""

    def evaluate(x: Array) -> tuple[Array, Array]:
        value, gradient = value_and_grad(fun)(x)
        return convert(value, x.dtype), gradient

    def is_small(gradient: Array) -> Array:
        return snp.linalg.norm(gradient, stop.norm) < stop.gtol

    def supposed_before(value: Array, gradient: Array) -> Array:
        # So that the first length tried is about half a unit.
        return value + snp.linalg.norm(gradient) / 2

    value, gradient = evaluate(x)
    start = State(
        x=x,
        value=value,
        gradient=gradient,
        estimate=method.start(x),
        renewed=snp.linalg.norm(gradient),
        before=supposed_before(value, gradient),
        step=snp.array(0),
        evaluations=snp.array(1),
        converged=is_small(gradient),
        stuck=~snp.isfinite(value),
    )

    def is_unfinished(state: State) -> Array:
        more = ~state.converged & ~state.stuck & (state.step < stop.steps)
        return more if stop.evaluations is None else more & (state.evaluations < stop.evaluations)

    def advance(state: State) -> State:
        direction = -method.product(state.estimate, state.gradient)
        result = line_search(
            evaluate, state.x, direction, state.value, state.gradient, state.before, stop.tries
        )
        x = state.x + result.length * direction
        estimate = method.updated(
            state.estimate,
            x - state.x,
            result.gradient - state.gradient,
            -result.length * state.gradient,
        )
        # No lower value: reset the estimate, if the gradient has fallen since it was last reset.
        size = snp.linalg.norm(state.gradient)
        is_reset = result.failed & (size < state.renewed / 2)
        reset = lambda new, old: tree.map(lambda a, b: snp.where(is_reset, a, b), new, old)
        converged = is_small(result.gradient)
        if stop.ftol is not None:
            scale = snp.maximum(snp.maximum(abs(state.value), abs(result.value)), 1)
            converged |= ~result.failed & (state.value - result.value <= stop.ftol * scale)
        return State(
            x=x,
            value=result.value,
            gradient=result.gradient,
            estimate=reset(method.start(x), estimate),
            renewed=reset(size, state.renewed),
            before=reset(supposed_before(state.value, state.gradient), state.value),
            step=state.step + 1,
            evaluations=state.evaluations + result.evaluations,
            converged=converged,
            stuck=result.failed & ~is_reset,
        )

    return while_loop(is_unfinished, advance, start)


def curvature(s: Array, y: Array) -> tuple[Array, Array, Array]:
    """Whether y^T s is far enough above zero to be used; y^T s and y^T s / y^T y, or else 1."""
    c, square = snp.dot(y, s), snp.dot(y, y)
    is_curved = (c > float(snp.finfo(s.dtype).eps) * square) & snp.isfinite(square)
    return (
        is_curved,
        snp.where(is_curved, c, 1),
        snp.where(is_curved, c, 1) / snp.where(is_curved, square, 1),
    )
