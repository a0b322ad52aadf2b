"""Powers and roots: laws, special values, NumPy."""

import numpy as np
import pytest

from stretto import grad, hessian, jit, lax, numpy
from stretto._engine.api.graph import make_graph
from stretto._engine.ops import exponential as ops
from stretto.laws import (
    bf16,
    c64,
    c128,
    check_special,
    f32,
    f64,
    i8,
    i32,
    law,
    special_pairs,
    special_values,
    u32,
)

INEXACT = {ops.Sqrt: (ops.sqrt, 0.1, 3), ops.Rsqrt: (ops.rsqrt, 0.1, 3)}
FLOAT = {ops.Cbrt: (ops.cbrt, 0.1, 3)}
# Difference quotients are taken in 64 bits anyway, and vmap treats all dtypes alike.
LESS = {
    f64: {"derivative": False, "mapped": False},
    **{t: {"mapped": False} for t in (bf16, i8, u32, c64, c128)},
}
LAWS = [
    *(
        law(p, f, t(2, 3).within(low, high), **LESS.get(t, {}))
        for table, types in ((INEXACT, (f32, f64, bf16, c64)), (FLOAT, (f32, f64, bf16)))
        for p, (f, low, high) in table.items()
        for t in types
    ),
    *(
        law(ops.Pow, ops.power, t(2, 3).within(0.5, 2), t(2, 3).within(-1, 2), **LESS.get(t, {}))
        for t in (f32, f64, bf16, i32, u32, i8, c64, c128)
    ),
    law(ops.Pow, ops.power, i32(20).within(-3, 0), i32(20).within(-3, 3)),
    *(
        law(ops.IntegerPow, lambda x: ops.power(x, 3), t(2, 3), **LESS.get(t, {}))
        for t in (f32, i32, i8, u32, c64)
    ),
    *(
        law(ops.IntegerPow, lambda x: ops.power(x, -2), t(2, 3).within(0.5, 2), **LESS.get(t, {}))
        for t in (f32, f64, bf16, c128)
    ),
    law(ops.IntegerPow, lambda x: ops.power(x, 0), f32(3)),
    law(ops.IntegerPow, ops.reciprocal, f32(3).within(0.5, 2)),
    law(ops.Pow, ops.power, i32(), i32()),
    law(ops.Pow, ops.power, i32(2, 0), i32(2, 0)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


def to_the(n):
    return lambda x: ops.integer_pow(x, n)


POWERS = {f"to_the_{n}": to_the(n) for n in (0, 1, 2, 3, 5)}
INVERSES = {f"to_the_{n}": to_the(n) for n in (-1, -2, -3)}


@pytest.mark.parametrize("name", ["float8_e4m3fn", "bfloat16", "float16", "float32", "float64"])
def test_special_floats(name):
    functions = {f.__name__: f for table in (INEXACT, FLOAT) for f, *_ in table.values()}
    values = special_values(name)
    check_special({**functions, **POWERS, **INVERSES}, values)
    check_special({"power": ops.power}, *special_pairs(name))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_special_complex(name):
    """Signs of zeros differ, and, where a part is infinite or NaN, what the other part is."""
    functions = {f.__name__: f for f, *_ in INEXACT.values()}
    values = special_values(name)
    check_special({**functions, **POWERS, **INVERSES}, values)
    x, y = np.meshgrid(values, values[::5])
    check_special({"power": ops.power}, x.ravel(), y.ravel())


@pytest.mark.parametrize("name", ["int4", "uint8", "int32", "int64", "uint64"])
def test_special_integers(name):
    values = special_values(name)
    x, y = np.meshgrid(values, values)
    check_special(POWERS, values)
    check_special({"power": ops.power}, x.ravel(), y.ravel())


def test_integer_powers_wrap_and_have_few_inverses():
    x = np.array([2, 3, 0, -1, 1, 2, -1, 0], np.int32)
    y = np.array([31, 2**31 - 1, 2**31 - 1, 2**31 - 1, -5, -1, -3, 64], np.int32)
    want = [-(2**31), pow(3, 2**31 - 1, 2**32) - 2**32, 0, -1, 1, 0, -1, 0]
    np.testing.assert_array_equal(ops.power(x, y), want)
    np.testing.assert_array_equal(jit(ops.power)(x, y), want)


def test_static_integer_exponents_are_multiplied_out():
    names = lambda n: [
        e.primitive.name for e in make_graph(lambda x: ops.power(x, n))(1.5).equations
    ]
    assert names(1) == []
    assert names(2) == ["mul"]
    assert names(5) == ["integer_pow"]
    assert names(2.0) == ["pow"]
    assert make_graph(lambda x: ops.power(x, -1))(2).equations[-1].primitive.name == "pow"


def test_powers_of_bools_are_integers():
    for n in (0, 1, 2, 3):
        out = ops.power(np.array([True, False]), n)
        assert out.dtype == np.int32
        np.testing.assert_array_equal(out, [1, n == 0])
        assert (ops.integer_pow(np.array([True]), n) + np.int8([1])).dtype == np.int8


def test_no_negative_static_power_of_integers():
    with pytest.raises(
        TypeError, match=r"integer_pow: int32\[\] to the power -2 is not an integer"
    ):
        ops.integer_pow(3, -2)


@pytest.mark.parametrize("n", [0, 0.0, 1, 2, 2.5])
def test_derivative_of_powers_at_zero(n):
    want = {0: 0.0, 1: 1.0}.get(n, 0.0)
    assert float(grad(lambda x: ops.power(x, n))(0.0)) == want


def test_derivative_in_the_exponent_at_zero():
    assert float(grad(lambda y: ops.power(0.0, y))(2.0)) == 0.0


def test_integers_become_floats():
    for f in (ops.sqrt, ops.reciprocal, ops.cbrt):
        out = f(np.array([4], np.int8))
        assert out.dtype == np.float32
        np.testing.assert_allclose(out, f(np.array([4.0], np.float32)))
    assert ops.reciprocal(4).weak_type


def test_refused():
    with pytest.raises(
        TypeError, match=r"cbrt: expected an array of kind float, got complex64\[\]"
    ):
        ops.cbrt(1j)


@pytest.mark.parametrize("name", ["lax.pow", "**", "float_power"])
def test_a_power_of_zero_has_mixed_derivatives(name):
    f = {"lax.pow": lax.pow, "**": lambda x, y: x**y, "float_power": numpy.float_power}[name]
    for x in (0.5, 3.0):
        for mixed in (grad(grad(f, 0), 1), grad(grad(f, 1), 0)):
            np.testing.assert_allclose(mixed(x, 0.0), 1 / x, rtol=1e-6)
            np.testing.assert_allclose(jit(mixed)(x, 0.0), 1 / x, rtol=1e-6)
        (xx, xy), (yx, yy) = hessian(f, argnums=(0, 1))(x, 0.0)
        np.testing.assert_allclose([xx, xy, yx, yy], [0, 1 / x, 1 / x, np.log(x) ** 2], rtol=1e-6)
    for x in (0.0, 1e-30):  # as x^0 = 1 there, and not NaN
        assert float(grad(f)(x, 0.0)) == float(grad(grad(f))(x, 0.0)) == 0
    third = grad(grad(grad(f)))
    assert [float(third(0.0, y)) for y in (0.0, 1.0, 2.0, 3.0)] == [0, 0, 0, 6]


@pytest.mark.parametrize("exponent", [1.5, "a", None])
def test_integer_pow_refuses_other_exponents(exponent):
    with pytest.raises(TypeError, match=r"^integer_pow: y must be an integer, got"):
        ops.integer_pow(np.ones(2), exponent)


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
@pytest.mark.parametrize("n", [-3, -2, -1, 0, 1, 2, 3, 4, 7])
def test_powers_of_narrow_floats_are_rounded_once(name, n):
    x = numpy.linspace(0.3, 1.9, 41).astype(name)
    wide = np.asarray(x.astype("float32"), np.float64) ** n
    for f in (ops.integer_pow, jit(ops.integer_pow, static_argnums=1)):
        got = f(x, n)
        assert got.dtype == name
        np.testing.assert_array_equal(got, numpy.asarray(wide.astype(np.float32)).astype(name))


@pytest.mark.parametrize("y", [0.5, 0.505, 0.51, -0.5, 1.5, 0.0])
@pytest.mark.parametrize(
    "x", [[4.0, 9.0, 0.25], [4.0, 0.0, -0.0], [4.0, -1.0, -np.inf], [np.nan, np.inf, 1.0], []]
)
def test_one_exponent_for_all(x, y):
    """One half is a root, but of negative zero and infinity, whose powers are positive."""
    x = np.array(x, np.float32)
    with np.errstate(all="ignore"):
        want = np.power(x, np.full(x.shape, y, np.float32))
    for f in (ops.power, jit(ops.power)):
        got = np.asarray(f(x, y))
        np.testing.assert_allclose(got, want, rtol=3e-7)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_whole_numbers_to_the_power_of_zero_are_multiplied_out_too():
    program = make_graph(lambda x: ops.power(x, 0))(np.array([0, -3, 5]))
    assert "pow" not in [e.primitive.name for e in program.equations]
    assert ops.power(np.array([0, -3, 5]), 0).tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="to the power -1 is not an integer"):
        ops.IntegerPow(-1).infer(numpy.ones(2, int).type)
    assert ops.IntegerPow(0).infer(numpy.ones(2, int).type).dtype == np.int32
