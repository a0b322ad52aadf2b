"""Modules for files whose arrays have sizes that are known only when they are called.

Such a size is ``?`` in types, and a value of the program, read off the shape of an argument, where
an operation has to know it: ``dynamic_iota`` for ``iota`` and so on. Whoever reads the file has the
compiler work out all shapes from those of the arguments before anything else. What was taken to
hold of sizes while the function was traced is asserted in the module.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence, Set
from typing import Any

import numpy as np

from stretto._engine.core.errors import ExportError
from stretto._engine.core.primitive import meshes, observable
from stretto._engine.core.program import Program
from stretto._engine.core.size_guards import Guard
from stretto._engine.core.sizes import Dimension, Size, SizeVariable, is_size, lesser, size_of
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.lowering.portable import ALLOWED, Portable
from stretto._engine.lowering.text import Operand, escape, identifier, tensor_type

_SIZE = np.dtype(np.int32)
_SCALAR, _ONE, _FLAG = (
    array_type((), _SIZE),
    array_type((1,), _SIZE),
    array_type((), np.dtype(bool)),
)


def varies(*types: ArrayType) -> bool:
    """Say whether any type has a size that is not known."""
    return any([is_size(n) for t in types for n in t.shape])


class Polymorphic(Portable):
    """A builder of modules for files, with sizes that vary."""

    def __init__(
        self,
        platform: str,
        mark: str = "",
        allowed: Set[str] = ALLOWED,
        guards: Sequence[Guard] = (),
    ) -> None:
        super().__init__(platform, mark, allowed)
        self._guards = guards
        self._variables: dict[SizeVariable, Operand] = {}

    # Sizes

    def begin(self, arguments: Sequence[Operand]) -> None:
        """Read the sizes off the arguments, and assert what is known of them."""
        left = [
            (n, x, axis)
            for x in arguments
            for axis, n in enumerate(x.type.shape)
            if isinstance(n, Size)
        ]
        found = True
        while found:
            found = False
            for n, x, axis in left:
                missing = {v for v in n.variables() if v not in self._variables}
                if len(missing) == 1 and self._solve(n, missing.pop(), x, axis):
                    found = True
        for n, x, axis in left:
            missing = {v for v in n.variables() if v not in self._variables}
            if missing:
                raise ExportError(
                    f"export.stablehlo: what the size {missing.pop()} is does not follow from the "
                    f"shapes of the arguments: give it an axis of its own"
                )
            # A variable is what it was read off: all other axes are held to it.
            if n.terms != size_of(next(n.variables())).terms or self._read(x, axis) is None:
                same = self.compare("EQ", self._extent(x, axis), self.size(n))
                self._assert(same, f"the size of axis {axis} of an argument must be {n}", [n])
        for variable in self._variables:
            n = size_of(variable)
            least = self.compare("GE", self.size(n), self.size(variable.least))
            self._assert(least, f"{variable} must be {variable.least} or more", [n])
            if variable.most < 1 << 31:
                most = self.compare("LE", self.size(n), self.size(int(variable.most)))
                self._assert(most, f"{variable} must be {variable.most} or less", [n])
        for guard in self._guards:
            if (1 << 31) - 1 <= guard.most(next(guard.size.variables())) < math.inf:
                continue  # all sizes are
            direction = "LT" if guard.holds else "GE"
            holds = self.compare(direction, self.size(guard.size), self.size(guard.less_than))
            sign = "<" if guard.holds else ">="
            words = f"the function was exported for {guard.size} {sign} {guard.less_than}"
            self._assert(holds, words, [guard.size])

    def _read(self, x: Operand, axis: int) -> Operand | None:
        return self._constants.get(("extent", (x.name, axis)))

    def _extent(self, x: Operand, axis: int) -> Operand:
        """Return the size of an argument along an axis."""
        key = "extent", (x.name, axis)
        if key not in self._constants:
            attribute = f"dimension = {axis} : i64"
            read = self.emit("get_dimension_size", x, attributes=attribute, out=_SCALAR)
            self._constants[key] = read
        return self._constants[key]

    def _solve(self, n: Size, variable: SizeVariable, x: Operand, axis: int) -> bool:
        """Find what a variable is, if this size depends on it linearly."""
        known = dict.fromkeys(n.variables(), 0)
        at = lambda k: n.known({**known, variable: k})
        slope = at(1) - at(0)
        if slope <= 0:
            return False
        rest = n - slope * size_of(variable)  # in which the variable is, but for a linear size
        if isinstance(rest, Size) and variable in {*rest.variables()}:
            return False
        value = self._extent(x, axis)
        if is_size(rest) or rest:
            value = self.emit("subtract", value, self.size(rest), out=_SCALAR)
        if slope > 1:
            value = self.emit("divide", value, self.size(slope), out=_SCALAR)
        self._variables[variable] = value
        return True

    def _assert(self, holds: Operand, words: str, sizes: Sequence[Size]) -> None:
        shown = [self.size(n) for n in sizes]
        listed = ", ".join([f"{n} = {{{k}}}" for k, n in enumerate(sizes)])
        names = ", ".join([v.name for v in (holds, *shown)])
        kinds = ", ".join(["tensor<i1>", *["tensor<i32>"] * len(shown)])
        self._lines.append(
            f'"stablehlo.custom_call"({names}) {{call_target_name = "shape_assertion", '
            f'api_version = 2 : i32, error_message = "{escape(f"{words}, got {listed}")}", '
            f"has_side_effect = true}} : ({kinds}) -> ()"
        )

    def size(self, n: Dimension) -> Operand:
        """Return a size as an int32."""
        if not isinstance(n, Size):
            return self.splat(n, _SCALAR)
        key = "size", n
        known = self._constants.get(key)
        if known is None:
            total = n.at(self._variable, self._floor, self._positive)
            known = self._constants[key] = total.operand
        return known

    def _variable(self, variable: SizeVariable) -> _Number:
        if variable not in self._variables:
            raise ExportError(f"export.stablehlo: no argument has an axis of the size {variable}")
        return _Number(self, self._variables[variable])

    def _floor(self, n: Any, by: int) -> _Number:
        """Divide, rounding down also below zero."""
        n = _Number.of(self, n)
        rest = self.emit("remainder", n.operand, self.size(by), out=_SCALAR)
        zero = self.size(0)
        negative = self.compare("LT", rest, zero)
        less = self.emit("select", negative, self.size(1), zero, out=_SCALAR)
        quotient = self.emit("divide", n.operand, self.size(by), out=_SCALAR)
        return _Number(self, self.emit("subtract", quotient, less, out=_SCALAR))

    def _positive(self, n: Any) -> _Number:
        n = _Number.of(self, n)
        return _Number(self, self.emit("maximum", n.operand, self.size(0), out=_SCALAR))

    def sizes(self, shape: Sequence[Dimension]) -> Operand:
        """Return sizes as a vector."""
        key = "sizes", tuple(shape)
        known = self._constants.get(key)
        if known is None:
            out = array_type((len(shape),), _SIZE)
            if not any(map(is_size, shape)):
                known = self.array(np.array(shape, _SIZE))
            else:
                parts = [super(Polymorphic, self).reshape(self.size(n), _ONE) for n in shape]
                known = self.concatenate(parts, 0, out) if len(parts) > 1 else parts[0]
            self._constants[key] = known
        return known

    def size_value(self, n: Size, out: ArrayType) -> Operand:
        """Return a size as a scalar of a program."""
        return self.convert(self.size(n), out.dtype)

    # Operations that have to know sizes

    def call(
        self, program: Program, operands: Sequence[Operand], apart: bool = False
    ) -> list[Operand]:
        """Write the program in place: sizes are values of ``main``."""
        return self.program(program, operands)

    def scalar(self, element: Any, dtype: np.dtype) -> Operand:
        """Write a constant of rank 0, or a size."""
        if is_size(element):
            return self.convert(self.size(element), dtype)
        return super().scalar(element, dtype)

    def splat(self, element: Any, type: ArrayType) -> Operand:
        """Write an array, all of whose elements are equal."""
        if not varies(type):
            return super().splat(element, type)
        return self.broadcast(self.scalar(element, type.dtype), (), type)

    def broadcast(self, x: Operand, dims: Sequence[int], out: ArrayType) -> Operand:
        """Return the operand repeated, its axes being the result's ``dims``."""
        if not varies(x.type, out):
            return super().broadcast(x, dims, out)
        attributes = f"broadcast_dimensions = {self.ints(dims)}"
        sizes = self.sizes(out.shape)
        return self.emit("dynamic_broadcast_in_dim", x, sizes, attributes=attributes, out=out)

    def reshape(self, x: Operand, out: ArrayType) -> Operand:
        """Return the elements in another shape."""
        if not varies(x.type, out):
            return super().reshape(x, out)
        return self.emit("dynamic_reshape", x, self.sizes(out.shape), out=out)

    def iota(self, axis: int, out: ArrayType) -> Operand:
        """Return the index along an axis."""
        if not varies(out):
            return super().iota(axis, out)
        attributes = f"iota_dimension = {axis} : i64"
        return self.emit("dynamic_iota", self.sizes(out.shape), attributes=attributes, out=out)

    def slice(self, x: Operand, parts: Sequence[tuple[Any, Any, int]]) -> Operand:
        """Return the elements from a start to before an end, with a step, along each axis."""
        if not varies(x.type) and not any([is_size(n) for part in parts for n in part]):
            return super().slice(x, parts)
        # A last step may go beyond the end, which StableHLO does not take.
        ends = [
            end if step == 1 else lesser(end, n)
            for (_, end, step), n in zip(parts, x.type.shape, strict=True)
        ]
        starts, steps = [[part[i] for part in parts] for i in (0, 2)]
        bounds = [*map(self.sizes, (starts, ends, steps))]
        shape = tuple([-((start - end) // step) for start, end, step in parts])
        return self.emit("real_dynamic_slice", x, *bounds, out=array_type(shape, x.type.dtype))

    def pad(
        self, x: Operand, value: Operand, config: Sequence[tuple[Any, Any, Any]], out: ArrayType
    ) -> Operand:
        """Put the value around the elements, or cut some off, and between them."""
        if not any([is_size(n) for c in config for n in c]):
            return super().pad(x, value, config, out)
        edges = [self.sizes([c[i] for c in config]) for i in range(3)]
        return self.emit("dynamic_pad", x, value, *edges, out=out)

    def dynamic_slice(self, x: Operand, starts: Sequence[Operand], sizes: Sequence[Any]) -> Operand:
        """Return the slice of these sizes that starts there, moved to fit."""
        if not any(map(is_size, sizes)):
            return super().dynamic_slice(x, starts, sizes)
        first, last = [], []
        for start, size, n in zip(starts, sizes, x.type.shape, strict=True):
            at = self.convert(start, _SIZE)
            at = self.emit("clamp", self.size(0), at, self.size(n - size), out=_SCALAR)
            first.append(super().reshape(at, _ONE))
            end = self.emit("add", at, self.size(size), out=_SCALAR)
            last.append(super().reshape(end, _ONE))
        out = array_type((len(sizes),), _SIZE)
        bounds = [self.concatenate(v, 0, out) if len(v) > 1 else v[0] for v in (first, last)]
        bounds.append(self.sizes((1,) * len(sizes)))
        return self.emit(
            "real_dynamic_slice", x, *bounds, out=array_type(tuple(sizes), x.type.dtype)
        )

    def windows_at(
        self,
        x: Operand,
        indices: Operand,
        numbers: str,
        sizes: Sequence[Any],
        indices_are_sorted: bool,
        out: ArrayType,
    ) -> Operand:
        """Return windows of these sizes that start at index vectors, moved to fit."""
        if not any(map(is_size, sizes)):
            return super().windows_at(x, indices, numbers, sizes, indices_are_sorted, out)
        is_sorted = str(indices_are_sorted).lower()
        attributes = f"dimension_numbers = {numbers}, indices_are_sorted = {is_sorted}"
        return self.emit(
            "dynamic_gather", x, indices, self.sizes(sizes), attributes=attributes, out=out
        )

    def ints(self, values: Sequence[int]) -> str:
        """Write an array of 64-bit integers; refuse sizes that are not known."""
        if any(map(is_size, values)):
            raise ExportError(
                "export.stablehlo: an operation has a size that varies where StableHLO has numbers "
                "alone, as windows and Fourier transforms have: give that axis a fixed size"
            )
        return super().ints(values)

    def custom_call(self, target: str, operands: Any, outs: Any, *args: Any, **kwargs: Any) -> Any:
        """Write a call of native code, where sizes are known."""
        if varies(*[x.type for x in operands], *outs):
            raise ExportError(
                f"export.stablehlo: {target} is called for arrays whose sizes vary, which a file "
                f"cannot say: give these axes fixed sizes"
            )
        return super().custom_call(target, operands, outs, *args, **kwargs)


class _Number:
    """A size being computed: sums and products of it are further operations."""

    def __init__(self, b: Polymorphic, operand: Operand) -> None:
        self.b, self.operand = b, operand

    @classmethod
    def of(cls, b: Polymorphic, n: Any) -> _Number:
        """Return an integer as one."""
        return n if isinstance(n, cls) else cls(b, b.size(n))

    def _with(self, op: str, other: Any) -> _Number:
        other = self.of(self.b, other)
        return _Number(self.b, self.b.emit(op, self.operand, other.operand, out=_SCALAR))

    def __add__(self, other: Any) -> _Number:
        return self if other.__class__ is int and other == 0 else self._with("add", other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> _Number:
        return self if other.__class__ is int and other == 1 else self._with("multiply", other)

    __rmul__ = __mul__


def lower_for_file(
    program: Program,
    arrays: Sequence[np.ndarray],
    platforms: Sequence[str],
    allowed: Set[str] = ALLOWED,
    guards: Sequence[Guard] = (),
) -> str:
    """Return the text of a module for these platforms; its last inputs are given by the arrays.

    Raises ``ExportError`` for what a file cannot say.
    """
    if meshes(program.effects):
        raise ExportError(
            f"export.stablehlo: {program.name} works over several devices, which shard_map or "
            f"with_sharding_constraint says: export what one device does, or without constraints"
        )
    if observable(program.effects):
        raise ExportError(
            f"export.stablehlo: {program.name} calls Python or prints while it runs: export what "
            f"comes before and after that"
        )
    kind: Any = Portable
    if varies(*program.in_types):
        kind = functools.partial(Polymorphic, guards=guards)
    written = [
        kind(platform, "", allowed).functions(program, arrays, "main") for platform in platforms
    ]
    if all([functions == written[0] for functions in written]):
        functions = written[0]
        if len(platforms) > 1:
            head, _, rest = functions[0].partition("@main(")
            more = "" if rest.startswith(")") else ", "
            functions = [f"{head}@main({_INDEX}{more}{rest}", *functions[1:]]
    else:
        functions = [_chosen(program, arrays, platforms)]
        for platform in platforms:
            each = kind(platform, f"_{platform}", allowed)
            functions += each.functions(program, arrays, f"main_{platform}")
    # Functions of modules that are called are the same for all platforms.
    written_once = dict.fromkeys(functions)
    several = len(platforms) > 1 or varies(*program.in_types)
    about = "attributes {jax.uses_shape_polymorphism = true} " if several else ""
    return "\n".join([f"module @{identifier(program.name)} {about}{{", *written_once, "}\n"])


_INDEX = '%platform: tensor<i32> {jax.global_constant = "_platform_index"}'


def _chosen(program: Program, arrays: Sequence[np.ndarray], platforms: Sequence[str]) -> str:
    """Return a ``main`` that calls the function of the platform with the number it is given."""
    types = [tensor_type(t) for t in program.in_types[: len(program.inputs) - len(arrays)]]
    outs = ", ".join([tensor_type(t) for t in program.out_types])
    names = [f"%arg{i}" for i in range(len(types))]
    head = ", ".join([_INDEX, *[f"{n}: {t}" for n, t in zip(names, types, strict=True)]])
    results = lambda name: ", ".join([f"%{name}#{i}" for i in range(len(program.outputs))])
    count = len(program.outputs)
    branches = []
    for platform in platforms:
        call = f"func.call @main_{platform}({', '.join(names)}) : ({', '.join(types)}) -> ({outs})"
        end = f"stablehlo.return {results('r')} : {outs}" if count else "stablehlo.return"
        branches.append("{\n" + (f"%r:{count} = " if count else "") + f"{call}\n{end}\n}}")
    bind = f"%chosen:{count} = " if count else ""
    case = f'{bind}"stablehlo.case"(%platform) ({", ".join(branches)}) : (tensor<i32>) -> ({outs})'
    end = f"return {results('chosen')} : {outs}" if count else "return"
    return f"func.func public @main({head}) -> ({outs}) {{\n{case}\n{end}\n}}"
