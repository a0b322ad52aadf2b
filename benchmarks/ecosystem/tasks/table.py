"""The tasks: how many steps each takes, and the rows that measure it."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.workloads import Goal, Workload

__all__ = ["EQUAL", "FORMS", "ROWS", "TASKS", "Task", "cases", "name_of", "title_of"]

EQUAL = 1e-5
"""How far values may be apart, relative to the largest of their array."""

FORMS = ("single", "ensemble")

FIRST, STEP = 0.6, 1.0
"""Goals: what part of JAX's time the first result and a step may take."""


class Task(NamedTuple):
    """A program of ``programs``.

    Args:
        name: the module.
        title: what it does.
        steps: how many it takes when it is measured.
        checked: how many when its values are compared.
        chaotic: why rounding decides its values in float32, if it does. They are then compared in
            float64 alone, and JAX's own are held to what it gives for data that differ by one unit
            in the last place.
    """

    name: str
    title: str
    steps: int
    checked: int
    chaotic: str = ""


_DRAWS = "a draw is accepted or not by comparing numbers, and the next depend on that"

TASKS = (
    Task("linen_mlp", "MLP, Flax Linen and Optax", 200, 60),
    Task("linen_cnn", "CNN, Flax Linen and Optax", 80, 30),
    Task("equinox_mlp", "MLP, Equinox and Optax", 200, 60),
    Task("equinox_cnn", "CNN, Equinox and Optax", 80, 30),
    Task(
        "diffrax_ode",
        "neural ODE, Diffrax",
        30,
        5,
        "a step of the solver is accepted or not by comparing its error",
    ),
    # Of two runs, each from its own key, the second moves by 1e-5 with the last place of float64.
    Task("numpyro_nuts", "NUTS, NumPyro: 200 draws a step", 5, 1, _DRAWS),
    Task("blackjax_nuts", "NUTS, BlackJAX: 50 draws a step", 40, 4, _DRAWS),
    Task(
        "evosax_cma_es",
        "CMA-ES, Evosax: 20 generations a step",
        60,
        4,
        "eigenvectors are turned by half where rounding decides their sign",
    ),
)


def cases() -> list[tuple[Task, str]]:
    """Each task in each form."""
    return [(task, form) for task in TASKS for form in FORMS]


def name_of(task: Task, form: str) -> str:
    """What the command calls it."""
    return f"{task.name}-{form}"


def title_of(task: Task, form: str) -> str:
    """What tables call it."""
    return f"{task.title}, ensemble" if form == "ensemble" else task.title


def _rows() -> dict[str, Workload]:
    rows = {}
    for task, form in cases():
        parts = (
            ("first", "start to first result, nothing on disk", FIRST),
            ("second", "the same, second start", FIRST),
            ("step", "a step", STEP),
        )
        for part, title, most in parts:
            name = f"{name_of(task, form)}-{part}"
            title = f"{title_of(task, form)}: {title}"
            rows[name] = Workload(name, title, "ms", (Goal("jax", most),), of_largest=EQUAL)
    return rows


ROWS = _rows()
"""Rows by name. The values of the JAX column do not depend on what Stretto has on disk."""
