"""Owen's T function: values, symmetries, edges, derivatives."""

import numpy as np
import pytest
from scipy import special as sp

from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64
from tests.special.values import check_values

INF, NAN = np.inf, np.nan

VALUES = {
    "owens_t": [
        (0.0, 1.0, 0.125), (0.3, 0.7, 0.0923156057304274456),
        (-2.0, 0.99, 0.0111013370816579922), (1.0, 5.0, 0.0793276244718901754),
        (5.0, 0.01, 5.92848480305363938e-9), (0.01, 300.0, 0.248004813681265237),
        (3.0, -2.0, -0.000674949015535216149), (9.0, 0.5, 5.64291155064365358e-20),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    check_values(getattr(special, name), VALUES[name])


def test_symmetries():
    h, a = np.array([0.0, 0.7, 2.0, 8.0]), np.array([0.3, 1.0, 4.0, INF])
    with enable_x64():
        for f in (special.owens_t, jit(special.owens_t)):
            out = f(h, a)
            np.testing.assert_array_equal(f(-h, a), out)
            np.testing.assert_array_equal(f(h, -a), -np.asarray(out))
            # T(h, 1) = Φ(h) Φ(-h) / 2, T(0, a) = arctan(a) / 2π, T(h, ∞) = Φ(-|h|) / 2
            np.testing.assert_allclose(f(h, 1.0), sp.ndtr(h) * sp.ndtr(-h) / 2, rtol=1e-13)
            np.testing.assert_allclose(f(0.0, a), np.arctan(a) / (2 * np.pi), rtol=1e-13)
            np.testing.assert_allclose(f(h, INF), sp.ndtr(-h) / 2, rtol=1e-13)


def test_edges():
    h, a = np.array([INF, -INF, NAN, 1.0, 1.0, INF]), np.array([1.0, 2.0, 1.0, NAN, 0.0, INF])
    with enable_x64():
        for f in (special.owens_t, jit(special.owens_t)):
            np.testing.assert_array_equal(f(h, a), [0, 0, NAN, NAN, 0, 0])


def test_derivatives():
    with enable_x64():
        for h, a in ((0.8, 0.5), (-0.8, 3.0), (0.0, -1.0)):
            by_h, by_a = grad(special.owens_t, (0, 1))(h, a)
            density = np.exp(-h * h / 2) / np.sqrt(2 * np.pi)
            np.testing.assert_allclose(by_h, -density * sp.erf(a * h / np.sqrt(2)) / 2, atol=1e-16)
            want = np.exp(-h * h * (1 + a * a) / 2) / (2 * np.pi * (1 + a * a))
            np.testing.assert_allclose(by_a, want, rtol=1e-13)
