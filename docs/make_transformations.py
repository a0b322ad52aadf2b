"""Writes ``transformations.md``: for each primitive, which rules are given, derived or refused.

Run ``python docs/make_transformations.py``; a test fails while the file says something else.
"""

import importlib
import pathlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import stretto
from stretto._engine.core.primitive import (
    NOT_LINEAR,
    PRIMITIVES,
    ZERO_DERIVATIVE,
    Primitive,
    Refused,
)

TARGET = pathlib.Path(__file__).parent / "transformations.md"
COLUMNS = ("infer", "reference", "lower", "jvp", "linearize", "transpose", "vmap")

HEAD = """\
# Which rules each operation has

Written by `docs/make_transformations.py` from the classes themselves, and tested to be up to date.
Every primitive has all of these rules, or refuses one in words ([architecture](architecture.md)):

- **given**: written in its class;
- a name: derived, by the family of that name;
- **zero**: the derivative is zero wherever it exists;
- **not linear**: only its derivative is ever transposed, so it has no transpose of its own;
- **as jvp**: its linear part is what its jvp records;
- **refused**: asking for it is an error, whose words stand below the table.

Every rule that is given or derived is held to the laws of `stretto.laws`, eagerly and compiled, by
the tests; derivatives to second order.
"""


_HOMES = ("stretto._engine.ops.", "stretto._engine.control.", "stretto.special.")
"""Where primitives are made."""


def load_all() -> None:
    """Import every module, so that every primitive is known."""
    for module in pkgutil.walk_packages(stretto.__path__, "stretto."):
        if module.name.startswith(_HOMES):
            importlib.import_module(module.name)


def owner(primitive: type[Primitive], rule: str) -> tuple[type, Any]:
    """The class that a rule comes from, and what stands there."""
    for cls in primitive.__mro__:
        if rule in vars(cls):
            return cls, vars(cls)[rule]
    raise AssertionError(f"{primitive.name} has no {rule}")


def cell(primitive: type[Primitive], rule: str) -> str:
    """What the table says of one rule."""
    cls, value = owner(primitive, rule)
    if value is NOT_LINEAR:
        return "not linear"
    if isinstance(value, Refused):
        return "**refused**"
    if value is ZERO_DERIVATIVE:
        return "zero"
    if cls is Primitive:
        return "as jvp"
    return "given" if cls is primitive else cls.__name__


def refusals(primitives: list[type[Primitive]]) -> Iterator[str]:
    """The words of each refusal."""
    for primitive in primitives:
        for rule in COLUMNS:
            value = owner(primitive, rule)[1]
            if isinstance(value, Refused) and value is not NOT_LINEAR:
                yield f"- `{primitive.name}`, {rule}: {value.why}."


def page() -> str:
    """The whole page."""
    load_all()
    ours = [p for p in PRIMITIVES if p.__module__.startswith("stretto.")]
    parts = [HEAD]
    for module in sorted({p.__module__ for p in ours}):
        several = sorted((p for p in ours if p.__module__ == module), key=lambda p: p.name)
        parts.append(
            f"\n## `{module.removeprefix('stretto.').removeprefix('_engine.').replace('.', '/')}`\n"
        )
        parts.append(f"| operation | {' | '.join(COLUMNS)} |")
        parts.append("| --- " * (len(COLUMNS) + 1) + "|")
        for p in several:
            cells = " | ".join(cell(p, rule) for rule in COLUMNS)
            parts.append(f"| `{p.name}` | {cells} |")
        words = list(refusals(several))
        if words:
            parts.extend(["", *words])
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
