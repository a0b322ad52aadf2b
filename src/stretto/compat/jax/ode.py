"""``odeint``: an ordinary differential equation, solved in steps that an error estimate chooses.

Steps are those of Dormand and Prince, of orders 5 and 4 (J. Comput. Appl. Math. 6, 1980). The first
step and the next ones are chosen as in Hairer, Nørsett and Wanner, *Solving Ordinary Differential
Equations I*, II.4. The error estimate, and the value in the middle of a step, through which the
polynomial for values between steps goes, are Shampine's (Math. Comp. 46, 1986). Gradients are those
of the adjoint equation, solved backwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import stretto
from stretto import lax
from stretto import numpy as snp
from stretto._engine.core.types import float0
from stretto.compat.jax import tree_util
from stretto.compat.jax.avals import Tracer
from stretto.compat.jax.core import valid_jaxtype
from stretto.tree import ravel

Derivative = Callable[..., Any]

_TIMES = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_STAGES = np.zeros((7, 7))
for _i, _row in enumerate(
    (
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    1,
):
    _STAGES[_i, : len(_row)] = _row
_FIFTH = _STAGES[6]
_EMBEDDED = np.array(
    [1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60]
)
_MIDDLE = 0.5 * np.array(
    [
        6025192743 / 30085553152,
        0,
        51252292925 / 65400821598,
        -2691868925 / 45128329728,
        187940372067 / 1594534317056,
        -1776094331 / 19743644256,
        11237099 / 235043384,
    ]
)


def odeint(
    func: Derivative,
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """Solve ``dy/dt = func(y, t, *args)`` from ``y0`` at ``t[0]``.

    Args:
        func: a function of a tree like ``y0``, a time and ``args`` that returns a tree like ``y0``.
        y0: a tree of arrays, the values at ``t[0]``.
        t: the times, floats of shape (n,), strictly increasing.
        *args: trees of arrays that ``func`` takes besides, which gradients are had of as well.
        rtol: the error of a step that is allowed, relative to the values.
        atol: the error of a step that is allowed besides.
        mxstep: how many steps are taken at most from one time to the next.
        hmax: the longest step.

    Returns:
        A tree like ``y0`` of the values at all times, along a first axis.

    Raises:
        TypeError: ``t`` is not of floats, or ``args`` are not arrays.

    >>> from stretto import numpy as snp
    >>> y = odeint(lambda y, t: -y, 1.0, snp.array([0.0, 1.0]))
    >>> abs(float(y[1]) - 0.36788) < 1e-4
    True
    """
    for leaf in tree_util.leaves(args):
        if not isinstance(leaf, Tracer) and not valid_jaxtype(leaf):
            raise TypeError(f"odeint: args must be trees of arrays or numbers; got {leaf!r}")
    t = snp.asarray(t)
    if not snp.issubdtype(t.dtype, snp.floating):
        raise TypeError(f"odeint: t must be an array of floats; got one of {t.dtype}")
    if t.ndim != 1:
        raise TypeError(f"odeint: t must have one axis; got the shape {t.shape}")
    flat, unravel = ravel(y0)
    converted, captured = stretto.closure_convert(func, y0, t[0], *args)
    leaves, definition = tree_util.flatten((args, captured))

    def derivative(y: Any, time: Any, *leaves: Any) -> Any:
        given, consts = definition.unflatten(leaves)
        return ravel(converted(unravel(y), time, *given, *consts))[0]

    solved = _solve(derivative, float(rtol), float(atol), mxstep, hmax, flat, t, leaves)
    return stretto.vmap(unravel)(solved)


@functools.partial(stretto.custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _solve(
    func: Derivative, rtol: float, atol: float, mxstep: float, hmax: float, y0: Any, t: Any,
    args: list[Any],
) -> Any:  # fmt: skip
    """Return the values of a vector at all times, of shape (n, m)."""
    slope = lambda y, time: func(y, time, *args)
    f0 = slope(y0, t[0])
    first = snp.clip(_first_step(slope, t[0], y0, f0, rtol, atol), 0.0, hmax)

    def to_next(carry: Any, target: Any) -> Any:
        def unfinished(state: Any) -> Any:
            count, (_, _, time, step, _, _) = state
            return (time < target) & (count < mxstep) & (step > 0)

        def advance(state: Any) -> Any:
            count, (y, f, time, step, before, polynomial) = state
            end, slopes = _step(slope, y, f, time, step)
            scale = step.astype(y.dtype)
            error = scale * snp.dot(snp.asarray(_FIFTH - _EMBEDDED, y.dtype), slopes)
            ratio = _error_ratio(error, rtol, atol, y, end)
            taken = ratio <= 1.0
            between = _between(y, end, slopes, step)
            moved = (end, slopes[-1], time + step, before, time, between)
            stayed = (y, f, time, before, before, polynomial)
            moved, stayed = ((*s[:3], *s[4:]) for s in (moved, stayed))
            y, f, time, before, polynomial = (
                snp.where(taken, m, s) for m, s in zip(moved, stayed, strict=True)
            )
            step = snp.clip(_next_step(step, ratio), 0.0, hmax)
            return count + 1, (y, f, time, step, before, polynomial)

        _, carry = lax.while_loop(unfinished, advance, (0, carry))
        _, _, time, _, before, polynomial = carry
        place = ((target - before) / (time - before)).astype(polynomial.dtype)
        return carry, snp.polyval(polynomial, place)

    start = (y0, f0, t[0], first.astype(t.dtype), t[0], snp.stack([y0] * 5))
    _, ys = lax.scan(to_next, start, t[1:])
    return snp.concatenate([y0[None], ys])


def _step(slope: Derivative, y: Any, f: Any, time: Any, step: Any) -> tuple[Any, Any]:
    """Return the values after a step, and the slopes at its seven stages, the last at its end."""
    times = snp.asarray(_TIMES, time.dtype)
    stages = snp.asarray(_STAGES, f.dtype)
    scale = step.astype(f.dtype)

    def stage(i: Any, slopes: Any) -> Any:
        there = y + scale * snp.dot(stages[i], slopes)
        return slopes.at[i].set(slope(there, time + step * times[i]))

    slopes = lax.fori_loop(1, 7, stage, snp.zeros((7, f.shape[0]), f.dtype).at[0].set(f))
    return y + scale * snp.dot(stages[6], slopes), slopes


def _between(y: Any, end: Any, slopes: Any, step: Any) -> Any:
    """Return coefficients, highest first, of the polynomial in the part of a step that passed.

    It is p(s) = a s⁴ + b s³ + c s² + d s + e with p(0) = y, p(1/2) = m, p(1) = z, p'(0) = h f and
    p'(1) = h g.
    """
    h = step.astype(y.dtype)
    m = y + h * snp.dot(snp.asarray(_MIDDLE, y.dtype), slopes)
    hf, hg, z = h * slopes[0], h * slopes[-1], end
    return snp.stack(
        [
            2 * (hg - hf) - 8 * (y + z) + 16 * m,
            5 * hf - 3 * hg + 18 * y + 14 * z - 32 * m,
            hg - 4 * hf - 11 * y - 5 * z + 16 * m,
            hf,
            y,
        ]
    )


def _square(x: Any) -> Any:
    """Return |x|²."""
    return snp.square(x.real) + snp.square(x.imag) if snp.iscomplexobj(x) else snp.square(x)


def _error_ratio(error: Any, rtol: float, atol: float, y: Any, end: Any) -> Any:
    """Return a step's error by the one allowed, as the root mean square over elements."""
    allowed = atol + rtol * snp.maximum(snp.abs(y), snp.abs(end))
    return snp.sqrt(snp.mean(_square(error / allowed)))


def _next_step(step: Any, ratio: Any, order: float = 5.0) -> Any:
    """Return the step for nine tenths of the error allowed; a fifth to ten times the last."""
    least = snp.where(ratio < 1, 1.0, 0.2)
    factor = snp.clip(0.9 * ratio ** (-1 / order), least, 10.0)
    return step * snp.where(ratio == 0, 10.0, factor).astype(step.dtype)


def _first_step(
    slope: Derivative, time: Any, y: Any, f: Any, rtol: float, atol: float, order: int = 4
) -> Any:
    """Choose as Hairer, Nørsett and Wanner do, from the first and second derivative."""
    scale = atol + rtol * snp.abs(y)
    size, rise = snp.linalg.norm(y / scale), snp.linalg.norm(f / scale)
    trial = snp.where((size < 1e-5) | (rise < 1e-5), 1e-6, 0.01 * size / rise)
    there = slope(y + trial.astype(y.dtype) * f, time + trial)
    bend = snp.linalg.norm((there - f) / scale) / trial
    flat = (rise <= 1e-15) & (bend <= 1e-15)
    bent = (0.01 / snp.maximum(rise, bend)) ** (1 / (order + 1))
    return snp.minimum(100 * trial, snp.where(flat, snp.maximum(1e-6, trial * 1e-3), bent))


def _forward(
    func: Derivative, rtol: float, atol: float, mxstep: float, hmax: float, y0: Any, t: Any,
    args: list[Any],
) -> Any:  # fmt: skip
    ys = _solve(func, rtol, atol, mxstep, hmax, y0, t, args)
    return ys, (ys, t, args)


def _backward(
    func: Derivative, rtol: float, atol: float, mxstep: float, hmax: float, kept: Any, g: Any
) -> Any:
    """Solve λ' = -λ ∂f/∂y backwards, adding up the gradients of ``t`` and ``args`` on the way.

    At each time the gradient of the values there joins λ.
    """
    ys, t, args = kept
    smooth = [snp.issubdtype(snp.result_type(a), snp.inexact) for a in args]
    floats = [snp.asarray(a) for a, is_smooth in zip(args, smooth, strict=True) if is_smooth]

    def with_floats(y: Any, time: Any, *floats: Any) -> Any:
        given = iter(floats)
        return func(y, time, *[next(given) if s else a for a, s in zip(args, smooth, strict=True)])

    def reversed_slopes(state: Any, time: Any, *floats: Any) -> Any:
        y, y_bar, _, _ = state
        slope, back = stretto.vjp(with_floats, y, -time, *floats)
        y_back, t_back, *args_back = back(y_bar)
        return -slope, y_back, t_back, args_back

    def to_previous(carry: Any, i: Any) -> Any:
        y_bar, start_bar, args_bar = carry
        t_bar = snp.dot(func(ys[i], t[i], *args), g[i]).real.astype(t.dtype)
        state = (ys[i], y_bar, start_bar - t_bar, args_bar)
        times = snp.stack([-t[i], -t[i - 1]])
        solved = odeint(
            reversed_slopes, state, times, *floats,
            rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax,
        )  # fmt: skip
        _, y_bar, start_bar, args_bar = tree_util.map_(lambda x: x[1], solved)
        return (y_bar + g[i - 1], start_bar, args_bar), t_bar

    start = (g[-1], snp.zeros((), t.dtype), [snp.zeros_like(a) for a in floats])
    count = t.shape[0]
    (y_bar, start_bar, args_bar), t_bars = lax.scan(
        to_previous, start, snp.arange(count - 1, 0, -1)
    )
    given = iter(args_bar)
    every = [
        next(given) if is_smooth else np.zeros(np.shape(a), float0)
        for a, is_smooth in zip(args, smooth, strict=True)
    ]
    return y_bar, snp.concatenate([start_bar[None], t_bars[::-1]]), every


_solve.defvjp(_forward, _backward)
