"""The estimate of BFGS: the secant equation, symmetry, steps that are ignored, quadratics."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto.scipy.optimize.bfgs import _product, _start, _updated, minimize_bfgs
from stretto.scipy.optimize.descent import Stop

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
            after = _updated(j, *map(snp.array, (s, y, np.linalg.solve(h, s))))
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
            np.testing.assert_array_equal(_updated(j, s, y, s), np.eye(2))


def test_quadratics_teach_the_inverse_hessian():
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    with st.enable_x64():
        end, inverse = minimize_bfgs(lambda x: x @ (a @ x) / 2 - x[0], snp.array([2.0, -3.0]), STOP)
        np.testing.assert_allclose(end.x, np.linalg.solve(a, [1, 0]), rtol=1e-6)
        np.testing.assert_allclose(inverse, np.linalg.inv(a), rtol=1e-3)
