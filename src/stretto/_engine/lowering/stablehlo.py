"""Programs to StableHLO text: the builder that is passed to primitives' ``lower`` rules.

Text is the fastest way into XLA: writing it takes less time than building MLIR operations through
Python bindings, and XLA parses it in C++. Source: the StableHLO specification.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CodeType, MappingProxyType
from typing import TYPE_CHECKING, Any

from stretto._engine import higher_order
from stretto._engine.core.position import Place, joined, line_at, lines_of
from stretto._engine.core.primitive import ORDERED
from stretto._engine.core.program import Program, form, literal_key
from stretto._engine.core.recorder import record
from stretto._engine.lowering.collectives import Collectives
from stretto._engine.lowering.text import TOKEN, Operand, Text, escape, identifier, tensor_type

if TYPE_CHECKING:
    from stretto._engine.core.shardings import Placement


class _Operands(dict[Any, Operand]):
    """The operand for each variable of a program; those of literals are made when first read."""

    __slots__ = ("literal",)

    def __init__(self, literal: Callable[[Any], Operand]) -> None:
        self.literal = literal

    def __missing__(self, atom: Any) -> Operand:
        return self.literal(atom)


class Builder(Collectives):
    """Writes programs, and the functions that they call."""

    def __init__(self, placement: Placement | None = None) -> None:
        super().__init__(placement)
        self._functions: dict[Any, tuple[str, Sequence[int]]] = {}
        self._bodies: list[str] = []
        self._places: dict[tuple[int, int], tuple[str, CodeType]] = {}
        self._names: dict[tuple[str, str], str] = {}
        # The source line of the equation being lowered, as it is written, and its named scopes.
        self._place = self._scope = ""

    def inline(self, fun: Callable[..., Any], *operands: Operand) -> Operand:
        """Trace a function of values, and write its operations here, applied to these operands."""
        return self.inline_many(lambda *xs: [fun(*xs)], *operands)[0]

    def inline_many(self, fun: Callable[..., Any], *operands: Operand) -> list[Operand]:
        """Do the same for a function with several results."""
        program, _, captured = record(lambda *xs: (fun(*xs), None), [x.type for x in operands])
        if captured:
            raise AssertionError(f"{fun} captured a value while being lowered")
        return self.program(program, operands, at_hand=True)

    def program(
        self, program: Program, operands: Sequence[Operand], at_hand: bool = False
    ) -> list[Operand]:
        """Write the equations of a program here; return its outputs.

        With ``at_hand`` they get the source line of the equation being lowered, not their own.
        """
        known = _Operands(self._literal)
        known.update(zip(program.inputs, operands, strict=True))
        read = known.__getitem__
        outer = self._outputs, self._place, self._scope, self._location
        before: Any = ()  # the place of the previous equation; most equations share it
        # In a function that is called, every operation has a name, which the compiler appends to
        # that of the call; elsewhere only operations in a named scope have one. Where there are
        # several devices, XLA keeps the lines of operations with names alone.
        always = self._in_function or self.partitioned
        for equation in program.equations:
            primitive, place, outputs = equation.primitive, equation.place, equation.outputs
            if place != before or self._scope or always:
                if not at_hand:
                    self._place = self._alias_of(place)
                self._scope = joined(outer[2], place[2]) if place else outer[2]
                named = self._scope or always
                self._location = self._located(joined(self._scope, primitive.name) if named else "")
                before = place
            self._outputs = outputs
            result = primitive.lower(self, *map(read, equation.inputs))
            if primitive.multiple:
                known.update(zip(outputs, result, strict=True))
            else:
                known[outputs[0]] = result
        self._outputs, self._place, self._scope, self._location = outer
        return [*map(read, program.outputs)]

    def _literal(self, atom: Any) -> Operand:
        """Return the constant for a literal."""
        key = literal_key(atom)
        operand = self._constants.get(key)
        if operand is None:
            operand = self._constants[key] = self.splat(atom.value, atom.type)
        return operand

    def call(
        self, program: Program, operands: Sequence[Operand], apart: bool = False
    ) -> list[Operand]:
        """Write a call of the function for this program, which is written once for all calls.

        Programs with the same name that do the same share a function, with the lines of the first.
        With ``apart`` the compiler must not inline the call, so it starts when all operands exist;
        but on GPUs, where XLA makes a kernel of each operation in such a function, it may.
        In a region of scalars the program is written in place of the call.
        """
        if self._scalars:
            return self.program(program, operands)
        key = program.name, form(program)
        if key not in self._functions:
            name = f"{identifier(program.name)}_{len(self._functions)}"
            self._functions[key] = name, ()
            outer, self._passed = self._passed, {}
            self._bodies.append(self._function(program, name, "private", {}))
            self._functions[key] = name, tuple(self._passed)
            self._passed = outer
        name, passed = self._functions[key]
        self._count += 1
        result = f"%{self._count}"
        ordered = ORDERED in program.effects
        inputs = [*(self._with_token(operands) if ordered else operands), *map(self._pass, passed)]
        outs = [*program.out_types, TOKEN] if ordered else program.out_types
        names = ", ".join(x.name for x in inputs)
        kinds = ", ".join(tensor_type(x.type) for x in inputs)
        bind = f"{result}:{len(outs)} = " if outs else ""
        kept = apart and self.platform == "cpu"
        attrs = ' {mhlo.frontend_attributes = {inlineable = "false"}}' if kept else ""
        if kept and self._may_be_in_loop:
            sizes = [t.size for t in (*[x.type for x in inputs], *outs) if t.kind != "complex"]
            self._facts.largest_call_in_loops = max(*sizes, self._facts.largest_call_in_loops, 0)
        self._lines.append(
            f"{bind}func.call @{name}({names}){attrs} : ({kinds}) -> "
            f"({', '.join(map(tensor_type, outs))})"
            f"{self._located(joined(self._scope, program.name))}"
        )
        results = [Operand(f"{result}#{i}", t) for i, t in enumerate(outs)]
        return self._without_token(results) if ordered else results

    # The frame

    def _function(
        self, program: Program, name: str, visibility: str, aliases: Mapping[int, int]
    ) -> str:
        outer = self._lines, self._constants, self._outputs, self._token
        outer_location = self._place, self._scope, self._location, self._in_function
        self._lines, self._constants, self._token = [], {}, None
        self._place = self._scope = self._location = ""
        self._in_function = visibility == "private"
        arguments = [Operand(f"%arg{i}", t) for i, t in enumerate(program.in_types)]
        ordered = ORDERED in program.effects
        if ordered and visibility == "private":
            self._token = Operand("%token", TOKEN)
        elif ordered:
            self._token = self.splat(0, TOKEN)
        parameters = arguments if visibility == "public" else self._with_token(arguments)
        results = self.program(program, arguments)
        if visibility == "private":
            results = self._with_token(results)
        notes = {i: [f"tf.aliasing_output = {k} : i32"] for i, k in aliases.items()}
        out_notes: Sequence[str] = ()
        if self._placement is not None and visibility == "public":
            for i, sharding in enumerate(self._placement.ins):
                notes.setdefault(i, []).extend(self.sharding_note(sharding, arguments[i].type))
            outs = zip(self._placement.outs, results, strict=True)
            out_notes = [_braced(self.sharding_note(sharding, r.type)) for sharding, r in outs]
        head = ", ".join(
            f"{a.name}: {tensor_type(a.type)}{_braced(notes.get(i, ()))}"
            for i, a in enumerate([*parameters, *self._passed.values()])
        )
        kinds = ", ".join([tensor_type(r.type) for r in results])
        names = ", ".join([r.name for r in results])
        end = f"return {names} : {kinds}" if results else "return"
        body = "\n".join([*self._lines, end])
        self._lines, self._constants, self._outputs, self._token = outer
        self._place, self._scope, self._location, self._in_function = outer_location
        if out_notes:
            kinds_of = zip(results, out_notes, strict=True)
            outputs = ", ".join([f"{tensor_type(r.type)}{note}" for r, note in kinds_of])
        else:
            outputs = kinds
        return f"func.func {visibility} @{name}({head}) -> ({outputs}) {{\n{body}\n}}"

    def _alias_of(self, place: Place | None) -> str:
        """Return the alias for a line of the user's source; empty if there is none."""
        if place is None:
            return ""
        code, offset, _ = place
        key = (id(code), offset)  # by id, since hashing a code object reads all of it
        entry = self._places.get(key)
        if entry is None:
            entry = self._places[key] = (f"#u{len(self._places)}", code)
        return entry[0]

    def _located(self, name: str) -> str:
        """Return the location to write after an operation here.

        ``name`` is empty if it has none.
        """
        if not name:
            return f" loc({self._place})" if self._place else ""
        key = (name, self._place)
        alias = self._names.setdefault(key, f"#n{len(self._names)}")
        return f" loc({alias})"

    def module(self, program: Program, aliases: Mapping[int, int]) -> Text:
        """Return the whole module, ``main`` first."""
        main = self._function(program, "main", "public", aliases)
        lines_of_user = []
        lines: dict[int, list[int]] = {}  # by code object: finding one line means finding all
        for (of_code, offset), (alias, code) in self._places.items():
            if of_code not in lines:
                lines[of_code] = lines_of(code)
            line = line_at(lines[of_code], offset)
            lines_of_user.append(f'{alias} = loc("{escape(code.co_filename)}":{line}:0)')
        names = [
            f'{alias} = loc("{escape(name)}"{place and f"({place})"})'
            for (name, place), alias in self._names.items()
        ]
        head = f"module @{identifier(program.name)}"
        declared: Sequence[str] = ()
        if self._placement is not None and self._meshes is not None and self.partitioned:
            count = len(self._placement.devices)
            head += (
                f" attributes {{mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : i32}}"
            )
            declared = self._meshes.written()
        self._facts.name = identifier(program.name)
        self._facts.may_take_long = higher_order.family.may_take_long(program)
        body = "\n".join([f"{head} {{", *declared, main, *self._bodies, "}\n"])
        return Text(
            body,
            "".join([f"{line}\n" for line in lines_of_user]),
            "".join([f"{line}\n" for line in names]),
            self._facts,
            tuple(self._calls),
            tuple([self._arrays[number] for number in self._passed]),
        )


def _braced(notes: Sequence[str]) -> str:
    """Attributes as they are written behind a type."""
    return f" {{{', '.join(notes)}}}" if notes else ""


def lower(
    program: Program,
    aliases: Mapping[int, int] = MappingProxyType({}),
    placement: Placement | None = None,
) -> Text:
    """Return the StableHLO text of a program.

    ``aliases`` maps inputs to outputs of the same type that may be put into their memory. With a
    ``placement`` the text is for its devices, and says where inputs and outputs are.
    """
    return Builder(placement).module(program, aliases)
