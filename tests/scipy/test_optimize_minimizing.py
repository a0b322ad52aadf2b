"""Minimizing: known minima, transformations, failures in words and status, errors."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.scipy.optimize import OptimizeResults, minimize


def rosenbrock(x):
    return snp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def bfgs(f, x, **options):
    return minimize(f, x, method="BFGS", options=options)


def test_finds_minima_in_both_precisions():
    for wide, accuracy in ((False, 1e-4), (True, 1e-6)):
        with st.enable_x64(wide):
            result = st.jit(lambda x: bfgs(rosenbrock, x))(snp.zeros(3))
            assert isinstance(result, OptimizeResults)
            assert bool(result.success) and int(result.status) == 0
            assert result.x.dtype == result.hess_inv.dtype == (np.float64 if wide else np.float32)
            np.testing.assert_allclose(result.x, np.ones(3), atol=accuracy)
            counts = (result.status, result.nit, result.nfev, result.njev)
            assert {x.dtype for x in counts} == {np.dtype(np.int64 if wide else np.int32)}
            assert abs(float(result.fun)) < 1e-6
            assert float(snp.max(abs(result.jac))) < 1e-5
            assert int(result.nit) <= int(result.nfev) == int(result.njev) < 80


def curved(condition):
    """A quadratic of ten variables, in directions of its own, of this condition."""
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(10, 10)))[0]
    a = q * np.logspace(0, np.log10(condition), 10) @ q.T
    return lambda x: x @ (snp.asarray(a, x.dtype) @ x) / 2


def beale(x):
    return sum(((c - x[0] * (1 - x[1] ** k)) ** 2 for k, c in ((1, 1.5), (2, 2.25), (3, 2.625))))


def powells_badly_scaled(x):
    return (1e4 * x[0] * x[1] - 1) ** 2 + (snp.exp(-x[0]) + snp.exp(-x[1]) - 1.0001) ** 2


PROBLEMS = {
    "steep": (lambda x: ((1e4 * x) ** 2).mean(), np.ones(3), np.zeros(3), 1e-6),
    "uneven": (lambda x: snp.sum(snp.array([1e-3, 1, 1e3]) * x * x), np.ones(3), np.zeros(3), 1e-2),
    "far": (lambda x: snp.sum((x - 1e3) ** 2) + 1e4, np.zeros(3), np.full(3, 1e3), 1e-3),
    "rosenbrock": (rosenbrock, np.array([-1.2, 1]), np.ones(2), 1e-4),
    "beale": (beale, np.ones(2), np.array([3, 0.5]), 1e-4),
    "condition 1e3": (curved(1e3), np.ones(10), np.zeros(10), 1e-3),
    "condition 1e6": (curved(1e6), np.ones(10), np.zeros(10), 1e-3),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("wide", [False, True])
def test_badly_scaled_problems(name, wide):
    f, start, want, accuracy = PROBLEMS[name]
    with st.enable_x64(wide):
        x = snp.asarray(start, np.float64 if wide else np.float32)
        result = st.jit(lambda x: bfgs(f, x))(x)
        assert bool(result.success) and int(result.nfev) < 60
        np.testing.assert_allclose(result.x, want, atol=accuracy)
        if name == "condition 1e6" and not wide:
            return  # SciPy too stops at ftol early on: steps gain no more than 32 bits show
        result = st.jit(lambda x: minimize(f, x, method="L-BFGS"))(x)
        assert bool(result.success) and result.hess_inv is None
        if name == "condition 1e6":  # ftol is about f: how flat that is, x says with rounding
            assert float(f(result.x)) < 1e-9 * float(f(x))
        else:
            np.testing.assert_allclose(result.x, want, atol=max(accuracy, 1e-3))


def test_powells_badly_scaled_function():
    with st.enable_x64():
        result = st.jit(lambda x: bfgs(powells_badly_scaled, x))(snp.array([0.0, 1.0]))
        assert bool(result.success) and float(result.fun) < 1e-15


def test_the_inverse_hessian_is_that_of_a_quadratic():
    with st.enable_x64():
        f = curved(1e3)
        result = bfgs(f, snp.ones(10), gtol=1e-10)
        product = np.asarray(result.hess_inv) @ np.asarray(st.hessian(f)(snp.zeros(10)))
        np.testing.assert_allclose(product, np.eye(10), atol=1e-2)


def test_limited_memory():
    many = lambda x: snp.sum((x - snp.arange(x.size)) ** 2 * (1 + snp.arange(x.size) % 7))
    names = ("l-bfgs", "L-BFGS", "l-bfgs-experimental-do-not-rely-on-this")
    for name, memory in zip(names, (1, 3, 30), strict=True):
        result = st.jit(lambda x, n=name, m=memory: minimize(
            many, x, method=n, options={"maxcor": m}))(snp.zeros(500))  # fmt: skip
        assert bool(result.success) and int(result.nit) < 60
        np.testing.assert_allclose(result.x, np.arange(500), atol=0.1)
    lbfgs = lambda f, x, **options: minimize(f, x, method="L-BFGS", options=options)
    few = lbfgs(rosenbrock, snp.zeros(2), maxiter=3)
    assert (int(few.nit), int(few.status), bool(few.success)) == (3, 1, False)
    few = lbfgs(rosenbrock, snp.zeros(2), maxfun=5)
    assert int(few.nfev) >= 5 and (int(few.status), bool(few.success)) == (1, False)
    loose = lbfgs(rosenbrock, snp.zeros(2), ftol=0.1)
    assert bool(loose.success) and float(snp.max(abs(loose.jac))) > 1e-3
    closer = minimize(rosenbrock, snp.zeros(2), method="L-BFGS", tol=0.1)
    assert int(closer.nit) <= int(lbfgs(rosenbrock, snp.zeros(2)).nit)
    with st.enable_x64():
        starts = snp.array([[0.0, 0.0], [-1.0, 2.0]])
        together = st.vmap(lambda x: lbfgs(himmelblau, x))(starts)
        for i in range(2):
            np.testing.assert_allclose(together.x[i], lbfgs(himmelblau, starts[i]).x, atol=1e-5)


def test_vmap_is_the_loop():
    x = np.random.default_rng(0).uniform(-4, 4, (4, 2))
    with st.enable_x64():
        together = st.jit(st.vmap(lambda x: bfgs(himmelblau, x)))(x)
        assert np.asarray(together.success).all()
        for i, start in enumerate(x):
            alone = bfgs(himmelblau, start)
            np.testing.assert_allclose(together.x[i], alone.x, atol=1e-6)
            assert int(together.nit[i]) == int(alone.nit)


def test_derivatives_forwards_are_those_of_the_minimum():
    # The minimum of (x - a)^2 + x^4 / 2 has x - a + x^3 = 0, so dx/da = 1 / (1 + 3 x^2).
    with st.enable_x64():

        def least(a):
            result = minimize(
                lambda x, a: snp.sum((x - a) ** 2 + x**4 / 2), snp.zeros(1), (a,), method="bfgs",
                tol=1e-9,
            )  # fmt: skip
            return result.x[0]

        a = snp.array(2.0)
        x, dx = st.jit(lambda a: st.jvp(least, (a,), (a * 0 + 1,)))(a)
        np.testing.assert_allclose(x, 1.0, rtol=1e-8)
        np.testing.assert_allclose(dx, 1 / 4, rtol=1e-5)


def test_steps_through_values_that_are_not_numbers():
    # log is NaN beyond 0, which the first full steps reach.
    result = st.jit(lambda x: bfgs(lambda x: snp.sum(x - snp.log(x)), x))(snp.array([0.01, 30.0]))
    assert bool(result.success)
    np.testing.assert_allclose(result.x, [1, 1], atol=1e-4)


def test_says_why_it_stopped():
    few = bfgs(rosenbrock, snp.zeros(2), maxiter=3)
    assert (int(few.nit), int(few.status), bool(few.success)) == (3, 1, False)
    assert float(few.fun) < float(rosenbrock(snp.zeros(2)))
    nowhere = bfgs(lambda x: snp.sum(x) * snp.nan, snp.zeros(2))
    assert int(nowhere.status) == 5 and not bool(nowhere.success)
    there = bfgs(lambda x: snp.sum(x**2), snp.zeros(2))
    assert (int(there.nit), int(there.nfev), bool(there.success)) == (0, 1, True)


def test_refuses():
    square = lambda x: snp.sum(x**2)
    with pytest.raises(ValueError, match="method must be 'BFGS' or 'L-BFGS'; got 'CG'"):
        minimize(square, snp.zeros(2), method="CG")
    with pytest.raises(ValueError, match="bounds are not supported, use L-BFGS without them"):
        minimize(square, snp.zeros(2), method="L-BFGS-B")
    with pytest.raises(ValueError, match="maxcor must be 1 or more; got 0"):
        minimize(square, snp.zeros(2), method="L-BFGS", options={"maxcor": 0})
    with pytest.raises(ValueError, match=r"'L-BFGS' has the options gtol, .*; got disp"):
        minimize(square, snp.zeros(2), method="L-BFGS", options={"disp": True})
    with pytest.raises(ValueError, match=r"has the options gtol, .*; got disp"):
        bfgs(square, snp.zeros(2), disp=True)
    with pytest.raises(TypeError, match="args must be a tuple"):
        minimize(square, snp.zeros(2), 1.0, method="BFGS")
    with pytest.raises(ValueError, match=r"x0 of rank 1 and not empty, got float32\[2,2\]"):
        bfgs(square, snp.zeros((2, 2)))
    with pytest.raises(TypeError, match=r"expected real numbers, got x0 complex64\[2\]"):
        bfgs(square, snp.zeros(2, complex))
