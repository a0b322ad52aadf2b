"""The side that computes: a process that prepares and times cases on command.

Commands come as lines of JSON on standard input, answers go as lines of JSON to standard output;
`process` is the other side. A framework's worker fills a `Registry` and calls `serve`.
"""

from __future__ import annotations

import gc
import itertools
import json
import math
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import metadata
from typing import Any, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks import memory, wire

__all__ = ["Case", "Registry", "Training", "converse", "serve"]

CALIBRATION_BATCHES = 3
WEIGHINGS = 3


@dataclass(frozen=True)
class Case:
    """One workload, ready to be timed.

    `call` does the work once and returns when its result is complete. Where each call needs
    something of its own, `fresh` makes that, before each call, while the clock stands still.
    `arrays` turns what `call` returned into NumPy arrays, for the comparison with the other
    frameworks. `within` gives a context that holds while `call` runs, such as a setting.
    """

    call: Callable[..., Any]
    arrays: Callable[[Any], Sequence[NDArray[Any]]] = lambda result: [np.asarray(result)]
    fresh: Callable[[], Any] | None = None
    within: Callable[[], AbstractContextManager[Any]] = nullcontext


class Training:
    """Steps of training: each call starts from the state that the call before returned."""

    def __init__(self, step: Callable[[Any], tuple[Any, Any]], state: Any) -> None:
        """`step(state)` returns the next state and the losses, complete."""
        self._step = step
        self._state = state

    def __call__(self) -> tuple[Any, Any]:
        """Make one step; return what it returned."""
        result = self._step(self._state)
        self._state = result[0]
        return result


Name: TypeAlias = tuple[str, str]
Maker: TypeAlias = Callable[[], Case]


class Registry:
    """The cases that a framework has: a function for each workload and formulation.

    The formulation is "" for the framework's own way of writing the workload; others ("unroll",
    "loop") compete for being the fastest peer.
    """

    def __init__(self) -> None:
        self._makers: dict[Name, Maker] = {}

    def add(self, workload: str, formulation: str = "") -> Callable[[Maker], Maker]:
        """Register the decorated function, which prepares the case when it is requested."""

        def register(make: Maker) -> Maker:
            self._makers[workload, formulation] = make
            return make

        return register

    def names(self) -> list[Name]:
        """Workload and formulation of each case, in the order in which they were added."""
        return list(self._makers)

    def make(self, workload: str, formulation: str) -> Case:
        """Prepare one case."""
        return self._makers[workload, formulation]()


def run_once(case: Case) -> Any:
    """What one call returns."""
    with case.within():
        return case.call() if case.fresh is None else case.call(case.fresh())


def time_batch(case: Case, iterations: int, warm: bool = False) -> float:
    """Seconds for each of `iterations` calls, after one that is not counted, unless it is `warm`.

    While others ran, their data took the place of this process's in the caches, and the system gave
    its memory to them; who trains a network pays for that once. Where each call needs something
    `fresh`, as the first call of a new function, a call counts as it is.

    The collector stays on: what a framework's garbage costs, its users pay. What is left from
    before is swept out first.
    """
    if iterations > 1 or not (warm or case.fresh):
        run_once(case)
    call, fresh, clock = case.call, case.fresh, time.perf_counter
    with case.within():
        gc.collect()
        if fresh is None:
            start = clock()
            for _ in itertools.repeat(None, iterations):
                call()
            return (clock() - start) / iterations
        seconds = 0.0
        for _ in itertools.repeat(None, iterations):
            item = fresh()
            start = clock()
            call(item)
            seconds += clock() - start
        return seconds / iterations


def calibrate(case: Case, seconds: float) -> int:
    """How many iterations take about `seconds`; warms the case up on the way."""
    iterations, fastest = 1, math.inf
    for batch in itertools.count(1):
        fastest = min(fastest, time_batch(case, iterations, warm=True))
        # The first batches may have been cold, or disturbed, which matters less if calls are long.
        enough = batch >= CALIBRATION_BATCHES or fastest > seconds
        if enough and fastest * iterations >= seconds / 2:
            break
        iterations = max(1, min(10 * iterations, int(seconds / fastest)))
    return max(1, round(seconds / fastest))


def peak_bytes(case: Case) -> int | None:
    """The memory that a call takes, the median of some calls; None where that is not known."""
    run_once(case)
    growths = [memory.peak_growth(lambda: run_once(case)) for _ in range(WEIGHINGS)]
    measured = [one for one in growths if one is not None]
    return sorted(measured)[len(measured) // 2] if measured else None


def serve(
    framework: str,
    packages: Sequence[str],
    import_statement: str,
    registry: Registry,
    **settings: Any,
) -> None:
    """Answer commands about the registry's cases; the first answer says which framework this is.

    `settings` are those of the framework that are worth knowing later.
    """
    prepared: dict[Name, Case] = {}
    converse(
        lambda command: _obey(command, registry, prepared),
        framework=framework,
        versions={package: metadata.version(package) for package in packages},
        import_statement=import_statement,
        settings=settings,
        cases=registry.names(),
    )


def converse(obey: Callable[[dict[str, Any]], dict[str, Any]], **about: Any) -> None:
    """Answer commands by `obey` until standard input ends; `about` is in the first answer."""
    answers = _claim_stdout()
    _answer(answers, pid=os.getpid(), python=platform.python_version(), **about)
    for line in sys.stdin:
        try:
            _answer(answers, **obey(json.loads(line)))
        except Exception as error:
            traceback.print_exc()
            _answer(answers, error=f"{type(error).__name__}: {error}")


def _obey(
    command: dict[str, Any], registry: Registry, prepared: dict[Name, Case]
) -> dict[str, Any]:
    """Carry out one command, and return its answer."""
    name = (command.get("workload", ""), command.get("formulation", ""))
    match command["command"]:
        case "prepare":
            prepared[name] = registry.make(*name)
            results = prepared[name].arrays(run_once(prepared[name]))
            return {"result": [wire.encode(np.asarray(array)) for array in results]}
        case "release":
            prepared.clear()
            gc.collect()
            return {}
        case "calibrate" | "time" if name not in prepared:
            raise LookupError("the case is not prepared: its worker has died since")
        case "calibrate":
            return {"iterations": calibrate(prepared[name], command["seconds"])}
        case "time":
            return {"seconds": time_batch(prepared[name], command["iterations"])}
        case "weigh":
            return {"peak_bytes": peak_bytes(registry.make(*name))}
        case unknown:
            raise ValueError(
                f"expected prepare, calibrate, time, weigh or release, got {unknown!r}"
            )


def _claim_stdout() -> TextIO:
    """Keep standard output for answers; whatever a library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _answer(answers: TextIO, **fields: Any) -> None:
    answers.write(json.dumps(fields) + "\n")
    answers.flush()
