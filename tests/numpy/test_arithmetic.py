from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

F = np.array([[-2.5, -1.0, -0.0], [0.0, 1.5, 3.0]], np.float32)
G = np.array([[2.0, -3.0, 4.0], [-1.5, 0.5, 3.0]], np.float32)
WILD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e30], np.float32)
INTS = np.array([[-7, -3, 0], [1, 5, 100]], np.int32)
DIVISORS = np.array([[3, -2, 7], [-7, 2, 9]], np.int32)
COMPLEX = np.array([1 + 2j, -3j, 0.5], np.complex64)

BINARY = [
    "add",
    "subtract",
    "multiply",
    "true_divide",
    "divide",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "hypot",
]


@pytest.mark.parametrize("name", BINARY)
def test_binary_floats(agree, name):
    agree(name, F, G, dtype="float32")
    agree(name, F, 2.0, dtype="float32")
    agree(name, -3, G, dtype="float32")
    agree(name, F[0], G[:, :1], dtype="float32")


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_binary_integers(agree, name):
    agree(name, INTS, DIVISORS, dtype="int32")
    agree(name, INTS, -4, dtype="int32")
    agree(name, 9, DIVISORS, dtype="int32")
    agree(name, np.abs(INTS).astype(np.uint8), np.uint8([2, 3, 4]), dtype="uint8")


def test_integers_over_integers_are_floats(agree):
    agree("true_divide", INTS, DIVISORS, dtype="float32")
    assert snp.true_divide(snp.int8(1), snp.int8(2)).dtype == snp.float32
    assert snp.true_divide(1, 2).weak_type


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, -1, -2, 0.5, 2.5])
def test_power_of_floats(agree, exponent):
    agree("power", np.abs(F) + 1, exponent, dtype="float32")


def test_power(agree):
    agree("power", np.abs(F), G, dtype="float32", rtol=1e-5)
    agree("power", INTS, 3, dtype="int32")
    agree("power", INTS, np.abs(DIVISORS), dtype="int32")
    agree("float_power", INTS, 2, dtype="float32")
    assert snp.power(snp.array([True]), 2).dtype == snp.int32


def test_power_refuses_negative_powers_of_integers():
    with pytest.raises(TypeError, match=r"use a float: x \*\* -1\.0"):
        snp.array([1, 2]) ** -1


def test_power_derivative_at_zero():
    assert float(st.grad(lambda x: x**2)(0.0)) == 0
    assert float(st.grad(lambda x: x**0)(0.0)) == 0
    assert float(st.grad(lambda x: x**2.0)(0.0)) == 0


@pytest.mark.parametrize(
    "name", ["negative", "positive", "absolute", "abs", "fabs", "sign", "square"]
)
def test_unary(agree, name):
    agree(name, F)
    agree(name, WILD, rtol=1e-5)
    agree(name, INTS)


@pytest.mark.parametrize("name", ["negative", "absolute", "square", "reciprocal"])
def test_unary_complex(agree, name):
    agree(name, COMPLEX + 0.25)


def test_reciprocal_of_integers_is_a_float():
    got = snp.reciprocal(snp.array([2, 4]))
    assert got.dtype == snp.float32
    np.testing.assert_array_equal(got, [0.5, 0.25])


def test_heaviside_hypot(agree):
    agree("heaviside", WILD, 0.5, dtype="float32")
    agree("hypot", WILD, np.roll(WILD, 1), dtype="float32")


@pytest.mark.parametrize("f", [snp.add, snp.true_divide, snp.mod, snp.power, snp.exp, snp.clip])
def test_lists_are_refused(f):
    with pytest.raises(TypeError, match="array"):
        f([1.0, 2.0], 2) if f not in (snp.exp,) else f([1.0, 2.0])


def test_numpy_arrays_are_taken():
    got = snp.add(F, G)
    assert isinstance(got, st.Array)
    np.testing.assert_array_equal(got, F + G)


def test_shapes_that_do_not_broadcast_are_named():
    with pytest.raises(ValueError, match=r"\(3,\) and \(2,\)"):
        snp.add(snp.ones(3), snp.ones(2))
    with pytest.raises(ValueError, match=r"\(3,\) and \(2,\)"):
        snp.ones(3) * snp.ones(2)


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(OverflowError, match="300 does not fit in int8"):
        snp.array([1], snp.int8) + 300


@pytest.mark.parametrize(
    ("x", "y", "dtype", "weak"),
    [
        (1, 2, "int32", True),
        (1, 2.0, "float32", True),
        (snp.int8(1), 2, "int8", False),
        (snp.int8(1), 2.0, "float32", True),
        (snp.bfloat16(1), 2.0, "bfloat16", False),
        (snp.bfloat16(1), snp.float16(1), "float32", False),
        (snp.uint8(1), snp.int8(1), "int16", False),
        (snp.array([1.0]), True, "float32", False),
        (snp.float16(1), 1j, "complex64", False),
    ],
)
def test_promotion_is_that_of_the_lattice(x, y, dtype, weak):
    for got in (snp.add(x, y), snp.add(y, x), st.jit(snp.add)(x, y)):
        assert (got.dtype.name, got.weak_type) == (dtype, weak)


def test_weakness_is_the_same_by_the_short_way_and_the_general():
    weak, strong = snp.asarray(1.5), snp.float32(1.5)
    for x in (weak, strong):
        for y in (2, 2.0, weak, strong):
            eager, jitted = x * y, st.jit(lambda a, y=y: a * y)(x)
            assert eager.type is jitted.type


@pytest.mark.parametrize("name", BINARY)
def test_derivatives_of_the_quick_way_are_those_of_the_primitive(name):
    f = getattr(snp, name)
    x, y = snp.array([2.5, -1.25]), snp.array([1.5, 0.5])
    eps = 1e-2
    _, slope = st.jvp(lambda x: f(x, y), (x,), (snp.ones(2),))
    numeric = (f(x + eps, y) - f(x - eps, y)) / (2 * eps)
    np.testing.assert_allclose(slope, numeric, rtol=1e-3, atol=1e-3)


def test_under_vmap():
    x, y = snp.array(F), snp.array(G[0])
    np.testing.assert_array_equal(st.vmap(snp.mod, in_axes=(0, None))(x, y), np.mod(F, G[0]))
    np.testing.assert_array_equal(st.vmap(lambda r: r * 2 + 1)(x), F * 2 + 1)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_messages_name_the_function_called(name):
    f = getattr(snp, name)
    x, y = snp.ones(3), snp.ones(2)
    with pytest.raises(ValueError, match=rf"^{name}: shapes \(3,\) and \(2,\)"):
        f(x, y)
    with pytest.raises(ValueError, match=rf"^{name}: shapes \(3,\) and \(2,\)"):
        st.jit(f)(x, y)
    with pytest.raises(TypeError, match=f"^{name}: y must be an array"):
        f(x, [1.0])


def test_booleans_have_no_difference():
    for f in (snp.subtract, st.jit(snp.subtract)):
        with pytest.raises(TypeError, match=r"^subtract: booleans have no difference"):
            f(snp.array([True]), snp.array([False]))


def test_heaviside_refuses_complex_numbers():
    with pytest.raises(TypeError, match=r"^heaviside: x must be real"):
        snp.heaviside(1j, 1)
