"""The Faddeeva function: values in each quadrant, far out, on the axes; its derivative."""

import numpy as np
import pytest
from scipy import special as sp

from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64

VALUES = [
    (0.5 + 0.1j, 0.7175877421575944 + 0.40847440160301646j),
    (3 + 1e-10j, 0.00012340981194315306 + 0.20115731703752635j),
    (1e-8 + 20j, 0.02817434874105132 + 1.4052174534598011e-11j),
    (7 - 0.5j, -0.0059104241310586735 + 0.08101143885794782j),
    (-6.3 + 2j, 0.026640585391808424 - 0.08194487516873454j),
    (30 + 40j, 0.009027826365823543 + 0.006768162575404747j),
    (1e9 + 1j, 5.641895835477563e-19 + 5.641895835477563e-10j),
]


def test_values_in_each_part():
    z, want = map(np.array, zip(*VALUES, strict=True))
    with enable_x64():
        for f in (special.wofz, jit(special.wofz)):
            got = np.asarray(f(z))
            np.testing.assert_allclose(got.real, want.real, rtol=1e-12)
            np.testing.assert_allclose(got.imag, want.imag, rtol=1e-12)


def test_symmetries():
    """w(-conj z) = conj w(z), w(z) + w(-z) = 2 exp(-z^2)."""
    z = np.array([0.3 + 0.7j, 2 - 0.5j, 6.3 + 1e-3j, 0.05j])
    with enable_x64():
        for f in (special.wofz, jit(special.wofz)):
            w = np.asarray(f(z))
            np.testing.assert_allclose(f(-z.conj()), w.conj(), rtol=1e-14)
            np.testing.assert_allclose(w + f(-z), 2 * np.exp(-z * z), rtol=1e-14, atol=1e-14)


def test_where_the_rules_meet():
    """Beside the nodes of both rules, and about the border between them."""
    x = np.arange(0, 7, np.sqrt(np.pi / 12) / 4)
    z = np.concatenate([x + 1j * y for y in (0.0, 1e-12, 0.3, 6.1, 6.2)])
    with enable_x64():
        np.testing.assert_allclose(jit(special.wofz)(z), sp.wofz(z), rtol=1e-12)


def test_real_arguments_and_infinite_ones():
    with enable_x64():
        for f in (special.wofz, jit(special.wofz)):
            got = f(np.array([0.0, 1.5]))
            assert got.dtype == np.complex128
            np.testing.assert_allclose(got, sp.wofz(np.array([0.0, 1.5])), rtol=1e-14)
            ends = f(np.array([complex(0, np.inf), complex(np.inf, 1), complex(-np.inf, 1)]))
            np.testing.assert_array_equal(ends, 0)
    assert special.wofz(np.float32(1)).dtype == np.complex64


def test_derivative():
    z = 0.7 - 0.4j
    with enable_x64():
        want = -2 * z * sp.wofz(z) + 2j / np.sqrt(np.pi)
        np.testing.assert_allclose(grad(special.wofz, holomorphic=True)(z), want, rtol=1e-14)


def test_errors_name_the_argument():
    with pytest.raises(TypeError, match="wofz: z must be an array or a number"):
        special.wofz([1.0])
