"""Write programs as ONNX nodes: what ``lower`` rules ask a writer for, and what ``onnx`` rules do.

The writer takes the calls of the one that writes StableHLO, so that most rules serve both. Shapes
broadcast in ONNX as in NumPy, so a value that repeats elements is carried as the smaller tensor,
and made whole only for operators that need it. Sizes that vary are read off the shapes of inputs.
Source: the specification of ONNX's operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from stretto._engine.core.errors import ExportError
from stretto._engine.core.position import Place, Position
from stretto._engine.core.primitive import Refused
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import Dimension, Size, SizeVariable, is_size
from stretto._engine.core.types import ArrayType, array_type, is_complex, kind_of, real_dtype
from stretto._engine.lowering.onnx import bits, elementwise
from stretto._engine.lowering.onnx.graph import (
    Graph,
    Node,
    Operand,
    Pair,
    Shape,
    Value,
    broadcast,
    key_of,
)
from stretto._engine.lowering.onnx.kernels import stand_in

_BOOL = np.dtype(bool)
_I32, _I64 = np.dtype(np.int32), np.dtype(np.int64)
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_BF16 = np.dtype(ml_dtypes.bfloat16)

_FOLDED = 1 << 16
"""The most elements of a constant that is made larger or turned while the graph is written."""

_EXACT = 1 << 21
"""How many integers of 32 bits have a sum of at most 53."""

_COMPARISONS = {
    "EQ": "Equal",
    "LT": "Less",
    "LE": "LessOrEqual",
    "GT": "Greater",
    "GE": "GreaterOrEqual",
}
_REDUCTIONS = {"add": "ReduceSum", "multiply": "ReduceProd"}
_EXTREMA = {"maximum": "ReduceMax", "minimum": "ReduceMin"}
_DTYPES = {
    *map(np.dtype, "?bBhHiIlLefd"),
    _I64,
    np.dtype(np.uint64),
    _BF16,
}


class Writer:
    """Writes nodes: ``apply`` an operator, and forms of several."""

    platform = "onnx"
    partitioned = False
    has_kernels = False
    hides = False

    def __init__(self, opset: int, exact: bool) -> None:
        self.opset = opset
        self.exact = exact
        """Says whether NaN, infinities and tails are kept where that takes more nodes."""
        self.graph = Graph("main")
        self.constants: dict[str, np.ndarray] = {}
        self.types: dict[str, tuple[np.dtype, Shape]] = {}
        """The dtypes and shapes of tensors that were read."""
        self.sizes: dict[SizeVariable, str] = {}
        """The tensors, of one element, that hold sizes that vary."""
        self.formulas: dict[str, tuple[str, str]] = {}
        """What tensors that a formula of several nodes makes are, and of which tensor."""
        self._by_content: dict[Any, str] = {}
        self._by_identity: dict[int, str] = {}
        self._names: dict[str, int] = {}
        self._stems: dict[str, str] = {}
        self._outputs: Sequence[Any] = ()
        self._equation: Any = None
        self._place: Place | None = None

    # Names, nodes, constants

    @property
    def outs(self) -> tuple[ArrayType, ...]:
        """The output types of the equation being written."""
        return tuple([v.type for v in self._outputs])

    def refuse(self, why: str) -> NoReturn:
        """Raise ``ExportError``: what cannot be said, with the operation and the line."""
        name = self._equation.primitive.name if self._equation is not None else "the program"
        where = f" ({Position(*self._place)})" if self._place else ""
        raise ExportError(f"export to ONNX: {name}{where}: {why}")

    def fresh(self, name: str) -> str:
        """Return a name that no tensor has yet: this one, or with a number after it."""
        name = self._stems.get(name, name)
        fresh, count = name, self._names.get(name, 0)
        while fresh in self._names:
            count += 1
            fresh = f"{name}_{count}"
        self._names[name] = count
        if fresh != name:
            self._stems[fresh] = name
        return fresh

    def node(self, op: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> Any:
        """Write a node; return the name of its output, or a tuple of them if there are several."""
        key = key_of(op, inputs, attributes, outputs)
        names = self.graph.known(key) if key is not None else None
        if names is None:
            stem = op.lower()
            names = tuple([self.fresh(stem) for _ in range(outputs)])
            self.graph.add(Node(op, tuple(inputs), names, attributes), key)
        return names[0] if outputs == 1 else names

    def constant(self, array: np.ndarray, like: str = "") -> str:
        """Return the name of a constant; equal small ones are one, and so is one large array.

        A new one is named after that which it is ``like``.
        """
        array = np.asarray(array, order="C")
        if array.size <= _FOLDED:
            key: Any = (array.dtype, array.shape, array.tobytes())
            name = self._by_content.get(key)
            if name is None:
                name = self._by_content[key] = self.fresh(like or "constant")
                self.constants[name] = array
            return name
        name = self._by_identity.get(id(array))
        if name is None:
            name = self._by_identity[id(array)] = self.fresh(like or "constant")
            self.constants[name] = array
        return name

    def ints(self, values: Sequence[int]) -> str:
        """Return the name of a constant of integers, int64."""
        return self.constant(np.array([*values], _I64))

    def held(self, array: np.ndarray, type: ArrayType | None = None) -> Operand:
        """Return the operand that is a constant, of which only elements that differ are kept."""
        type = array_type(array.shape, array.dtype) if type is None else type
        if array.size and array.shape and not all(array.strides):
            array = array[
                tuple(
                    [
                        slice(0, n if by else 1)
                        for n, by in zip(array.shape, array.strides, strict=True)
                    ]
                )
            ]
            array = array.reshape(()) if array.size == 1 else array
        return Operand("", type, array.shape, array)

    def named(self, x: Operand) -> str:
        """Return the name of the operand's tensor; a constant is kept from then on."""
        if not x.name:
            assert x.value is not None
            x.name = self.constant(x.value, x.origin)
        self.types[x.name] = (x.type.dtype, x.shape)
        return x.name

    # Operators of elements

    def emit(
        self,
        op: str,
        *operands: Any,
        attributes: str = "",
        out: ArrayType | None = None,
        dialect: str = "stablehlo",
    ) -> Any:
        """Write an operation of StableHLO or CHLO that treats each element alone."""
        assert not attributes, f"{op} has attributes, which are text"
        return elementwise.write(self, op, operands, self._outputs[0].type if out is None else out)

    def operation(
        self,
        op: str,
        operands: Sequence[Any],
        attributes: str = "",
        out: ArrayType | None = None,
    ) -> Any:
        """Do what ``emit`` does, for a name that includes the dialect."""
        return self.emit(op.rpartition(".")[2], *operands, attributes=attributes, out=out)

    def quotient(self, x: Any, y: Any) -> Any:
        """Divide."""
        return self.emit("divide", x, y)

    def apply(
        self,
        op: str,
        operands: Sequence[Operand],
        out: ArrayType,
        shape: Shape | None = None,
        **attributes: Any,
    ) -> Operand:
        """Write an operator; in another dtype where its own has no kernel.

        By default it treats each element alone, and the tensors broadcast. Operands of another
        dtype than the first's, as conditions, stay as they are.
        """
        if shape is None:
            shape = broadcast([x.shape for x in operands])
        dtype = operands[0].type.dtype
        wide = stand_in(op, dtype)
        if wide is None:
            self.refuse(
                f"onnxruntime has no {op} of {dtype.name}, and no wider dtype to compute in"
            )
        converted = [self.cast(x, wide) if x.type.dtype == dtype else x for x in operands]
        names = [self.named(x) for x in converted]
        made = out.dtype if out.dtype != dtype else wide
        result = Operand(self.node(op, names, **attributes), array_type(out.shape, made), shape)
        return self.cast(result, out.dtype)

    def cast(self, x: Operand, dtype: np.dtype) -> Operand:
        """Return the operand in another dtype, which has all its values or fewer bits."""
        if x.type.dtype == dtype:
            return x
        type = array_type(x.type.shape, dtype)
        if x.value is not None and x.value.size <= _FOLDED:
            with np.errstate(all="ignore"):
                return Operand("", type, x.shape, x.value.astype(dtype))
        return Operand(self.node("Cast", [self.named(x)], to=dtype), type, x.shape)

    def convert(self, x: Any, dtype: np.dtype) -> Any:
        """Return the operand in another element type; floats as integers saturate."""
        if x.type.dtype == dtype:
            return x
        if is_complex(dtype):
            part, type = real_dtype(dtype), array_type(x.type.shape, dtype)
            if isinstance(x, Pair):
                return Pair(type, self.convert(x.real, part), self.convert(x.imag, part))
            return Pair(type, self.convert(x, part), self.splat(0, array_type(x.type.shape, part)))
        if isinstance(x, Pair):
            return self.convert(x.real, dtype)
        if dtype not in _DTYPES:
            self.refuse(f"ONNX's operators take no {dtype.name}: convert to a wider dtype before")
        source, target = kind_of(x.type.dtype), kind_of(dtype)
        if target == "bool" and source != "bool":
            return self.compare("NE", x, self.splat(0, x.type))
        if source == "float" and target in ("int", "uint"):
            return self._saturated(x, dtype)
        return self.cast(x, dtype)

    def _saturated(self, x: Operand, dtype: np.dtype) -> Operand:
        """Return floats as integers: NaN as 0, and what is beyond the bounds as these."""
        wide = self.cast(x, _F32) if x.type.dtype.itemsize < 4 else x
        info, type = np.iinfo(dtype), wide.type
        out = array_type(x.type.shape, dtype)
        least, most = [type.dtype.type(v) for v in (info.min, info.max)]
        zero = self.splat(0, type)
        known = self.select(self.compare("EQ", wide, wide), wide, zero)
        exact = int(most) == info.max
        below = most if exact else np.nextafter(most, type.dtype.type(0))
        inside = self.emit(
            "clamp", self.splat(least, type), known, self.splat(below, type), out=type
        )
        whole = self.cast(inside, dtype)
        if exact:
            return whole
        return self.select(self.compare("GE", known, self.splat(most, type)),
                           self.splat(info.max, out), whole)  # fmt: skip

    def compare(self, direction: str, x: Any, y: Any) -> Any:
        """Write an element-wise comparison: ``EQ NE LT LE GT GE``."""
        out = array_type(x.type.shape, _BOOL)
        if isinstance(x, Pair):
            parts = [self.compare(direction, *v) for v in ((x.real, y.real), (x.imag, y.imag))]
            return self.apply("And" if direction == "EQ" else "Or", parts, out)
        if direction == "NE":
            return self.apply("Not", [self.compare("EQ", x, y)], out)
        if x.type.kind == "bool" and direction != "EQ":
            x, y = [self.cast(v, _I32) for v in (x, y)]
        return self.apply(_COMPARISONS[direction], [x, y], out)

    def select(self, condition: Operand, x: Any, y: Any) -> Any:
        """Choose ``x`` where the condition holds, else ``y``."""
        if isinstance(x, Pair):
            parts = self.select(condition, x.real, y.real), self.select(condition, x.imag, y.imag)
            return Pair(x.type, *parts)
        if x is y:
            return x
        if x.type.kind == "bool":
            either = array_type(x.type.shape, _BOOL)
            chosen = self.apply("And", [condition, x], either)
            other = self.apply("And", [self.apply("Not", [condition], either), y], either)
            return self.apply("Or", [chosen, other], either)
        if x.type.dtype == np.uint64:
            signed = array_type(x.type.shape, _I64)
            chosen = self.select(condition, self.bitcast(x, signed), self.bitcast(y, signed))
            return self.bitcast(chosen, x.type)
        shape = broadcast([condition.shape, x.shape, y.shape])
        wide = stand_in("Where", x.type.dtype)
        assert wide is not None
        names = [self.named(v) for v in (condition, self.cast(x, wide), self.cast(y, wide))]
        type = array_type(x.type.shape, wide)
        return self.cast(Operand(self.node("Where", names), type, shape), x.type.dtype)

    def bitcast(self, x: Operand, out: ArrayType) -> Operand:
        """Read the bits of each element as those of another dtype of the same width."""
        if x.type.dtype == out.dtype:
            return x
        type = array_type(x.type.shape, out.dtype)
        if x.value is not None:
            return Operand("", type, x.shape, x.value.view(out.dtype))
        if kind_of(x.type.dtype) != "float" and kind_of(out.dtype) != "float":
            return Operand(self.node("Cast", [self.named(x)], to=out.dtype), type, x.shape)
        if self.opset < 26:
            by_arithmetic = bits.float_of if kind_of(out.dtype) == "float" else bits.bits_of
            return by_arithmetic(self, x, out.dtype)
        return Operand(self.node("BitCast", [self.named(x)], to=out.dtype), type, x.shape)

    def to_signed(self, x: Operand) -> Operand:
        """Return unsigned integers of 64 bits as signed ones in the same order."""
        return self.cast(self._first_bit_turned(x), _I64)

    def from_signed(self, x: Operand) -> Operand:
        """Return what ``to_signed`` made these signed integers of."""
        return self._first_bit_turned(self.cast(x, np.dtype(np.uint64)))

    def _first_bit_turned(self, x: Operand) -> Operand:
        return self.apply("BitwiseXor", [x, self.splat(1 << 63, x.type)], x.type)

    def bitcast_convert(self, x: Operand, out: ArrayType) -> Operand:
        """Do the same, also for other widths: a narrower one adds a last axis, low bits first."""
        wide, narrow = x.type.dtype.itemsize, out.dtype.itemsize
        if wide == narrow:
            return self.bitcast(x, out)
        bits = [np.dtype(f"u{n}") for n in (wide, narrow)]
        if wide > narrow:
            count = wide // narrow
            whole = array_type(x.type.shape, bits[0])
            source = self.bitcast(x, whole)
            one = array_type((*x.type.shape, 1), bits[1])
            parts = []
            for k in range(count):
                moved = self.emit(
                    "shift_right_logical", source, self.splat(8 * narrow * k, whole), out=whole
                )
                parts.append(self.reshape(self.cast(moved, bits[1]), one))
            joined = self.concatenate(parts, len(x.type.shape), array_type(out.shape, bits[1]))
            return self.bitcast(joined, out)
        count = narrow // wide
        source = self.bitcast(x, array_type(x.type.shape, bits[0]))
        whole = array_type(out.shape, bits[1])
        total = None
        for k in range(count):
            part = self.slice(source, self._along(x.type, k, k + 1))
            part = self.cast(self.reshape(part, array_type(out.shape, bits[0])), bits[1])
            moved = self.emit("shift_left", part, self.splat(8 * wide * k, whole), out=whole)
            total = moved if total is None else self.apply("BitwiseOr", [total, moved], whole)
        assert total is not None
        return self.bitcast(total, out)

    def _along(self, type: ArrayType, start: int, stop: int) -> list[tuple[Any, Any, int]]:
        return [*[(0, n, 1) for n in type.shape[:-1]], (start, stop, 1)]

    def reduce_precision(self, x: Operand, exponent_bits: int, mantissa_bits: int) -> Operand:
        """Round floats to so many bits, in the same dtype."""
        own = ml_dtypes.finfo(x.type.dtype)
        if exponent_bits >= own.nexp and mantissa_bits >= own.nmant:
            return x
        kept = {(8, 7): _BF16, (5, 10): np.dtype(np.float16), (8, 23): _F32}
        dtype = kept.get((exponent_bits, mantissa_bits))
        if dtype is not None and exponent_bits == own.nexp:
            narrow = self.node("Cast", [self.named(x)], to=dtype)
            return Operand(self.node("Cast", [narrow], to=x.type.dtype), x.type, x.shape)
        return elementwise.rounded(self, x, exponent_bits, mantissa_bits)

    # Constants

    def splat(self, element: Any, type: ArrayType) -> Any:
        """Return a constant of this type, all of whose elements are equal."""
        if is_complex(type.dtype):
            part, z = array_type(type.shape, real_dtype(type.dtype)), complex(element)
            return Pair(type, self.splat(z.real, part), self.splat(z.imag, part))
        if type.dtype not in _DTYPES:
            self.refuse(f"ONNX's operators take no {type.dtype.name}: convert to a wider dtype")
        return Operand("", type, (), np.asarray(element).astype(type.dtype))

    def nothing(self, type: ArrayType) -> Any:
        """Return the constant of a type that has no elements."""
        return self.splat(0, type)

    def infinite(self, sign: int, type: ArrayType) -> Operand:
        """Return infinities of this type and sign."""
        return self.splat(sign * np.inf, type)

    def scalar(self, element: Any, dtype: np.dtype) -> Any:
        """Return a constant of rank 0."""
        return self.splat(element, array_type((), dtype))

    def array(self, values: np.ndarray) -> Any:
        """Return a constant."""
        if is_complex(values.dtype):
            type = array_type(values.shape, values.dtype)
            return Pair(type, self.held(np.real(values).copy()), self.held(np.imag(values).copy()))
        return self.held(values)

    def iota(self, axis: int, out: ArrayType) -> Any:
        """Return the index along an axis."""
        if is_complex(out.dtype):
            part = array_type(out.shape, real_dtype(out.dtype))
            return Pair(out, self.iota(axis, part), self.splat(0, part))
        n = out.shape[axis]
        shape = (n, *[1] * (out.ndim - axis - 1))
        if not is_size(n):
            return Operand("", out, shape, np.arange(n).astype(out.dtype).reshape(shape))
        end = self.node("Squeeze", [self.size(n)])
        first, step = [self.constant(np.array(k, _I64)) for k in (0, 1)]
        line = self.node("Range", [first, end, step])
        numbers = self.cast(Operand(line, array_type((n,), _I64), (n,)), out.dtype)
        added = [*range(1, len(shape))]
        name = self.named(numbers)
        if added:
            name = self.node("Unsqueeze", [name, self.ints(added)])
        return Operand(name, out, shape)

    # Sizes

    def size(self, n: Dimension) -> str:
        """Return the name of a tensor of one element that holds a size, int64."""
        if not isinstance(n, Size):
            return self.ints([n])
        wrap = lambda v: v if isinstance(v, _Number) else _Number(self, self.ints([v]))
        total = n.at(
            lambda v: _Number(self, self._variable(v)),
            lambda x, by: _Number(self, self._floor(wrap(x).name, by)),
            lambda x: _Number(self, self.node("Max", [wrap(x).name, self.ints([0])])),
        )
        return wrap(total).name

    def _variable(self, variable: SizeVariable) -> str:
        name = self.sizes.get(variable)
        if name is None:
            self.refuse(f"the size {variable} is that of no axis of an input")
        return name

    def _floor(self, name: str, by: int) -> str:
        """Divide, rounding down: as whole numbers do where there is no sign."""
        rest = self.node("Mod", [name, self.ints([by])])
        return self.node("Div", [self.node("Sub", [name, rest]), self.ints([by])])

    def dims(self, shape: Sequence[Dimension]) -> str:
        """Return the name of a tensor that holds a shape."""
        if not any(is_size(n) for n in shape):
            return self.ints([int(n) for n in shape])
        parts: list[str] = []
        known: list[int] = []
        for n in shape:
            if is_size(n):
                if known:
                    parts.append(self.ints(known))
                    known = []
                parts.append(self.size(n))
            else:
                known.append(int(n))
        if known:
            parts.append(self.ints(known))
        return parts[0] if len(parts) == 1 else self.node("Concat", parts, axis=0)

    # Shapes

    def ranked(self, x: Operand) -> Operand:
        """Return the operand with a tensor of as many axes as the value has."""
        missing = x.type.ndim - len(x.shape)
        if not missing:
            return x
        shape = (*[1] * missing, *x.shape)
        if x.value is not None:
            return x.moved(x.value.reshape(shape), x.type, shape)
        name = self.node("Unsqueeze", [self.named(x), self.ints(range(missing))])
        return Operand(name, x.type, shape)

    def whole(self, x: Operand) -> Operand:
        """Return the operand with a tensor of the value's shape."""
        if x.is_whole:
            return x
        if not x.type.varies and not x.type.size:
            return Operand("", x.type, x.type.shape, np.zeros(x.type.shape, x.type.dtype))
        static = not any(is_size(n) for n in x.type.shape)
        if x.value is not None and static and x.type.size <= 64:
            array = np.broadcast_to(x.value, x.type.shape)
            return Operand("", x.type, x.type.shape, np.array(array))
        dtype = stand_in("Expand", x.type.dtype)
        assert dtype is not None
        wide = self.cast(x, dtype)
        name = self.node("Expand", [self.named(wide), self.dims(x.type.shape)])
        return self.cast(Operand(name, array_type(x.type.shape, dtype), x.type.shape), x.type.dtype)

    def reshape(self, x: Any, out: ArrayType) -> Any:
        """Return the elements in another shape."""
        if isinstance(x, Pair):
            return self._by_parts(self.reshape, out, x)
        out = array_type(out.shape, x.type.dtype)
        if all(n == 1 for n in x.shape) and x.value is not None:
            return x.moved(x.value.reshape(()), out, ())
        if x.type.shape == out.shape:
            return x.seen_as(out, x.shape)
        if all(n == 1 for n in x.shape) and not out.varies and x.type.shape != x.shape:
            name = (
                self.node("Reshape", [self.named(x), self.ints([])]) if x.shape else self.named(x)
            )
            return Operand(name, out, ())
        kept = [n for n in x.type.shape if n != 1]
        if kept == [n for n in out.shape if n != 1] and not x.is_whole:
            return self._with_units(self.ranked(x), out)
        x = self.whole(x)
        if x.value is not None and not out.varies and x.value.size <= _FOLDED:
            return x.moved(x.value.reshape(out.shape), out, out.shape)
        varying = [i for i, n in enumerate(out.shape) if is_size(n)]
        if len(varying) == 1 and 0 not in out.shape:
            target = self.ints([-1 if is_size(n) else n for n in out.shape])
        else:
            target = self.dims(out.shape)
        zero = {"allowzero": 1} if 0 in out.shape or len(varying) > 1 else {}
        return Operand(self.node("Reshape", [self.named(x), target], **zero), out, out.shape)

    def _with_units(self, x: Operand, out: ArrayType) -> Operand:
        """Return a smaller tensor with other axes of size 1."""
        left = iter([t for t, n in zip(x.shape, x.type.shape, strict=True) if n != 1])
        shape = tuple([1 if n == 1 else next(left) for n in out.shape])
        gone = [d for d, n in enumerate(x.type.shape) if n == 1]
        new = [d for d, n in enumerate(out.shape) if n == 1]
        if x.value is not None:
            return x.moved(x.value.reshape(shape), out, shape)
        name = self.named(x)
        if gone:
            name = self.node("Squeeze", [name, self.ints(gone)])
        if new:
            name = self.node("Unsqueeze", [name, self.ints(new)])
        return Operand(name, out, shape)

    def transpose(self, x: Any, permutation: Sequence[int]) -> Any:
        """Return the operand with its axes in another order."""
        permutation = tuple(permutation)
        if isinstance(x, Pair):
            shape = tuple([x.type.shape[d] for d in permutation])
            out = array_type(shape, x.type.dtype)
            return self._by_parts(lambda v, _: self.transpose(v, permutation), out, x)
        out = array_type(tuple([x.type.shape[d] for d in permutation]), x.type.dtype)
        if not x.shape or permutation == tuple(range(len(permutation))):
            return x.seen_as(out, x.shape)
        x = self.ranked(x)
        shape = tuple([x.shape[d] for d in permutation])
        if x.value is not None and x.value.size <= _FOLDED:
            return x.moved(x.value.transpose(permutation), out, shape)
        name = self.node("Transpose", [self.named(x)], perm=list(permutation))
        return Operand(name, out, shape)

    def broadcast(self, x: Any, dims: Sequence[int], out: ArrayType) -> Any:
        """Return the operand repeated, its axes being the result's ``dims``."""
        if isinstance(x, Pair):
            return self._by_parts(lambda v, t: self.broadcast(v, dims, t), out, x)
        out = array_type(out.shape, x.type.dtype)
        if not out.varies and not out.size:
            return self.nothing(out)
        if all(n == 1 for n in x.shape) and x.value is not None:
            return x.moved(x.value.reshape(()), out, ())
        if not x.shape:
            return x.seen_as(out, ())
        x = self.ranked(x)
        spread: list[Dimension] = [1] * out.ndim
        for d, n in zip(dims, x.shape, strict=True):
            spread[d] = n
        first = min(dims)
        shape = tuple(spread[first:])
        if x.value is not None:
            return x.moved(x.value.reshape(tuple(map(int, shape))), out, shape)
        added = [d - first for d in range(first, out.ndim) if d not in dims]
        name = self.named(x)
        if added:
            name = self.node("Unsqueeze", [name, self.ints(added)])
        return Operand(name, out, shape)

    def slice(self, x: Any, parts: Sequence[tuple[Dimension, Dimension, int]]) -> Any:
        """Return the elements from a start to before an end, with a step, along each axis."""
        shape: Shape = tuple([_count(*part) for part in parts])
        out = array_type(shape, x.type.dtype)
        if isinstance(x, Pair):
            return self._by_parts(lambda v, _: self.slice(v, parts), out, x)
        if not x.shape:
            return x.seen_as(out, ())
        x = self.ranked(x)
        cut = [
            d
            for d, (part, n) in enumerate(zip(parts, x.type.shape, strict=True))
            if x.shape[d] == n and part != (0, n, 1)
        ]
        # An axis along which a smaller tensor repeats stays as it is, unless nothing is left.
        kept = tuple(
            [shape[d] if d in cut or x.shape[d] == x.type.shape[d] else 1 for d in range(out.ndim)]
        )
        if any(shape[d] == 0 and kept[d] == 1 for d in range(out.ndim)):
            return self.nothing(out)
        if not cut:
            return x.seen_as(out, kept)
        if x.value is not None and not any(is_size(v) for part in parts for v in part):
            index = tuple([slice(*parts[d]) if d in cut else slice(None) for d in range(out.ndim)])
            return x.moved(x.value[index], out, kept)
        starts, ends = [self.dims([parts[d][i] for d in cut]) for i in (0, 1)]
        steps = [parts[d][2] for d in cut]
        names = [self.named(x), starts, ends, self.ints(cut)]
        if steps != [1] * len(steps):
            names.append(self.ints(steps))
        return Operand(self.node("Slice", names), out, kept)

    def reverse(self, x: Any, axes: Sequence[int]) -> Any:
        """Return the operand with its elements along these axes in the opposite order."""
        if isinstance(x, Pair):
            return self._by_parts(lambda v, _: self.reverse(v, axes), x.type, x)
        if not x.shape:
            return x
        x = self.ranked(x)
        turned = [d for d in axes if x.shape[d] != 1]
        if not turned:
            return x
        if x.value is not None:
            return x.moved(np.flip(x.value, tuple(turned)), x.type, x.shape)
        low = np.iinfo(np.int64).min
        names = [
            self.named(x),
            self.ints([-1] * len(turned)),
            self.ints([low] * len(turned)),
            self.ints(turned),
            self.ints([-1] * len(turned)),
        ]
        return Operand(self.node("Slice", names), x.type, x.shape)

    def concatenate(self, parts: Sequence[Any], axis: int, out: ArrayType) -> Any:
        """Join operands along an axis."""
        if isinstance(parts[0], Pair):
            part = array_type(out.shape, real_dtype(out.dtype))
            halves = [
                self.concatenate([getattr(p, name) for p in parts], axis, part)
                for name in ("real", "imag")
            ]
            return Pair(out, *halves)
        parts = [p for p in parts if p.type.shape[axis] != 0] or parts[:1]
        out = array_type(out.shape, parts[0].type.dtype)
        if len(parts) == 1:
            return parts[0].seen_as(out, parts[0].shape)
        whole = [self.whole(p) for p in parts]
        small = sum([p.value.size if p.value is not None else _FOLDED for p in whole])
        values = [p.value for p in whole if p.value is not None]
        if len(values) == len(whole) and small <= _FOLDED:
            return self.held(np.concatenate(values, axis), out)
        names = [self.named(p) for p in whole]
        return Operand(self.node("Concat", names, axis=axis), out, out.shape)

    def pad(
        self,
        x: Any,
        value: Any,
        config: Sequence[tuple[Dimension, Dimension, Dimension]],
        out: ArrayType,
    ) -> Any:
        """Put the value around the elements, or cut some off, and between them."""
        if isinstance(x, Pair):
            part = array_type(out.shape, real_dtype(out.dtype))
            halves = [
                self.pad(getattr(x, name), getattr(value, name), config, part)
                for name in ("real", "imag")
            ]
            return Pair(out, *halves)
        known = value.value is not None and not x.shape and x.value is not None
        if known and x.value == value.value and out.size:
            return Operand("", out, (), x.value)
        shape = list(x.type.shape)
        for axis, (_, _, between) in enumerate(config):
            if between == 0:
                continue
            # One more axis, padded at its end, and the padding behind the last element cut off.
            n = shape[axis]
            wide = [*shape[:axis], n, 1, *shape[axis + 1 :]]
            x = self.reshape(x, array_type(tuple(wide), x.type.dtype))
            ends: list[tuple[Any, Any]] = [(0, 0)] * len(wide)
            ends[axis + 1] = (0, between)
            wide[axis + 1] = between + 1
            x = self._edges(x, value, ends, array_type(tuple(wide), x.type.dtype))
            shape[axis] = n * (between + 1)
            x = self.reshape(x, array_type(tuple(shape), x.type.dtype))
            parts = [(0, m, 1) for m in shape]
            shape[axis] = n * (between + 1) - between if n != 0 else 0
            parts[axis] = (0, shape[axis], 1)
            x = self.slice(x, parts)
        return self._edges(x, value, [(low, high) for low, high, _ in config], out)

    def _edges(
        self,
        x: Operand,
        value: Operand,
        ends: Sequence[tuple[Dimension, Dimension]],
        out: ArrayType,
    ) -> Operand:
        """Pad or cut at the ends of axes."""
        negative = lambda n: not is_size(n) and n < 0
        if any(negative(n) for pair in ends for n in pair):
            cut = [
                (-low if negative(low) else 0, n + (high if negative(high) else 0), 1)
                for (low, high), n in zip(ends, x.type.shape, strict=True)
            ]
            cut = [(a, max(a, e) if not is_size(e) else e, s) for a, e, s in cut]
            x = self.slice(x, cut)
            ends = [tuple([0 if negative(n) else n for n in pair]) for pair in ends]  # type: ignore[misc]
        if not any(n != 0 for pair in ends for n in pair):
            return x.seen_as(array_type(out.shape, x.type.dtype), x.shape)
        dtype = stand_in("Pad", x.type.dtype)
        assert dtype is not None
        x = self.whole(self.cast(x, dtype))
        amounts = self.dims([low for low, _ in ends] + [high for _, high in ends])
        names = [self.named(x), amounts, self.named(self.cast(value, dtype))]
        type = array_type(out.shape, dtype)
        return self.cast(Operand(self.node("Pad", names), type, out.shape), out.dtype)

    def _by_parts(self, function: Callable[..., Any], out: ArrayType, x: Pair) -> Pair:
        part = array_type(out.shape, real_dtype(out.dtype))
        return Pair(out, function(x.real, part), function(x.imag, part))

    # Reductions

    def reduce(self, op: str, x: Any, axes: Sequence[int], start: Any) -> Any:
        """Write a reduction by one operation; narrow floats accumulate in float32; NaN is kept."""
        axes = [*axes]
        shape = tuple([n for d, n in enumerate(x.type.shape) if d not in axes])
        out = array_type(shape, x.type.dtype)
        if 0 in x.type.shape:
            return self.splat(start, out)
        if isinstance(x, Pair):
            return self._reduce_pair(op, x, axes, out)
        if not axes:
            return x.seen_as(out, x.shape)
        kind = x.type.kind
        if op in ("and", "or") and kind == "bool":
            name = "ReduceMin" if op == "and" else "ReduceMax"
            return self._reduced(name, x, axes, out)
        if op in _EXTREMA and x.type.dtype == np.uint64:
            made = array_type(shape, _I64)
            return self.from_signed(self._reduced(_EXTREMA[op], self.to_signed(x), axes, made))
        if op in _EXTREMA:
            result = self._reduced(_EXTREMA[op], x, axes, out)
            if kind != "float" or not self.exact:
                return result
            nan = self._reduced("ReduceMax", self.compare("NE", x, x), axes,
                                array_type(shape, _BOOL))  # fmt: skip
            return self.select(nan, self.splat(math.nan, out), result)
        if op in _REDUCTIONS:
            if kind == "bool":
                return self.reduce("or" if op == "add" else "and", x, axes, start)
            if kind != "float":
                return self._integers_together(op, x, axes, out)
            wide = self.cast(x, _F32) if x.type.dtype.itemsize < 4 else x
            total = self._reduced(_REDUCTIONS[op], wide, axes, array_type(shape, wide.type.dtype))
            return self.cast(total, x.type.dtype)
        if op == "xor" and kind == "bool":
            wide = self.cast(x, _I64)
            total = self._reduced("ReduceSum", wide, axes, array_type(shape, _I64))
            return self.cast(
                self.apply("BitwiseAnd", [total, self.splat(1, total.type)], total.type), _BOOL
            )
        return self._folded(op, x, axes, out)

    def _integers_together(
        self, op: str, x: Operand, axes: Sequence[int], out: ArrayType
    ) -> Operand:
        """Add or multiply integers up, which wrap around.

        onnxruntime's operators do it in float64, so they are right up to 2^53: enough for a sum of
        narrow integers. Along axes of varying size there is no other way.
        """
        sizes = [x.type.shape[axis] for axis in axes]
        narrow = op == "add" and x.type.dtype.itemsize <= 4
        if not any(map(is_size, sizes)) and not (narrow and math.prod(sizes) <= _EXACT):
            return self._folded(op, x, axes, out)
        type = array_type(out.shape, _I64)
        total = self._reduced(_REDUCTIONS[op], self.cast(x, _I64), axes, type)
        return self.cast(total, out.dtype)

    def _reduced(self, op: str, x: Operand, axes: Sequence[int], out: ArrayType) -> Operand:
        dtype = stand_in(op, x.type.dtype)
        if dtype is None:
            self.refuse(f"onnxruntime has no {op} of {x.type.dtype.name}")
        x = self.whole(self.cast(x, dtype))
        type = array_type(out.shape, dtype)
        name = self.node(op, [self.named(x), self.ints(axes)], keepdims=0)
        return self.cast(Operand(name, type, out.shape), out.dtype)

    def _reduce_pair(self, op: str, x: Pair, axes: Sequence[int], out: ArrayType) -> Any:
        if op == "add":
            parts = [self.reduce("add", v, axes, 0) for v in (x.real, x.imag)]
            return Pair(out, *parts)
        return self._folded(op, x, axes, out)

    def _folded(self, op: str, x: Any, axes: Sequence[int], out: ArrayType) -> Any:
        """Combine halves until one element is left along each axis."""
        type = x.type
        for axis in axes:
            n = type.shape[axis]
            if is_size(n):
                self.refuse(
                    f"a reduction by {op!r} along an axis of varying size has no counterpart"
                )
            while n > 1:
                half = n // 2
                first = self._part(x, axis, 0, half)
                second = self._part(x, axis, half, 2 * half)
                combined = elementwise.write(self, op, (first, second), first.type)
                if n % 2:
                    shape = [*x.type.shape]
                    shape[axis] = half + 1
                    rest = self._part(x, axis, n - 1, n)
                    whole = array_type(tuple(shape), x.type.dtype)
                    combined = self.concatenate([combined, rest], axis, whole)
                x, n = combined, half + n % 2
            type = x.type
        return self.reshape(x, out)

    def _part(self, x: Any, axis: int, start: int, stop: int) -> Any:
        """Return the elements from a place to before another along an axis."""
        parts = [(start, stop, 1) if d == axis else (0, n, 1) for d, n in enumerate(x.type.shape)]
        return self.slice(x, parts)

    # Programs inside

    def inline(self, fun: Callable[..., Any], *operands: Any) -> Any:
        """Trace a function of values, and write its operations here, applied to these operands."""
        return self.inline_many(lambda *xs: [fun(*xs)], *operands)[0]

    def inline_many(self, fun: Callable[..., Any], *operands: Any) -> list[Any]:
        """Do the same for a function with several results."""
        program, _, captured = record(lambda *xs: (fun(*xs), None), [x.type for x in operands])
        if captured:
            raise AssertionError(f"{fun} captured a value while being written")
        return self.program(program, operands, at_hand=True)

    def program(
        self,
        program: Program,
        operands: Sequence[Any],
        at_hand: bool = False,
        aliases: Mapping[int, int] = MappingProxyType({}),
    ) -> list[Any]:
        """Write the equations of a program here; return its outputs.

        With ``at_hand`` errors name the operation being written, not those of the program.
        ``aliases`` says whose memory results may take, which is nobody's business here.
        """
        known = dict(zip(program.inputs, operands, strict=True))
        outer = self._outputs, self._equation, self._place

        def read(atom: Any) -> Any:
            return known[atom] if atom in known else self.splat(atom.value, atom.type)

        for equation in program.equations:
            if not at_hand:
                self._equation, self._place = equation, equation.place or outer[2]
            self._outputs = equation.outputs
            for v in equation.outputs:
                if v.type.dtype not in _DTYPES and not is_complex(v.type.dtype):
                    self.refuse(f"ONNX's operators take no {v.type.dtype.name}")
            rule = type(equation.primitive).onnx
            if isinstance(rule, Refused):
                self.refuse(rule.why)
            result = rule(equation.primitive, self, *map(read, equation.inputs))
            results = result if equation.primitive.multiple else (result,)
            for v, r in zip(equation.outputs, results, strict=True):
                known[v] = self.typed(r, v.type)
        self._outputs, self._equation, self._place = outer
        return [*map(read, program.outputs)]

    def typed(self, x: Any, type: ArrayType) -> Any:
        """Return the operand as one of exactly this type, which has its shape and dtype."""
        if isinstance(x, Pair):
            return x if x.type is type else Pair(type, x.real, x.imag)
        if x.type is type:
            return x
        assert x.type.dtype == type.dtype, (x.type, type)
        return x.seen_as(type, x.shape)

    def call(self, program: Program, operands: Sequence[Any], apart: bool = False) -> list[Any]:
        """Write the program in place of the call."""
        return self.program(program, operands)

    def barrier(self, operands: Sequence[Any]) -> list[Any]:
        """Return the operands: nothing is moved across."""
        return [*operands]

    # Loops and branches

    def parts(self, operands: Sequence[Any]) -> list[Operand]:
        """Return the tensors of the operands, in order; complex ones have two."""
        return [
            part for x in operands for part in ((x.real, x.imag) if isinstance(x, Pair) else (x,))
        ]

    def together(self, parts: Sequence[Operand], types: Sequence[ArrayType]) -> list[Any]:
        """Return operands of these types, of the tensors in order."""
        left = iter(parts)
        return [
            Pair(t, next(left), next(left)) if is_complex(t.dtype) else self.typed(next(left), t)
            for t in types
        ]

    def inner(
        self,
        name: str,
        types: Sequence[ArrayType],
        body: Callable[..., Sequence[Any]],
        before: Sequence[Value] = (),
    ) -> Graph:
        """Return a graph with inputs of these types, which ``body`` writes; it returns results."""
        graph = Graph(self.fresh(name), self.graph)
        outer, self.graph = self.graph, graph
        graph.inputs.extend(before)
        parts = []
        for t in types:
            for part in self._tensor_types(t):
                operand = Operand(self.fresh("x"), part, part.shape)
                graph.inputs.append(Value(operand.name, part.dtype, part.shape))
                parts.append(operand)
        results = [self.whole(x) for x in self.parts(body(*self.together(parts, types)))]
        for x in results:
            # An output has a name of its own, which nothing outside of the graph has.
            out = self.fresh("y")
            graph.nodes.append(Node("Identity", (self.named(x),), (out,), {}))
            graph.outputs.append(Value(out, x.type.dtype, x.type.shape))
        self.graph = outer
        return graph

    def _tensor_types(self, type: ArrayType) -> list[ArrayType]:
        if is_complex(type.dtype):
            return [array_type(type.shape, real_dtype(type.dtype))] * 2
        return [type]

    def while_loop(
        self,
        cond: Callable[..., Sequence[Any]],
        body: Callable[..., Sequence[Any]],
        operands: Sequence[Any],
    ) -> list[Any]:
        """Write a ``Loop`` that goes on while ``cond`` says so of the state."""
        types = [x.type for x in operands]
        (first,) = cond(*operands)
        number, going = self.fresh("i"), self.fresh("going")

        def step(*state: Any) -> Sequence[Any]:
            new = [self.typed(r, t) for r, t in zip(body(*state), types, strict=True)]
            return [cond(*new)[0], *new]

        before = [Value(number, _I64, ()), Value(going, _BOOL, ())]
        graph = self.inner("body", types, step, before)
        starts = [self.named(self.whole(x)) for x in self.parts(operands)]
        names = self.node(
            "Loop", ["", self.named(self.whole(first)), *starts], max(len(starts), 1), body=graph
        )
        return self._results(names, types)

    def scan(
        self,
        body: Callable[..., Sequence[Any]],
        carry: Sequence[Any],
        xs: Sequence[Any],
        outs: Sequence[ArrayType],
        length: Dimension,
        reverse: bool,
    ) -> list[Any]:
        """Write a ``Scan``; ``body`` takes carry and slices, and gives carry and outputs."""
        steps: Shape = (length,)
        carried = [x.type for x in carry]
        slices = [x.type.with_shape(x.type.shape[1:]) for x in xs]
        counted = not xs
        if counted:  # a Scan goes over something
            index = self.iota(0, array_type(steps, _I32))
            xs, slices = [index], [array_type((), _I32)]
        given = (lambda *s: body(*s[: len(carry)])) if counted else body

        def step(*state: Any) -> Sequence[Any]:
            new = given(*state)
            return [self.typed(r, t) for r, t in zip(new, [*carried, *outs], strict=True)]

        graph = self.inner("step", [*carried, *slices], step)
        starts = [self.named(self.whole(x)) for x in self.parts(carry)]
        rows = [self.named(self.whole(x)) for x in self.parts(xs)]
        stacks = [t.with_shape((*steps, *t.shape)) for t in outs]
        count = len(graph.outputs)
        attributes: dict[str, Any] = {"body": graph, "num_scan_inputs": len(rows)}
        if reverse:
            attributes["scan_input_directions"] = [1] * len(rows)
            if count > len(starts):
                attributes["scan_output_directions"] = [1] * (count - len(starts))
        names = self.node("Scan", [*starts, *rows], count, **attributes)
        return self._results(names, [*carried, *stacks])

    def _results(self, names: Any, types: Sequence[ArrayType]) -> list[Any]:
        names = (names,) if isinstance(names, str) else names
        tensors = [part for t in types for part in self._tensor_types(t)]
        parts = [Operand(n, t, t.shape) for n, t in zip(names, tensors, strict=False)]
        return self.together(parts, types)

    def case(self, index: Operand, branches: Sequence[Callable[[], Sequence[Any]]]) -> list[Any]:
        """Write an ``If`` for each branch but the last, one inside of the other."""
        types = self.outs

        def typed(branch: Callable[[], Sequence[Any]]) -> list[Any]:
            return [self.typed(r, t) for r, t in zip(branch(), types, strict=True)]

        def rest(k: int) -> list[Any]:
            if k == len(branches) - 1:
                return typed(branches[k])
            if index.type.kind == "bool":
                here = self.apply("Not", [index], index.type)
            else:
                way = "LE" if k == 0 else "EQ"
                here = self.compare(way, index, self.splat(k, index.type))
            graphs = {
                "then_branch": self.inner("then", (), lambda: typed(branches[k])),
                "else_branch": self.inner("else", (), lambda: rest(k + 1)),
            }
            count = len(graphs["then_branch"].outputs)
            return self._results(self.node("If", [self.named(here)], count, **graphs), types)

        return rest(0) if types else []

    # What there is no counterpart of

    def custom_call(self, target: str, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a library's function cannot be called."""
        self.refuse(f"it calls {target}, a function of a library, which ONNX has no operator for")


class _Number:
    """An integer tensor of one element, with the arithmetic of sizes."""

    def __init__(self, b: Writer, name: str) -> None:
        self.b, self.name = b, name

    def _with(self, op: str, other: Any) -> _Number:
        if not isinstance(other, _Number) and other == {"Add": 0, "Mul": 1}[op]:
            return self
        name = other.name if isinstance(other, _Number) else self.b.ints([other])
        return _Number(self.b, self.b.node(op, [self.name, name]))

    def __add__(self, other: Any) -> _Number:
        return self._with("Add", other)

    def __mul__(self, other: Any) -> _Number:
        return self._with("Mul", other)

    __radd__, __rmul__ = __add__, __mul__


def _count(start: Dimension, stop: Dimension, step: int) -> Dimension:
    length: Any = stop - start
    return length if step == 1 else (length + (step - 1)) // step
