"""The parts of a program's first time, alike in Stretto and JAX: trace, lower, compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.networks import table
from benchmarks.worker import Case, Registry

__all__ = ["Program", "register_stages"]


@dataclass(frozen=True)
class Program:
    """A function that is to be compiled, arguments, and which of them it may take over.

    `arrays` makes of its result what is compared.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    donated: tuple[int, ...]
    arrays: Callable[[Any], Sequence[Any]]


def register_stages(
    cases: Registry, task: table.Task, make: Callable[[], Program], framework: Any
) -> None:
    """Add the rows of the task's first time; `framework` is the module with `jit`."""
    stages = {"trace": _trace, "lower": _lower, "compile": _compile}
    for stage in task.stages:
        if stage in stages:
            name = task.stage_row(stage).name
            cases.add(name)(partial(stages[stage], make, framework))


def _trace(make: Callable[[], Program], framework: Any) -> Case:
    """Python function to typed program, with nothing kept from before."""
    made, tree = make(), framework.tree
    return Case(
        lambda run: run.trace(*made.arguments),
        fresh=lambda: _new(made, framework),
        arrays=lambda traced: table.sizes(tree.leaves(traced.out_info)),
    )


def _lower(make: Callable[[], Program], framework: Any) -> Case:
    """Typed program to what the compiler takes: text in Stretto, a module in JAX."""
    made, tree = make(), framework.tree
    return Case(
        lambda traced: lowered(traced, framework),
        fresh=lambda: _new(made, framework).trace(*made.arguments),
        arrays=lambda lowered: table.sizes(tree.leaves(lowered.out_info)),
    )


def _compile(make: Callable[[], Program], framework: Any) -> Case:
    """That to an executable."""
    made = make()
    return Case(
        lambda lowered: lowered.compile(),
        fresh=lambda: lowered(_new(made, framework).trace(*made.arguments), framework),
        # The arguments are given away here, and have only types from then on.
        arrays=lambda compiled: made.arrays(compiled(*made.arguments)),
    )


def lowered(traced: Any, framework: Any) -> Any:
    """Stretto's text is forced, so that the work is not left for later."""
    done = traced.lower()
    if framework.__name__ == "stretto":
        done.as_text()
    return done


def _new(made: Program, framework: Any) -> Any:
    """The jitted function, as one that no cache has seen."""
    framework.clear_caches()

    def fresh(*args: Any) -> Any:
        return made.function(*args)

    return framework.jit(fresh, donate_argnums=made.donated)
