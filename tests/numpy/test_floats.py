from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

EDGES = np.array(
    [0.0, -0.0, 1, -3, np.inf, -np.inf, np.nan, 1e-42, -1.4e-45, 1.17e-38, 3.4e38, 1e-30],
    np.float32,
)


def test_exponents_of_all_kinds_of_numbers():
    want = np.frexp(EDGES)
    for got in (snp.frexp(snp.array(EDGES)), st.jit(snp.frexp)(EDGES)):
        np.testing.assert_array_equal(got[0], want[0])
        np.testing.assert_array_equal(got[1], want[1])


STEPS = np.array([0, 5, -100, 127, -149, -150, 200, -250, 277, 300, 2**31 - 1, -(2**31)], np.int32)


def test_powers_of_two_out_of_range():
    x, n = np.meshgrid(EDGES, STEPS)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(snp.ldexp(x, n), np.ldexp(x, n))


def test_compiled_powers_of_two_flush_what_is_below_the_least_normal_number():
    x, n = np.meshgrid(np.array([1, -3, 3.4e38, 1e-30, np.inf], np.float32), STEPS)
    with np.errstate(all="ignore"):
        want = np.ldexp(x, n)
    want = np.where(abs(want) < np.finfo(np.float32).tiny, 0, want)
    np.testing.assert_array_equal(st.jit(snp.ldexp)(x, n), want)


def test_dtypes_of_the_exponent():
    assert snp.ldexp(snp.ones(2, "bfloat16"), snp.array([3, 400], "uint32")).dtype == snp.bfloat16
    assert float(snp.ldexp(1, snp.array(-3, "int8"))) == 0.125
    with pytest.raises(TypeError, match="x2 must hold integers"):
        snp.ldexp(1.0, 2.0)
    with pytest.raises(TypeError, match="expected real numbers"):
        snp.frexp(1j)


def test_derivatives():
    assert float(st.grad(lambda x: snp.frexp(x)[0])(3.0)) == 0.25
    assert float(st.grad(lambda x: snp.ldexp(x, 3))(3.0)) == 8
    np.testing.assert_array_equal(st.grad(lambda x: snp.modf(x)[0].sum())(EDGES[2:5]), [1, 1, 0])


def test_parts_and_neighbours_of_the_edges():
    for got, want in zip(snp.modf(EDGES), np.modf(EDGES), strict=True):
        np.testing.assert_array_equal(got, want)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(snp.spacing(EDGES), np.spacing(EDGES))
    np.testing.assert_array_equal(
        snp.nextafter(EDGES, EDGES[::-1].copy()), np.nextafter(EDGES, EDGES[::-1])
    )


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: snp.packbits(snp.ones(2)), TypeError, "booleans or integers"),
        (lambda: snp.packbits(snp.ones(2, int), bitorder="up"), ValueError, "bitorder"),
        (lambda: snp.unpackbits(snp.ones(2, int)), TypeError, "expected uint8"),
        (lambda: snp.unpackbits(snp.ones(1, "uint8"), count=-9), ValueError, "leaves out more"),
        (lambda: snp.modf(1.0, out=1), NotImplementedError, "no out="),
    ],
    ids=range(5),
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("name", ["float16", "float32", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_spacing_is_numpy_s(name):
    dtype = getattr(snp, name).dtype
    limits = snp.finfo(dtype)
    # Compiled, spacings below the least normal number are zero, as all such numbers are.
    values = [-1, -1.5, -2, 1, 2, 3, np.inf, -np.inf, np.nan, limits.max, limits.min]
    x = np.array(values, dtype)
    with np.errstate(all="ignore"):
        want = np.spacing(x).astype(np.float32)
    for f in (snp.spacing, st.jit(snp.spacing), st.vmap(snp.spacing)):
        np.testing.assert_array_equal(np.asarray(f(snp.array(x))).astype(np.float32), want)


def test_the_number_of_bits_to_unpack_is_an_integer():
    with pytest.raises(TypeError, match=r"^unpackbits: count must be an integer"):
        snp.unpackbits(snp.array([1], snp.uint8), count=1.5)
