"""Schedules of several pieces: one cycle, warm restarts, lines and cosines between given points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.typing import Array
from stretto.optim.base import Scalar, Schedule, schedule
from stretto.optim.leaves import check
from stretto.optim.schedules import join_schedules, warmup_cosine_decay_schedule

__all__ = [
    "cosine_onecycle_schedule",
    "linear_onecycle_schedule",
    "piecewise_interpolate_schedule",
    "sgdr_schedule",
]


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


@schedule
def cosine_onecycle_schedule(
    transition_steps: int,
    peak_value: Scalar,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Go up and down along half cosines.

    Args:
        transition_steps: how many updates the cycle takes.
        peak_value: the largest value.

    Raises:
        ValueError: ``transition_steps`` or a factor is not positive.

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
