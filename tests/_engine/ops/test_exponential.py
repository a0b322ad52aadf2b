"""Exponentials, logarithms and the logistic function: laws, special values, NumPy."""

import numpy as np
import pytest

from stretto import grad, jit
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.ops import exponential as ops
from stretto.laws import bf16, c64, c128, check_special, f32, f64, i8, law, special_values, u32

INEXACT = {
    ops.Exp: (ops.exp, -2, 2),
    ops.Exp2: (ops.exp2, -2, 2),
    ops.Expm1: (ops.expm1, -2, 2),
    ops.Log: (ops.log, 0.1, 3),
    ops.Log1p: (ops.log1p, -0.8, 3),
    ops.Logistic: (ops.logistic, -3, 3),
}
# Difference quotients are taken in 64 bits anyway, and vmap treats all dtypes alike.
LESS = {
    f64: {"derivative": False, "mapped": False},
    **{t: {"mapped": False} for t in (bf16, i8, u32, c64, c128)},
}
LAWS = [
    *(
        law(p, f, t(2, 3).within(low, high), **LESS.get(t, {}))
        for p, (f, low, high) in INEXACT.items()
        for t in (f32, f64, bf16, c64)
    ),
    law(ops.Exp, ops.exp, f32(2, 0)),
    law(ops.Exp, ops.exp, f64(2, 3)),
    law(ops.Log1p, ops.log1p, c128(2, 3).within(-0.4, 0.4)),
    *[law(ops.LogisticSlope, ops.LOGISTIC_SLOPE, t(2, 3)) for t in (f32, f64, bf16)],
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


FUNCTIONS = {f.__name__: f for f, *_ in INEXACT.values()}
FLOATS = ["float8_e4m3fn", "bfloat16", "float16", "float32", "float64"]


@pytest.mark.parametrize("name", [*FLOATS, "complex64", "complex128"])
def test_special_values(name):
    """Signs of zeros differ, and, where a part is infinite or NaN, what the other part is."""
    check_special(FUNCTIONS, special_values(name))


def test_small_numbers_keep_their_digits():
    z = np.array([1e-6 + 2e-6j], np.complex64)
    for f, want in ((ops.log1p, z - z * z / 2), (ops.expm1, z + z * z / 2)):
        np.testing.assert_allclose(f(z), want, rtol=1e-6)
        np.testing.assert_allclose(jit(f)(z), want, rtol=1e-6)


def test_complex_logistic_does_not_overflow():
    z = np.array([-1000 + 1j, 1000 + 1j, 3j], np.complex64)
    np.testing.assert_allclose(ops.logistic(z), jit(ops.logistic)(z), rtol=1e-5)


def test_integers_become_floats():
    out = ops.exp(np.array([4], np.int8))
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, ops.exp(np.array([4.0], np.float32)))
    assert ops.exp(1).weak_type


def test_refused():
    with pytest.raises(MissingRuleError, match="exp has no transpose rule: it is not linear"):
        ops.EXP.transpose(1.0, 1.0)


def test_a_length_of_zero_has_no_slope():
    length = lambda x: ops.root_of_squares(x * x)
    for f in (grad(length), jit(grad(length)), grad(jit(length))):
        assert [float(f(x)) for x in (0.0, 3.0, -3.0)] == [0, 1, -1]
    assert float(length(np.float32(-3))) == 3
