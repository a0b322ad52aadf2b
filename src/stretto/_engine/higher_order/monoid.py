"""Programs of two elements: those of known reductions, and associative ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.autodiff.vmap import vmap_program
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.program import Literal, Program
from stretto._engine.core.types import kind_of, promote
from stretto._engine.ops.arithmetic import Add, Mul, add, multiply
from stretto._engine.ops.bitwise import And, Or, Xor, bitwise_and, bitwise_or, bitwise_xor
from stretto._engine.ops.broadcast import ReduceSum
from stretto._engine.ops.convert import convert
from stretto._engine.ops.extrema import Max, Min, maximum, minimum
from stretto._engine.ops.reducing.reduce import (
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceOr,
    ReduceProd,
    ReduceXor,
)
from stretto._engine.ops.reducing.window import (
    ReduceWindowAnd,
    ReduceWindowMax,
    ReduceWindowMin,
    ReduceWindowOr,
    ReduceWindowProd,
    ReduceWindowSum,
    ReduceWindowXor,
    WindowReduction,
)

_SAMPLES = 24
"""The triples of elements that a program is tried with; one that is not associative shows."""


class Monoid(NamedTuple):
    """An associative, commutative operation with an identity, and its reductions."""

    whole: Callable[[tuple[int, ...]], Primitive]
    window: type[WindowReduction]
    combine: Callable[[Any, Any], Any]

    def started(self, caller: str, out: Any, start: Any) -> Any:
        """Combine ``out``, a reduction that began with the identity, with ``start``."""
        neutral = self.window.identity(start.dtype)
        if not isinstance(start, Tracer) and np.asarray(start) == neutral:
            return out
        return self.combine(start_of(caller, out, start), out)


_MONOIDS: dict[type[Primitive], Monoid] = {
    Add: Monoid(ReduceSum, ReduceWindowSum, add),
    Mul: Monoid(ReduceProd, ReduceWindowProd, multiply),
    Max: Monoid(ReduceMax, ReduceWindowMax, maximum),
    Min: Monoid(ReduceMin, ReduceWindowMin, minimum),
    And: Monoid(ReduceAnd, ReduceWindowAnd, bitwise_and),
    Or: Monoid(ReduceOr, ReduceWindowOr, bitwise_or),
    Xor: Monoid(ReduceXor, ReduceWindowXor, bitwise_xor),
}
_OF_TRUTH: dict[type[Primitive], type[Primitive]] = {Add: Or, Mul: And}


def monoid_of(program: Program) -> Monoid | None:
    """Return the monoid, if the program is the one operation of a known monoid."""
    if len(program.equations) != 1:
        return None
    (equation,) = program.equations
    whole = [*equation.outputs] == [*program.outputs]
    if not whole or len(program.inputs) != 2 or {*equation.inputs} != {*program.inputs}:
        return None
    kind = type(equation.primitive)
    if kind_of(program.in_types[0].dtype) == "bool":
        kind = _OF_TRUTH.get(kind, kind)
    return _MONOIDS.get(kind)


def start_of(caller: str, x: Any, start: Any) -> Any:
    """Return an initial value in the dtype of its operand."""
    dtype, _ = promote([(x.dtype, False), (start.dtype, start.weak_type)], caller)
    if dtype != x.dtype:
        raise TypeError(
            f"{caller}: expected an initial value of dtype {x.dtype.name}, got {start.type}"
        )
    return convert(start, dtype)


def is_monoid(program: Program, starts: Sequence[Any]) -> bool | None:
    """Return whether a program is associative, and ``starts`` leave every element as it is.

    It is tried on random elements. None if that cannot be told: some operation has no value here,
    or an initial value is traced.
    """
    count = len(program.outputs)
    if any([isinstance(start, Tracer) for start in starts]):
        return None
    rng = np.random.default_rng(0)
    dtypes = [v.type.dtype for v in program.inputs[:count]]
    x, y, z = ([_samples(rng, dtype) for dtype in dtypes] for _ in range(3))
    every = (True,) * (2 * count), (True,) * count
    pairs, _ = vmap_program(program, _SAMPLES, *every)
    with np.errstate(all="ignore"):
        try:
            left = _values(pairs, [*_values(pairs, [*x, *y]), *z])
            right = _values(pairs, [*x, *_values(pairs, [*y, *z])])
            kept: list[np.ndarray] = []
            if starts:
                start = [np.repeat(np.asarray(s), _SAMPLES) for s in starts]
                kept = [*_values(pairs, [*start, *x]), *_values(pairs, [*x, *start])]
        except MissingRuleError:
            return None
    return all(map(_alike, [*left, *kept], [*right, *x, *x][: len(left) + len(kept)]))


def _samples(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """Random elements: a few of each sign, for floats and integers."""
    kind = kind_of(dtype)
    if kind == "bool":
        return rng.random(_SAMPLES) < 0.5
    if kind in ("int", "uint"):
        return rng.integers(0 if kind == "uint" else -4, 5, _SAMPLES).astype(dtype)
    real = rng.uniform(-2, 2, _SAMPLES)
    return (real + 1j * rng.uniform(-2, 2, _SAMPLES) if kind == "complex" else real).astype(dtype)


def _alike(x: np.ndarray, y: np.ndarray) -> bool:
    """Say if arrays are equal to rounding, where both are numbers."""
    if kind_of(x.dtype) not in ("float", "complex"):
        return np.array_equal(x, y)
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known].astype(complex), y[known].astype(complex)
    # Rounding of a few operations, also in bfloat16; what is not associative is far off somewhere.
    return bool(np.all(np.abs(x - y) <= 0.06 * (1 + np.abs(x))))


def _values(program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return a program's outputs by NumPy; ``MissingRuleError`` where an operation has none."""
    known: dict[Any, np.ndarray] = dict(zip(program.inputs, args, strict=True))

    def read(atom: Any) -> np.ndarray:
        return atom.array() if isinstance(atom, Literal) else known[atom]

    for equation in program.equations:
        primitive: Any = equation.primitive
        inputs = [read(a) for a in equation.inputs]
        if primitive.holds_programs:
            inner = primitive.inlined()
            if inner is None:
                raise MissingRuleError(f"{primitive.name} has no value outside of a program")
            outs = _values(inner, inputs)
        elif primitive.effects or primitive.calls_python:
            raise MissingRuleError(f"{primitive.name} has effects")
        else:
            result = primitive.reference(*inputs)
            outs = result if primitive.multiple else [result]
        known.update(zip(equation.outputs, map(np.asarray, outs), strict=True))
    return [read(a) for a in program.outputs]
