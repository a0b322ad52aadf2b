"""The search that quasi-Newton methods share: when it stops, its counts, the status."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.scipy.optimize import (
    _DECREASE,
    _FLATTER,
    Estimate,
    Stop,
    _End,
    _inside,
    _Memory,
    _product,
    _recent,
    _recent_product,
    _start,
    _update,
    curvature,
    descend,
    line_search,
    minimize_bfgs,
    minimize_lbfgs,
)

STEEPEST = Estimate(lambda x: snp.ones(()), lambda h, g: h * g, lambda h, s, y, b: h)
INF = float("inf")


def stop(**options):
    return Stop(**{"steps": 100, "gtol": 1e-6, "norm": INF, "tries": 20, **options})


def bowl(x):
    return snp.sum(snp.array([1.0, 3.0]) * x * x)


def run(f=bowl, start=(3.0, -1.0), **options):
    with st.enable_x64():
        return descend(f, snp.array(np.array(start)), STEEPEST, stop(**options))


def test_it_ends_where_the_gradient_is_small():
    end = run()
    assert int(end.status()) == 0 and float(snp.max(abs(end.gradient))) < 1e-6
    np.testing.assert_allclose(end.x, 0, atol=1e-6)
    rough = run(gtol=1.0)
    assert int(rough.step) < int(end.step) and int(rough.status()) == 0
    assert int(end.step) < int(end.evaluations)


def test_at_a_minimum_there_is_nothing_to_do():
    end = run(start=(0.0, 0.0))
    assert (int(end.step), int(end.evaluations), int(end.status())) == (0, 1, 0)


def test_after_too_many_steps_or_values():
    assert (int(run(steps=2).step), int(run(steps=2).status())) == (2, 1)
    end = run(evaluations=3)
    assert int(end.status()) == 1 and 3 <= int(end.evaluations) < 3 + 20


def test_stuck_where_no_value_is_lower():
    kink = run(lambda x: snp.sum(abs(x)) + snp.sum(snp.sign(x)) * 1e3, start=(1e-9, 1e-9))
    assert int(kink.status()) in (1, 5)
    nan = run(lambda x: snp.sum(x) * np.nan)
    assert (int(nan.status()), int(nan.step)) == (5, 0)


def test_it_ends_where_values_change_little():
    end = run(lambda x: 1e6 + bowl(x), ftol=1e-5)
    assert int(end.status()) == 0 and float(snp.max(abs(end.gradient))) > 1e-6


def test_what_teaches_something_of_the_curve():
    with st.enable_x64():
        s = snp.array([1.0, 2.0])
        curved, c, scale = curvature(s, 3 * s)
        assert bool(curved) and float(c) == 15 and float(scale) == 1 / 3
        for y in (-s, 0 * s, s * np.inf, snp.array([2.0, -1.0])):
            curved, c, scale = curvature(s, y)
            assert not bool(curved) and float(c) == float(scale) == 1


STOP = Stop(50, 1e-8, float("inf"), 20)


def test_an_update_obeys_the_secant_equation():
    """H y = s, H symmetric and positive, the formula's own with b = H^-1 s."""
    random = np.random.default_rng(0)
    with st.enable_x64():
        j = _start(snp.zeros(4))
        for _ in range(6):
            h = np.asarray(j @ j.T)
            s, y = random.normal(size=(2, 4))
            y = y if s @ y > 0 else -y
            after = _update(j, *map(snp.array, (s, y, np.linalg.solve(h, s))))
            new = np.asarray(after @ after.T)
            np.testing.assert_allclose(new @ y, s, rtol=1e-8)
            rho, one = 1 / (y @ s), np.eye(4)
            left = one - rho * np.outer(s, y)
            np.testing.assert_allclose(new, left @ h @ left.T + rho * np.outer(s, s), rtol=1e-7)
            np.testing.assert_allclose(_product(after, snp.array(y)), s, rtol=1e-8)
            j = after


def test_a_step_without_curvature_teaches_nothing():
    with st.enable_x64():
        j, s = _start(snp.zeros(2)), snp.array([1.0, 0.0])
        for y in (-s, 0 * s, s * np.nan):
            np.testing.assert_array_equal(_update(j, s, y, s), np.eye(2))


def test_quadratics_teach_the_inverse_hessian():
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    with st.enable_x64():
        end, inverse = minimize_bfgs(lambda x: x @ (a @ x) / 2 - x[0], snp.array([2.0, -3.0]), STOP)
        np.testing.assert_allclose(end.x, np.linalg.solve(a, [1, 0]), rtol=1e-6)
        np.testing.assert_allclose(inverse, np.linalg.inv(a), rtol=1e-3)


def empty(memory, n):
    rows = snp.zeros((memory, n))
    return _Memory(rows, rows, snp.zeros(memory), snp.ones(()))


def pairs(count, n=4):
    random = np.random.default_rng(1)
    pairs = random.normal(size=(count, 2, n))
    return [(s, y if s @ y > 0 else -y) for s, y in pairs]


def dense(steps, n=4):
    """The same by matrices, from the scale of the last step on."""
    s, y = steps[-1]
    h = np.eye(n) * (s @ y) / (y @ y)
    for s, y in steps:
        rho = 1 / (y @ s)
        left = np.eye(n) - rho * np.outer(s, y)
        h = left @ h @ left.T + rho * np.outer(s, s)
    return h


def test_the_product_is_that_of_the_last_steps():
    steps, g = pairs(7), np.array([1.0, -2.0, 0.5, 3.0])
    with st.enable_x64():
        for memory in (1, 3, 10):
            m = empty(memory, 4)
            for s, y in steps:
                m = _recent(m, snp.array(s), snp.array(y), None)
            want = dense(steps[-memory:]) @ g
            np.testing.assert_allclose(_recent_product(m, snp.array(g)), want, rtol=1e-9)
            np.testing.assert_allclose(
                _recent_product(m, snp.array(steps[-1][1])), steps[-1][0], rtol=1e-9
            )


def test_without_steps_it_is_the_gradient():
    with st.enable_x64():
        np.testing.assert_array_equal(_recent_product(empty(3, 2), snp.array([1.0, 2.0])), [1, 2])


def test_a_step_without_curvature_is_not_kept():
    with st.enable_x64():
        m = _recent(empty(2, 2), snp.array([1.0, 0.0]), snp.array([2.0, 0.0]), None)
        after = _recent(m, snp.array([1.0, 1.0]), snp.array([-1.0, 0.0]), None)
    for old, new in zip(m, after, strict=True):
        np.testing.assert_array_equal(old, new)


def test_many_variables():
    scale = np.linspace(1, 50, 200)
    with st.enable_x64():
        stop = Stop(200, 1e-6, float("inf"), 20)
        end = minimize_lbfgs(lambda x: snp.sum(scale * (x - 1) ** 2), snp.zeros(200), stop, 5)
    assert int(end.status()) == 0
    np.testing.assert_allclose(end.x, 1, atol=1e-6)


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
