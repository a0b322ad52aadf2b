"""How many of the JAX names that published libraries use exist here, with compatible parameters.

    make coverage-names

``names_used.json`` holds the names, how many of 14 libraries use each, and the parameters that JAX
gives it. A name is covered where it exists below ``stretto`` and, if it is a function of JAX's,
takes its parameters: the same names in the same order, those by keyword in any; ours may have more.
The figure counts a name once for each library that uses it. Names left out on purpose have their
reason in ``REASONS``.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["NAMESPACES", "REASONS", "Name", "check", "coverage", "main", "names", "parameters"]

NAMES = Path(__file__).with_name("names_used.json")

NAMESPACES = {
    "jax.numpy": "stretto.numpy",
    "jax.lax": "stretto.lax",
    "jax.random": "stretto.random",
    "jax.nn": "stretto.compat.jax.nn",
    "jax.scipy": "stretto.scipy",
    "jax.tree_util": "stretto.compat.jax.tree_util",
}
"""Where the names of each namespace of JAX's are looked for."""

INITIALIZERS = "jax.nn.initializers", "stretto.compat.jax.initializers"
"""The module below a namespace whose names are not looked for below that."""

REASONS = {
    "jax.numpy.clip": "JAX's default for the array serves an old name; here the array is needed"
}
"""Names that are left out on purpose, and why."""

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Name(NamedTuple):
    """A name of JAX's, how many libraries use it, and its parameters; None where it has none.

    Parameters are written as Python writes them, ``=`` standing for any default: ``x``, ``axis=``,
    ``*``, ``keepdims=``, ``/``.
    """

    name: str
    packages: int
    parameters: tuple[str, ...] | None

    @property
    def namespace(self) -> str:
        """Which of ``NAMESPACES`` it is in."""
        return ".".join(self.name.split(".")[:2])

    @property
    def ours(self) -> str:
        """The name that it has here."""
        below, home = INITIALIZERS
        if self.name.startswith(below):
            return home + self.name[len(below) :]
        return NAMESPACES[self.namespace] + self.name[len(self.namespace) :]


def names() -> list[Name]:
    """The names of the file, the most used first."""
    stored = json.loads(NAMES.read_text(encoding="utf-8"))["names"]
    return [
        Name(
            name,
            facts["packages"],
            tuple(p) if (p := facts.get("parameters")) is not None else None,
        )
        for name, facts in stored.items()
    ]


def find(name: str) -> Any:
    """The object of this dotted name; raises ``LookupError`` where there is none."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            try:
                value = getattr(value, part)
            except AttributeError:
                raise LookupError(f"there is no {name}") from None
        return value
    raise LookupError(f"there is no {name}")


def parameters(spelt: Iterable[str]) -> list[inspect.Parameter]:
    """The parameters that are written so."""
    texts = list(spelt)
    only = texts.index("/") if "/" in texts else 0
    out, by_name = [], False
    for i, text in enumerate(texts):
        if text in ("/", "*"):
            by_name = by_name or text == "*"
            continue
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if text.startswith("**"):
            kind = inspect.Parameter.VAR_KEYWORD
        elif text.startswith("*"):
            kind, by_name = inspect.Parameter.VAR_POSITIONAL, True
        elif by_name:
            kind = inspect.Parameter.KEYWORD_ONLY
        elif i < only:
            kind = inspect.Parameter.POSITIONAL_ONLY
        default = None if text.endswith("=") else inspect.Parameter.empty
        out.append(inspect.Parameter(text.strip("*="), kind, default=default))
    return out


def _also(parameter: inspect.Parameter | None) -> bool:
    """Whether what one position takes can be passed by another name too: ``clip``'s a_min, min."""
    return parameter is not None and parameter.kind is inspect.Parameter.KEYWORD_ONLY


def differences(
    required: Sequence[inspect.Parameter], available: Sequence[inspect.Parameter]
) -> list[str]:
    """What a call by the required parameters cannot pass to a function of the available ones."""
    kinds = {p.kind: p for p in available}
    any_keyword = inspect.Parameter.VAR_KEYWORD in kinds
    any_position = inspect.Parameter.VAR_POSITIONAL in kinds
    by_name = {p.name: p for p in available if p.kind is not inspect.Parameter.POSITIONAL_ONLY}
    places = [p for p in available if p.kind in POSITIONAL]
    wrong, taken_by_place, place = [], set(), 0
    for p in required:
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            wrong += [] if any_position else [f"*{p.name} is missing"]
            continue
        if p.kind is inspect.Parameter.VAR_KEYWORD:
            wrong += [] if any_keyword else [f"**{p.name} is missing"]
            continue
        own = by_name.get(p.name)
        if p.kind in POSITIONAL:
            at = places[place] if place < len(places) else None
            place += 1
            if at is None and not any_position:
                wrong.append(f"{p.name} is missing" if own is None else f"{p.name} is by name only")
                continue
            if at is not None:
                own = at
                taken_by_place.add(at.name)
                if p.kind is not inspect.Parameter.POSITIONAL_ONLY:
                    if at.kind is inspect.Parameter.POSITIONAL_ONLY:
                        wrong.append(f"{p.name} cannot be passed by name")
                    elif at.name != p.name and not _also(by_name.get(p.name)):
                        wrong.append(f"{p.name} is called {at.name}")
        elif own is None:
            wrong += [] if any_keyword else [f"{p.name} is missing"]
            continue
        if own is not None:
            taken_by_place.add(own.name)
            if p.default is not p.empty and own.default is own.empty:
                wrong.append(f"{p.name} has no default")
    needed = [
        p.name
        for p in available
        if p.default is p.empty
        and p.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        and p.name not in taken_by_place
    ]
    any_required = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in required)
    return wrong + [f"{name} is needed here" for name in needed if not any_required]


def check(name: Name) -> str:
    """What is wrong with the name here; empty where it is covered."""
    try:
        value = find(name.ours)
    except LookupError as error:
        return str(error)
    if name.parameters is None or inspect.isclass(value):
        return ""
    try:
        available = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return "" if callable(value) else "it is no function"
    return "; ".join(differences(parameters(name.parameters), available))


class Coverage(NamedTuple):
    """Of one namespace: names, names covered, uses, uses covered, and what is wrong by name."""

    names: int
    covered: int
    uses: int
    uses_covered: int
    wrong: dict[str, str]

    @property
    def share(self) -> float:
        """The share of names covered."""
        return self.covered / self.names if self.names else 1.0


def coverage(names_to_check: Iterable[Name]) -> dict[str, Coverage]:
    """By namespace, and over all as ``"all"``."""
    groups: dict[str, list[Name]] = {namespace: [] for namespace in (*NAMESPACES, "all")}
    for name in names_to_check:
        groups[name.namespace].append(name)
        groups["all"].append(name)
    out = {}
    for namespace, group in groups.items():
        wrong = {n.name: why for n in group if (why := check(n))}
        right = [n for n in group if n.name not in wrong]
        out[namespace] = Coverage(
            len(group),
            len(right),
            sum(n.packages for n in group),
            sum(n.packages for n in right),
            wrong,
        )
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, then what is missing and why; 1 where less is covered than asked for."""
    parser = argparse.ArgumentParser(prog="coverage_names", description=__doc__)
    parser.add_argument("--least", type=float, default=0.0, help="the share to hold, in percent")
    options = parser.parse_args(arguments)
    covered = coverage(names())
    print(f"{'namespace':<15} {'names':>6} {'covered':>8} {'share':>8}   uses covered")
    for namespace, c in covered.items():
        print(
            f"{namespace:<15} {c.names:>6} {c.covered:>8} {100 * c.share:>7.1f}%   "
            f"{c.uses_covered} of {c.uses}"
        )
    for name, why in covered["all"].wrong.items():
        reason = REASONS.get(name)
        print(f"  {name}: {why}" + (f" (left out: {reason})" if reason else ""))
    return int(100 * covered["all"].share < options.least)


if __name__ == "__main__":
    sys.exit(main())
