"""Formulas: the same of NumPy's arrays and of terms, loops that stop element by element."""

import numpy as np

from stretto import grad, jit, lax, vmap
from stretto._engine.core.config import enable_x64
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops import written
from stretto._engine.ops.written import Written


class Steps(Written):
    """In how many halvings each number falls below one, and what remains."""

    partials = (None,)

    @staticmethod
    def formula(x):
        def step(n, left, count):
            return [left * 0.5, n + 0.0 * left]

        left, count = written.loop(lambda left, count: left >= 1.0, step, [x, 0.0 * x], 5)
        return count + 0.125 * left


class Reals(Written):
    """What the vocabulary says of a number."""

    partials = (None,)

    @staticmethod
    def formula(x):
        series = written.chebyshev((1.0, 2.0, 3.0), x) + written.horner((1.0, 2.0, 3.0), x)
        powers = written.power(2.0, x) + written.power(written.absolute(x), 2.0)
        chosen = written.where((x > 0.0) & ~(x >= 2.0) | written.is_nan(x), 1.0, -1.0)
        z = written.complex_number(x, -x)
        parts = written.real_part(z) - 2.0 * written.imaginary(z) + written.absolute(z)
        return series - powers * chosen + 1.0 / (3.0 - x) + parts + written.alike(x, 0.5)


def test_a_loop_stops_at_each_element_of_its_own():
    x = np.array([[0.5, 1.0, 3.0], [4.0, 1e9, np.nan]], np.float32)
    want = [[0 + 0.0625, 1 + 0.0625, 2 + 0.09375], [3 + 0.0625, 5 + 1e9 / 256, np.nan]]
    for f in (Steps(), jit(Steps())):
        np.testing.assert_allclose(f(as_value(x)), want, rtol=1e-6)


def test_terms_say_what_arrays_say():
    x = np.array([-1.5, 0.5, 2.0, 2.5])
    with enable_x64():
        value = as_value(x)
        np.testing.assert_allclose(jit(Reals())(value), Reals()(value), rtol=1e-15)
    third = 2.0 * x * x - 1
    plain = 1 + 2 * x + 3 * third + 1 + 2 * x + 3 * x * x
    sign = np.array([-1, 1, -1, -1])
    want = plain - (2**x + x * x) * sign + 1 / (3 - x) + 3 * x + np.sqrt(2) * np.abs(x) + 0.5
    np.testing.assert_allclose(Reals().formula(x), want, rtol=1e-14)


def test_log1p_where_xla_s_loses_digits():
    """XLA's is off by 61 units at the first of these."""
    x = np.array([-0.39283201163300874, -1.0, 1e-300, np.inf, -0.0, 3.0])
    with enable_x64():
        got = np.asarray(jit(lax.log1p)(x))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(got, np.log1p(x), rtol=4e-16)
    assert np.signbit(got[4])


def test_composed_with_loops_and_branches():
    """The derivative of a scan over a cond over special functions, mapped and compiled."""

    def total(x):
        def step(carry, k):
            part = lax.cond(k > 1, lax.lgamma, lax.bessel_i0e, carry)
            return carry + 0.1 * part, part

        return lax.scan(step, x, np.arange(4))[1].sum()

    x = np.array([1.5, 2.5, 4.0], np.float32)
    slopes = [float(grad(total)(v)) for v in x]
    np.testing.assert_allclose(vmap(grad(total))(x), slopes, rtol=1e-6)
    np.testing.assert_allclose(jit(vmap(grad(total)))(x), slopes, rtol=1e-6)
    step = 1e-3
    rough = [(total(v + step) - total(v - step)) / (2 * step) for v in x.astype(float)]
    np.testing.assert_allclose(slopes, rough, rtol=2e-3)
