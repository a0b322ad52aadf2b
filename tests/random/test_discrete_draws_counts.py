"""Counts: JAX's numbers, laws, edges, refusals."""

import itertools

import numpy as np
import pytest
from scipy import stats

from stretto import random as R
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.config import config

INF, NAN = np.inf, np.nan


def A(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def N(x):
    return np.array(x, np.float32)


# Each draw, and what JAX 0.10.2 gives for the same expression with R = jax.random,
# k = PRNGKey(0x123456789), and jax_threefry_partitionable off, then on; in row-major order.
DRAWS = {
    "geometric": (
        lambda k: R.geometric(k, 0.3, (7,)),
        [6, 1, 21, 4, 12, 1, 1],
        [4, 3, 2, 1, 6, 5, 3],
    ),
    "geometric_i8": (
        lambda k: R.geometric(k, A(3) * 0.3 + 0.1, dtype="int8"),
        [2, 1, 1],
        [12, 3, 1],
    ),
    "geometric_edges": (
        lambda k: R.geometric(k, N([0.0, 1.0, 2.0, NAN])),
        [2147483647, 1, 0, 0],
        [2147483647, 1, 0, 0],
    ),
    "poisson": (
        lambda k: R.poisson(k, 3.5, (8,)),
        [2, 10, 3, 5, 2, 3, 5, 5],
        [5, 3, 2, 2, 5, 1, 5, 0],
    ),
    "poisson_large": (
        lambda k: R.poisson(k, A(8) * 40 + 5),
        [2, 43, 91, 126, 147, 225, 238, 280],
        [8, 44, 76, 127, 164, 210, 241, 276],
    ),
    "poisson_u8": (lambda k: R.poisson(k, 4.0, (5,), "uint8"), [3, 7, 2, 2, 5], [5, 4, 4, 3, 5]),
    "poisson_edges": (lambda k: R.poisson(k, A(4) * NAN), [-1, -1, -1, -1], [-1, -1, -1, -1]),
    "poisson_edge2": (
        lambda k: R.poisson(k, N([0.0, -1.0, 1e30])),
        [0, -1, 2147483647],
        [0, -1, 2147483647],
    ),
    "binomial": (
        lambda k: R.binomial(k, 10, 0.3, (8,)),
        [2.0, 3.0, 5.0, 2.0, 3.0, 4.0, 4.0, 3.0],
        [6.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0, 4.0],
    ),
    "binomial_large": (
        lambda k: R.binomial(k, A(8) * 1000 + 50, 0.37),
        [16.0, 384.0, 774.0, 1131.0, 1457.0, 1916.0, 2222.0, 2596.0],
        [22.0, 387.0, 738.0, 1132.0, 1495.0, 1881.0, 2230.0, 2586.0],
    ),
    "binomial_p": (
        lambda k: R.binomial(k, 100, A(5) * 0.25),
        [0.0, 21.0, 48.0, 78.0, 100.0],
        [0.0, 25.0, 55.0, 74.0, 100.0],
    ),
    "binomial_edges": (
        lambda k: R.binomial(
            k,
            N([NAN, 0.0, -1.0, INF, 10, 10, 10, 10.5]),
            N([0.5, 0.5, 0.5, 0.5, NAN, -0.1, 1.0, 1.5]),
        ),
        [NAN, 0.0, NAN, INF, NAN, NAN, 10.0, NAN],
        [NAN, 0.0, NAN, INF, NAN, NAN, 10.0, NAN],
    ),
    "multinomial": (
        lambda k: R.multinomial(k, 20, A(4) / 6),
        [0.0, 3.0, 5.0, 12.0],
        [0.0, 6.0, 7.0, 7.0],
    ),
    "multinomial_rows": (
        lambda k: R.multinomial(k, 50, A(3) + 1.0, shape=(2, 3)),
        [6.0, 20.0, 24.0, 5.0, 20.0, 25.0],
        [7.0, 16.0, 27.0, 6.0, 16.0, 28.0],
    ),
}


def test_draws_are_jaxs(how, partitionable):
    # Compiled, one of each kind: they take long to compile.
    few = ("poisson_large", "binomial_large") if how.__name__ == "jitted" else DRAWS
    draws = {name: DRAWS[name] for name in few}
    with config(threefry_partitionable=partitionable):
        drawn = how(draws)
    for name, (_, *want) in draws.items():
        np.testing.assert_array_equal(drawn[name].reshape(-1), want[partitionable], name)


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda k, s: R.poisson(k, 3.5, s), stats.poisson(3.5)),
        (lambda k, s: R.poisson(k, 40.0, s), stats.poisson(40)),
        (lambda k, s: R.binomial(k, 12, 0.3, s), stats.binom(12, 0.3)),
        (lambda k, s: R.binomial(k, 100, 0.7, s), stats.binom(100, 0.7)),
        (lambda k, s: R.geometric(k, 0.3, s), stats.geom(0.3)),
        (
            lambda k, s: R.multinomial(k, 30, N([0.2, 0.3, 0.5]), shape=(*s, 3))[:, 1],
            stats.binom(30, 0.3),
        ),
    ],
    ids=["poisson", "poisson_large", "binomial", "binomial_large", "geometric", "multinomial"],
)
def test_follows_its_law(draw, law):
    # The key is fixed, so the test cannot fail by chance.
    x = np.asarray(draw(R.PRNGKey(1), (2000,)))
    low, high = int(law.ppf(0.02)), int(law.ppf(0.98))
    edges = [-INF, *range(low, high), INF]
    seen = [np.sum((x > a) & (x <= b)) for a, b in itertools.pairwise(edges)]
    expected = 2000 * np.diff([law.cdf(e) if np.isfinite(e) else float(e > 0) for e in edges])
    assert stats.chisquare(seen, expected).pvalue > 0.01


def test_multinomial_counts_every_trial():
    x = np.asarray(R.multinomial(R.key(0), 50, N([0, 0.5, 0, 0.5]), shape=(20, 4)))
    assert (x.sum(-1) == 50).all()
    assert (x[:, [0, 2]] == 0).all()


def test_dtypes():
    key = R.key(0)
    assert R.poisson(key, 3, dtype="uint8").dtype == np.uint8
    assert R.geometric(key, 0.5, dtype="int16").dtype == np.int16
    assert R.binomial(key, 5, 0.5, dtype="float16").dtype == np.float16
    assert R.multinomial(key, 5, N([0.5, 0.5]), dtype="bfloat16").dtype.name == "bfloat16"
    with config(enable_x64=True):
        assert R.poisson(key, 3).dtype == np.int64
        assert R.binomial(key, 5, np.float64(0.5)).dtype == np.float64


def test_mapped_counts_are_those_of_each_key():
    keys = R.split(R.key(4), 3)
    for draw in (lambda k: R.poisson(k, N([2, 60])), lambda k: R.binomial(k, 90, N([0.01, 0.6]))):
        mapped = vmap(draw)(keys)
        np.testing.assert_array_equal(mapped, np.stack([draw(key) for key in keys]))
    np.testing.assert_array_equal(jit(draw)(keys[0]), mapped[0])


def test_refuses():
    key = R.key(0)
    with pytest.raises(TypeError, match="poisson: dtype must be an integer of 8 to 64 bits"):
        R.poisson(key, 3.0, dtype="float32")
    with pytest.raises(TypeError, match="binomial: dtype must be floating, got int32"):
        R.binomial(key, 3, 0.5, dtype="int32")
    with pytest.raises(ValueError, match="p must have an axis of outcomes"):
        R.multinomial(key, 3, 0.5)
    with pytest.raises(TypeError, match=r"geometric: p must be real, got complex64"):
        R.geometric(key, np.complex64(1))
    with pytest.raises(TypeError, match="expected a key"):
        R.binomial(3, 3, 0.5)
