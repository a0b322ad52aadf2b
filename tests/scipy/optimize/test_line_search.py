"""The line search: Wolfe's conditions, failures, the number of evaluations, the cubic."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.scipy.optimize.line_search import _DECREASE, _FLATTER, _End, _inside, line_search


def search(f, x, direction=None, tries=30, before=None):
    value, gradient = st.value_and_grad(f)(x)
    direction = -gradient if direction is None else direction
    before = value + 1 if before is None else before
    result = line_search(st.value_and_grad(f), x, direction, value, gradient, before, tries)
    return result, float(value), float(gradient @ direction), direction


FUNCTIONS = {
    "bowl": (lambda x: x @ x, [3.0, -1.0]),
    "steep bowl": (lambda x: 1e4 * x @ x, [3.0, -1.0]),
    "flat bowl": (lambda x: 1e-4 * x @ x, [3.0, -1.0]),
    "rosenbrock": (lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2, [-1.2, 1.0]),
    "waves": (lambda x: snp.sum(x * x + 10 * (1 - snp.cos(3 * x))), [2.0, -1.5]),
    "logarithm": (lambda x: snp.sum(x - snp.log(x)), [1e-3, 5.0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_strong_wolfe_conditions(name):
    f, start = FUNCTIONS[name]
    with st.enable_x64():
        x = snp.array(start)
        result, value, slope, direction = search(f, x)
        length = float(result.length)
        assert not bool(result.failed) and length > 0
        here, gradient = st.value_and_grad(f)(x + length * direction)
        np.testing.assert_allclose(result.value, here, rtol=1e-14)
        np.testing.assert_allclose(result.gradient, gradient, rtol=1e-14)
        assert float(here) <= value + _DECREASE * length * slope * (1 - 1e-12)
        assert abs(float(gradient @ direction)) <= _FLATTER * abs(slope)
        assert 1 <= int(result.evaluations) <= 30


def test_uphill_there_is_nothing():
    with st.enable_x64():
        x = snp.array([3.0, -1.0])
        result, *_ = search(lambda x: x @ x, x, direction=2 * x, tries=8)
    assert bool(result.failed) and float(result.length) == 0 and int(result.evaluations) == 8


def test_values_that_are_no_numbers_are_not_low():
    """The first try is beyond the end of the logarithm."""
    with st.enable_x64():
        x = snp.array([1.0])
        result, *_ = search(lambda x: -snp.sum(snp.log(2 - x)) - 5 * snp.sum(x), x)
        assert np.isfinite(float(result.value))
        assert not bool(result.failed) and float(x[0] + result.length * 4) < 2


def test_the_last_step_says_how_far_the_first_try_goes():
    with st.enable_x64():
        x = snp.array([3.0])
        f = lambda x: x @ x
        # 2 (f - before) / slope is the exact step where f falls as it did before: 9 - 0 lower.
        result, *_ = search(f, x, before=snp.array(9.0 + 9.0 / 1.01))
        np.testing.assert_allclose(result.length, 0.5, rtol=1e-12)
        assert int(result.evaluations) == 1


def test_the_cubic_has_its_minimum_inside():
    """Of t^3 - 3 t between 0 and 3 at 1; where there is none, and near an end, the middle."""
    end = lambda t: _End(*(snp.array(float(v)) for v in (t, t**3 - 3 * t, 3 * t * t - 3)))
    with st.enable_x64():
        np.testing.assert_allclose(_inside(end(0.0), end(3.0)), 1.0, rtol=1e-12)
        np.testing.assert_allclose(_inside(end(3.0), end(0.0)), 1.0, rtol=1e-12)
        flat = [_End(*(snp.array(float(v)) for v in (t, 5.0, 0.0))) for t in (1, 2)]
        assert 1 < float(_inside(*flat)) < 2
        assert float(_inside(end(2.0), end(2.0))) == 2
