"""Integers, categories and orders: JAX's numbers, their laws, refusals."""

import numpy as np
import pytest
from scipy import stats

from stretto import random as R
from stretto._engine.api.jit.jit import jit
from stretto._engine.core.config import config
from stretto._engine.core.errors import TracedValueError


def A(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def I(*shape):  # noqa: E743
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


# Each draw, and what JAX 0.10.2 gives for the same expression with R = jax.random,
# k = PRNGKey(0x123456789), and jax_threefry_partitionable off, then on; in row-major order.
DRAWS = {
    "randint": (
        lambda k: R.randint(k, (8,), 0, 10),
        [4, 1, 3, 4, 9, 9, 1, 2],
        [6, 1, 2, 5, 4, 3, 7, 6],
    ),
    "randint_wide": (
        lambda k: R.randint(k, (4,), -5, 2**30),
        [574045749, 991242034, 1036421712, 592679754],
        [569958974, 588812741, 763886390, 739651289],
    ),
    "randint_all": (
        lambda k: R.randint(k, (4,), -(2**31), 2**31 - 1),
        [1647787593, 2064983878, 2110163556, -1554803889],
        [1643700818, 1662554585, -309855424, 1813393133],
    ),
    "randint_empty": (lambda k: R.randint(k, (3,), 4, 4), [4, 4, 4], [4, 4, 4]),
    "randint_uint8": (
        lambda k: R.randint(k, (8,), 0, 256, "uint8"),
        [154, 139, 249, 186, 237, 223, 33, 10],
        [82, 217, 64, 237, 178, 135, 81, 74],
    ),
    "randint_int8": (
        lambda k: R.randint(k, (8,), -128, 128, "int8"),
        [26, 11, 121, 58, 109, 95, -95, -118],
        [-46, 89, -64, 109, 50, 7, -47, -54],
    ),
    "randint_uint32": (
        lambda k: R.randint(k, (4,), 0, 2**31 - 1, "uint32"),
        [1647787594, 2064983879, 2110163557, 592679759],
        [1643700819, 1662554586, 1837628224, 1813393134],
    ),
    "randint_rows": (
        lambda k: R.randint(k, (2, 3), I(3), I(3) + 10),
        [7, 6, 6, 9, 8, 3],
        [6, 2, 4, 5, 5, 5],
    ),
    "bernoulli": (
        lambda k: R.bernoulli(k, 0.3, (12,)),
        [0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0],
    ),
    "bernoulli_high": (
        lambda k: R.bernoulli(k, 0.3, (12,), mode="high"),
        [0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0],
    ),
    "bernoulli_p": (lambda k: R.bernoulli(k, A(6) / 6), [0, 0, 1, 0, 0, 1], [0, 0, 0, 0, 1, 1]),
    "rademacher": (
        lambda k: R.rademacher(k, (8,)),
        [1, -1, 1, 1, 1, -1, -1, 1],
        [1, 1, -1, -1, 1, 1, 1, -1],
    ),
    "rademacher_u8": (
        lambda k: R.rademacher(k, (5,), "uint8"),
        [1, 255, 1, 255, 255],
        [1, 1, 255, 255, 1],
    ),
    "rademacher_bool": (lambda k: R.rademacher(k, (5,), "bool"), [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]),
    "rademacher_f16": (
        lambda k: R.rademacher(k, (5,), "float16"),
        [1.0, -1.0, 1.0, -1.0, -1.0],
        [1.0, 1.0, -1.0, -1.0, 1.0],
    ),
    "categorical": (lambda k: R.categorical(k, A(4, 3)), [1, 2, 2, 2], [2, 2, 2, 2]),
    "categorical_axis": (lambda k: R.categorical(k, A(2, 3) / 9, axis=0), [1, 0, 1], [1, 0, 0]),
    "categorical_shape": (
        lambda k: R.categorical(k, A(2, 3) / 9, shape=(3, 2)),
        [1, 2, 2, 2, 1, 0],
        [2, 0, 1, 2, 2, 0],
    ),
    "categorical_different": (
        lambda k: R.categorical(k, A(2, 5), shape=(3, 2), replace=False),
        [4, 4, 3, 2, 1, 3],
        [3, 4, 4, 3, 2, 2],
    ),
    "permutation": (
        lambda k: R.permutation(k, 10),
        [2, 1, 0, 9, 3, 7, 6, 4, 8, 5],
        [7, 9, 5, 2, 8, 6, 0, 1, 3, 4],
    ),
    "permutation_rows": (
        lambda k: R.permutation(k, I(4, 2)),
        [6, 7, 0, 1, 2, 3, 4, 5],
        [4, 5, 0, 1, 2, 3, 6, 7],
    ),
    "permutation_columns": (
        lambda k: R.permutation(k, I(2, 4), axis=1),
        [3, 0, 1, 2, 7, 4, 5, 6],
        [2, 0, 1, 3, 6, 4, 5, 7],
    ),
    "permutation_independent": (
        lambda k: R.permutation(k, I(4, 2), independent=True),
        [0, 7, 6, 1, 2, 3, 4, 5],
        [2, 7, 6, 5, 0, 1, 4, 3],
    ),
    "choice": (lambda k: R.choice(k, 10, (6,)), [7, 5, 4, 9, 7, 1], [6, 1, 2, 5, 4, 3]),
    "choice_columns": (
        lambda k: R.choice(k, A(2, 5), (3,), axis=1),
        [1.0, 2.0, 1.0, 6.0, 7.0, 6.0],
        [1.0, 1.0, 2.0, 6.0, 6.0, 7.0],
    ),
    "choice_different": (
        lambda k: R.choice(k, 10, (4,), replace=False),
        [2, 1, 0, 9],
        [7, 9, 5, 2],
    ),
    "choice_weighted": (
        lambda k: R.choice(k, 5, (8,), p=A(5) / 10),
        [4, 2, 4, 4, 4, 2, 2, 4],
        [4, 4, 3, 2, 4, 4, 3, 3],
    ),
    "choice_weighted_different": (
        lambda k: R.choice(k, 5, (3,), replace=False, p=(A(5) + 1) / 15),
        [1, 3, 4],
        [3, 2, 4],
    ),
}


def test_draws_are_jaxs(how, partitionable):
    with config(threefry_partitionable=partitionable):
        drawn = how(DRAWS)
    for name, (_, *want) in DRAWS.items():
        assert drawn[name].reshape(-1).tolist() == want[partitionable], name


def test_randint_reaches_each_integer():
    key = R.PRNGKey(0)
    counts = np.bincount(np.asarray(R.randint(key, (6000,), 0, 6)), minlength=6)
    assert stats.chisquare(counts).pvalue > 0.01  # the key is fixed
    assert set(np.asarray(R.randint(key, (5000,), 0, 256, np.uint8)).tolist()) == set(range(256))
    assert np.asarray(R.randint(key, (4,), 300, 400, np.uint8)).tolist() == [255] * 4


def test_categorical_follows_its_probabilities():
    p = np.array([0.1, 0.2, 0.7], np.float32)
    x = np.asarray(R.categorical(R.PRNGKey(0), np.log(p), shape=(6000,)))
    assert stats.chisquare(np.bincount(x, minlength=3), 6000 * p.astype(float)).pvalue > 0.01


def test_choice_follows_its_probabilities():
    p = np.array([0.5, 0, 0.2, 0.3], np.float32)
    x = np.asarray(R.choice(R.PRNGKey(0), 4, (6000,), p=p))
    counts = np.bincount(x, minlength=4)
    assert counts[1] == 0
    kept = [0, 2, 3]
    assert stats.chisquare(counts[kept], 6000 * p[kept].astype(float)).pvalue > 0.01


def test_permutation_keeps_every_part():
    key = R.PRNGKey(4)
    assert sorted(np.asarray(R.permutation(key, 1000)).tolist()) == list(range(1000))
    rows = np.asarray(R.permutation(key, I(5, 3)))
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, I(5, 3).tolist()))
    apart = np.asarray(R.permutation(key, I(5, 3), axis=-1, independent=True))
    np.testing.assert_array_equal(np.sort(apart, 1), I(5, 3))
    assert R.permutation(key, 0).shape == (0,)


def test_without_replacement_all_differ():
    key = R.PRNGKey(4)
    assert len(set(np.asarray(R.choice(key, 20, (4, 5), replace=False)).reshape(-1).tolist())) == 20
    x = R.categorical(key, np.zeros(6, np.float32), shape=(6,), replace=False)
    assert sorted(np.asarray(x).tolist()) == list(range(6))


def test_bernoulli_extremes():
    key = R.PRNGKey(0)
    for mode in ("low", "high"):
        assert not np.asarray(R.bernoulli(key, 0.0, (100,), mode)).any()
        assert np.asarray(R.bernoulli(key, 1.0, (100,), mode)).all()


def test_refuses():
    key = R.PRNGKey(0)
    with pytest.raises(TypeError, match="an integer of 8 to 64 bits, got float32"):
        R.randint(key, (2,), 0, 5, np.float32)
    with pytest.raises(ValueError, match="5 draws without replacement from 4 parts"):
        R.choice(key, 4, (5,), replace=False)
    with pytest.raises(ValueError, match="a has no parts to choose from"):
        R.choice(key, 0, (5,))
    with pytest.raises(ValueError, match=r"p must have shape \(4,\)"):
        R.choice(key, 4, (5,), p=np.ones(3, np.float32))
    with pytest.raises(ValueError, match="4 draws without replacement from 3 categories"):
        R.categorical(key, A(3), shape=(4,), replace=False)
    with pytest.raises(ValueError, match=r"shape \(4,\) must end in"):
        R.categorical(key, A(2, 3), shape=(4,))
    with pytest.raises(TypeError, match="must be an integer or have an axis"):
        R.permutation(key, 1.5)
    with pytest.raises(TracedValueError, match="static_argnums"):
        jit(lambda n: R.permutation(key, n))(3)


@pytest.mark.parametrize("n", [1, 2, 1625, 1626, 2000])
def test_orders_of_a_size_that_varies(n):
    f = jit(R.permutation, dynamic_axes=(None, {0: "n"}))
    x = np.arange(n, dtype=np.int32)
    np.testing.assert_array_equal(f(R.key(3), x), R.permutation(R.key(3), x))
