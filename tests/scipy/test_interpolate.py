"""Interpolation on grids: SciPy, derivatives, transformations, errors."""

import numpy as np
import pytest
import scipy.interpolate

import stretto as st
import stretto.numpy as snp
from stretto.scipy.interpolate import RegularGridInterpolator

X, Y = np.array([0.0, 1.0, 3.0]), np.array([-1.0, 0.5, 2.0, 4.0])
RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(3, 4, 2))
# Inside, on points, beyond the edges.
AT = np.array([[0.3, 0.1], [2.0, 3.9], [1.0, 0.5], [3.0, 4.0], [3.1, 0.0], [1.0, -1.5]])


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill_value", [np.nan, 0.5, None])
def test_is_scipys(method, fill_value):
    settings = {"method": method, "bounds_error": False, "fill_value": fill_value}
    want = scipy.interpolate.RegularGridInterpolator((X, Y), VALUES, **settings)
    with st.enable_x64():
        got = RegularGridInterpolator((X, Y), VALUES, **settings)
        np.testing.assert_allclose(got(AT), want(AT), rtol=1e-12)
        other = {"linear": "nearest", "nearest": "linear"}[method]
        np.testing.assert_allclose(got(AT, other), want(AT, other), rtol=1e-12)
        grid = (AT[:, None, 0], AT[:, 1])
        np.testing.assert_allclose(got(grid), want(grid), rtol=1e-12)


def test_differentiates_in_coordinates_values_and_points():
    with st.enable_x64():

        def f(at, values, x):
            return snp.sum(snp.sin(RegularGridInterpolator((x, Y), values)(at)))

        args = (AT[:2], VALUES, X)
        grads = st.jit(st.grad(f, argnums=(0, 1, 2)))(*map(snp.array, args))
        for i, (g, a) in enumerate(zip(grads, args, strict=True)):
            d = RNG.normal(size=a.shape)
            moved = [args[:i] + (a + s * 1e-6 * d,) + args[i + 1 :] for s in (1, -1)]
            quotient = (float(f(*moved[0])) - float(f(*moved[1]))) / 2e-6
            np.testing.assert_allclose(np.sum(np.asarray(g) * d), quotient, rtol=1e-6)


def test_vmap_over_values_is_the_loop():
    grids = RNG.normal(size=(3, *VALUES.shape)).astype(np.float32)
    f = lambda v: RegularGridInterpolator((X, Y), v, fill_value=None)(AT)
    out = st.jit(st.vmap(f))(grids)
    np.testing.assert_allclose(out, np.stack([f(v) for v in grids]), rtol=1e-5, atol=1e-6)


def test_refuses():
    with pytest.raises(NotImplementedError, match="method must be 'linear' or 'nearest'; got 'cub"):
        RegularGridInterpolator((X, Y), VALUES, "cubic")
    with pytest.raises(NotImplementedError, match="bounds_error must be False"):
        RegularGridInterpolator((X, Y), VALUES, bounds_error=True)
    with pytest.raises(ValueError, match=r"points\[1\] must have rank 1.*axis 1 of values"):
        RegularGridInterpolator((X, Y[:-1]), VALUES)
    with pytest.raises(ValueError, match=r"points\[0\] must be ascending"):
        RegularGridInterpolator((X[::-1], Y), VALUES)
    with pytest.raises(ValueError, match="3 axes of points, but values"):
        RegularGridInterpolator((X, Y, X), VALUES[..., 0])
    with pytest.raises(ValueError, match="the grid has 2 axes, but the points of xi have 3"):
        RegularGridInterpolator((X, Y), VALUES)(np.ones((2, 3)))
