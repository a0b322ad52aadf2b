"""The search that quasi-Newton methods share: a direction, a length, an update of the estimate.

One ``while_loop``; each method supplies the estimate of the inverse Hessian that gives the
direction. Source: Nocedal and Wright, Numerical Optimization (2006), chapter 6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import ml_dtypes

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import value_and_grad
from stretto._engine.core import tree
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.higher_order.scan import scan
from stretto._engine.higher_order.while_loop import while_loop
from stretto._engine.ops.convert import convert

# The line search: how far to go in a direction.
#
# It finds a length that satisfies the strong Wolfe conditions: the value is lower by a fraction of
# what the slope promises, and the slope is flatter. One ``while_loop``, with one evaluation per
# iteration, doubles the length until two lengths enclose such a one, and then divides the
# interval. Source: Nocedal and Wright, Numerical Optimization (2006), algorithms 3.5 and 3.6, and
# (3.59) for the cubic.


_DECREASE, _FLATTER = 1e-4, 0.9
_MARGIN = 0.1


class LineSearchResult(NamedTuple):
    """The length, with the value and the gradient there; ``failed`` where no value is lower."""

    length: Array
    value: Array
    gradient: Array
    failed: Array
    evaluations: Array


class _End(NamedTuple):
    """A length that was tried, with the value and the slope there."""

    length: Array
    value: Array
    slope: Array


class _Search(NamedTuple):
    low: _End
    """The best length so far, low enough; its gradient is kept."""
    gradient: Array
    high: _End
    """The other end of the interval, if there is one: ``between``."""
    between: Array
    next: Array
    done: Array
    tries: Array


def _choose(condition: Array, first: Tree, second: Tree) -> Tree:
    return tree.map(lambda a, b: snp.where(condition, a, b), first, second)


def line_search(
    evaluate: Callable[[Array], tuple[Array, Array]],
    x: Array,
    direction: Array,
    value: Array,
    gradient: Array,
    before: Array,
    tries: int,
) -> LineSearchResult:
    """Search from ``x``, with this ``value`` and ``gradient``, by at most ``tries`` evaluations."""
    slope = snp.dot(gradient, direction)
    # Where the value would fall as much as in the step before, but at most 1, Newton's step.
    guess = 2.02 * (value - before) / slope
    first = snp.where((guess > 0) & (guess < 1), guess, 1).astype(x.dtype)
    start = _End(snp.zeros_like(value), value, slope)
    # A difference that rounding may hide.
    slack = 2 * float(ml_dtypes.finfo(x.dtype).eps) * abs(value)

    def advance(search: _Search) -> _Search:
        low, high, length = search.low, search.high, search.next
        trial_value, g = evaluate(x + length * direction)
        trial = _End(length, trial_value, snp.dot(g, direction))
        # Written so that NaN is not low enough.
        enough = trial_value <= value + _DECREASE * length * slope + slack
        lower = enough & ((trial_value < low.value) | (low.length == 0))
        done = lower & (abs(trial.slope) <= -_FLATTER * slope)
        # Where the value rises from a new best length towards the other end, the old best length
        # becomes the other end.
        width = snp.where(search.between, high.length - low.length, 1)
        uphill = trial.slope * width >= 0
        other = _choose(lower, _choose(uphill, low, high), trial)
        between = search.between | ~lower | uphill
        best = _choose(lower, trial, low)
        next_length = snp.where(between, _inside(best, other), 2 * length)
        return _Search(
            low=best,
            gradient=snp.where(lower, g, search.gradient),
            high=other,
            between=between,
            next=next_length,
            done=done,
            tries=search.tries + 1,
        )

    end = while_loop(
        lambda search: ~search.done & (search.tries < tries),
        advance,
        _Search(start, gradient, start, snp.array(False), first, snp.array(False), snp.array(0)),
    )
    # A value that is no lower counts where the slope is flat: rounding hides the gain.
    failed = ~((end.low.length > 0) & (end.done | (end.low.value < value)))
    return LineSearchResult(end.low.length, end.low.value, end.gradient, failed, end.tries)


def _inside(a: _End, b: _End) -> Array:
    """Find the minimum of the cubic through two ends, not too near either; else the middle."""
    width = b.length - a.length
    wide = snp.where(width == 0, 1, width)
    d = a.slope + b.slope - 3 * (b.value - a.value) / wide
    root = d * d - a.slope * b.slope
    r = snp.sign(width) * snp.sqrt(snp.where(root > 0, root, 0))
    fraction = 1 - (b.slope + r - d) / (b.slope - a.slope + 2 * r)
    valid = (root >= 0) & (fraction > 0) & (fraction < 1)
    return a.length + width * snp.where(valid, snp.clip(fraction, _MARGIN, 1 - _MARGIN), 0.5)


# The search that quasi-Newton methods share: a direction, a length, an update of the estimate.
#
# One ``while_loop``; each method supplies the estimate of the inverse Hessian that gives the
# direction. Source: Nocedal and Wright, Numerical Optimization (2006), chapter 6.


class Estimate(NamedTuple):
    """Say how a method estimates the inverse Hessian H.

    ``start(x)`` stands for the identity, ``product(h, g)`` is H g, and ``updated(h, s, y, b)`` is
    the estimate after a step ``s`` along which the gradient changed by ``y``, with ``b`` = H⁻¹ s.
    """

    start: Callable[[Array], Tree]
    product: Callable[[Tree, Array], Array]
    updated: Callable[[Tree, Array, Array, Array], Tree]


class Stop(NamedTuple):
    """Say when a search ends, and how many values a line search may compute."""

    steps: ArrayLike
    gtol: ArrayLike
    norm: float | str | None
    tries: int
    ftol: ArrayLike | None = None
    evaluations: ArrayLike | None = None


class State(NamedTuple):
    """Say where the search stands."""

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
    """Say whether y^T s is far enough above zero to be used; y^T s and y^T s / y^T y, or else 1."""
    c, square = snp.dot(y, s), snp.dot(y, y)
    is_curved = (c > float(snp.finfo(s.dtype).eps) * square) & snp.isfinite(square)
    return (
        is_curved,
        snp.where(is_curved, c, 1),
        snp.where(is_curved, c, 1) / snp.where(is_curved, square, 1),
    )


# The method of Broyden, Fletcher, Goldfarb and Shanno, in its product form.
#
# A factor J of the estimate J J^T of the inverse Hessian is kept, so that it stays positive
# definite and accurate even where the curvature varies by many orders of magnitude. Source:
# Powell, Updating conjugate directions by the BFGS formula (1987).


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


# BFGS with limited memory: the estimate is made from the last steps alone.
#
# For many variables: a step takes time and memory proportional to their number. Source: Nocedal
# and Wright, Numerical Optimization (2006), algorithm 7.4.


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

    return descend(fun, x, Estimate(start, _recent_product, _recent), stop)


def _recent_product(m: _Memory, g: Array) -> Array:
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


def _recent(m: _Memory, s: Array, y: Array, b: Array) -> _Memory:
    """With this step in place of the oldest; unchanged unless y^T s is positive."""
    is_curved, c, scale = curvature(s, y)
    appended = lambda old, new: snp.where(is_curved, snp.concatenate([old[1:], new[None]]), old)
    return _Memory(
        appended(m.s, s),
        appended(m.y, y),
        appended(m.weight, 1 / c),
        snp.where(is_curved, scale, m.scale),
    )
