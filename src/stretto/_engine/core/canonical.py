"""Canonical forms: two programs that perform the same operations have the same form.

Names, source positions and the identity of variables do not count. Equal forms are one object, kept
alive by the programs that have it, so comparing two is an ``is``. The compilation cache
(``xla/cache``) goes by forms, and ``passes/simplify`` by the keys of operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.program import Atom, Literal, Program
from stretto._engine.core.weak import WeakTable


class Form:
    """Hold what a program does; equal programs have the same object."""

    __slots__ = ("__weakref__",)


_FORMS: WeakTable[Form] = WeakTable()


def form(program: Program) -> Form:
    """Return the program's form, computed once."""
    result = program.cache.get("form")
    if result is None:
        result = program.cache["form"] = _FORMS.keep(_description(program), Form())
    return result


def literal_key(literal: Literal) -> tuple[Any, ...]:
    """Return what equal literals have in common: the type, and an element of the same bits."""
    type, value = literal.type, literal.value
    # Zeros of both signs compare equal, and NaN is unequal to itself: there the bits decide. They
    # are not used throughout because taking them is some ten times slower.
    if not value or value != value or type.kind == "complex":  # noqa: PLR0124
        value = value.tobytes()
    return type, value


def operation_key(primitive: Any) -> Any:
    """Return what operations that compile to the same have in common.

    It is the primitive itself; for one that holds programs, its class and parameters, with forms
    in place of the programs. Users' own derivative rules do not count.
    """
    if not primitive.holds_programs:
        return primitive
    return type(primitive), *[_value_key(value) for _, value in primitive.parameters()]


def _value_key(value: Any) -> Any:
    if isinstance(value, Program):
        return form(value)
    return tuple(map(_value_key, value)) if isinstance(value, tuple) else value


def _description(program: Program) -> tuple[Any, ...]:
    """Operations and atoms in order, each variable as its number in the order of assignment."""
    number: dict[Atom, int] = {v: i for i, v in enumerate(program.inputs)}
    parts: list[Any] = [program.in_types]

    def add(atoms: Sequence[Atom]) -> None:
        for a in atoms:
            n = number.get(a)
            parts.append(literal_key(a) if n is None else n)  # type: ignore[arg-type]

    for equation in program.equations:
        parts.append(operation_key(equation.primitive))
        add(equation.inputs)
        for v in equation.outputs:
            number[v] = len(number)
    parts.append(None)
    add(program.outputs)
    return tuple(parts)
