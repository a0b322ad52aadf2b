"""Distributions with parameters: JAX's numbers, laws, derivatives, refusals."""

import numpy as np
import pytest
from scipy import stats

from stretto import random as R
from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.core.errors import TypePromotionError
from tests.random.seeds import jaxs_key


def A(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


# Each draw, and what JAX 0.10.2 gives for the same expression with R = jax.random,
# k = PRNGKey(0x123456789), and jax_threefry_partitionable off, then on; in row-major order.
DRAWS = {
    "lognormal": (
        lambda k: R.lognormal(k, 0.5, (5,)),
        [0.46445033, 2.3000705, 0.8417146, 1.7303442, 1.6178262],
        [0.769924, 0.82100374, 1.1418779, 1.5262585, 0.58697325],
    ),
    "pareto": (
        lambda k: R.pareto(k, 2.0, (5,)),
        [1.0328171, 4.5706086, 1.2550962, 2.707659, 2.4398742],
        [1.1956664, 1.2371373, 1.5903687, 2.242371, 1.0804108],
    ),
    "rayleigh": (
        lambda k: R.rayleigh(k, 2.0, (5,)),
        [4.7091074, 0.6264335, 2.8387973, 1.083124, 1.212938],
        [3.1013103, 2.9113832, 2.0062692, 1.331889, 3.9423077],
    ),
    "weibull_min": (
        lambda k: R.weibull_min(k, 2.0, 3.0, (5,)),
        [0.80241084, 2.897038, 1.5376256, 2.5165489, 2.4256022],
        [1.4193337, 1.504402, 1.9507518, 2.3465343, 1.0736035],
    ),
    "weibull_grown": (
        lambda k: R.weibull_min(k, A(3), 2.0),
        [0.0, 1.8364565, 3.672913],
        [0.0, 0.5978356, 1.1956712],
    ),
    "double_sided_maxwell": (
        lambda k: R.double_sided_maxwell(k, 1.0, 2.0, (5,)),
        [3.764167, -1.4095244, 3.803823, 2.4692044, 0.62270176],
        [-2.7935157, -1.3095071, 2.9840224, -0.8942946, -0.42254436],
    ),
    "double_sided_maxwell_twice": (
        lambda k: R.double_sided_maxwell(k, A(2), 2.0),
        [-2.7227137, -1.0529301, -5.6429768, 1.8203752],
        [-3.7935157, -1.3095071, 1.9840224, -0.8942946],
    ),
    "wald": (
        lambda k: R.wald(k, 2.0, (5,)),
        [0.97190464, 12.136647, 0.9454206, 1.1768802, 4.466936],
        [5.594951, 15.629947, 1.4654202, 3.4182456, 4.512249],
    ),
    "wald_rows": (
        lambda k: R.wald(k, A(3) + 0.5, (2, 3)),
        [0.34652758, 7.460673, 0.9518856, 0.38266063, 3.0217512, 9.320119],
        [0.8503822, 9.447638, 1.7663628, 0.65523446, 3.0487828, 0.65263814],
    ),
    "triangular": (
        lambda k: R.triangular(k, -1.0, 0.5, 2.0, (5,)),
        [-0.46950352, 1.535878, 0.28192842, 1.2165482, 1.1305616],
        [0.1628871, 0.24891996, 0.66614556, 1.0539834, -0.19693792],
    ),
    "lognormal_complex": (
        lambda k: R.lognormal(k, 0.5, (2,), "complex64"),
        [complex(0.7474526, -0.25257564), complex(0.77304256, -0.6469252)],
        [complex(1.1943978, 0.53372633), complex(0.49455795, 0.22575563)],
    ),
}


def test_draws_are_jaxs(check):
    check(DRAWS, rtol=5e-7, atol=5e-7)


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda k, s: R.lognormal(k, 0.5, s), stats.lognorm(0.5)),
        (lambda k, s: R.pareto(k, 3.0, s), stats.pareto(3)),
        (lambda k, s: R.rayleigh(k, 2.0, s), stats.rayleigh(scale=2)),
        (lambda k, s: R.weibull_min(k, 2.0, 3.0, s), stats.weibull_min(3, scale=2)),
        (lambda k, s: abs(R.double_sided_maxwell(k, 0.0, 2.0, s)), stats.maxwell(scale=2)),
        (lambda k, s: R.wald(k, 2.0, s), stats.invgauss(2.0)),
        (lambda k, s: R.triangular(k, -1.0, 0.5, 2.0, s), stats.triang(0.5, loc=-1, scale=3)),
    ],
    ids=["lognormal", "pareto", "rayleigh", "weibull", "maxwell", "wald", "triangular"],
)
def test_follows_its_law(draw, law):
    # The key is fixed, so the test cannot fail by chance.
    x = np.asarray(draw(R.PRNGKey(12), (4000,)))
    assert stats.kstest(x, law.cdf).pvalue > 0.01


# Derivatives of a weighted sum of three draws with respect to the parameter, as in JAX 0.10.2.
WEIGHTS = np.array([1.0, -2.0, 0.5], np.float32)
SLOPES = {
    "wald": (lambda k, a: R.wald(k, a, (3,)), 2.0, 15.113433),
    "triangular": (lambda k, a: R.triangular(k, -1.0, a, 2.0, (3,)), 0.5, -0.10962643),
    "pareto": (lambda k, a: R.pareto(k, a, (3,)), 1.5, 2.1832776),
    "weibull_min": (lambda k, a: R.weibull_min(k, 1.0, a, (3,)), 1.5, 0.44331852),
}


@pytest.mark.parametrize("name", SLOPES)
def test_differentiates_as_jax_does(name):
    draw, a, want = SLOPES[name]
    slope = grad(lambda a: (draw(jaxs_key(), a) * WEIGHTS).sum())(np.float32(a))
    np.testing.assert_allclose(slope, want, rtol=1e-5)


def test_refuses():
    key = R.key(0)
    with pytest.raises(
        TypePromotionError, match=r"b of type float32\[\] does not convert to float16"
    ):
        R.pareto(key, np.float32(2), dtype="float16")
    with pytest.raises(ValueError, match="mode float32\\[3\\] does not broadcast"):
        R.triangular(key, 0.0, A(3), 4.0, (2,))
    with pytest.raises(TypeError, match="dtype must be floating, got int32"):
        R.wald(key, 1.0, dtype="int32")
    with pytest.raises(TypeError, match="must be floating or complex"):
        R.lognormal(key, 1.0, dtype="int32")
    with pytest.raises(TypeError, match="out_sharding must be a sharding"):
        R.wald(key, 1.0, out_sharding="x")
