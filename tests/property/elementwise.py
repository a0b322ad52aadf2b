"""Element-wise operations of the table that random programs are drawn from.

A row has the expression, the domain that the operand is kept in, and the range of the result there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.property.writer import LIMIT, Skip, Writer, operation

__all__ = ["COMPLEX", "ELEMENTWISE", "PAIRS", "broadcast"]

WIDE = (-LIMIT, LIMIT)

# name: expression, domain, range
ELEMENTWISE: dict[str, tuple[str, tuple[float, float], tuple[float, float]]] = {
    "sign": ("snp.sign({0})", WIDE, (-1, 1)),
    "reduce_precision": ("lax.reduce_precision({0}, 11, 52)", WIDE, WIDE),
    "floor": ("snp.floor(1.7 * {0} + 0.3137)", (-3, 3), (-5, 6)),
    "ceil": ("snp.ceil(1.3 * {0} + 0.2713)", (-3, 3), (-4, 6)),
    "round": ("snp.round(1.9 * {0} + 0.1171)", (-3, 3), (-6, 6)),
    "exp": ("snp.exp({0})", (-3, 2), (0.04, 7.4)),
    "exp2": ("snp.exp2({0})", (-3, 2), (0.12, 4.01)),
    "expm1": ("snp.expm1({0})", (-3, 2), (-0.96, 6.4)),
    "log": ("snp.log({0})", (0.2, 10), (-1.7, 2.4)),
    "log1p": ("snp.log1p({0})", (-0.8, 10), (-1.7, 2.4)),
    "logistic": ("lax.logistic({0})", (-6, 6), (0.002, 0.998)),
    "sqrt": ("snp.sqrt({0})", (0.2, 10), (0.4, 3.2)),
    "rsqrt": ("lax.rsqrt({0})", (0.2, 10), (0.3, 2.3)),
    "cbrt": ("snp.cbrt({0})", (0.2, 10), (0.5, 2.2)),
    "reciprocal": ("snp.reciprocal({0})", (0.3, 10), (0.1, 3.4)),
    "erf": ("lax.erf({0})", (-3, 3), (-1, 1)),
    "erfc": ("lax.erfc({0})", (-3, 3), (0, 2)),
    "erf_inv": ("lax.erf_inv({0})", (-0.9, 0.9), (-1.2, 1.2)),
    "lgamma": ("lax.lgamma({0})", (0.5, 6), (-0.13, 4.8)),
    "bessel_i0e": ("lax.bessel_i0e({0})", (-6, 6), (0.16, 1)),
    "sin": ("snp.sin({0})", WIDE, (-1, 1)),
    "cos": ("snp.cos({0})", WIDE, (-1, 1)),
    "tan": ("snp.tan({0})", (-1.2, 1.2), (-2.6, 2.6)),
    "asin": ("snp.arcsin({0})", (-0.9, 0.9), (-1.2, 1.2)),
    "acos": ("snp.arccos({0})", (-0.9, 0.9), (0.4, 2.7)),
    "atan": ("snp.arctan({0})", WIDE, (-1.6, 1.6)),
    "sinh": ("snp.sinh({0})", (-2, 2), (-3.7, 3.7)),
    "cosh": ("snp.cosh({0})", (-2, 2), (1, 3.8)),
    "tanh": ("snp.tanh({0})", (-4, 4), (-1, 1)),
    "asinh": ("snp.arcsinh({0})", (-10, 10), (-3, 3)),
    "acosh": ("snp.arccosh({0})", (1.2, 10), (0.6, 3)),
    "atanh": ("snp.arctanh({0})", (-0.9, 0.9), (-1.5, 1.5)),
    "square": ("snp.square({0})", (-4, 4), (0, 16)),
    "cube": ("{0} ** 3", (-2, 2), (-8, 8)),
    "fourth": ("{0} ** 4", (-2, 2), (0, 16)),
    "power_minus_2": ("{0} ** -2", (0.4, 10), (0, 6.3)),
    "power_half": ("{0} ** 0.5", (0.2, 10), (0.4, 3.2)),
    "relu": ("st.nn.relu({0})", (-3, 3), (0, 3)),
    "gelu": ("st.nn.gelu({0}, 'tanh')", (-3, 3), (-0.2, 3)),
    "silu": ("st.nn.silu({0})", (-3, 3), (-0.3, 3)),
    "elu": ("st.nn.elu({0})", (-3, 3), (-1, 3)),
    "softplus": ("st.nn.softplus({0})", (-3, 3), (0.04, 3.1)),
    "sinc": ("snp.sinc({0})", (0.1, 4), (-0.3, 1)),
    "log2": ("snp.log2({0})", (0.2, 10), (-2.4, 3.4)),
    "clip": ("snp.clip({0}, -0.6172, 0.7131)", WIDE, (-0.62, 0.72)),
    "clamp": ("lax.clamp(-0.5117, {0}, 0.6913)", WIDE, (-0.52, 0.7)),
    "literal": ("1.5 - {0}", (-4, 4), (-2.5, 5.5)),
    "number": ("{0} * FLOAT(0.7)", (-4, 4), (-2.8, 2.8)),
    "nan_to_num": ("snp.nan_to_num({0})", (-4, 4), (-4, 4)),
    "narrowed": ("({0} > 0.1213).astype(snp.float32).astype({0}.dtype)", WIDE, (0, 1)),
}

# name: expression, domains, range
PAIRS: dict[str, tuple[str, tuple[float, float], tuple[float, float], tuple[float, float]]] = {
    "divide": ("{0} / {1}", (-10, 10), (0.5, 10), (-20, 20)),
    "maximum": ("snp.maximum({0}, {1})", WIDE, WIDE, WIDE),
    "minimum": ("snp.minimum({0}, {1})", WIDE, WIDE, WIDE),
    "power": ("snp.power({0}, {1})", (0.3, 4), (-2, 2), (0.06, 16)),
    "arctan2": ("snp.arctan2({0}, {1})", (-4, 4), (0.3, 4), (-1.6, 1.6)),
    "remainder": ("lax.rem({0} + 5.1171, {1})", (-4, 4), (1.1, 3), (0, 3)),
    "mod": ("snp.mod({0} + 0.0271, {1})", (-4, 4), (1.1, 3), (0, 3)),
    "nextafter": ("lax.nextafter({0}, {1} + 70)", WIDE, (-4, 4), WIDE),
    "logaddexp": ("snp.logaddexp({0}, {1})", (-4, 4), (-4, 4), (-4, 5)),
    "hypot": ("snp.hypot({0}, {1})", (-4, 4), (0.3, 4), (0.2, 6)),
    "copysign": ("snp.copysign({0}, {1} + 0.0317)", (-4, 4), (-4, 4), (-4, 4)),
}


def _elementwise(text: str, domain: tuple[float, float], image: tuple[float, float]) -> Any:
    def write(w: Writer) -> None:
        v = w.float(*domain)
        w.emit(text, [v], v.shape, *image)

    return write


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The common shape, if there is one."""
    out: list[int] = []
    for sizes in zip(*[(1,) * (max(map(len, shapes)) - len(s)) + tuple(s) for s in shapes]):
        larger = {n for n in sizes if n != 1}
        if len(larger) > 1:
            raise Skip
        out.append(larger.pop() if larger else 1)
    return tuple(out)


def _pair(text: str, first: Any, second: Any, image: tuple[float, float]) -> Any:
    def write(w: Writer) -> None:
        x, y = w.float(*first), w.float(*second)
        w.emit(text, [x, y], w.small(broadcast(x.shape, y.shape)), *image)

    return write


for _name, _row in ELEMENTWISE.items():
    operation(_name, 0.3)(_elementwise(*_row))
for _name, _line in PAIRS.items():
    operation(_name, 0.4)(_pair(*_line))


# Arithmetic.


def _arithmetic(name: str, symbol: str, bound: Callable[[float, float], float]) -> None:
    def write(w: Writer) -> None:
        x, y = w.inexact(), w.inexact()
        if bound(x.bound, y.bound) > LIMIT:
            x, y = w.within(x, -2, 2), w.within(y, -2, 2)
        shape = w.small(broadcast(x.shape, y.shape))
        kind = "complex" if "complex" in (x.kind, y.kind) else "float"
        b = bound(x.bound, y.bound) * (2 if kind == "complex" else 1)
        w.emit(f"{{0}} {symbol} {{1}}", [x, y], shape, -b, b, kind)

    operation(name, 1.5)(write)


_arithmetic("add", "+", lambda a, b: a + b)
_arithmetic("subtract", "-", lambda a, b: a + b)
_arithmetic("multiply", "*", lambda a, b: a * b)


@operation("negative", 0.3)
def _negative(w: Writer) -> None:
    v = w.inexact()
    w.emit("-{0}", [v], v.shape, -v.high, -v.low, v.kind)


@operation("absolute", 0.4)
def _absolute(w: Writer) -> None:
    v = w.float()
    w.emit("snp.abs({0})", [v], v.shape, 0.0, v.bound)


@operation("where", 0.8)
def _where(w: Writer) -> None:
    x, y = w.inexact(), w.inexact()
    condition = w.any_of(lambda v: v.kind in ("float", "bool"))
    shape = w.small(broadcast(x.shape, y.shape, condition.shape))
    text = "{0}" if condition.kind == "bool" else f"{{0}} > {w.odd()}"
    kind = "complex" if "complex" in (x.kind, y.kind) else "float"
    b = max(x.bound, y.bound)
    w.emit(f"snp.where({text}, {{1}}, {{2}})", [condition, x, y], shape, -b, b, kind)


@operation("clamp_by_arrays", 0.3)
def _clamp(w: Writer) -> None:
    x, low, high = w.float(), w.float(-2, 0.1), w.float(0.11, 2)
    shape = w.small(broadcast(x.shape, low.shape, high.shape))
    w.emit("snp.clip({0}, {1}, {2})", [x, low, high], shape, -2, 2)


# Booleans and integers.


@operation("compare", 0.4)
def _compare(w: Writer) -> None:
    x, y = w.float(), w.float()
    symbol = w.rng.choice(["<", "<=", ">", ">=", "!=", "=="])
    shape = w.small(broadcast(x.shape, y.shape))
    w.emit(f"{{0}} + {w.odd()} {symbol} {{1}}", [x, y], shape, kind="bool")


@operation("logic", 0.3)
def _logic(w: Writer) -> None:
    x, y = (w.any_of(lambda v: v.kind == "bool") for _ in range(2))
    shape = w.small(broadcast(x.shape, y.shape))
    w.emit(f"{{0}} {w.rng.choice('&|^')} ~{{1}}", [x, y], shape, kind="bool")


@operation("finite", 0.1)
def _finite(w: Writer) -> None:
    v = w.float()
    w.emit("snp.isfinite({0})", [v], v.shape, kind="bool")


@operation("integers", 0.4)
def _integers(w: Writer) -> None:
    x, y = (w.any_of(lambda v: v.kind == "int") for _ in range(2))
    symbol = w.rng.choice(["+", "*", "-", "&", "|", "^", "// 3 +", "<< 1 &", ">> 1 |", "% 5 *"])
    shape = w.small(broadcast(x.shape, y.shape))
    v = w.emit(f"{{0}} {symbol} {{1}}", [x, y], shape, -1e9, 1e9, "int")
    w.emit("snp.bitwise_count({0}).astype(INT) % 4", [v], shape, 0, 3, "int")


@operation("to_float", 0.4)
def _to_float(w: Writer) -> None:
    v = w.any_of(lambda v: v.kind in ("int", "bool"))
    text = "{0} % 7 * 0.25" if v.kind == "int" else "{0} * 1.5"
    w.emit(f"({text}).astype(FLOAT)", [v], v.shape, 0, 1.5)


@operation("to_integer", 0.3)
def _to_integer(w: Writer) -> None:
    v = w.float(-1, 1)
    text = "snp.floor(1.51 * {0} + 1.5137).astype(INT)"
    w.emit(text, [v], v.shape, 0, 3, "int")


@operation("random", 0.15)
def _random(w: Writer) -> None:
    v = w.any_of(lambda v: v.kind == "int")
    key = "st.random.fold_in(st.random.key(7), {0})"
    if v.ndim:
        raise Skip
    w.emit(f"st.random.uniform({key}, (2,), FLOAT)", [v], (2,), 0, 1)


# Complex numbers.


@operation("make_complex", 0.3)
def _make_complex(w: Writer) -> None:
    x, y = w.float(), w.float()
    shape = w.small(broadcast(x.shape, y.shape))
    text = f"lax.complex(snp.broadcast_to({{0}}, {shape}), snp.broadcast_to({{1}}, {shape}))"
    b = max(x.bound, y.bound)
    w.emit(text, [x, y], shape, -b, b, "complex")


@operation("part", 0.5)
def _part(w: Writer) -> None:
    v = w.complex()
    w.emit(f"snp.{w.rng.choice(['real', 'imag'])}({{0}})", [v], v.shape, v.low, v.high)


COMPLEX = {
    "conj": ("snp.conj({0})", "complex", 1),
    "modulus": ("snp.abs({0} + (1.5 + 0.3j))", "float", 4),
    "angle": ("snp.angle({0} + 2)", "float", 3.2),
    "exp": ("snp.exp({0})", "complex", 3),
    "log": ("snp.log({0} + 2.5)", "complex", 3),
    "sin": ("snp.sin({0})", "complex", 3),
    "cosh": ("snp.cosh({0})", "complex", 3),
    "tanh": ("snp.tanh(0.5 * {0})", "complex", 2),
    "sqrt": ("snp.sqrt({0} + 2.5)", "complex", 3),
    "square": ("snp.square({0})", "complex", 2),
    "cube": ("{0} ** 3", "complex", 6),
    "reciprocal": ("1 / ({0} + (0.5 + 2j))", "complex", 3),
    "cumsum": ("snp.cumsum(snp.ravel({0})).reshape({0}.shape)", "complex", 27),
    "cumprod": ("snp.cumprod(0.6 * snp.ravel({0})).reshape({0}.shape)", "complex", 2),
    "prod": ("snp.prod(0.6 * {0}) * {0}", "complex", 2),
}


@operation("complex_function", 0.9)
def _complex_function(w: Writer) -> None:
    v = w.complex(1)
    text, kind, bound = COMPLEX[w.rng.choice(sorted(COMPLEX))]
    w.emit(text, [v], v.shape, -bound, bound, kind)
