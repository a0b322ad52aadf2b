"""The line search: how far to go in a direction.

It finds a length that satisfies the strong Wolfe conditions: the value is lower by a fraction of
what the slope promises, and the slope is flatter. One ``while_loop``, with one evaluation per
iteration, doubles the length until two lengths enclose such a one, and then divides the interval.
Source: Nocedal and Wright,
Numerical Optimization (2006), algorithms 3.5 and 3.6, and (3.59) for the cubic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import ml_dtypes

import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.typing import Array, Tree
from stretto._engine.higher_order.while_loop import while_loop

__all__ = ["LineSearchResult", "line_search"]

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
    """Where the cubic through two ends has its minimum, not too near either; else the middle."""
    width = b.length - a.length
    wide = snp.where(width == 0, 1, width)
    d = a.slope + b.slope - 3 * (b.value - a.value) / wide
    root = d * d - a.slope * b.slope
    r = snp.sign(width) * snp.sqrt(snp.where(root > 0, root, 0))
    fraction = 1 - (b.slope + r - d) / (b.slope - a.slope + 2 * r)
    valid = (root >= 0) & (fraction > 0) & (fraction < 1)
    return a.length + width * snp.where(valid, snp.clip(fraction, _MARGIN, 1 - _MARGIN), 0.5)
