"""How an imported module is called: its arguments by position and by name, and its results.

An exported program knows the leaves of the arguments it was traced with. A ``Signature`` finds them
in a later call, and refuses one that does not fit. Next, read ``module``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import kind_of
from stretto._engine.ops.convert import convert
from stretto.torch.graph import Input, TensorType
from stretto.torch.run import dtype_of
from stretto.torch.structure import Structure

__all__ = ["Argument", "Signature"]

_RANKS = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}
"""Kinds of dtypes, each of which holds the values of those before."""


@dataclasses.dataclass(frozen=True, slots=True)
class Argument:
    """An argument of the example.

    Args:
        name: its name in ``forward``.
        structure: how it is nested.
        constants: for each leaf what it was, if that is part of the program (a flag, None, a
            number), in a tuple of one; an empty tuple for a leaf that is an input.
    """

    name: str
    structure: Structure
    constants: tuple[tuple[Any, ...], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """How a program is called.

    Args:
        names: the names of positional parameters of ``forward``, in order.
        rest: the name of its ``*args``; empty if it has none.
        defaults: names and values of the parameters of which a value is known that changes nothing.
        arguments: those of the example.
        results: how the results are nested.
    """

    names: tuple[str, ...]
    rest: str
    defaults: tuple[tuple[str, Any], ...]
    arguments: tuple[Argument, ...]
    results: Structure

    def leaves(
        self, caller: str, inputs: Sequence[Input], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[Any]:
        """The values of the inputs in a call with these arguments.

        Raises:
            TypeError: an argument is missing, unknown, given twice, nested otherwise, or no array.
            ValueError: one is not what it was in the example where that is part of the program, or
                has another shape.
        """
        given = self._by_name(caller, args, kwargs)
        values: list[Any] = []
        expected = iter(inputs)
        for argument in self.arguments:
            if argument.name not in given:
                if not all(argument.constants):
                    raise TypeError(f"{caller}: the argument {argument.name} is missing")
                continue
            value = given.pop(argument.name)
            parts = argument.structure.taken(value, f"{caller}: {argument.name}")
            for (what, leaf), constant in zip(parts, argument.constants, strict=True):
                if constant:
                    _check_constant(what, leaf, constant[0])
                else:
                    values.append(_as_input(what, leaf, next(expected)))
        known = dict(self.defaults)
        for name, value in given.items():
            if name not in known or not _same(value, known[name]):
                raise TypeError(
                    f"{caller}: the program was exported without the argument {name}: import the "
                    f"module anew with an example that has it"
                )
        _check_sizes(caller, inputs, values)
        return values

    def _by_name(
        self, caller: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        names = list(self.names[: len(args)])
        if len(args) > len(self.names):
            if not self.rest:
                raise TypeError(
                    f"{caller} takes at most {len(self.names)} arguments by position, "
                    f"{', '.join(self.names)}; got {len(args)}"
                )
            names += [f"{self.rest}[{k}]" for k in range(len(args) - len(self.names))]
        twice = [name for name in names if name in kwargs]
        if twice:
            raise TypeError(f"{caller}: the argument {twice[0]} is given by position and by name")
        return {**dict(zip(names, args, strict=True)), **kwargs}

    def to_json(self) -> dict[str, Any]:
        """The signature in terms of JSON."""
        return {
            "names": list(self.names),
            "rest": self.rest,
            "defaults": [list(pair) for pair in self.defaults],
            "arguments": [
                [a.name, a.structure.to_json(), [list(c) for c in a.constants]]
                for a in self.arguments
            ],
            "results": self.results.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Signature:
        """The signature that ``to_json`` gave this for.

        Raises:
            ValueError: it is not of that form.
        """
        try:
            arguments = []
            for name, nested, constants in data["arguments"]:
                structure = Structure.from_json(nested)
                if len(constants) != structure.size:
                    raise ValueError(f"the argument {name} has not as many leaves as constants")
                arguments.append(Argument(str(name), structure, tuple(map(tuple, constants))))
            return cls(
                tuple(map(str, data["names"])),
                str(data["rest"]),
                tuple([(str(name), value) for name, value in data["defaults"]]),
                tuple(arguments),
                Structure.from_json(data["results"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not a signature that was written here: {error!r}") from error


def _same(x: Any, y: Any) -> bool:
    """Whether two values that are part of a program are the same; arrays are not."""
    return not isinstance(x, (Value, np.ndarray)) and type(x) is type(y) and bool(x == y)


def _check_constant(what: str, given: Any, constant: Any) -> None:
    if not _same(given, constant):
        raise ValueError(
            f"{what} is part of the program: it was {constant!r} in the example that the module "
            f"was imported with, and is {given!r} now; import the module anew with that"
        )


def _as_input(what: str, leaf: Any, wanted: Input) -> Any:
    if wanted.type is None:
        return leaf
    if leaf is None or isinstance(leaf, str):
        raise TypeError(f"{what}: expected an array, got {leaf!r}")
    value = as_value(leaf, what.partition(":")[0], what.partition(": ")[2])
    shape = wanted.type.shape
    fits = len(shape) == value.ndim and all(
        [not isinstance(n, int) or n == m for n, m in zip(shape, value.shape, strict=True)]
    )
    if not fits:
        sizes = ", ".join([str(n) if isinstance(n, int) else "any" for n in shape])
        raise ValueError(
            f"{what}: expected the shape ({sizes}), got {value.shape}. The program was exported "
            f"for these sizes: import the module anew with another example, of two or more along "
            f"axes that are to be of any size"
        )
    return _of_kind(what, value, dtype_of(wanted.type.dtype))


def _of_kind(what: str, value: Any, dtype: np.dtype) -> Any:
    """The argument in the program's dtype.

    The program's operations have the dtypes that the example led to, so what such a dtype cannot
    hold would be lost on the way: fractions among integers, imaginary parts among real numbers.
    """
    if _RANKS[kind_of(value.dtype)] > _RANKS[kind_of(dtype)]:
        raise TypeError(
            f"{what}: expected {dtype}, as in the example that the module was imported with, got "
            f"{value.dtype}: convert it, or import the module anew with such an example"
        )
    return value if value.dtype == dtype else convert(value, dtype)


def _check_sizes(caller: str, inputs: Sequence[Input], values: Sequence[Any]) -> None:
    """Sizes of one name are equal."""
    found: dict[str, tuple[int, str]] = {}
    for name, n, what in _named_sizes(inputs, values):
        first, where = found.setdefault(name, (n, what))
        if first != n:
            raise ValueError(
                f"{caller}: {what} has size {n}, and {where} size {first}: they must be equal"
            )


def _named_sizes(inputs: Sequence[Input], values: Sequence[Any]) -> Iterator[tuple[str, int, str]]:
    for wanted, value in zip(inputs, values, strict=True):
        if isinstance(wanted.type, TensorType):
            for axis, name in enumerate(wanted.type.shape):
                if isinstance(name, str):
                    yield name, value.shape[axis], f"axis {axis} of {wanted.name}"
