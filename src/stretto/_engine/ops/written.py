"""Functions written out: one formula, for NumPy's arrays and for the text of compiled programs.

XLA has no operation for most special functions. Here a formula is a Python function of ``Number``s:
NumPy arrays when it is evaluated, ``Term``s when it is lowered. Both are float64 or complex128
whatever the operands are, so that float32 results are right to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import array_type, is_complex, real_dtype
from stretto._engine.ops.elementwise import FLOAT, Elementwise

Number = Any
"""A NumPy array of float64 or complex128, or a term of that type."""

special = LazyModule("scipy.special")

_WIDE, _WIDE_COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)
_BOOL = np.dtype(bool)


class Term:
    """An operand of the program being written, with operators that write operations."""

    __slots__ = ("b", "operand")
    __array_ufunc__ = None

    def __init__(self, b: Any, operand: Any) -> None:
        self.b = b
        self.operand = operand

    def like(self, other: Any) -> Term:
        """Return another term as it is, or a number as a term of this type."""
        return other if isinstance(other, Term) else Term(self.b, self.b.splat(other, self.type))

    @property
    def type(self) -> Any:
        """Shape and dtype."""
        return self.operand.type

    def apply(self, op: str, *others: Any, out: Any = None, dialect: str = "stablehlo") -> Term:
        """Apply an operation to this term and others, by default of this type."""
        operands = [self.operand, *[self.like(x).operand for x in others]]
        out = self.type if out is None else out
        return Term(self.b, self.b.emit(op, *operands, out=out, dialect=dialect))

    def compare(self, direction: str, other: Any) -> Term:
        """Compare with another, which gives booleans."""
        return Term(self.b, self.b.compare(direction, self.operand, self.like(other).operand))

    def __add__(self, other: Any) -> Term:
        return self.apply("add", other)

    def __radd__(self, other: Any) -> Term:
        return self.like(other).apply("add", self)

    def __sub__(self, other: Any) -> Term:
        return self.apply("subtract", other)

    def __rsub__(self, other: Any) -> Term:
        return self.like(other).apply("subtract", self)

    def __mul__(self, other: Any) -> Term:
        return self.apply("multiply", other)

    def __rmul__(self, other: Any) -> Term:
        return self.like(other).apply("multiply", self)

    def __truediv__(self, other: Any) -> Term:
        return self.apply("divide", other)

    def __rtruediv__(self, other: Any) -> Term:
        return self.like(other).apply("divide", self)

    def __neg__(self) -> Term:
        return self.apply("negate")

    def __lt__(self, other: Any) -> Term:
        return self.compare("LT", other)

    def __le__(self, other: Any) -> Term:
        return self.compare("LE", other)

    def __gt__(self, other: Any) -> Term:
        return self.compare("GT", other)

    def __ge__(self, other: Any) -> Term:
        return self.compare("GE", other)

    def __eq__(self, other: object) -> Term:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.compare("EQ", other)

    def __ne__(self, other: object) -> Term:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.compare("NE", other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __and__(self, other: Any) -> Term:
        return self.apply("and", other)

    def __or__(self, other: Any) -> Term:
        return self.apply("or", other)

    def __invert__(self) -> Term:
        return self.apply("not")


def _function(numpy_function: Callable[..., Any], op: str, dialect: str = "stablehlo") -> Any:
    """Return a function of a number: NumPy's, or the operation of this name."""

    def call(x: Number) -> Number:
        return x.apply(op, dialect=dialect) if isinstance(x, Term) else numpy_function(x)

    return call


exp, expm1 = _function(np.exp, "exponential"), _function(np.expm1, "exponential_minus_one")
log = _function(np.log, "log")
sin, cos = _function(np.sin, "sine"), _function(np.cos, "cosine")
tangent = _function(np.tan, "tan")
sqrt, floor = _function(np.sqrt, "sqrt"), _function(np.floor, "floor")
erfc = _function(lambda x: special.erfc(x), "erfc", "chlo")  # noqa: PLW0108 (SciPy comes late)


def log1p(x: Number) -> Number:
    """Return log(1 + x), of terms by Kahan's correction: XLA's is off by a hundred ulps near -1."""
    if not isinstance(x, Term):
        return np.log1p(x)
    near = 1.0 + x
    rounded = -(1.0 - near)  # what rounding left of x; XLA would simplify near - 1 to x
    corrected = where(rounded == x, log(near), log(near) * (x / rounded))
    return where(rounded == 0.0, x, corrected)


def power(x: Number, y: Number) -> Number:
    """Raise x to the power y, one of which may be a Python number."""
    if isinstance(y, Term):
        return y.like(x).apply("power", y)
    return x.apply("power", y) if isinstance(x, Term) else np.power(x, y)


def absolute(x: Number) -> Number:
    """Return the absolute value; of complex numbers real."""
    if not isinstance(x, Term):
        return np.abs(x)
    return x.apply("abs", out=array_type(x.type.shape, real_dtype(x.type.dtype)))


def real_part(z: Number) -> Number:
    """Return the real part."""
    if not isinstance(z, Term):
        return np.real(z)
    return z.apply("real", out=array_type(z.type.shape, _WIDE))


def imaginary(z: Number) -> Number:
    """Return the imaginary part."""
    if not isinstance(z, Term):
        return np.imag(z)
    return z.apply("imag", out=array_type(z.type.shape, _WIDE))


def complex_number(x: Number, y: Number) -> Number:
    """Return x + iy, neither of which is a Python number."""
    if isinstance(x, Term):
        return x.apply("complex", y, out=array_type(x.type.shape, _WIDE_COMPLEX))
    out = np.empty(np.shape(x), _WIDE_COMPLEX)
    out.real, out.imag = x, y
    return out


def where(condition: Number, x: Any, y: Any) -> Number:
    """Choose ``x`` where the condition holds, else ``y``; two Python numbers give float64."""
    if not isinstance(condition, Term):
        return np.where(condition, x, y)
    term = x if isinstance(x, Term) else y
    out = term.type if isinstance(term, Term) else array_type(condition.type.shape, _WIDE)
    b = condition.b
    either = [v if isinstance(v, Term) else Term(b, b.splat(v, out)) for v in (x, y)]
    return condition.apply("select", *either, out=out)


def is_nan(x: Number) -> Number:
    """Say whether it is NaN."""
    return x != x  # noqa: PLR0124 (the definition)


def alike(x: Number, value: float) -> Number:
    """Return this value everywhere, in the shape of ``x``."""
    return x.like(value) if isinstance(x, Term) else np.full_like(x, value)


def horner(coefficients: Sequence[float], x: Number) -> Number:
    """Return the polynomial, its coefficients from the lowest power up."""
    total = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def chebyshev(coefficients: Sequence[float], t: Number) -> Number:
    """Return the sum of c_k T_k(t) by Clenshaw's recurrence (DLMF 3.11.15)."""
    double, ahead, total = 2 * t, 0.0, coefficients[-1]
    for c in coefficients[-2:0:-1]:
        total, ahead = double * total + (c - ahead), total
    return t * total + (coefficients[0] - ahead)


def loop(
    going: Callable[..., Number],
    step: Callable[..., Sequence[Number]],
    state: Sequence[Number],
    most: int,
) -> list[Number]:
    """Repeat ``step(n, *state)`` for each element that is ``going(*state)``; n counts from 1.

    At most ``most`` times. An element that is done keeps its state, as further steps would only add
    rounding errors. ``going`` must be false for NaN.
    """
    first = state[0]
    if isinstance(first, Term):
        return _loop_of_terms(going, step, state, most)
    state, n, active = [*state], 1, going(*state)
    while n <= most and np.any(active):
        state = [where(active, y, x) for x, y in zip(state, step(float(n), *state))]
        n, active = n + 1, going(*state)
    return state


def _loop_of_terms(going: Any, step: Any, state: Sequence[Term], most: int) -> list[Number]:
    b, shape = state[0].b, state[0].type.shape
    scalar, flag = array_type((), _WIDE), array_type((), _BOOL)

    def unfinished(n: Any, *operands: Any) -> list[Any]:
        active = going(*[Term(b, x) for x in operands]).operand
        any_active = b.reduce("or", active, range(len(shape)), False)
        return [b.emit("and", any_active, b.compare("LE", n, b.splat(most, scalar)), out=flag)]

    def body(n: Any, *operands: Any) -> list[Any]:
        wide = array_type(shape, _WIDE)
        spread = b.broadcast(n, (), wide)
        before = [Term(b, x) for x in operands]
        active, after = going(*before), step(Term(b, spread), *before)
        states = [where(active, y, x).operand for x, y in zip(before, after)]
        return [b.emit("add", n, b.splat(1, scalar), out=scalar), *states]

    operands = [b.splat(1, scalar), *[x.operand for x in state]]
    return [Term(b, x) for x in b.while_loop(unfinished, body, operands)[1:]]


def from_scipy(name: str) -> Any:
    """Return the method ``exact`` that is SciPy's function of this name."""

    def exact(self: Written, *args: np.ndarray) -> np.ndarray:
        return getattr(special, name)(*args)

    exact.__doc__ = f"SciPy's ``{name}``."
    return exact


def _wide(dtype: np.dtype) -> np.dtype:
    return _WIDE_COMPLEX if is_complex(dtype) else _WIDE


class Written(Elementwise, abstract=True):
    """An element-wise function that is lowered as its ``formula``, which computes in 64 bits.

    Eagerly it is ``exact``, of arrays in 64 bits: SciPy's function, or else the formula.
    """

    light = False
    derives_widely = True
    accepts = FLOAT
    formula: ClassVar[Callable[..., Number]]

    def exact(self, *args: np.ndarray) -> np.ndarray:
        """Compute the formula, of NumPy's arrays."""
        return self.formula(*args)

    def reference(self, *args: np.ndarray) -> np.ndarray:
        """Return the ``exact`` result in 64 bits, rounded."""
        dtype = args[0].dtype
        return np.asarray(self.exact(*[x.astype(_wide(dtype)) for x in args])).astype(dtype)

    def lower(self, b: Any, *operands: Any) -> Any:
        out = b.outs[0].dtype
        terms = [Term(b, b.convert(x, _wide(out))) for x in operands]
        return b.convert(self.formula(*terms).operand, out)

    def work(self, types: Any, outs: Any) -> float:
        """Count about a hundred operations an element."""
        return 10 * super().work(types, outs)
