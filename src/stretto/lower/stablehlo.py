"""Programs to StableHLO text: the builder that primitives' ``lower`` rules write with.

Layer 5 (lower). Text is the fast way in: emitting it costs less than building an operation tree
through bindings, and jaxlib parses it in C++. Source: the StableHLO specification. Next, read
``runtime/pjrt``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto.core.program import Atom, Literal, Program, Var
from stretto.core.recorder import record
from stretto.core.types import ArrayType, array_type, kind_of, real_dtype

__all__ = ["Builder", "Operand", "element_type", "lower"]

_ELEMENT = {
    "bool": "i1",
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    **{f"int{n}": f"i{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{f"uint{n}": f"ui{n}" for n in (2, 4, 8, 16, 32, 64)},
}
_TENSORS: dict[ArrayType, str] = {}


def element_type(dtype: np.dtype) -> str:
    """The MLIR element type: ``f32``, ``i1``, ``f8E4M3FN``."""
    name = dtype.name
    return _ELEMENT.get(name) or "f8" + name.removeprefix("float8_").upper()


def tensor_type(type: ArrayType) -> str:
    """The MLIR tensor type: ``tensor<2x3xf32>``."""
    found = _TENSORS.get(type)
    if found is None:
        found = "tensor<" + "".join(f"{n}x" for n in type.shape) + element_type(type.dtype) + ">"
        _TENSORS[type] = found
    return found


@functools.lru_cache(4096)
def _signature(types: tuple[ArrayType, ...], out: ArrayType) -> str:
    """The function type of an operation with one result."""
    return f"({', '.join(map(tensor_type, types))}) -> {tensor_type(out)}"


class Operand:
    """An SSA value in the text: its name and type."""

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: ArrayType) -> None:
        self.name = name
        self.type = type


def _element(value: Any, dtype: np.dtype) -> str:
    """A constant's element, exactly."""
    kind = kind_of(dtype)
    if kind == "bool":
        return "true" if value else "false"
    if kind in ("int", "uint"):
        return str(int(value))
    if kind == "complex":
        part = real_dtype(dtype)
        return f"({_element(value.real, part)}, {_element(value.imag, part)})"
    x = np.asarray(value, dtype)
    number = float(x)
    if number - number == 0:  # finite
        text = repr(number)
        return text if "." in text and "e" not in text else f"{number:.17e}"
    bits = x.view(f"u{dtype.itemsize}")
    return f"0x{int(bits):0{dtype.itemsize * 2}X}"


class Builder:
    """Writes StableHLO: one ``emit`` an operation, and helpers for the forms with regions."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._functions: dict[Program, str] = {}
        self._bodies: list[str] = []
        self._constants: dict[tuple[str, str], Operand] = {}
        self._locations: dict[tuple[int, int], tuple[str, Any]] = {}
        self._count = 0
        self._location = ""
        self._outs: tuple[ArrayType, ...] = ()

    # What rules use

    def emit(
        self,
        op: str,
        *operands: Operand,
        attributes: str = "",
        out: ArrayType | None = None,
        dialect: str = "stablehlo",
    ) -> Operand:
        """One operation with one result, by default of the type that the equation was inferred."""
        type = self._outs[0] if out is None else out
        self._count += 1
        name = f"%{self._count}"
        names = ", ".join([x.name for x in operands])
        signature = _signature(tuple([x.type for x in operands]), type)
        attrs = f" {{{attributes}}}" if attributes else ""
        self._lines.append(
            f'{name} = "{dialect}.{op}"({names}){attrs} : {signature}{self._location}'
        )
        return Operand(name, type)

    def emit_many(
        self,
        op: str,
        operands: Sequence[Operand],
        outs: Sequence[ArrayType],
        attributes: str = "",
        regions: Sequence[str] = (),
        dialect: str = "stablehlo",
    ) -> list[Operand]:
        """One operation with several results and regions, in generic form."""
        self._count += 1
        name = f"%{self._count}"
        names = ", ".join(x.name for x in operands)
        kinds = ", ".join(tensor_type(x.type) for x in operands)
        results = ", ".join(map(tensor_type, outs))
        attrs = f" {{{attributes}}}" if attributes else ""
        inner = f" ({', '.join(regions)})" if regions else ""
        bind = f"{name}:{len(outs)} = " if outs else ""
        self._lines.append(
            f'{bind}"{dialect}.{op}"({names}){inner}{attrs} : ({kinds}) -> ({results})'
            f"{self._location}"
        )
        if len(outs) == 1:
            return [Operand(f"{name}#0", outs[0])]
        return [Operand(f"{name}#{i}", t) for i, t in enumerate(outs)]

    def region(self, types: Sequence[ArrayType], body: Callable[..., Sequence[Operand]]) -> str:
        """A region with block arguments of these types; ``body`` writes it, and gives results."""
        outer_lines, outer_constants = self._lines, self._constants
        outer_outs = self._outs
        self._lines, self._constants = [], {}
        arguments = []
        for t in types:
            self._count += 1
            arguments.append(Operand(f"%a{self._count}", t))
        results = body(*arguments)
        head = ", ".join(f"{a.name}: {tensor_type(a.type)}" for a in arguments)
        names = ", ".join(r.name for r in results)
        kinds = ", ".join(tensor_type(r.type) for r in results)
        block = f"^bb0({head}):\n" if types else ""
        end = f"stablehlo.return {names} : {kinds}" if results else "stablehlo.return"
        text = "{\n" + block + "\n".join([*self._lines, end]) + "\n}"
        self._lines, self._constants = outer_lines, outer_constants
        self._outs = outer_outs
        return text

    def splat(self, element: Any, type: ArrayType) -> Operand:
        """A constant of this type, all of whose elements are one."""
        key = (_element(element, type.dtype), tensor_type(type))
        found = self._constants.get(key)
        if found is None:
            self._count += 1
            name = f"%{self._count}"
            self._lines.append(f"{name} = stablehlo.constant dense<{key[0]}> : {key[1]}")
            found = self._constants[key] = Operand(name, type)
        return Operand(found.name, type)

    def scalar(self, element: Any, dtype: np.dtype) -> Operand:
        """A constant of rank 0."""
        return self.splat(element, array_type((), dtype))

    def array(self, values: np.ndarray) -> Operand:
        """A constant, element by element."""
        self._count += 1
        type = array_type(values.shape, values.dtype)

        def nested(x: np.ndarray) -> str:
            return (
                f"[{', '.join([nested(row) for row in x])}]"
                if x.ndim
                else _element(x, values.dtype)
            )

        name, elements = f"%{self._count}", nested(values) if values.size else ""
        self._lines.append(f"{name} = stablehlo.constant dense<{elements}> : {tensor_type(type)}")
        return Operand(name, type)

    def ints(self, values: Sequence[int]) -> str:
        """An attribute: an array of 64-bit integers."""
        return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"

    def compare(self, direction: str, x: Operand, y: Operand) -> Operand:
        """An element-wise comparison: ``EQ NE LT LE GT GE``."""
        return self.emit(
            "compare",
            x,
            y,
            attributes=f"comparison_direction = #stablehlo<comparison_direction {direction}>",
            out=array_type(x.type.shape, np.dtype(bool)),
        )

    def convert(self, x: Operand, dtype: np.dtype) -> Operand:
        """Another element type."""
        if x.type.dtype == dtype:
            return x
        return self.emit("convert", x, out=array_type(x.type.shape, dtype))

    def reduce(self, op: str, x: Operand, axes: Sequence[int], start: Any) -> Operand:
        """A reduction by one operation; narrow floats accumulate in float32."""
        narrow = kind_of(x.type.dtype) == "float" and x.type.dtype.itemsize < 4
        wide = self.convert(x, np.dtype(np.float32)) if narrow and op in ("add", "multiply") else x
        dtype = wide.type.dtype
        element = array_type((), dtype)
        init = self.scalar(start, dtype)
        region = self.region((element, element), lambda u, v: [self.emit(op, u, v, out=element)])
        shape = tuple(n for d, n in enumerate(x.type.shape) if d not in axes)
        (out,) = self.emit_many(
            "reduce",
            (wide, init),
            (array_type(shape, dtype),),
            f"dimensions = {self.ints(axes)}",
            (region,),
        )
        return self.convert(out, x.type.dtype)

    def while_loop(
        self,
        cond: Callable[..., Sequence[Operand]],
        body: Callable[..., Sequence[Operand]],
        operands: Sequence[Operand],
    ) -> list[Operand]:
        """StableHLO ``while``: ``cond`` and ``body`` write their regions from the state."""
        types = [x.type for x in operands]
        regions = (self.region(types, cond), self.region(types, body))
        return self.emit_many("while", operands, types, regions=regions)

    def _starts(self, i: Operand, ndim: int) -> list[Operand]:
        return [i, *[self.scalar(0, i.type.dtype)] * (ndim - 1)]

    def slice_at(self, x: Operand, i: Operand) -> Operand:
        """``x[i]`` for a scalar ``i`` in range."""
        shape = x.type.shape
        sizes = (1, *shape[1:])
        part = self.emit(
            "dynamic_slice",
            x,
            *self._starts(i, len(shape)),
            attributes=f"slice_sizes = {self.ints(sizes)}",
            out=array_type(sizes, x.type.dtype),
        )
        return self.emit("reshape", part, out=array_type(shape[1:], x.type.dtype))

    def update_at(self, x: Operand, y: Operand, i: Operand) -> Operand:
        """``x`` with ``y`` at ``x[i]``, for a scalar ``i`` in range."""
        part = self.emit("reshape", y, out=array_type((1, *y.type.shape), y.type.dtype))
        starts = self._starts(i, x.type.ndim)
        return self.emit("dynamic_update_slice", x, part, *starts, out=x.type)

    def inline(self, fun: Callable[..., Any], *operands: Operand) -> Operand:
        """What a function of values, written with other operations, does to these operands."""
        return self.inline_many(lambda *xs: [fun(*xs)], *operands)[0]

    def inline_many(self, fun: Callable[..., Any], *operands: Operand) -> list[Operand]:
        """The same for a function with several results."""
        program, _, captured = record(lambda *xs: (fun(*xs), None), [x.type for x in operands])
        if captured:
            raise AssertionError(f"{fun} captured a value while being lowered")
        return self.program(program, operands)

    def program(self, program: Program, operands: Sequence[Operand]) -> list[Operand]:
        """The equations of a program, written here; its outputs."""
        known: dict[Var, Operand] = dict(zip(program.inputs, operands, strict=True))

        def read(atom: Atom) -> Operand:
            if isinstance(atom, Literal):
                return self.splat(atom.value, atom.type)
            return known[atom]

        outer = self._outs, self._location
        for equation in program.equations:
            self._location = self._locate(equation.position)
            self._outs = tuple([v.type for v in equation.outputs])
            primitive = equation.primitive
            result = primitive.lower(self, *[read(a) for a in equation.inputs])
            if primitive.multiple:
                known.update(zip(equation.outputs, result, strict=True))
            else:
                known[equation.outputs[0]] = result
        self._outs, self._location = outer
        return [read(a) for a in program.outputs]

    @property
    def outs(self) -> tuple[ArrayType, ...]:
        """The output types of the equation being lowered."""
        return self._outs

    def call(self, program: Program, operands: Sequence[Operand]) -> list[Operand]:
        """A call of the function that holds this program, written once however often called."""
        name = self._functions.get(program)
        if name is None:
            name = f"{_identifier(program.name)}_{len(self._functions)}"
            self._functions[program] = name
            self._bodies.append(self._function(program, name, "private"))
        self._count += 1
        result = f"%{self._count}"
        names = ", ".join(x.name for x in operands)
        kinds = ", ".join(tensor_type(x.type) for x in operands)
        results = ", ".join(map(tensor_type, program.out_types))
        bind = f"{result}:{len(program.outputs)} = " if program.outputs else ""
        self._lines.append(f"{bind}func.call @{name}({names}) : ({kinds}) -> ({results})")
        return [Operand(f"{result}#{i}", t) for i, t in enumerate(program.out_types)]

    # The frame

    def _function(self, program: Program, name: str, visibility: str) -> str:
        outer = self._lines, self._constants, self._location, self._outs
        self._lines, self._constants = [], {}
        arguments = [Operand(f"%arg{i}", t) for i, t in enumerate(program.in_types)]
        results = self.program(program, arguments)
        head = ", ".join(f"{a.name}: {tensor_type(a.type)}" for a in arguments)
        kinds = ", ".join(map(tensor_type, program.out_types))
        names = ", ".join(r.name for r in results)
        end = f"return {names} : {kinds}" if results else "return"
        body = "\n".join([*self._lines, end])
        self._lines, self._constants, self._location, self._outs = outer
        return f"func.func {visibility} @{name}({head}) -> ({kinds}) {{\n{body}\n}}"

    def _locate(self, position: Any) -> str:
        if position is None:
            return ""
        key = (id(position.code), position.offset)  # hashing a code object reads all of it
        found = self._locations.get(key)
        if found is None:
            found = self._locations[key] = (f" loc(#u{len(self._locations)})", position)
        return found[0]

    def module(self, program: Program) -> str:
        """The whole module, ``main`` first."""
        main = self._function(program, "main", "public")
        aliases = [
            f'#u{i} = loc("{_escape(position.file)}":{position.line}:0)'
            for i, (_, position) in enumerate(self._locations.values())
        ]
        parts = [f"module @{_identifier(program.name)} {{", main, *self._bodies, "}", *aliases]
        return "\n".join(parts) + "\n"


def _identifier(name: str) -> str:
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    return plain if plain and not plain[0].isdigit() else f"_{plain}"


def _escape(text: str) -> str:
    """The inside of an MLIR string: control characters, quotes and backslashes by their codes."""
    return "".join(f"\\{ord(c):02X}" if c < " " or c in '"\\\x7f' else c for c in text)


def lower(program: Program) -> str:
    """The StableHLO text of a program."""
    return Builder().module(program)
