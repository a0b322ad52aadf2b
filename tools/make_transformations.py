"""Writes ``transformations.md``: which rules families derive, and which operations refuse one.

Run ``python tools/make_transformations.py``; a test fails while the file says something else.
"""

import importlib
import inspect
import pathlib
import pkgutil
from collections.abc import Iterator

import stretto
from stretto._engine.core.primitive import (
    CARRIED,
    NOT_LINEAR,
    PRIMITIVES,
    ZERO_DERIVATIVE,
    Primitive,
    Refused,
)

TARGET = pathlib.Path(__file__).parents[1] / "docs" / "transformations.md"
COLUMNS = ("infer", "reference", "lower", "jvp", "linearize", "transpose", "vmap", "padded")

HEAD = """\
# Which rules operations have

Written by `tools/make_transformations.py` from the classes themselves, and tested to be up to date.
An operation has eight rules ([architecture](architecture.md)): `infer` its types, its `reference`
in NumPy, how to `lower` it, its `jvp`, how to `linearize`, `transpose` and `vmap` it, and what it
gives where sizes vary and operands are `padded` ([shapes](shapes.md)). Each is written in its
class, derived by its family, or refused in words. The tests hold every rule that is written or
derived to the laws of `stretto.laws`, eagerly and compiled, derivatives to second order; and
programs of sizes that vary to the values without padding.

## What families derive

- **derived**: all operations of the family have this rule from it, unless they write a better one;
- **zero**: the derivative is zero wherever it exists;
- **not linear**: only the derivative is ever transposed, so there is no transpose of its own;
- **carried**: the result has padding where the operands have it;
- **as jvp**: the linear part is what the jvp records;
- **each**: every operation writes its own, or its family in turn derives it.

"""

REFUSED = """
## What is refused

All operations but these have every rule that can be meant for them. Asking for one that is refused
is an error, which says:

"""


_HOMES = ("stretto._engine.ops.", "stretto._engine.higher_order.", "stretto.special.")
"""Where primitives are made."""


def load_all() -> None:
    """Import every module, so that every primitive is known."""
    for module in pkgutil.walk_packages(stretto.__path__, "stretto."):
        if module.name.startswith(_HOMES):
            importlib.import_module(module.name)


def families(primitives: list[type[Primitive]]) -> list[type[Primitive]]:
    """The classes that derive rules for others, and are no operations themselves."""
    bases = {base for p in primitives for base in p.__mro__ if issubclass(base, Primitive)}
    derived = {base for base in bases - {*primitives, Primitive} if {*COLUMNS} & {*vars(base)}}
    return sorted(derived, key=lambda family: family.__name__)


def cell(family: type[Primitive], rule: str) -> str:
    """What the table says of one rule of a family."""
    value = inspect.getattr_static(family, rule, None)
    if value is NOT_LINEAR:
        return "not linear"
    if value is ZERO_DERIVATIVE:
        return "zero"
    if value is CARRIED:
        return "carried"
    if isinstance(value, Refused):
        return "refused"
    if value is None:
        return "each"
    return "as jvp" if value is vars(Primitive).get(rule) else "derived"


def refusals(primitives: list[type[Primitive]]) -> Iterator[str]:
    """A line for each reason to refuse rules, with the operations that do."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for primitive in sorted(primitives, key=lambda p: p.name):
        for rule in COLUMNS:
            value = inspect.getattr_static(primitive, rule)
            if isinstance(value, Refused) and value is not NOT_LINEAR:
                reasons.setdefault(value.why, {}).setdefault(primitive.name, []).append(rule)
    for why, refused in reasons.items():
        operations: dict[str, list[str]] = {}
        for name, rules in refused.items():
            operations.setdefault(" and ".join(rules), []).append(f"`{name}`")
        for rules, names in operations.items():
            yield f"- {rules} of {', '.join(names)}: {why}."


def page() -> str:
    """The whole page."""
    load_all()
    ours = [p for p in PRIMITIVES if p.__module__.startswith("stretto.")]
    rows = [f"| family | {' | '.join(COLUMNS)} |", "| --- " * (len(COLUMNS) + 1) + "|"]
    for family in families(ours):
        rows.append(f"| `{family.__name__}` | {' | '.join(cell(family, r) for r in COLUMNS)} |")
    return HEAD + "\n".join(rows) + "\n" + REFUSED + "\n".join(refusals(ours)) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
