"""The line search: how far to go in a direction.

A length with strong Wolfe conditions: the value is lower by a part of what the slope promises, and
the slope is flatter. One ``while_loop``, of one evaluation a turn, doubles the length until such a
one must lie between two others, and then divides the interval. Source: Nocedal and Wright,
Numerical Optimization (2006), algorithms 3.5 and 3.6, and (3.59) for the cubic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes

import stretto.numpy as snp
from stretto._engine.control.while_loop import while_loop
from stretto._engine.core import tree

__all__ = ["Found", "line_search"]

_DECREASE, _FLATTER = 1e-4, 0.9
_MARGIN = 0.1


class Found(NamedTuple):
    """The length found, the value and the gradient there; ``failed`` where none is lower."""

    length: Any
    value: Any
    gradient: Any
    failed: Any
    evaluations: Any


class _End(NamedTuple):
    """A length that was tried, with the value and the slope there."""

    length: Any
    value: Any
    slope: Any


class _Search(NamedTuple):
    low: _End
    """The best length so far, low enough; its gradient is kept."""
    gradient: Any
    high: _End
    """The other end of the interval, where there is one: ``between``."""
    between: Any
    next: Any
    done: Any
    tries: Any


def _choose(condition: Any, first: Any, second: Any) -> Any:
    return tree.map(lambda a, b: snp.where(condition, a, b), first, second)


def line_search(
    evaluate: Callable[[Any], tuple[Any, Any]],
    x: Any,
    direction: Any,
    value: Any,
    gradient: Any,
    before: Any,
    tries: int,
) -> Found:
    """From ``x``, where the value and the gradient are given, by at most so many evaluations."""
    slope = snp.dot(gradient, direction)
    # Where the value falls as much as in the step before; 1, the step of Newton, at most.
    guess = 2.02 * (value - before) / slope
    first = snp.where((guess > 0) & (guess < 1), guess, 1).astype(x.dtype)
    start = _End(snp.zeros_like(value), value, slope)
    # What rounding may hide.
    slack = 2 * float(ml_dtypes.finfo(x.dtype).eps) * abs(value)

    def turn(search: _Search) -> _Search:
        low, high, length = search.low, search.high, search.next
        here, g = evaluate(x + length * direction)
        trial = _End(length, here, snp.dot(g, direction))
        # Written so that NaN is not low enough.
        enough = here <= value + _DECREASE * length * slope + slack
        lower = enough & ((here < low.value) | (low.length == 0))
        done = lower & (abs(trial.slope) <= -_FLATTER * slope)
        # The best one becomes the other end where it is on the way back from this one, uphill.
        way = snp.where(search.between, high.length - low.length, 1)
        uphill = trial.slope * way >= 0
        other = _choose(lower, _choose(uphill, low, high), trial)
        between = search.between | ~lower | uphill
        best = _choose(lower, trial, low)
        following = snp.where(between, _inside(best, other), 2 * length)
        return _Search(
            low=best,
            gradient=snp.where(lower, g, search.gradient),
            high=other,
            between=between,
            next=following,
            done=done,
            tries=search.tries + 1,
        )

    end = while_loop(
        lambda search: ~search.done & (search.tries < tries),
        turn,
        _Search(start, gradient, start, snp.array(False), first, snp.array(False), snp.array(0)),
    )
    # One that is no lower counts where its slope is flat: then rounding hides the gain.
    failed = ~((end.low.length > 0) & (end.done | (end.low.value < value)))
    return Found(end.low.length, end.low.value, end.gradient, failed, end.tries)


def _inside(a: _End, b: _End) -> Any:
    """Where the cubic through two ends has its minimum, not too near to one; else the middle."""
    width = b.length - a.length
    wide = snp.where(width == 0, 1, width)
    d = a.slope + b.slope - 3 * (b.value - a.value) / wide
    root = d * d - a.slope * b.slope
    r = snp.sign(width) * snp.sqrt(snp.where(root > 0, root, 0))
    part = 1 - (b.slope + r - d) / (b.slope - a.slope + 2 * r)
    fine = (root >= 0) & (part > 0) & (part < 1)
    return a.length + width * snp.where(fine, snp.clip(part, _MARGIN, 1 - _MARGIN), 0.5)
