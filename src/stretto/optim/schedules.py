"""Schedules: numbers that change with the count of updates; of one piece or several.

A schedule is a function of the number of updates done so far, an integer or an array of rank 0, to
a number. It can be given wherever a transformation takes a ``ScalarOrSchedule``, and for any number
through ``inject_hyperparams``.

Schedules of several pieces: one cycle, warm restarts, lines and cosines between given points.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Value
from stretto._engine.core.typing import Array, ArrayLike
from stretto.optim.base import Scalar, Schedule, check, schedule

__all__ = ["constant_schedule", "cosine_decay_schedule", "cosine_onecycle_schedule",
           "cyclical_schedule", "cyclical_temperature_schedule", "exponential_decay",
           "join_schedules", "linear_onecycle_schedule", "linear_schedule",
           "piecewise_constant_schedule", "piecewise_interpolate_schedule", "polynomial_schedule",
           "sgdr_schedule", "warmup_constant_schedule", "warmup_cosine_decay_schedule",
           "warmup_exponential_decay_schedule"]  # fmt: skip


@schedule
def constant_schedule(value: Scalar) -> Schedule:
    """Return the same value at all times.

    Args:
        value: the value.

    >>> constant_schedule(0.1)(7)
    0.1
    """
    return lambda count: value


@schedule
def polynomial_schedule(
    init_value: Scalar,
    end_value: Scalar,
    power: Scalar,
    transition_steps: int,
    transition_begin: int = 0,
) -> Schedule:
    """Go from one value to another by a power of the share of steps that is left.

    (init_value − end_value) · (1 − t / transition_steps)^power + end_value, with t the count less
    ``transition_begin``, kept between 0 and ``transition_steps``.

    Args:
        end_value: the last value.
        power: the exponent.
        transition_steps: how many updates it takes; with 0 it stays at ``init_value``.

    Raises:
        ValueError: ``transition_steps`` or ``transition_begin`` is negative.

    >>> schedule = polynomial_schedule(1.0, 0.0, 2, 10)
    >>> [float(schedule(t)) for t in (0, 5, 10, 20)]
    [1.0, 0.25, 0.0, 0.0]
    """
    caller = "polynomial_schedule"
    check(caller, least=0, transition_steps=transition_steps, transition_begin=transition_begin)
    if transition_steps == 0:
        return constant_schedule(init_value)

    def schedule(count: Array) -> ArrayLike:
        t = snp.clip(count - transition_begin, 0, transition_steps)
        return (init_value - end_value) * (1 - t / transition_steps) ** power + end_value

    return schedule


@described_like(polynomial_schedule)
def linear_schedule(
    init_value: Scalar, end_value: Scalar, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """Go from one value to another along a line.

    >>> schedule = linear_schedule(0.0, 1.0, 4)
    >>> [float(schedule(t)) for t in (0, 1, 4, 9)]
    [0.0, 0.25, 1.0, 1.0]
    """
    caller = "linear_schedule"
    check(caller, least=0, transition_steps=transition_steps, transition_begin=transition_begin)
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


@schedule
def exponential_decay(
    init_value: Scalar,
    transition_steps: int,
    decay_rate: Scalar,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Scalar | None = None,
) -> Schedule:
    """``init_value`` · decay_rate^(t / transition_steps): a factor per ``transition_steps``.

    t is the count less ``transition_begin``, and at least 0.

    Args:
        init_value: the value until ``transition_begin``.
        transition_steps: how many updates bring one factor ``decay_rate``.
        decay_rate: below 1 the value falls, above it rises.
        staircase: round the exponent down, so that the value moves in steps.
        end_value: the value goes no further than this.

    Raises:
        ValueError: ``transition_steps`` or ``decay_rate`` is not positive, or ``transition_begin``
            is negative.

    >>> schedule = exponential_decay(1.0, transition_steps=2, decay_rate=0.25)
    >>> [float(schedule(t)) for t in (0, 1, 2)]
    [1.0, 0.5, 0.25]
    """
    caller = "exponential_decay"
    check(caller, above=0, transition_steps=transition_steps, decay_rate=decay_rate)
    check(caller, least=0, transition_begin=transition_begin)

    def schedule(count: Array) -> ArrayLike:
        exponent = snp.maximum(count - transition_begin, 0) / transition_steps
        if staircase:
            exponent = snp.floor(exponent)
        value = init_value * snp.power(decay_rate, exponent)
        if end_value is None:
            return value
        falling = snp.maximum(value, end_value)
        return snp.where(decay_rate < 1, falling, snp.minimum(value, end_value))

    return schedule


@schedule
def cosine_decay_schedule(
    init_value: Scalar, decay_steps: int, alpha: Scalar = 0.0, exponent: Scalar = 1.0
) -> Schedule:
    """Half a cosine from ``init_value`` down to ``alpha`` · init_value, in ``decay_steps`` updates.

    init_value · ((1 − alpha) · (½ + ½ cos(π t / decay_steps))^exponent + alpha).

    Args:
        decay_steps: how many updates it takes.
        alpha: the last value over the first.
        exponent: of the cosine.

    Raises:
        ValueError: ``decay_steps`` is not positive.

    Source: Loshchilov and Hutter, "SGDR", 2017, equation 5.

    >>> schedule = cosine_decay_schedule(1.0, 10)
    >>> [round(float(schedule(t)), 6) for t in (0, 5, 10, 20)]
    [1.0, 0.5, 0.0, 0.0]
    """
    check("cosine_decay_schedule", above=0, decay_steps=decay_steps)

    def schedule(count: Array) -> ArrayLike:
        part = snp.minimum(count, decay_steps) / decay_steps
        falling = (0.5 * (1 + snp.cos(np.pi * part))) ** exponent
        return init_value * ((1 - alpha) * falling + alpha)

    return schedule


@schedule
def piecewise_constant_schedule(
    init_value: Scalar, boundaries_and_scales: Mapping[int, Scalar] | None = None
) -> Schedule:
    """Multiply the value by the scale of each boundary that the count has reached.

    Args:
        boundaries_and_scales: the scales, by boundary.

    Raises:
        ValueError: a scale is negative.

    >>> schedule = piecewise_constant_schedule(1.0, {3: 0.5, 5: 0.5})
    >>> [float(schedule(t)) for t in (2, 3, 5)]
    [1.0, 0.5, 0.25]
    """
    for boundary, scale in (boundaries_and_scales or {}).items():
        named: dict[str, Any] = {f"the scale at {boundary}": scale}
        check("piecewise_constant_schedule", least=0, **named)

    def schedule(count: Array) -> Array:
        value = snp.asarray(init_value)
        for boundary, scale in sorted((boundaries_and_scales or {}).items()):
            value = snp.where(count < boundary, value, value * scale)
        return value

    return schedule


@schedule
def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Run schedules one after the other: each takes over at its boundary, and counts from there.

    Args:
        schedules: the schedules.
        boundaries: the counts at which the second and later ones begin.

    Raises:
        ValueError: there is not one boundary fewer than schedules, or the boundaries decrease.

    >>> schedule = join_schedules([linear_schedule(0.0, 1.0, 4), constant_schedule(0.5)], [4])
    >>> [float(schedule(t)) for t in (2, 4, 5)]
    [0.5, 0.5, 0.5]
    """
    parts, ends = list(schedules), list(boundaries)
    if len(ends) != len(parts) - 1:
        raise ValueError(
            f"join_schedules: expected one boundary fewer than schedules, got {len(ends)} "
            f"boundaries for {len(parts)} schedules"
        )
    if any(b < a for a, b in itertools.pairwise(ends)):
        raise ValueError(f"join_schedules: boundaries must not decrease, got {ends}")

    def schedule(count: Array) -> Array:
        value = snp.asarray(parts[0](count))
        for end, part in zip(ends, parts[1:], strict=True):
            value = snp.where(count < end, value, part(count - end))
        return value

    return schedule


@schedule
def warmup_constant_schedule(init_value: Scalar, peak_value: Scalar, warmup_steps: int) -> Schedule:
    """Rise along a line, and then stay level.

    Args:
        peak_value: the value from then on.

    Raises:
        ValueError: ``warmup_steps`` is negative.

    >>> schedule = warmup_constant_schedule(0.0, 1.0, 4)
    >>> [float(schedule(t)) for t in (0, 2, 4, 9)]
    [0.0, 0.5, 1.0, 1.0]
    """
    check("warmup_constant_schedule", least=0, warmup_steps=warmup_steps)
    warm = linear_schedule(init_value, peak_value, warmup_steps)
    return join_schedules([warm, constant_schedule(peak_value)], [warmup_steps])


@schedule
def warmup_cosine_decay_schedule(
    init_value: Scalar,
    peak_value: Scalar,
    warmup_steps: int,
    decay_steps: int,
    end_value: Scalar = 0.0,
    exponent: Scalar = 1.0,
) -> Schedule:
    """Rise in a line to ``peak_value``, then fall by half a cosine to ``end_value``.

    Args:
        peak_value: the value after ``warmup_steps`` updates.
        decay_steps: how many updates it takes in all, those of the line included.
        end_value: the value from then on.
        exponent: see ``cosine_decay_schedule``.

    Raises:
        ValueError: ``decay_steps`` is not more than ``warmup_steps``, or that is negative.

    >>> schedule = warmup_cosine_decay_schedule(0.0, 1.0, warmup_steps=2, decay_steps=6)
    >>> [round(float(schedule(t)), 6) for t in (0, 1, 2, 4, 6)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    check("warmup_cosine_decay_schedule", least=0, warmup_steps=warmup_steps)
    if not decay_steps > warmup_steps:
        raise ValueError(
            f"warmup_cosine_decay_schedule: decay_steps counts those of the warmup, and must be "
            f"more; got {decay_steps} and warmup_steps={warmup_steps}"
        )
    if isinstance(peak_value, Value):
        some = peak_value != 0
        alpha = snp.where(some, end_value / snp.where(some, peak_value, 1), 0)
    else:
        alpha = end_value / peak_value if peak_value else 0.0
    warm = linear_schedule(init_value, peak_value, warmup_steps)
    falling = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)
    return join_schedules([warm, falling], [warmup_steps])


@schedule
def warmup_exponential_decay_schedule(
    init_value: Scalar,
    peak_value: Scalar,
    warmup_steps: int,
    transition_steps: int,
    decay_rate: Scalar,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Scalar | None = None,
) -> Schedule:
    """Rise along a line, then follow ``exponential_decay``.

    Args:
        peak_value: the value after ``warmup_steps`` updates.
        transition_steps: as for ``exponential_decay``, as are those below.
        decay_rate: a factor.
        transition_begin: counted from the end of the line.
        staircase: whether the value moves in steps.
        end_value: the value goes no further than this.

    Raises:
        ValueError: as for ``exponential_decay``, or ``warmup_steps`` is negative.

    >>> schedule = warmup_exponential_decay_schedule(0.0, 1.0, 2, 1, 0.5)
    >>> [float(schedule(t)) for t in (0, 1, 2, 3, 4)]
    [0.0, 0.5, 1.0, 0.5, 0.25]
    """
    caller = "warmup_exponential_decay_schedule"
    check(caller, least=0, warmup_steps=warmup_steps, transition_begin=transition_begin)
    check(caller, above=0, transition_steps=transition_steps, decay_rate=decay_rate)
    warm = linear_schedule(init_value, peak_value, warmup_steps)
    falling = exponential_decay(
        peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value
    )
    return join_schedules([warm, falling], [warmup_steps])


def _along_line(start: Array, end: Array, part: Array) -> Array:
    return start + (end - start) * part


def _along_cosine(start: Array, end: Array, part: Array) -> Array:
    return end + (start - end) * (0.5 * (1 + snp.cos(np.pi * part)))


_BETWEEN = {"linear": _along_line, "cosine": _along_cosine}


@schedule
def piecewise_interpolate_schedule(
    interpolate_type: str,
    init_value: Scalar,
    boundaries_and_scales: Mapping[int, Scalar] | None = None,
) -> Schedule:
    """Go from boundary to boundary along lines or half cosines; at each the value is scaled.

    Args:
        interpolate_type: ``"linear"`` or ``"cosine"``.
        init_value: the value at 0.
        boundaries_and_scales: at each boundary, the value there over that at the one before. After
            the last the value stays.

    Raises:
        ValueError: ``interpolate_type`` is unknown, or a scale is negative.

    >>> schedule = piecewise_interpolate_schedule("linear", 1.0, {4: 0.5, 6: 0.0})
    >>> [float(schedule(t)) for t in (0, 2, 4, 5, 6, 7)]
    [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """
    caller = "piecewise_interpolate_schedule"
    if interpolate_type not in _BETWEEN:
        raise ValueError(
            f"{caller}: interpolate_type must be 'linear' or 'cosine', got {interpolate_type!r}"
        )
    between = _BETWEEN[interpolate_type]
    pieces = []
    begin, value = 0, init_value
    for boundary, scale in sorted((boundaries_and_scales or {}).items()):
        named: dict[str, Any] = {f"the scale at {boundary}": scale}
        check(caller, least=0, **named)
        pieces.append((begin, boundary, value, value * scale))
        begin, value = boundary, value * scale

    def schedule(count: Array) -> Array:
        out = snp.asarray(value)
        for first, last, start, end in reversed(pieces):
            part = (count - first) / max(last - first, 1)
            out = snp.where(count < last, between(start, end, part), out)
        return out

    return schedule


@schedule
def linear_onecycle_schedule(
    transition_steps: int,
    peak_value: Scalar,
    pct_start: float = 0.3,
    pct_final: float = 0.85,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Go up and down again along lines, and finally further down.

    Args:
        transition_steps: how many updates the cycle takes.
        peak_value: the largest value.
        pct_final: the share of updates until the first value is reached again.

    Raises:
        ValueError: ``transition_steps`` or a factor is not positive.

    Source: Smith and Topin, "Super-convergence", 2018.

    >>> schedule = linear_onecycle_schedule(100, 1.0)
    >>> [round(float(schedule(t)), 6) for t in (0, 15, 30, 85, 100)]
    [0.04, 0.52, 1.0, 0.04, 4e-06]
    """
    caller = "linear_onecycle_schedule"
    check(caller, above=0, transition_steps=transition_steps)
    check(caller, above=0, div_factor=div_factor, final_div_factor=final_div_factor)
    scales = {
        int(pct_start * transition_steps): div_factor,
        int(pct_final * transition_steps): 1 / div_factor,
        transition_steps: 1 / final_div_factor,
    }
    return piecewise_interpolate_schedule("linear", peak_value / div_factor, scales)


@described_like(linear_onecycle_schedule)
def cosine_onecycle_schedule(
    transition_steps: int,
    peak_value: Scalar,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Go up and down along half cosines.

    Source: Smith and Topin, "Super-convergence", 2018.

    >>> schedule = cosine_onecycle_schedule(100, 1.0)
    >>> [round(float(schedule(t)), 6) for t in (0, 15, 30, 65, 100)]
    [0.04, 0.52, 1.0, 0.500002, 4e-06]
    """
    caller = "cosine_onecycle_schedule"
    check(caller, above=0, transition_steps=transition_steps)
    check(caller, above=0, div_factor=div_factor, final_div_factor=final_div_factor)
    scales = {
        int(pct_start * transition_steps): div_factor,
        transition_steps: 1 / (div_factor * final_div_factor),
    }
    return piecewise_interpolate_schedule("cosine", peak_value / div_factor, scales)


@schedule
def sgdr_schedule(cosine_kwargs: Iterable[Mapping[str, Any]]) -> Schedule:
    """Cosines with warm restarts: one ``warmup_cosine_decay_schedule`` after the other.

    Args:
        cosine_kwargs: the arguments of each.

    Raises:
        ValueError: there are none.

    Source: Loshchilov and Hutter, "SGDR", 2017.

    >>> one = dict(init_value=0.0, peak_value=1.0, warmup_steps=1, decay_steps=3)
    >>> schedule = sgdr_schedule([one, {**one, "peak_value": 0.5}])
    >>> [round(float(schedule(t)), 6) for t in range(6)]
    [0.0, 1.0, 0.5, 0.0, 0.5, 0.25]
    """
    arguments = list(cosine_kwargs)
    if not arguments:
        raise ValueError("sgdr_schedule: expected the arguments of at least one cosine, got none")
    cosines = [warmup_cosine_decay_schedule(**kwargs) for kwargs in arguments]
    ends = np.cumsum([kwargs["decay_steps"] for kwargs in arguments])[:-1].tolist()
    return join_schedules(cosines, ends)


@schedule
def cyclical_schedule(peak_value: Scalar, period: int) -> Schedule:
    """Fall along half a cosine in each cycle: the learning rates of cyclical samplers.

    peak_value · (1 + cos(π (t mod period) / period)) / 2, for ever.

    Args:
        peak_value: the first value of each cycle.
        period: the steps of a cycle.

    Raises:
        ValueError: ``period`` is less than 1.

    Source: Zhang et al., "Cyclical stochastic gradient MCMC for Bayesian deep learning", 2020,
    equation 1.

    >>> schedule = cyclical_schedule(1.0, 4)
    >>> [round(float(schedule(t)), 3) for t in range(5)]
    [1.0, 0.854, 0.5, 0.146, 1.0]
    """
    check("cyclical_schedule", least=1, period=period)
    return lambda count: peak_value * (1 + snp.cos(math.pi * ((count % period) / period))) / 2


@schedule
def cyclical_temperature_schedule(value: Scalar, period: int, exploration: float) -> Schedule:
    """Be 0 in the first share of each cycle, which explores, and then a value, which samples.

    The temperature that goes with ``cyclical_schedule``.

    Args:
        value: the temperature of sampling.
        period: the steps of a cycle.
        exploration: the share of a cycle without noise, from 0 and below 1.

    Raises:
        ValueError: ``period`` is less than 1, or ``exploration`` is out of range.

    Source: Zhang et al., "Cyclical stochastic gradient MCMC for Bayesian deep learning", 2020,
    algorithm 1, with ``exploration`` for β.

    >>> schedule = cyclical_temperature_schedule(1.0, 4, exploration=0.5)
    >>> [float(schedule(t)) for t in range(5)]
    [0.0, 0.0, 1.0, 1.0, 0.0]
    """
    check("cyclical_temperature_schedule", least=1, period=period)
    check("cyclical_temperature_schedule", least=0, below=1, exploration=exploration)
    return lambda count: snp.where((count % period) / period < exploration, 0.0, value)
