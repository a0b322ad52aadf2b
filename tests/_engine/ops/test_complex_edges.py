"""Complex functions at zeros, infinities, NaN and along their cuts: eager and compiled alike."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

INF, NAN = np.inf, np.nan
MANY = 4096
"""So many elements are compiled, and not interpreted."""

# What the array API standard 2024.12 says, of arguments with parts that are not negative; the rest
# follows by conj(f(z)) = f(conj(z)) and from whether f is odd or even.
TANH = {
    0 + 0j: 0 + 0j,
    complex(1, INF): complex(NAN, NAN),
    complex(0, INF): complex(0, NAN),
    complex(1, NAN): complex(NAN, NAN),
    complex(0, NAN): complex(0, NAN),
    complex(INF, 0): 1 + 0j,
    complex(INF, 1): 1 + 0j,
    complex(INF, 2): 1 + 0j,  # C has sin(2 y) give the sign
    complex(INF, 3): 1 + 0j,
    complex(NAN, 0): complex(NAN, 0),
    complex(NAN, 1): complex(NAN, NAN),
    complex(NAN, NAN): complex(NAN, NAN),
}
SINH = {
    0 + 0j: 0 + 0j,
    complex(1, INF): complex(NAN, NAN),
    complex(1, NAN): complex(NAN, NAN),
    complex(INF, 0): complex(INF, 0),
    complex(INF, 1): complex(INF, INF),
    complex(INF, 2): complex(-INF, INF),
    complex(NAN, 0): complex(NAN, 0),
    complex(NAN, 1): complex(NAN, NAN),
    complex(NAN, NAN): complex(NAN, NAN),
}
COSH = {
    0 + 0j: 1 + 0j,
    complex(1, INF): complex(NAN, NAN),
    complex(1, NAN): complex(NAN, NAN),
    complex(INF, 0): complex(INF, 0),
    complex(INF, 1): complex(INF, INF),
    complex(INF, 2): complex(-INF, INF),
    complex(NAN, 1): complex(NAN, NAN),
    complex(NAN, NAN): complex(NAN, NAN),
}
EXPM1 = {
    0 + 0j: 0 + 0j,
    complex(-0.0, 0): 0 + 0j,
    complex(1, INF): complex(NAN, NAN),
    complex(INF, 0): complex(INF, 0),
    complex(-INF, 2): complex(-1, 0),
    complex(NAN, 0): complex(NAN, 0),
}


def both(function, points, dtype):
    """The values at rest and of a compiled program."""
    z = np.array(points, dtype)
    yield np.asarray(function(snp.array(z)))
    many = snp.array(np.resize(z, MANY))
    yield np.asarray(st.jit(function)(many))[: z.size]


def same(got, want):
    """Equal, NaN too, and zeros in sign."""
    for part in (np.real, np.imag):
        np.testing.assert_array_equal(part(got), part(want))
        known = ~np.isnan(part(want))
        np.testing.assert_array_equal(np.signbit(part(got))[known], np.signbit(part(want))[known])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("function", "table"),
    [(snp.tanh, TANH), (snp.sinh, SINH), (snp.cosh, COSH), (snp.expm1, EXPM1)],
    ids=["tanh", "sinh", "cosh", "expm1"],
)
def test_special_cases_of_the_standard(function, table, dtype):
    with st.enable_x64():
        points, want = list(table), np.array(list(table.values()), dtype)
        for got in both(function, points, dtype):
            same(got, want)
        for got in both(function, np.conj(points), dtype):
            same(got, np.conj(want))
        if function in (snp.tanh, snp.sinh):
            for got in both(function, -np.array(points), dtype):
                same(got, -want)


def test_the_tangent_turns_as_the_hyperbolic_one():
    z = np.array([complex(2, INF), complex(-2, INF), complex(2, -INF), complex(0.0, INF)])
    want = np.array([0 + 1j, complex(-0.0, 1), 0 - 1j, 0 + 1j])
    for got in both(snp.tan, z, "complex64"):
        same(got, want)


CUTS = ["sqrt", "log", "log2", "log10", "log1p", "acos", "acosh", "asin", "asinh", "atan", "atanh"]


@pytest.mark.parametrize("name", CUTS)
def test_the_sign_of_zero_says_on_which_side_of_a_cut(name):
    """As NumPy has it, whose functions are those of C."""
    parts = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.2, -1.2, 2.0, -2.0, INF, -INF]
    z = np.array([complex(a, b) for a in parts for b in parts if 0 in (a, b)], "complex64")
    with np.errstate(all="ignore"):
        want = getattr(np, name)(z)
    for got in both(getattr(snp, name), z, "complex64"):
        for part in (np.real, np.imag):
            np.testing.assert_allclose(part(got), part(want), rtol=1e-6)
            signs = np.signbit(part(got)), np.signbit(part(want))
            np.testing.assert_array_equal(*signs, err_msg=f"{z}")


@pytest.mark.parametrize("name", ["exp", *CUTS])
def test_infinities_and_nan(name):
    """As NumPy has them, but for signs, which C leaves open where a part is NaN."""
    parts = [0.0, -0.0, 1.5, -1.5, INF, -INF, NAN]
    z = np.array([complex(a, b) for a in parts for b in parts], "complex64")
    z = z[~np.isfinite(z)]
    with np.errstate(all="ignore"):
        want = getattr(np, name)(z)
    for got in both(getattr(snp, name), z, "complex64"):
        for part in (np.real, np.imag):
            sizes = np.abs(part(got)), np.abs(part(want))
            np.testing.assert_allclose(*sizes, rtol=1e-6, err_msg=f"{z}")


@pytest.mark.parametrize("run", [lambda f: f, st.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("imag", [np.inf, -np.inf, np.nan])
def test_exponentials_far_out_are_what_remains(run, imag):
    """Whatever the angle is: 0 and -1 to the left, infinite to the right."""
    left, right = [np.full(MANY, complex(end, imag), np.complex64) for end in (-INF, INF)]
    with np.errstate(all="ignore"):
        for f, least in ((snp.exp, 0), (snp.expm1, -1)):
            low, high = np.asarray(run(f)(left)), np.asarray(run(f)(right))
            assert set(low.real) == {least}
            assert set(low.imag) == {0}
            assert np.isinf(high.real).all()
