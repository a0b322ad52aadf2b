"""What is made of gamma numbers: JAX's numbers, laws, derivatives, refusals."""

import numpy as np
import pytest
from scipy import stats

from stretto import random as R
from stretto._engine.api.autodiff.derivatives import grad, jvp
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.errors import TypePromotionError
from tests.random.seeds import jaxs_key


def A(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def N(x):
    return np.array(x, np.float32)


# Each draw, and what JAX 0.10.2 gives for the same expression with R = jax.random,
# k = PRNGKey(0x123456789), and jax_threefry_partitionable off, then on; in row-major order.
DRAWS = {
    "beta": (
        lambda k: R.beta(k, 2.0, 0.5, (5,)),
        [0.9999999, 0.58960795, 0.9802643, 0.9391007, 0.88012606],
        [0.9504631, 0.8018524, 0.65518534, 0.5205109, 0.6573949],
    ),
    "beta_rows": (
        lambda k: R.beta(k, A(3) + 0.5, 2.0, (2, 3)),
        [0.33994913, 0.19477795, 0.45817423, 0.046017177, 0.2829267, 0.66476405],
        [0.10993025, 0.60793924, 0.63191545, 0.17455022, 0.36055976, 0.92761296],
    ),
    "dirichlet": (
        lambda k: R.dirichlet(k, A(3) + 0.5, (2,)),
        [6.5199483e-06, 0.2626262, 0.7373673, 0.22266138, 0.17348728, 0.6038514],
        [0.07441059, 0.14307511, 0.7825143, 0.026200116, 0.3470064, 0.6267935],
    ),
    "chisquare": (
        lambda k: R.chisquare(k, 3, (5,)),
        [0.5304159, 0.36476308, 2.4229782, 0.3393168, 0.47716954],
        [4.6925325, 0.7614022, 2.2098937, 0.16558096, 1.1355357],
    ),
    "f": (
        lambda k: R.f(k, 3, 5.0, (5,)),
        [0.12359111, 1.6160953, 0.045438804, 0.37359908, 1.1069779],
        [0.16731304, 0.45745787, 0.7900259, 1.9009016, 0.79228884],
    ),
    "t": (
        lambda k: R.t(k, 3.0, (5,)),
        [-1.0632713, 0.93485236, -2.6108954, -0.43094, 0.53896797],
        [1.6394286, -2.1598716, 0.14670691, 0.43512055, -0.9341517],
    ),
    "generalized_normal": (
        lambda k: R.generalized_normal(k, 1.5, (5,)),
        [1.0873617, -0.5612293, 0.9767775, 0.16924933, -1.3179325],
        [-0.32414988, -1.5149856, 2.448967, -0.5875502, -0.16507801],
    ),
    "ball": (
        lambda k: R.ball(k, 3, shape=(2,)),
        [-0.8978067, 0.15732531, -0.23662727, 0.5958307, -0.12667026, -0.78048956],
        [-0.5056257, -0.11573289, 0.44172284, 0.22800434, -0.30998915, 0.31678367],
    ),
    "ball_p": (
        lambda k: R.ball(k, 2, 1.5, (3,)),
        [-0.5931795, 0.075753935, -0.22103354, 0.53476214, -0.04989804, -0.300993],
        [-0.5284169, -0.11069067, 0.4448974, 0.21141575, -0.40812057, 0.49294475],
    ),
}


def test_draws_are_jaxs(how, check):
    # Compiled, one: they take long to compile.
    few = ("beta",) if how.__name__ == "jitted" else DRAWS
    check({name: DRAWS[name] for name in few}, rtol=2e-6, atol=5e-7)


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda k, s: R.beta(k, 0.5, 2.0, s), stats.beta(0.5, 2)),
        (lambda k, s: R.chisquare(k, 3, s), stats.chi2(3)),
        (lambda k, s: R.f(k, 3, 5, s), stats.f(3, 5)),
        (lambda k, s: R.t(k, 3, s), stats.t(3)),
        (lambda k, s: R.generalized_normal(k, 1.5, s), stats.gennorm(1.5)),
        (lambda k, s: R.dirichlet(k, A(3) + 1, s)[:, 1], stats.beta(2, 4)),
        (lambda k, s: abs(R.ball(k, 1, shape=s)[:, 0]), stats.uniform()),
    ],
    ids=["beta", "chisquare", "f", "t", "gennorm", "dirichlet", "ball"],
)
def test_follows_its_law(draw, law):
    # The key is fixed, so the test cannot fail by chance.
    x = np.asarray(draw(R.PRNGKey(12), (2000,)))
    assert stats.kstest(x, law.cdf).pvalue > 0.01


# Derivatives of a weighted sum of three draws with respect to the parameter, as in JAX 0.10.2.
WEIGHTS = np.array([1.0, -2.0, 0.5], np.float32)
SLOPES = {
    "beta_a": (lambda k, a: R.beta(k, a, 2.0, (3,)), 1.7, 0.07640662),
    "beta_b": (lambda k, a: R.beta(k, 1.5, a, (3,)), 0.7, -0.40354371),
    "dirichlet": (lambda k, a: R.dirichlet(k, a * N([0.5, 1, 2])), 1.2, 0.41782045),
    "chisquare": (lambda k, a: R.chisquare(k, a, (3,)), 3.0, -2.2750680),
    "f": (lambda k, a: R.f(k, a, 4.0, (3,)), 3.0, 1.0990858),
    "t": (lambda k, a: R.t(k, a, (3,)), 3.0, 0.0910792),
    "generalized_normal": (lambda k, a: R.generalized_normal(k, a, (3,)), 1.5, 0.05725832),
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


def test_no_draws():
    assert R.dirichlet(R.key(0), A(3) + 1, (0,)).shape == (0, 3)


def test_refuses():
    key = R.key(0)
    with pytest.raises(TypePromotionError, match="a of type float32"):
        R.beta(key, np.float32(2), 1.0, dtype="float16")
    with pytest.raises(ValueError, match="alpha must have an axis"):
        R.dirichlet(key, 1.0)
    with pytest.raises(TypeError, match="t: out_sharding must be a sharding"):
        R.t(key, 1.0, out_sharding="x")
