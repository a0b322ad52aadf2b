"""Programs: flat lists of typed equations in single-assignment form; printer, checker and forms.

Tracing gives a program; transformations, the planner and the lowering take and give programs. A
program is closed: whatever it needs from outside is among its inputs.

Two programs that perform the same operations have the same ``form``. Names, source positions and
the identity of variables do not count. Equal forms are one object, kept alive by the programs that
have it, so comparing two is an ``is``. The compilation cache (``xla/cache``) goes by forms, and
``passes/simplify`` by the keys of operations.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stretto._engine.core.caches import WeakTable
from stretto._engine.core.errors import ProgramError
from stretto._engine.core.lazy import shown
from stretto._engine.core.position import Place, Position
from stretto._engine.core.types import ArrayType

if TYPE_CHECKING:
    from stretto._engine.core.primitive import Primitive


class Var:
    """A variable: assigned once, by an input or an equation."""

    __slots__ = ("type",)

    def __init__(self, type: ArrayType) -> None:
        self.type = type


def repeated(element: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of this shape that repeats the one element of ``element``; not for writing.

    The same as ``np.broadcast_to`` of an array of rank 0, at a fifth of the cost.
    """
    return np.ndarray(shape, element.dtype, element, 0, (0,) * len(shape))


class Literal:
    """An array all of whose elements are one constant, written into the program."""

    __slots__ = ("type", "value")

    def __init__(self, value: Any, type: ArrayType) -> None:
        self.value = value
        self.type = type

    def array(self) -> np.ndarray:
        """Return the constant as an array that takes no memory."""
        return repeated(np.asarray(self.value, self.type.dtype), self.type.shape)


Atom: TypeAlias = Var | Literal


def is_number(a: Atom, value: float) -> bool:
    """Say whether an atom is a literal of this number; zeros of both signs are one."""
    return isinstance(a, Literal) and bool(a.value == value)


def as_literal(value: np.ndarray, type: ArrayType) -> Literal | None:
    """Return the literal for an array with no element or one, or one broadcast; otherwise None."""
    if not value.size:
        return Literal(np.zeros((), value.dtype)[()], type)
    if value.size == 1 or not any(value.strides):
        return Literal(value[(0,) * value.ndim], type)
    return None


class Equation:
    """One application of a primitive: ``outputs = primitive(inputs)``."""

    __slots__ = ("inputs", "outputs", "place", "primitive")

    def __init__(
        self,
        primitive: Primitive,
        inputs: Sequence[Atom],
        outputs: Sequence[Var],
        place: Place | None = None,
    ) -> None:
        self.primitive = primitive
        self.inputs = inputs
        self.outputs = outputs
        self.place = place

    @property
    def position(self) -> Position | None:
        """Say where it was called, with names."""
        return None if self.place is None else Position(*self.place)


@shown("stretto._engine.core.cards", "program_card")
class Program:
    """Inputs, equations in order, and outputs; compared and hashed as an object, never changed."""

    __slots__ = ("__weakref__", "cache", "equations", "inputs", "name", "outputs")

    def __init__(
        self,
        inputs: Iterable[Var],
        equations: Iterable[Equation],
        outputs: Iterable[Atom],
        name: str = "main",
    ) -> None:
        self.inputs = tuple(inputs)
        self.equations = tuple(equations)
        self.outputs = tuple(outputs)
        self.name = name
        # What was derived from this program, such as its derivative or its compiled form, by a key.
        self.cache: dict[Any, Any] = {}

    @property
    def in_types(self) -> tuple[ArrayType, ...]:
        """The types of the inputs."""
        return tuple(v.type for v in self.inputs)

    @property
    def out_types(self) -> tuple[ArrayType, ...]:
        """The types of the outputs."""
        return tuple(v.type for v in self.outputs)

    @property
    def effects(self) -> frozenset[Any]:
        """The effects of all equations."""
        result = self.cache.get("effects")
        if result is None:
            parts = [p.effects for p in {e.primitive for e in self.equations}]
            result = self.cache["effects"] = frozenset().union(*parts)
        return result

    @property
    def work(self) -> float:
        """An estimate of the time that running it takes; see ``Primitive.work``."""
        result = self.cache.get("work")
        if result is None:
            result = self.cache["work"] = float(
                sum(
                    e.primitive.work(
                        [a.type.least for a in e.inputs], [v.type.least for v in e.outputs]
                    )
                    for e in self.equations
                )
            )
        return result

    def __str__(self) -> str:
        lines = lines_of(self)
        return "\n".join([f"{'  ' * depth}{a}{name}{b}" for depth, a, name, b in lines])

    def __repr__(self) -> str:
        return f"<Program {self.name}: {len(self.equations)} equations>"


# Printing


def _names() -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    for size in itertools.count(1):
        for chars in itertools.product(letters, repeat=size):
            yield "".join(chars)


def lines_of(program: Program, depth: int = 0) -> Iterator[tuple[int, str, str, str]]:
    """Yield printed lines: their depth, and what is before, in and after an operation's name."""
    names = _names()
    name_of: dict[Var, str] = {}

    def declare(v: Var) -> str:
        name_of[v] = next(names)
        return f"{name_of[v]}:{v.type.short()}"

    def use(atom: Atom) -> str:
        if isinstance(atom, Literal):
            text = str(np.asarray(atom.value))
            return text if atom.type.ndim == 0 else f"{text}:{atom.type.short()}"
        return name_of.get(atom, "?")

    inputs = ", ".join(declare(v) for v in program.inputs)
    yield depth, f"{{ {program.name}({inputs})", "", ""
    for equation in program.equations:
        plain, nested = [], []
        for key, value in equation.primitive.parameters():
            if isinstance(value, Program):
                nested.append((key, value))
            elif isinstance(value, tuple) and value and isinstance(value[0], Program):
                nested.extend((f"{key}[{i}]", p) for i, p in enumerate(value))
            else:
                plain.append(f"{key}={value}")
        inputs = "".join([f" {use(atom)}" for atom in equation.inputs])
        settings = f" [{', '.join(plain)}]" if plain else ""
        outputs = ", ".join(declare(v) for v in equation.outputs)
        bind = f"{outputs} = " if outputs else ""
        yield depth + 1, bind, equation.primitive.name, f"{inputs}{settings}"
        for key, value in nested:
            yield depth + 2, f"{key}:", "", ""
            yield from lines_of(value, depth + 3)
    yield depth + 1, f"return {', '.join(map(use, program.outputs))} }}", "", ""


# Checking


def check(program: Program) -> None:
    """Check that each variable is assigned once, before its uses, and has the inferred type.

    Raises ``ProgramError``, which names the equation at fault.
    """
    known: set[Var] = set()

    def assign(v: Var, where: str) -> None:
        if v in known:
            raise ProgramError(f"{program.name}: a variable is assigned twice, in {where}")
        known.add(v)

    for v in program.inputs:
        assign(v, "the inputs")
    for n, equation in enumerate(program.equations):
        where = f"equation {n} ({equation.primitive.name})"
        for atom in equation.inputs:
            if isinstance(atom, Var) and atom not in known:
                raise ProgramError(f"{program.name}: {where} reads a variable not yet assigned")
        expected = equation.primitive.out_types(tuple(a.type for a in equation.inputs))
        got = tuple(v.type for v in equation.outputs)
        if expected != got:
            raise ProgramError(f"{program.name}: {where} has outputs {got}, inferred {expected}")
        for v in equation.outputs:
            assign(v, where)
        for _, value in equation.primitive.parameters():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, Program):
                    check(inner)
    for atom in program.outputs:
        if isinstance(atom, Var) and atom not in known:
            raise ProgramError(f"{program.name}: an output is never assigned")


def literal(value: complex, type: ArrayType) -> Literal:
    """Return the literal of this type all of whose elements are ``value``."""
    return Literal(np.asarray(value).astype(type.dtype)[()], type)


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
    """Return operations and atoms in order, each variable as its number in order of assignment."""
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
