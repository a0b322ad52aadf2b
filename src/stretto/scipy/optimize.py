"""``stretto.scipy.optimize``: minima of functions, by quasi-Newton methods.

The methods share a search, one ``while_loop``: a direction, a length, an update of the estimate of
the inverse Hessian, which each supplies and which gives the direction. Source: Nocedal and Wright,
Numerical Optimization (2006), chapter 6.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import value_and_grad
from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import inexact_dtype, is_complex
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.higher_order.scan import scan
from stretto._engine.higher_order.while_loop import while_loop
from stretto._engine.ops.convert import convert

__all__ = ["OptimizeResults", "minimize"]

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


# The search that the methods share.


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
        """Return 0 for convergence, 5 where no lower value was found, 1 after too many steps."""
        return snp.where(self.converged, 0, snp.where(self.stuck, 5, 1))


def descend(fun: Callable[[Array], ArrayLike], x: Array, method: Estimate, stop: Stop) -> State:
    """Return the state at the end of the search from the vector ``x``."""

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
    """Search from the vector ``x`` to the state at the end, and return the inverse Hessian too."""
    end = descend(fun, x, Estimate(_start, _product, _update), stop)
    return end, end.estimate @ end.estimate.T


def _start(x: Array) -> Array:
    return snp.eye(x.size, dtype=x.dtype)


def _product(j: Array, g: Array) -> Array:
    return j @ (g @ j)


def _update(j: Array, s: Array, y: Array, b: Array) -> Array:
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
    """Search from the vector ``x`` to the state at the end; ``memory`` is a number of steps."""

    def start(x: Array) -> _Memory:
        rows = snp.zeros((memory, x.size), x.dtype)
        return _Memory(rows, rows, snp.zeros(memory, x.dtype), snp.ones((), x.dtype))

    return descend(fun, x, Estimate(start, _recent_product, _recent), stop)


def _recent_product(m: _Memory, g: Array) -> Array:
    """Return H g, from the last step to the first and back."""

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
    """Put this step in place of the oldest, if y^T s is positive."""
    is_curved, c, scale = curvature(s, y)
    appended = lambda old, new: snp.where(is_curved, snp.concatenate([old[1:], new[None]]), old)
    return _Memory(
        appended(m.s, s),
        appended(m.y, y),
        appended(m.weight, 1 / c),
        snp.where(is_curved, scale, m.scale),
    )


class OptimizeResults(NamedTuple):
    """The result of a search.

    ``x`` is the best point, ``fun`` and ``jac`` the value and gradient there, ``hess_inv`` the
    estimate of the inverse Hessian, None for ``"L-BFGS"``. ``success`` says whether the gradient,
    or the gain of the last step, is small enough; ``status`` is 0 if so, 1 if the limit of steps or
    values was reached, 5 where a line search found no lower value. ``nit`` counts steps, ``nfev``
    and ``njev`` values and gradients.
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


_COMMON = {"gtol": 1e-5, "norm": float("inf")}
_OPTIONS = {
    "BFGS": {**_COMMON, "line_search_maxiter": 10, "maxiter": None},
    "L-BFGS": {
        **_COMMON,
        "ftol": 1e7 * float(np.finfo(np.float64).eps),
        "maxcor": 10,
        "maxfun": 15000,
        "maxiter": 15000,
        "maxls": 20,
    },
}
_METHODS = {"bfgs": "BFGS", "l-bfgs": "L-BFGS", "l-bfgs-experimental-do-not-rely-on-this": "L-BFGS"}


def minimize(
    fun: Callable[..., ArrayLike],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Search for a minimum of a function of a vector.

    Works inside ``jit`` and ``vmap``, where each example stops by itself. The result has forward
    derivatives only; for reverse ones see ``lax.custom_root``.

    Args:
        fun: a function of ``x`` and ``args`` that returns a real number.
        x0: where to start, a vector.
        args: further arguments of ``fun``.
        method: ``"BFGS"``; or ``"L-BFGS"`` for many variables, which uses only the last steps
            (JAX's ``"l-bfgs-experimental-do-not-rely-on-this"`` is another name for it).
        tol: a default for ``gtol`` and ``ftol``.
        options: see below.

    Returns:
        An ``OptimizeResults``.

    Raises:
        TypeError: ``x0`` is not real, or ``args`` are not a tuple.
        ValueError: ``x0`` is not a vector, or there is no such method or option.

    Options of both methods: the search ends where the ``norm`` of the gradient (its largest
    element) is less than ``gtol`` (1e-5), or after ``maxiter`` steps. For ``"BFGS"`` these are 200
    for each element of ``x0``, with ``line_search_maxiter`` values each (10). For ``"L-BFGS"`` they
    are 15000, with ``maxls`` values each (20), ``maxfun`` in all (15000), and ``maxcor`` steps in
    memory (10); it also ends where a step lowers the value by no more than ``ftol`` (2.2e-9) times
    its size, or times 1 if that is larger.

    As SciPy's ``minimize``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> result = st.scipy.optimize.minimize(
    ...     lambda x: snp.sum((x - 1) ** 2), snp.zeros(2), method="BFGS"
    ... )
    >>> result.x.round(3), bool(result.success)
    (Array([1., 1.], dtype=float32), True)
    """
    caller = "minimize"
    name = _METHODS.get(method.lower()) if isinstance(method, str) else None
    if name is None:
        bounds = isinstance(method, str) and method.lower() == "l-bfgs-b"
        raise ValueError(
            f"{caller}: method must be 'BFGS' or 'L-BFGS'; got {method!r}"
            f"{'; bounds are not supported, use L-BFGS without them' * bounds}"
        )
    if not isinstance(args, tuple):
        raise TypeError(f"{caller}: args must be a tuple of further arguments; got {args!r}")
    settings = dict(_OPTIONS[name])
    unknown = sorted(set(options or ()) - set(settings))
    if unknown:
        raise ValueError(
            f"{caller}: method {name!r} has the options {', '.join(settings)}; got "
            f"{', '.join(unknown)}"
        )
    x = as_value(x0, caller, "x0")
    if is_complex(x.dtype):
        raise TypeError(
            f"{caller}: expected real numbers, got x0 {x.type}; pass real and imaginary parts"
        )
    if x.ndim != 1 or not x.size:
        raise ValueError(
            f"{caller}: expected x0 of rank 1 and not empty, got {x.type}; use .ravel()"
        )
    x = convert(x, inexact_dtype(x.dtype))
    if tol is not None:
        settings.update({key: tol for key in ("gtol", "ftol") if key in settings})
    settings.update(options or {})
    objective = lambda x: fun(x, *args)
    if name == "BFGS":
        steps = 200 * x.size if settings["maxiter"] is None else settings["maxiter"]
        stop = Stop(steps, settings["gtol"], settings["norm"], settings["line_search_maxiter"])
        end, inverse = minimize_bfgs(objective, x, stop)
    else:
        memory = operator.index(settings["maxcor"])
        if memory < 1:
            raise ValueError(f"{caller}: maxcor must be 1 or more; got {memory}")
        stop = Stop(
            settings["maxiter"],
            settings["gtol"],
            settings["norm"],
            settings["maxls"],
            settings["ftol"],
            settings["maxfun"],
        )
        end, inverse = minimize_lbfgs(objective, x, stop, memory), None
    return OptimizeResults(
        x=end.x,
        success=end.converged,
        status=end.status(),
        fun=end.value,
        jac=end.gradient,
        hess_inv=inverse,
        nfev=end.evaluations,
        njev=end.evaluations,
        nit=end.step,
    )


exports(__name__)
