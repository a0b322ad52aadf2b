"""Limited memory: the product of the last steps' updates, what is forgotten, what is not kept."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto.scipy.optimize.descent import Stop
from stretto.scipy.optimize.lbfgs import _Memory, _product, _updated, minimize_lbfgs


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
                m = _updated(m, snp.array(s), snp.array(y), None)
            want = dense(steps[-memory:]) @ g
            np.testing.assert_allclose(_product(m, snp.array(g)), want, rtol=1e-9)
            np.testing.assert_allclose(
                _product(m, snp.array(steps[-1][1])), steps[-1][0], rtol=1e-9
            )


def test_without_steps_it_is_the_gradient():
    with st.enable_x64():
        np.testing.assert_array_equal(_product(empty(3, 2), snp.array([1.0, 2.0])), [1, 2])


def test_a_step_without_curvature_is_not_kept():
    with st.enable_x64():
        m = _updated(empty(2, 2), snp.array([1.0, 0.0]), snp.array([2.0, 0.0]), None)
        after = _updated(m, snp.array([1.0, 1.0]), snp.array([-1.0, 0.0]), None)
    for old, new in zip(m, after, strict=True):
        np.testing.assert_array_equal(old, new)


def test_many_variables():
    scale = np.linspace(1, 50, 200)
    with st.enable_x64():
        stop = Stop(200, 1e-6, float("inf"), 20)
        end = minimize_lbfgs(lambda x: snp.sum(scale * (x - 1) ** 2), snp.zeros(200), stop, 5)
    assert int(end.status()) == 0
    np.testing.assert_allclose(end.x, 1, atol=1e-6)
