"""Newton's method on convex functions whose least value is known."""

import numpy as np
import pytest
from scipy import optimize

import stretto as st
import stretto.numpy as snp
from stretto.ensemble.newton import minimize

RNG = np.random.default_rng(0)
A = RNG.normal(size=(20, 5))
B = RNG.normal(size=20)


def quadratic(x):
    return snp.sum(snp.square(A.astype(x.dtype) @ x - B.astype(x.dtype)))


def quartic(x):
    return snp.sum((x - 1) ** 4) + snp.sum(snp.square(x - 2))


def steep(x):
    return snp.sum(snp.exp(4 * x) - 3 * x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_least_squares(dtype):
    with st.enable_x64():
        find = lambda start: minimize(quadratic, start)
        start = np.zeros(5, dtype)
        expected = np.linalg.lstsq(A, B)[0]
        tolerance = {"float32": 1e-4, "float64": 1e-8}[dtype]
        for run in (find, st.jit(find)):
            np.testing.assert_allclose(run(snp.asarray(start)), expected, atol=tolerance)


@pytest.mark.parametrize("loss", [quartic, steep])
def test_functions_that_are_not_quadratic(loss):
    with st.enable_x64():
        start = snp.asarray(np.float64([-3, 0, 2]))
        host = lambda x: float(loss(snp.asarray(x)))
        alone = optimize.minimize_scalar(
            lambda v: host(np.float64([v])), bracket=(-1, 2), tol=1e-12
        )
        expected = [alone.x] * 3
        np.testing.assert_allclose(minimize(loss, start), expected, atol=1e-6)
        many = st.jit(st.vmap(lambda s: minimize(loss, s)))(snp.stack([start, start + 0.3]))
        np.testing.assert_allclose(many, [expected] * 2, atol=1e-6)


def test_a_flat_direction_is_left_alone():
    loss = lambda x: snp.square(x[0] + x[1] - 2)
    np.testing.assert_allclose(minimize(loss, snp.zeros(2)), [1, 1], rtol=1e-5)


def test_a_loss_that_falls_for_ever_ends():
    found = np.asarray(minimize(lambda x: snp.sum(snp.exp(-x)), snp.zeros(2)))
    assert (found > 10).all()
    assert np.isfinite(found).all()


def test_nan():
    loss = lambda x: snp.sum(x * x) * snp.nan
    assert np.isnan(np.asarray(minimize(loss, snp.zeros(2)))).all()
