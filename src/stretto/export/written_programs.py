"""Typed programs as JSON, and back: tables of types, operations and programs, each written once.

A program's equations are lists of numbers: of the operation in its table, of the variables that it
reads, and of the types of those that it assigns. Variables are numbered in the order of assignment,
so that each is assigned once and before it is read, whatever a file says. A program holds only
programs before it in the table, so that none holds itself.

What is read is checked: operations by a list of names, parameters by the annotations of their
fields (``parameters``), and the type of each result is the one that the operation infers. Nothing
is run.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.errors import ExportError, SizeError
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.program import Atom, Equation, Literal, Program, Var
from stretto._engine.core.size_guards import Guard, known_sizes
from stretto._engine.core.sizes import SizeVariable, is_size, size_of
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.ops.iota import Held
from stretto.export import operations, parameters
from stretto.export.operands import check_operands
from stretto.files.names import Damaged

_MOST_OPERATIONS = 20_000_000
"""The most operations of a program, with those of all programs that it calls, written out."""
_DEEPEST = 100
"""The most programs inside of each other."""
_HIGHEST_RANK = 64
_LARGEST = 1 << 62


class Writer:
    """The tables of a file while programs are written to it."""

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self.arrays: list[np.ndarray] = []
        """The constants of all programs, which are tensors of the file."""
        self._types: dict[ArrayType, int] = {}
        self._variables: dict[SizeVariable, int] = {}
        self._operations: dict[Any, int] = {}
        self._programs: dict[Program, int] = {}
        self._constants: dict[tuple[ArrayType, bytes], int] = {}
        self._record: dict[str, list[Any]] = {
            "variables": [], "types": [], "constants": [], "operations": [], "programs": []
        }  # fmt: skip

    def tables(self) -> dict[str, Any]:
        """Return what was written, as JSON."""
        return self._record

    def variable(self, v: SizeVariable) -> int:
        """Return the number of a size that varies."""
        if v not in self._variables:
            most = None if math.isinf(v.most) else int(v.most)
            name = parameters.to_data(v.name, str, self)
            self._record["variables"].append([name, v.least, most])
            self._variables[v] = len(self._variables)
        return self._variables[v]

    def type(self, type: ArrayType) -> int:
        """Return the number of a type."""
        if type not in self._types:
            shape = [parameters.size_data(n, self) for n in type.shape]
            self._record["types"].append([type.dtype.name, type.weak_type, shape])
            self._types[type] = len(self._types)
        return self._types[type]

    def constant(self, held: Held) -> int:
        """Return the number of an array; equal ones have one."""
        array = np.ascontiguousarray(held.array).reshape(held.array.shape)
        key = held.type, array.tobytes()
        if key not in self._constants:
            self._record["constants"].append(self.type(held.type))
            self._constants[key] = len(self.arrays)
            self.arrays.append(array)
        return self._constants[key]

    def guard(self, guard: Guard) -> Any:
        """Return a comparison of sizes as JSON."""
        return [parameters.size_data(guard.size, self), guard.less_than, guard.holds]

    def program(self, program: Program) -> int:
        """Return the number of a program."""
        known = self._programs.get(program)
        if known is not None:
            return known
        numbers: dict[Atom, int] = {v: i for i, v in enumerate(program.inputs)}
        equations = []
        for e in program.equations:
            operation = self._operation(e)
            reads = [self._atom(a, numbers) for a in e.inputs]
            equations.append([operation, reads, [self.type(v.type) for v in e.outputs]])
            for v in e.outputs:
                numbers[v] = len(numbers)
        inputs = [self.type(v.type) for v in program.inputs]
        outputs = [self._atom(a, numbers) for a in program.outputs]
        name = parameters.to_data(program.name, str, self)
        self._record["programs"].append([name, inputs, equations, outputs])
        self._programs[program] = len(self._programs)
        return self._programs[program]

    def _atom(self, atom: Atom, numbers: Mapping[Atom, int]) -> Any:
        if isinstance(atom, Literal):
            element = np.asarray(atom.value, atom.type.dtype)
            return [self.type(atom.type), element.tobytes().hex()]
        return numbers[atom]

    def _operation(self, e: Equation) -> int:
        operation = e.primitive
        known = self._operations.get(operation)
        if known is not None:
            return known
        name = operation.name
        if name not in operations.HOMES or operations.class_of(name) is not type(operation):
            why = operations.REFUSED.get(name, "it is an operation of your own, which no file has")
            at = "" if e.position is None else f" at {e.position}"
            raise ExportError(f"{self.caller}: {name}{at}: {why}")
        hints = operations.parameters_of(type(operation))
        data = {
            key: parameters.to_data(getattr(operation, key), h, self) for key, h in hints.items()
        }
        self._record["operations"].append([name, data])
        self._operations[operation] = len(self._operations)
        return self._operations[operation]


class Reader:
    """The tables of a file, checked as they are read. Raises ``Damaged``.

    With ``sizes`` these take the place of the sizes that vary: the programs are for those.
    """

    def __init__(
        self,
        record: Any,
        arrays: Sequence[np.ndarray],
        sizes: Mapping[SizeVariable, Any] | None = None,
    ) -> None:
        self._arrays = arrays
        self._declared: list[SizeVariable] = []
        self._variables: list[Any] = []
        self._types: list[ArrayType] = []
        self._constants: list[Held] = []
        self._operations: list[Any] = []
        self._programs: list[Program] = []
        self._weights: list[tuple[int, int]] = []
        """How many operations each program has, with those that it calls; and how deep it goes."""
        self._inside: list[int] = []
        self._ready: dict[int, tuple[Primitive, list[int]]] = {}
        tables = {key: self._table(record, key) for key in (
            "variables", "types", "constants", "operations", "programs")}  # fmt: skip
        for n, data in enumerate(tables["variables"]):
            self._add("size", n, self._variable, data, sizes or {})
        if len(tables["constants"]) != len(arrays):
            raise Damaged(f"it has {len(arrays)} constants, and describes others")
        self.examples = {
            self.declared(v): parameters.whole(n, 0)
            for v, n in map(_pair, self._table(record, "sizes"))
        }
        """The sizes of the examples."""
        self._waiting = tables["operations"]
        # What an operation asks of sizes is decided by those of the examples, as it was then.
        known = known_sizes([self.examples]) if sizes is None else contextlib.nullcontext([])
        with known as self.found:
            for n, data in enumerate(tables["types"]):
                self._add("type", n, self._type, data)
            for n, data in enumerate(tables["constants"]):
                self._add("constant", n, self._constant, data, n)
            for n, data in enumerate(tables["programs"]):
                self._add("program", n, self._program, data)

    @staticmethod
    def _table(record: Any, key: str) -> list[Any]:
        table = record.get(key) if isinstance(record, dict) else None
        if not isinstance(table, list):
            raise Damaged(f"it has no table of {key}")
        return table

    @staticmethod
    def _add(what: str, n: int, read: Any, *data: Any) -> None:
        try:
            read(*data)
        except Exception as error:  # the rules of operations raise anything for odd parameters
            raise Damaged(f"{what} {n} is damaged: {_words(error)}") from None

    # What parameters ask for.

    def variable(self, data: Any) -> Any:
        """Return the size that a number stands for."""
        return self._variables[parameters.whole(data, 0, len(self._variables) - 1)]

    def declared(self, data: Any) -> SizeVariable:
        """Return the variable of a number."""
        return self._declared[parameters.whole(data, 0, len(self._declared) - 1)]

    def type(self, data: Any) -> ArrayType:
        """Return the type of a number."""
        return self._types[parameters.whole(data, 0, len(self._types) - 1)]

    def constant(self, data: Any) -> Held:
        """Return the array of a number."""
        return self._constants[parameters.whole(data, 0, len(self._constants) - 1)]

    def program(self, data: Any) -> Program:
        """Return the program of a number, of those that were read."""
        number = parameters.whole(data, 0, len(self._programs) - 1)
        self._inside.append(number)
        return self._programs[number]

    def guard(self, data: Any) -> Guard:
        """Return a comparison of sizes."""
        size, less_than, holds = _three(data)
        n = parameters.size(size, self)
        return Guard(n, parameters.whole(less_than), parameters.flag(holds))

    # The tables.

    def _variable(self, data: Any, sizes: Mapping[SizeVariable, Any]) -> None:
        name, least, most = _three(data)
        low = parameters.whole(least, 0)
        high = math.inf if most is None else parameters.whole(most, low)
        variable = SizeVariable(parameters.text(name), low, high)
        self._declared.append(variable)
        self._variables.append(sizes.get(variable, size_of(variable)))

    def _type(self, data: Any) -> None:
        dtype, weak, shape = _three(data)
        if not isinstance(shape, list) or len(shape) > _HIGHEST_RANK:
            raise Damaged(f"a shape is no list of at most {_HIGHEST_RANK} sizes")
        dims = tuple([parameters.size(n, self) for n in shape])
        known = [n for n in dims if not is_size(n)]
        if any([n < 0 for n in known]) or math.prod([max(n, 1) for n in known]) > _LARGEST:
            raise Damaged("no array has this shape")
        self._types.append(array_type(dims, parameters.dtype(dtype), parameters.flag(weak)))

    def _constant(self, data: Any, n: int) -> None:
        type, array = self.type(data), self._arrays[n]
        if array.shape != type.shape or array.dtype != type.dtype:
            raise Damaged(f"it is {array.dtype.name}{list(array.shape)}, and described as {type}")
        self._constants.append(Held(array, type))

    def _operation(self, data: Any) -> tuple[Primitive, list[int]]:
        """Return the operation of a number, and the numbers of the programs in it."""
        number = parameters.whole(data, 0, len(self._waiting) - 1)
        if number in self._ready:
            return self._ready[number]
        entry = self._waiting[number]
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[1], dict):
            raise Damaged(f"operation {number} has no name with parameters")
        written: str = parameters.text(entry[0])
        name: str = operations.FORMER.get(written, written)
        cls = operations.class_of(name)
        if cls is None:
            raise Damaged(f"there is no operation {name!r} that files may have")
        hints = operations.parameters_of(cls)
        self._inside = []
        given = {}
        for former, value in entry[1].items():
            key = operations.FORMER_PARAMETERS.get((name, former), former)
            if key not in hints:
                raise Damaged(f"{name} has no parameter {key!r}"[:200])
            try:
                given[key] = parameters.from_data(value, hints[key], self)
            except Damaged as error:
                raise Damaged(f"{name}, {key}: {error}") from None
        operation = cls(**given)
        self._ready[number] = operation, self._inside
        return self._ready[number]

    def _program(self, data: Any) -> None:
        if not isinstance(data, list) or len(data) != 4:
            raise Damaged("it has no name, inputs, equations and outputs")
        name, inputs, equations, outputs = data
        if not all([isinstance(part, list) for part in (inputs, equations, outputs)]):
            raise Damaged("its inputs, equations and outputs are no lists")
        own = [Var(self.type(n)) for n in inputs]
        known: list[Atom] = list(own)
        made: list[Equation] = []
        weight, depth = 0, 0
        for n, entry in enumerate(equations):
            where = f"equation {n}"
            try:
                operation, reads, types = _three(entry)
                primitive, inside = self._operation(operation)
                where = f"equation {n} ({primitive.name})"
                atoms = [self._atom(a, known) for a in _list(reads)]
                results = [Var(self.type(t)) for t in _list(types)]
                _check_types(primitive, atoms, results)
            except Exception as error:
                raise Damaged(f"{where}: {_words(error)}") from None
            weight += 1 + sum([self._weights[i][0] for i in inside])
            depth = max([depth, *[self._weights[i][1] + 1 for i in inside]])
            if weight > _MOST_OPERATIONS or depth > _DEEPEST:
                raise Damaged("its programs call each other too often, or too deeply")
            made.append(Equation(primitive, atoms, results))
            known.extend(results)
        out = [self._atom(a, known) for a in outputs]
        self._programs.append(Program(own, made, out, parameters.text(name)))
        self._weights.append((weight, depth))

    def _atom(self, data: Any, known: Sequence[Atom]) -> Atom:
        if isinstance(data, list):
            number, digits = data if len(data) == 2 else (None, None)
            type, bits = self.type(number), parameters.octets(digits)
            if len(bits) != type.dtype.itemsize:
                raise Damaged(f"a literal of {type} has {len(bits)} bytes")
            if type.dtype == bool and bits not in (b"\0", b"\1"):
                raise Damaged("a literal is a boolean, and neither 0 nor 1")
            return Literal(np.frombuffer(bits, type.dtype)[0], type)
        return known[parameters.whole(data, 0, len(known) - 1)]


def _check_types(primitive: Primitive, atoms: Sequence[Atom], results: Sequence[Var]) -> None:
    """Raise unless operands and results have the types that the operation takes and infers."""
    types = tuple([v.type for v in results])
    check_operands(primitive, [a.type for a in atoms])
    try:
        inferred = primitive.out_types(tuple([a.type for a in atoms]))
    except SizeError:
        # It depends on sizes that are known where the program is called, and is asked again there.
        if not any([t.varies for t in types]):
            raise
        return
    if types != tuple(inferred):
        raise Damaged(f"it has results {list(types)}, inferred {list(inferred)}")


def _pair(data: Any) -> Any:
    if data.__class__ is not list or len(data) != 2:
        raise Damaged("expected two entries")
    return data


def _three(data: Any) -> Any:
    if data.__class__ is not list or len(data) != 3:
        raise Damaged("expected three entries")
    return data


def _list(data: Any) -> list[Any]:
    if data.__class__ is not list:
        raise Damaged("expected a list")
    return data


def _words(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text if len(text) <= 400 else f"{text[:397]}..."
