"""Canonical forms: programs that do the same, operation by operation, have one form.

Layer 1 (core). Names, positions and which objects the variables are do not count. Forms are kept as
long as a program that has them, so that ``is`` compares them, in no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.program import Atom, Literal, Program
from stretto._engine.core.weak import WeakTable

__all__ = ["Form", "form", "literal_key", "operation_key"]


class Form:
    """What a program does; equal programs have the same object."""

    __slots__ = ("__weakref__",)


_FORMS: WeakTable[Form] = WeakTable()


def form(program: Program) -> Form:
    """The program's form, found once."""
    found = program.cache.get("form")
    if found is None:
        found = program.cache["form"] = _FORMS.keep(_described(program), Form())
    return found


def literal_key(literal: Literal) -> tuple[Any, ...]:
    """What equal literals have in common: the type, and an element of the same bits."""
    type, value = literal.type, literal.value
    # Where equal numbers may differ in bits (zeros), or the same ones are unequal (NaN).
    if not value or value != value or type.kind == "complex":  # noqa: PLR0124
        value = value.tobytes()  # some ten times as long
    return type, value


def operation_key(primitive: Any) -> Any:
    """What operations that compile to the same have in common.

    It is the primitive itself, but for those that hold programs: forms stand for these. Rules of
    the user's own are no part of it.
    """
    if not primitive.holds_programs:
        return primitive
    return type(primitive), *[_value_key(value) for _, value in primitive.parameters()]


def _value_key(value: Any) -> Any:
    if isinstance(value, Program):
        return form(value)
    return tuple(map(_value_key, value)) if isinstance(value, tuple) else value


def _described(program: Program) -> tuple[Any, ...]:
    """Operations and atoms in order, a variable as the number at which it was assigned."""
    number: dict[Atom, int] = {v: i for i, v in enumerate(program.inputs)}
    parts: list[Any] = [program.in_types]

    def add(atoms: Sequence[Atom]) -> None:
        for a in atoms:
            at = number.get(a)
            parts.append(literal_key(a) if at is None else at)  # type: ignore[arg-type]

    for equation in program.equations:
        parts.append(operation_key(equation.primitive))
        add(equation.inputs)
        for v in equation.outputs:
            number[v] = len(number)
    parts.append(None)
    add(program.outputs)
    return tuple(parts)
