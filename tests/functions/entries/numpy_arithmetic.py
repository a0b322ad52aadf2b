"""Entries of `arithmetic` and `logic` of `numpy`."""

import numpy as np

from tests.functions.table import BINARY, UNARY, call, entry, given, x

NUMBERS = "f32 f64 i32 u8 c64"
SMOOTH = [call(x(2, 3, low=0.3), x(3, low=0.3)), call(x(), x(2, 1)), call(x(0, 3), x(3))]
POSITIVE = [call(x(2, 3, low=0.5), x(3, low=0.5)), call(x(low=0.5), x(2, 1, low=0.5))]
SPECIAL = call(given([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5], "f32"))
SPECIAL_PAIRS = call(
    given([[0.0], [-0.0], [np.inf], [-np.inf], [np.nan], [3.0]], "f32"),
    given([0.0, -0.0, np.inf, -np.inf, np.nan, -2.0], "f32"),
)
NOT_SMOOTH = "its special values are not differentiable"

for name in ("add", "subtract", "multiply"):
    dtypes = f"{NUMBERS} i8 c128 f32+i32 i32+u8" + ("" if name == "subtract" else " bool")
    entry(f"numpy.{name}", getattr(np, name), BINARY, dtypes)
entry("numpy.divide", np.divide, POSITIVE, "f32 f64 i32 c64 f32+i32")
entry("numpy.power", np.power, POSITIVE, "f32 f64 u8 c64 f32+i32")
entry("numpy.float_power", np.float_power, POSITIVE, "f32 f64 i32")
entry("numpy.hypot", np.hypot, SMOOTH, "f32 f64 i32")
entry(
    "numpy.maximum",
    np.maximum,
    [*BINARY, SPECIAL_PAIRS],
    "f32 f64 i32 u8 bool",
    undifferentiated=NOT_SMOOTH,
)
entry("numpy.minimum", np.minimum, BINARY, "f32 f64 i32 u8 bool")
entry("numpy.fmax", np.fmax, BINARY, "f32 f64 i32")
entry("numpy.fmin", np.fmin, BINARY, "f32 f64 i32")
DIVISIONS = [
    call(x(2, 3, low=-9, high=9), x(3, low=1, high=4)),
    call(x(low=-9, high=9), given([[1.5], [-1.5]], "f64")),
]
for name in ("floor_divide", "remainder", "fmod", "divmod"):
    entry(f"numpy.{name}", getattr(np, name), DIVISIONS, "f32 f64 i32 u8")
INTEGERS = [call(x(2, 3, low=-40, high=40), x(3, low=1, high=30)), call(x(), x(2, 1))]
for name in ("gcd", "lcm"):
    entry(f"numpy.{name}", getattr(np, name), INTEGERS, "i32 u8 i64", costly="loops of divisions")
entry(
    "numpy.heaviside",
    np.heaviside,
    [*BINARY, SPECIAL_PAIRS],
    "f32 f64",
    undifferentiated=NOT_SMOOTH,
)
entry("numpy.absolute", np.absolute, [*UNARY, SPECIAL], NUMBERS, undifferentiated=NOT_SMOOTH)
entry("numpy.fabs", np.fabs, UNARY, "f32 f64 i32")
for name in ("negative", "positive", "square", "conjugate", "real", "imag", "angle"):
    entry(f"numpy.{name}", getattr(np, name), UNARY, NUMBERS)
entry("numpy.reciprocal", np.reciprocal, [call(x(2, 3, low=0.5)), call(x(0))], "f32 f64 c64")
entry("numpy.sign", np.sign, [*UNARY, SPECIAL], NUMBERS, undifferentiated=NOT_SMOOTH)
entry(
    "numpy.clip",
    np.clip,
    [call(x(2, 3), -0.5, 1), call(x(2, 3), x(3, low=-2, high=-0.5), None), call(x(), -1, 1)],
    "f32 f64",
)
entry(
    "numpy.nan_to_num",
    np.nan_to_num,
    [SPECIAL, *UNARY, call(given([np.nan, np.inf], "f32"), nan=1.5, posinf=7.0)],
    NUMBERS,
    undifferentiated=NOT_SMOOTH,
)

# rounding

FRACTIONS = [call(x(2, 3, low=-9.4, high=9.4)), call(x()), call(x(0, 3)), SPECIAL]
for name in ("ceil", "floor", "trunc", "rint"):
    entry(f"numpy.{name}", getattr(np, name), FRACTIONS, "f32 f64 i32", undifferentiated=NOT_SMOOTH)
entry("numpy.fix", np.fix, FRACTIONS, "f32 f64", undifferentiated=NOT_SMOOTH)
entry(
    "numpy.round",
    np.round,
    [*FRACTIONS, call(x(2, 3), 2), call(given([0.5, 1.5, 2.5, -0.5], "f32"))],
    "f32 f64 i32",
    undifferentiated=NOT_SMOOTH,
)

# logic

for name in ("equal", "not_equal"):
    entry(f"numpy.{name}", getattr(np, name), [*BINARY, SPECIAL_PAIRS], f"{NUMBERS} bool i32+u8")
for name in ("less", "less_equal", "greater", "greater_equal"):
    entry(f"numpy.{name}", getattr(np, name), [*BINARY, SPECIAL_PAIRS], f"{NUMBERS} bool f32+i32")
for name in ("logical_and", "logical_or", "logical_xor"):
    entry(f"numpy.{name}", getattr(np, name), [*BINARY, SPECIAL_PAIRS], f"{NUMBERS} bool f32+i32")
entry("numpy.logical_not", np.logical_not, [*UNARY, SPECIAL], f"{NUMBERS} bool")
for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    entry(f"numpy.{name}", getattr(np, name), BINARY, "i32 u8 bool i32+u8")
entry("numpy.invert", np.invert, UNARY, "i32 u8 bool")
SHIFTS = [call(x(2, 3, low=-40, high=40), x(3, low=0, high=5)), call(x(), x(2, 1, low=0))]
for name in ("left_shift", "right_shift"):
    entry(f"numpy.{name}", getattr(np, name), SHIFTS, "i32 u8 i64")
entry("numpy.bitwise_count", np.bitwise_count, UNARY, "i32 u8 i64")
for name in ("isfinite", "isinf", "isnan"):
    entry(f"numpy.{name}", getattr(np, name), [*UNARY, SPECIAL], NUMBERS)
for name in ("isposinf", "isneginf", "signbit"):
    entry(f"numpy.{name}", getattr(np, name), [*UNARY, SPECIAL], "f32 f64 i32")
for name in ("isreal", "iscomplex"):
    entry(f"numpy.{name}", getattr(np, name), UNARY, NUMBERS)
entry(
    "numpy.copysign",
    np.copysign,
    [*BINARY, SPECIAL_PAIRS],
    "f32 f64 i32",
    undifferentiated=NOT_SMOOTH,
)
CLOSE = [
    *BINARY,
    SPECIAL_PAIRS,
    call(given([1.0, 1.0], "f32"), given([1.00001, 1.1], "f32"), rtol=1e-3),
    call(given([np.nan], "f32"), given([np.nan], "f32"), equal_nan=True),
]
entry("numpy.isclose", np.isclose, CLOSE, "f32 f64 i32 c64")
entry("numpy.allclose", np.allclose, CLOSE, "f32 f64 i32")
