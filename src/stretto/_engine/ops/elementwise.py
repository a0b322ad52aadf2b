"""The element-wise family, and how its functions promote and broadcast their arguments.

An element-wise primitive takes operands of one shape and one dtype; the functions in front of the
primitives convert and broadcast to that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from stretto._engine.core.functions import described
from stretto._engine.core.integers import shown
from stretto._engine.core.interpreter import Tracer, Value, as_value, splat, state
from stretto._engine.core.primitive import CARRIED, NOT_LINEAR, Primitive
from stretto._engine.core.program import repeated
from stretto._engine.core.sizes import exceeds
from stretto._engine.core.types import (
    ArrayType,
    array_type,
    canonical_dtype,
    check_ranks,
    inexact_dtype,
    is_inexact,
    kind_of,
    promote,
    scalar_dtype,
)
from stretto._engine.ops.broadcast import BroadcastInDim, broadcast_to
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import move_axis
from stretto._engine.ops.thresholds import NARROW, Costs

FLOAT = frozenset({"float"})
COMPLEX = frozenset({"complex"})
INEXACT = FLOAT | COMPLEX
INTEGRAL = frozenset({"int", "uint"})
COMPARABLE = INTEGRAL | FLOAT
NUMERIC = INTEGRAL | INEXACT
ALL = NUMERIC | {"bool"}

describe_unary = described(
    {"x": "an array, or a number."},
    "The values, of the shape of ``x``; integers become floats.",
    "TypeError: ``x`` is not an array or a number.",
)
"""Complete the docstring of a function of one argument."""

OPERANDS = {"x": "an array or a number.", "y": "another, promoted and broadcast with ``x``."}
NOT_BROADCAST = "ValueError: the shapes cannot be broadcast together."
describe_binary = described(OPERANDS, raises=NOT_BROADCAST)
"""Complete the docstring of a function of two arguments."""

_FLOAT32 = np.dtype(np.float32)


class Elementwise(Primitive, abstract=True):
    """A primitive that treats each element alone: all operands have one shape and one dtype.

    A subclass states the kinds of dtype it ``accepts``, its StableHLO operation ``op`` (or one of
    another ``dialect``), and its ``partials``: for each argument a function of (tangent, output,
    *arguments) that gives that argument's part of the output's tangent, or ``None`` where the
    partial derivative is zero.
    """

    padded = CARRIED

    light = True
    accepts: ClassVar[frozenset[str]]
    op: ClassVar[str] = ""
    dialect: ClassVar[str] = "stablehlo"
    partials: ClassVar[tuple[Callable[..., Any] | None, ...]]
    costs: ClassVar[Costs] = Costs()
    """The measurements for the dtypes that XLA is faster for; see ``thresholds``."""
    compiled_from: ClassVar[Mapping[np.dtype, int]] = {}
    """The size from which on to compile, for each dtype; it follows from ``costs``."""

    splat = True
    transpose = NOT_LINEAR
    derives_widely: ClassVar[bool] = False
    """Say whether the derivative of narrow floats is computed in float32, and rounded last.

    This serves formulas whose parts overflow though they do not, as 1 / (1 + x**2) in float16. The
    functions of which networks are made go without: what they keep for the way back would be twice
    as large.
    """

    def by_rows(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> bool:
        return True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        """Keep all axes: each element is treated alone."""
        return range(out.ndim)

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        derives = hasattr(cls, "partials") or cls.jvp is not Elementwise.jvp
        lowers = cls.op or cls.lower is not Elementwise.lower
        if not abstract and not (derives and lowers and hasattr(cls, "accepts")):
            raise TypeError(
                f"element-wise primitive {cls.__name__} must state accepts, op (or lower) and "
                f"partials (or jvp)"
            )
        super().__init_subclass__(abstract=abstract, **kwargs)
        if not abstract:
            cls.compiled_from = cls.costs.sizes()
            # NumPy's ufuncs are quick in float32, and ml_dtypes computes in it too, but slowly.
            plain = isinstance(cls.__dict__.get("reference"), staticmethod)
            cls.widens = cls.__dict__.get("widens", plain)

    def out_dtype(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype of the output for operands of this one."""
        return dtype

    def infer(self, *types: ArrayType) -> ArrayType:
        """Return the operands' shape; refuses kinds not accepted, and operands that differ."""
        first = types[0]
        kind = kind_of(first.dtype)
        if kind not in self.accepts:
            check_kind(self.name, self.accepts, first)
        for i, other in enumerate(types[1:], 1):
            if other.shape != first.shape or other.dtype != first.dtype:
                raise TypeError(
                    f"{self.name}: operands must have one shape and dtype, got {first} (operand 0) "
                    f"and {other} (operand {i})"
                )
        weak = all(t.weak_type for t in types)
        return array_type(first.shape, self.out_dtype(first.dtype), weak)

    def lower(self, b: Any, *operands: Any) -> Any:
        """Write one operation of StableHLO, or of another dialect."""
        return b.operation(f"{self.dialect}.{self.op}", operands)

    def widely(self, *operands: np.ndarray) -> np.ndarray:
        """Compute large arrays of a dtype that NumPy lacks: in float32, unless overridden.

        The result has the operands' dtype or float32.
        """
        return self.reference(*[widened_to_float32(x) for x in operands])

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile for large arrays of the dtypes for which XLA was measured to be faster."""
        type, sizes = types[0], self.compiled_from
        least = sizes.get(type.dtype)
        return least is not None and exceeds(type.size, max(NARROW, least) - 1)

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        """Count ten times as much where integers are refused: such functions are polynomials."""
        return super().work(types, outs) * (1 if self.accepts & INTEGRAL else 10)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Sum each argument's partial derivative times its tangent."""
        narrow = primals[0].dtype
        if self.derives_widely and narrow.itemsize < 4 and kind_of(narrow) == "float":
            wide = [convert(x, _FLOAT32) for x in primals]
            moving = [dx if dx is None else convert(dx, _FLOAT32) for dx in tangents]
            out, total = self.jvp(wide, moving)
            return convert(out, narrow), total if total is None else convert(total, narrow)
        out = self(*primals)
        total = None
        for partial, dx in zip(self.partials, tangents, strict=True):
            if dx is not None and partial is not None:
                part = partial(dx, out, *primals)
                total = part if total is None else total + part
        return out, total

    def vmap(
        self, size: int, args: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Any, int | None]:
        """Bring the mapped axes to one place, broadcast what is not mapped, and apply."""
        values, axis = align_mapped(size, args, axes)
        return self(*values), axis


def check_kind(caller: str, kinds: frozenset[str], *types: ArrayType) -> None:
    """Raise ``TypeError`` for a type whose dtype is not of these kinds."""
    for each in types:
        if each.kind not in kinds:
            raise TypeError(
                f"{caller}: expected an array of kind {' or '.join(sorted(kinds))}, got {each}"
            )


def widened_to_float32(x: np.ndarray) -> np.ndarray:
    """Give the numbers in float32; an array that repeats one element still takes no more memory."""
    if x.size and not any(x.strides):
        return repeated(np.asarray(x[(0,) * x.ndim]).astype(np.float32), x.shape)
    return x.astype(np.float32)


def in_float32(f: Any, x: np.ndarray) -> np.ndarray:
    """Return a function computed in at least float32, and returned in the dtype of ``x``."""
    if x.dtype.itemsize < 4:
        return f(x.astype(np.float32)).astype(x.dtype)
    return f(x)


def align_mapped(
    size: int, args: Sequence[Any], axes: Sequence[int | None]
) -> tuple[list[Any], int]:
    """Return values that all have the mapped axis, at one place, and that place."""
    axis = axes[0]
    if axis is not None and axes.count(axis) == len(axes):
        return [*args], axis
    axis = next(a for a in axes if a is not None)
    values = []
    for x, a in zip(args, axes, strict=True):
        if a is None:
            own = x.type.shape
            values.append(_repeat(x, (*own[:axis], size, *own[axis:]), axis))
        else:
            values.append(x if a == axis else move_axis(x, a, axis))
    return values, axis


def _repeat(x: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Give the value repeated along a new axis; without an operation if it repeats one element."""
    folds = not isinstance(x, Tracer) and state.maker is state.eager
    host = x.host() if folds else None
    if host is not None and host.size and (host.size == 1 or not any(host.strides)):
        element = host if host.size == 1 else np.asarray(host[(0,) * host.ndim])
        type = x.type.with_shape(shape)
        if type.varies:
            return splat(element.reshape(()), type)
        return state.eager.constant(repeated(element, shape), type)
    dims = tuple([d for d in range(len(shape)) if d != axis])
    return BroadcastInDim(shape, dims)(x)


# The functions in front of the primitives


@functools.lru_cache(4096)
def broadcast_shapes(caller: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common shape by NumPy's rule: axes align from the last, and size 1 stretches.

    Raises ``ValueError`` naming the shapes.
    """
    ndim = max(map(len, shapes))
    out = []
    for i in range(-ndim, 0):
        sizes = {shape[i] for shape in shapes if len(shape) >= -i}
        sizes.discard(1)
        if len(sizes) > 1:
            raise ValueError(
                f"{caller}: shapes {' and '.join(map(str, shapes))} do not broadcast: axis {i} has "
                f"sizes {' and '.join(sorted(map(str, sizes)))}"
            )
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def _scalar(x: Any, dtype: np.dtype, shape: tuple[int, ...], weak: bool, caller: str) -> Any:
    """Return a Python number as a splat of this dtype and shape."""
    if kind_of(dtype) in INTEGRAL and isinstance(x, int) and not isinstance(x, bool):
        bounds = ml_dtypes.iinfo(dtype)
        if not bounds.min <= x <= bounds.max:
            raise OverflowError(
                f"{caller}: the Python integer {shown(x)} does not fit in {dtype.name}"
            )
    return splat(x, array_type(shape, dtype, weak))


def promote_values(
    caller: str, *args: Any, inexact: bool = False, ranks: bool = False
) -> list[Any]:
    """Return the arguments as values of one dtype and one shape, by promotion and broadcasting.

    With ``inexact`` integers and booleans become the default float. With ``ranks`` the ranks may
    differ, whatever ``config.numpy_rank_promotion`` is.
    """
    kinds: list[tuple[np.dtype, bool]] = []
    shapes: list[tuple[int, ...]] = []
    values: list[Any] = []
    for i, x in enumerate(args):
        python_type = type(x)
        if python_type in (bool, int, float, complex):
            kinds.append((scalar_dtype(python_type), python_type is not bool))
            shapes.append(())
            values.append(x)
            continue
        value = as_value(x, caller, "xyz"[i] if i < 3 else f"argument {i}")
        kinds.append((value.type.dtype, value.type.weak_type))
        shapes.append(value.type.shape)
        values.append(value)
    dtype, weak = promote(kinds, caller)
    if inexact and not is_inexact(dtype):
        dtype = inexact_dtype(dtype)
        weak = all(w for _, w in kinds)
    if len(set(shapes)) == 1:
        shape = shapes[0]
    else:
        if not ranks:
            check_ranks(caller, *shapes)
        shape = broadcast_shapes(caller, *shapes)
    out = []
    for x in values:
        if not isinstance(x, Value):
            out.append(_scalar(x, dtype, shape, weak, caller))
            continue
        if x.type.dtype is not dtype or x.type.weak_type != weak:
            x = convert(x, dtype, weak)
        out.append(x if x.type.shape == shape else broadcast_to(x, shape))
    return out


def unary(primitive: Elementwise, x: Any, caller: str = "") -> Any:
    """Apply to one argument, converted to a float where the primitive takes no integers.

    Errors name the ``caller``, by default the primitive.
    """
    if not isinstance(x, Value):
        x = as_value(x, caller or primitive.name)
    kind = x.type.kind
    if kind not in primitive.accepts:
        if is_inexact(x.type.dtype):
            check_kind(caller or primitive.name, primitive.accepts, x.type)
        elif "float" in primitive.accepts and not primitive.accepts & INTEGRAL:
            x = convert(x, scalar_dtype(float), x.type.weak_type)
        elif kind == "bool" and "int" in primitive.accepts:
            x = convert(x, canonical_dtype(np.dtype(np.int32)), False)
    return primitive(x)


def binary(primitive: Elementwise, x: Any, y: Any, caller: str = "") -> Any:
    """Apply to two arguments, promoted and broadcast.

    Errors name the ``caller``, by default the primitive.
    """
    if (
        isinstance(x, Value)
        and isinstance(y, Value)
        and x.type is y.type
        and x.type.kind in primitive.accepts
    ):
        return primitive(x, y)
    inexact = "float" in primitive.accepts and not primitive.accepts & INTEGRAL
    caller = caller or primitive.name
    values = promote_values(caller, x, y, inexact=inexact)
    check_kind(caller, primitive.accepts, values[0].type)
    return primitive(*values)
