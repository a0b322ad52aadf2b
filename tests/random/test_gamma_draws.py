"""Gamma numbers: JAX's numbers, laws, implicit derivatives, refusals."""

import numpy as np
import pytest
from scipy import special, stats

from stretto import random as R
from stretto._engine.api.autodiff.derivatives import grad, jvp
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.config import config
from stretto._engine.higher_order.scan import scan
from tests.random.seeds import jaxs_key

INF, NAN = np.inf, np.nan


def A(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def N(x):
    return np.array(x, np.float32)


# Each draw, and what JAX 0.10.2 gives for the same expression with R = jax.random,
# k = PRNGKey(0x123456789), and jax_threefry_partitionable off, then on; in row-major order.
DRAWS = {
    "gamma": (
        lambda k: R.gamma(k, 2.5, (6,)),
        [0.9152108, 2.5731244, 4.1307116, 3.5283415, 1.9374849, 3.483249],
        [3.6736362, 0.9945314, 2.0821517, 0.40125388, 1.2998049, 1.0255523],
    ),
    "gamma_small": (
        lambda k: R.gamma(k, 0.3, (6,)),
        [5.905754e-08, 0.006645707, 0.0918344, 0.78040266, 0.013011429, 0.027446974],
        [0.033541832, 0.09413763, 0.00037175565, 0.75420296, 0.03205413, 0.0685684],
    ),
    "gamma_array": (
        lambda k: R.gamma(k, A(6) * 0.5 + 0.25),
        [2.5485085e-09, 0.21567753, 2.3515635, 2.561583, 1.7016162, 3.7952142],
        [0.014204709, 0.34045765, 0.8620845, 0.14542066, 1.1098069, 1.1962972],
    ),
    "gamma_rows": (
        lambda k: R.gamma(k, A(3) + 0.1, (2, 3)),
        [2.3073107e-21, 1.0180932, 3.582606, 0.10660679, 0.6337466, 2.9762957],
        [7.606194e-06, 0.17893295, 1.6904591, 0.072924405, 0.30656415, 0.76220214],
    ),
    "gamma_scalar": (lambda k: R.gamma(k, 7.0), [2.4658475], [9.110269]),
    "gamma_many": (
        lambda k: R.gamma(k, 0.7, (40,)),
        [
            0.104844265,
            3.10658e-05,
            0.57557094,
            1.4189634,
            0.361734,
            0.019509763,
            0.004184189,
            0.10696183,
            0.13621429,
            2.76861,
            0.21092969,
            1.1253687,
            0.8267815,
            0.16088259,
            0.021081837,
            0.09238451,
            1.0992831,
            0.35199395,
            0.49781084,
            1.5046887,
            0.142788,
            0.39694756,
            0.35645324,
            0.010567439,
            0.10739518,
            0.027539363,
            1.8161494,
            1.4295235,
            2.9326777,
            0.59800875,
            0.16162202,
            0.23168701,
            0.4993556,
            0.8838762,
            0.7892504,
            0.7716588,
            1.402344,
            0.26736578,
            0.3385002,
            1.0515528,
        ],
        [
            0.44812036,
            0.31175226,
            0.045857683,
            0.08236479,
            0.23156014,
            0.27732006,
            1.5280533,
            0.9963338,
            1.194632,
            0.20726596,
            0.99331355,
            1.5492384,
            0.006442022,
            1.281539,
            0.0088449735,
            0.66276383,
            3.3170462,
            0.02451668,
            0.3884292,
            0.04621628,
            0.9174488,
            0.2249955,
            0.7024128,
            0.31157365,
            0.48432657,
            0.2832392,
            1.3306812,
            0.10466304,
            0.8529957,
            0.74577,
            0.37300467,
            0.65349495,
            0.28752565,
            0.43500203,
            0.009699384,
            0.540988,
            0.001020492,
            0.68207353,
            0.1043075,
            0.030573316,
        ],
    ),
    "gamma_edges": (
        lambda k: R.gamma(k, N([float("nan"), 0.0, -1.0, float("inf"), 1e-10, -0.5])),
        [NAN, 0.0, NAN, INF, 0.0, 9.029639],
        [NAN, 0.0, NAN, INF, 0.0, 0.003381213],
    ),
    "loggamma": (
        lambda k: R.loggamma(k, 2.5, (6,)),
        [-0.088600874, 0.9451209, 1.4184496, 1.260828, 0.66139066, 1.2479655],
        [1.3011819, -0.0054836273, 0.7334018, -0.9131609, 0.26221418, 0.025231242],
    ),
    "loggamma_small": (
        lambda k: R.loggamma(k, 1e-3, (6,)),
        [-4564.159, -1570.2268, -981.735, -274.81708, -1242.326, -1273.7234],
        [-1235.6798, -323.68265, -2341.5579, -328.4985, -782.8656, -434.80508],
    ),
    "loggamma_edges": (
        lambda k: R.loggamma(k, N([float("nan"), 0.0, -1.0, float("inf"), 1e-10])),
        [NAN, -INF, NAN, INF, -4.5632876e09],
        [NAN, -INF, NAN, INF, -7.8146734e09],
    ),
}


def test_draws_are_jaxs(how, check):
    # Compiled, one of each kind: they take long to compile.
    few = ("gamma_array", "loggamma_small") if how.__name__ == "jitted" else DRAWS
    check({name: DRAWS[name] for name in few}, rtol=2e-6, atol=5e-7)


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda k, s: R.gamma(k, 2.5, s), stats.gamma(2.5)),
        (lambda k, s: R.gamma(k, 0.3, s), stats.gamma(0.3)),
    ],
    ids=["gamma", "gamma_small"],
)
def test_follows_its_law(draw, law):
    # The key is fixed, so the test cannot fail by chance.
    x = np.asarray(draw(R.PRNGKey(12), (2000,)))
    assert stats.kstest(x, law.cdf).pvalue > 0.01


# Derivatives of a weighted sum of three draws with respect to the parameter, as in JAX 0.10.2.
WEIGHTS = np.array([1.0, -2.0, 0.5], np.float32)
SLOPES = {
    "gamma": (lambda k, a: R.gamma(k, a, (3,)), 1.7, -2.1510887),
    "gamma_small": (lambda k, a: R.gamma(k, a, (3,)), 0.3, -6.8691568),
    "loggamma": (lambda k, a: R.loggamma(k, a, (3,)), 0.4, 9.6574831),
}


@pytest.mark.parametrize("name", SLOPES)
def test_differentiates_as_jax_does(name):
    draw, a, want = SLOPES[name]
    key, a = jaxs_key(), np.float32(a)
    total = lambda a: (draw(key, a) * WEIGHTS).sum()
    # The sums cancel in part.
    close = lambda x: np.testing.assert_allclose(x, want, rtol=2e-5)
    close(grad(total)(a))
    close(jvp(total, (a,), (np.float32(1),))[1])
    close(vmap(grad(total))(np.stack([a + 1, a]))[1])


def test_the_derivative_is_that_of_the_quantile():
    key, a = R.key(5), N([0.4, 1.5, 30.0])
    x, dx = (
        np.asarray(v, np.float64) for v in jvp(lambda a: R.gamma(key, a), (a,), (N([1, 1, 1]),))
    )
    h, wide = 1e-4, a.astype(np.float64)
    level = special.gammainc(wide, x)
    up, down = special.gammaincinv(wide + h, level), special.gammaincinv(wide - h, level)
    np.testing.assert_allclose(dx, (up - down) / (2 * h), rtol=1e-3)


def test_under_transformations():
    keys, a = R.split(R.key(1), 3), N([0.5, 2.0, 9.0])
    draw = lambda key, a: R.gamma(key, a, (2,))
    looped = np.stack([draw(key, x) for key, x in zip(keys, a, strict=True)])
    np.testing.assert_array_equal(vmap(draw)(keys, a), looped)
    np.testing.assert_array_equal(vmap(draw, (None, 0))(keys[0], a)[0], looped[0])
    _, scanned = scan(lambda c, x: (c, draw(*x)), 0, (keys, a))
    np.testing.assert_array_equal(scanned, looped)
    slopes = lambda keys, a: vmap(grad(lambda a, key: draw(key, a).sum()))(a, keys)
    np.testing.assert_allclose(jit(slopes)(keys, a), slopes(keys, a), rtol=1e-5)


def test_logarithms_are_those_of_the_numbers():
    key = R.key(2)
    logs, x = R.loggamma(key, 0.7, (50,)), R.gamma(key, 0.7, (50,))
    np.testing.assert_allclose(np.exp(np.asarray(logs)), x, rtol=1e-5)


def test_every_dtype():
    key = R.key(0)
    for dtype in ("float16", "bfloat16", "float32"):
        x = R.gamma(key, 2.0, (200,), dtype)
        assert x.dtype == dtype
        assert abs(float(np.asarray(x, np.float64).mean()) - 2) < 0.4
    with config(enable_x64=True):
        assert R.gamma(key, 2.0).dtype == np.float64
    assert R.gamma(key, A(0)).shape == (0,)


def test_refuses():
    key = R.key(0)
    with pytest.raises(TypeError, match="gamma: dtype must be floating, got int32"):
        R.gamma(key, 2.0, dtype="int32")
    with pytest.raises(ValueError, match=r"gamma: a float32\[3\] does not broadcast"):
        R.gamma(key, A(3), (2,))
