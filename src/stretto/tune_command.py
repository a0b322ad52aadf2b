"""The command ``stretto tune``: measures this machine, and keeps its costs for the planner.

Four kinds of work are measured, each in a compiled program, as what the planner estimates is: alone
memory is copied by all threads, and fresh memory costs a quarter. Each is compared with what it
took where the shipped table was measured, whose figures are then scaled by that (``core/cost``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.graph import make_graph
from stretto._engine.core import cost
from stretto._engine.core.machine import cores
from stretto._engine.xla.kernels import times_of

_ROUNDS, _MANY_ROUNDS = 15, 1000
"""How often a program is run: in half a second, whatever else the machine does meanwhile."""

_PARTS, _PART = 32, (32, 64, 256)
"""The parts of an array of 64 MiB, and the shape of each: the last-level cache has room for it."""

_REFERENCE = {"products": 17_640.0, "copies": 18_500.0, "fresh": 3_400.0, "overheads": 390.0}
"""What ``measured`` returns on the machine of the table."""


def run(options: argparse.Namespace) -> int:
    """Measure, show and write; 2 if it cannot be written."""
    times = {kind: found / _REFERENCE[kind] for kind, found in measured().items()}
    for kind, value in times.items():
        print(f"{kind:10} {value:5.2f} times as long as by the table of {cost.CPU.name}")
    try:
        path = cost.keep(times)
    except OSError as error:
        print(f"stretto tune: {error}", file=sys.stderr)
        return 2
    if path is None:
        print("stretto tune: there is no home directory, nor STRETTO_CACHE_DIR", file=sys.stderr)
        return 2
    print(f"Written to {path}")
    if cost.kept() is None:
        print("This is too far from the table to be believed, and counts for nothing.")
        return 2
    print("STRETTO_TUNED=1 or stretto.config.tuned = True makes estimates go by it.")
    return 0


def measured() -> dict[str, float]:
    """Return the microseconds that each kind of work takes here, on one core.

    Copies change the order of axes, as where members are moved, in a loop between kernels. Memory
    is fresh where a large result is stored, beyond what the same takes in parts. Overheads are
    those of the steps of a loop with a small product.
    """
    first, second, last = _PART
    rows = _PARTS * first * second
    square, narrow, wide = snp.ones((768, 768)), snp.ones((rows, 8)), snp.ones((8, last))
    sums = lambda x, w: ((x @ w) ** 2).sum(1)
    parts = lambda x, w: lax.map(lambda part: sums(part, w), x.reshape(_PARTS, -1, 8))
    moved = lambda x, w: lax.map(lambda part: snp.moveaxis(part, 0, 1).reshape(second, -1) @ w, x)
    steps = lambda x, w: lax.scan(lambda x, _: (x @ w, None), x, None, length=500)[0]
    return {
        "products": cores() * _time(lambda x: x @ x @ x, square),
        "copies": _time(moved, snp.ones((_PARTS, *_PART)), snp.ones((first * last, 8))),
        "fresh": max(1.0, _time(sums, narrow, wide) - _time(parts, narrow, wide)),
        "overheads": _time(steps, snp.ones((16, 64)), snp.eye(64), rounds=_MANY_ROUNDS),
    }


def _time(function: Callable[..., Any], *arguments: Any, rounds: int = _ROUNDS) -> float:
    """Return the least time of a compiled function, in microseconds."""
    return 1e6 * min(times_of(make_graph(function)(*arguments), rounds))
