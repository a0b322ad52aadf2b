"""Pools to a given size: PyTorch's figures, the definition, laws, messages."""

import itertools
import math

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import laws
from stretto.laws import f32
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
CASES = [
    (
        "adaptive_avg_pool1d",
        {"input": (2, 3, 7)},
        {"output_size": 3},
        [(2, 3, 3), 1.3691, -0.09734],
    ),
    (
        "adaptive_avg_pool2d",
        {"input": (2, 2, 6, 4)},
        {"output_size": (3, 2)},
        [(2, 2, 3, 2), -1.31475, -0.2819],
    ),
    (
        "adaptive_avg_pool2d",
        {"input": (2, 5, 7)},
        {"output_size": (None, 4)},
        [(2, 5, 4), -0.11928, 0.08018],
    ),
    (
        "adaptive_avg_pool2d",
        {"input": (2, 3, 6, 5)},
        {"output_size": (3, 4)},
        [(2, 3, 3, 4), 1.09, -4.49238],
    ),
    (
        "adaptive_avg_pool3d",
        {"input": (1, 2, 3, 4, 5)},
        {"output_size": (2, 4, 3)},
        [(1, 2, 2, 4, 3), 0.23032, 0.2297],
    ),
    (
        "adaptive_max_pool1d",
        {"input": (2, 3, 7)},
        {"output_size": 3},
        [(2, 3, 3), 0.41928, -2.09244],
    ),
    (
        "adaptive_max_pool2d",
        {"input": (2, 2, 6, 4)},
        {"output_size": (3, 2)},
        [(2, 2, 3, 2), -0.68052, 1.35618],
    ),
    (
        "adaptive_max_pool2d",
        {"input": (2, 5, 7)},
        {"output_size": (None, 4)},
        [(2, 5, 4), 1.19725, 2.90876],
    ),
    (
        "adaptive_max_pool3d",
        {"input": (1, 2, 3, 4, 5)},
        {"output_size": (2, 4, 3)},
        [(1, 2, 2, 4, 3), 0.30892, -0.51662],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


def by_definition(x, sizes, choose):
    spans = [
        [(o * n // m, math.ceil((o + 1) * n / m)) for o in range(m)]
        for n, m in zip(x.shape, sizes, strict=True)
    ]
    parts = [choose(x[a:b, c:d]) for (a, b), (c, d) in itertools.product(*spans)]
    return np.reshape(parts, sizes)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 4), (7, 8), (4, 3), (9, 11)])
def test_definition(sizes):
    x = np.random.default_rng(0).normal(size=(7, 8)).astype("f")
    for run in (lambda f: f, st.jit):
        got = run(lambda x: F.adaptive_avg_pool2d(x, sizes))(x[None])[0]
        np.testing.assert_allclose(got, by_definition(x, sizes, np.mean), rtol=1e-5, atol=1e-6)
        got = run(lambda x: F.adaptive_max_pool2d(x, sizes))(x[None])[0]
        np.testing.assert_array_equal(got, by_definition(x, sizes, np.max))
        got, places = run(lambda x: F.adaptive_max_pool2d(x, sizes, True))(x[None])
        np.testing.assert_array_equal(got[0], by_definition(x, sizes, np.max))
        np.testing.assert_array_equal(x.ravel()[np.asarray(places[0])], got[0])


def test_infinities_stay_in_their_windows():
    x = snp.array([[snp.inf, 1.0, 2.0, 3.0, 4.0]])
    assert F.adaptive_avg_pool1d(x, 3).tolist() == [[np.inf, 2.0, 3.5]]
    assert F.adaptive_avg_pool1d(-x, 3).tolist() == [[-np.inf, -2.0, -3.5]]


def test_laws():
    laws.check(lambda x: F.adaptive_avg_pool2d(x, (2, 3)), [f32(2, 4, 5)])
    laws.check(lambda x: F.adaptive_max_pool2d(x, (2, 3)), [f32(2, 4, 5)])
    laws.check(lambda x: F.adaptive_max_pool1d(x, 2), [f32(1, 2, 4)])


def test_to_one_is_a_plain_mean():
    text = st.jit(lambda x: F.adaptive_avg_pool2d(x, 1)).lower(snp.ones((2, 3, 5, 7))).as_text()
    assert "stablehlo.reduce" in text and "gather" not in text


@pytest.mark.parametrize("size", [0, -1, (2,), (2, 2, 2), 2.5])
def test_messages(size):
    with pytest.raises(ValueError, match="output_size must be a positive integer, or 2 of them"):
        F.adaptive_avg_pool2d(snp.ones((1, 2, 5, 5)), size)
    with pytest.raises(ValueError, match="has an empty spatial axis"):
        F.adaptive_max_pool1d(snp.ones((2, 0)), 1)


@pytest.mark.parametrize("count", [1, 2, 3, 7, None])
@pytest.mark.parametrize("pool", [F.adaptive_avg_pool1d, F.adaptive_max_pool1d])
def test_shares_of_an_axis_of_any_size(pool, count):
    """Sizes are less and greater than the number of windows, and some are multiples of it."""
    f = st.jit(lambda x: pool(x, count), dynamic_axes=({1: "n"},))
    slope = st.jit(st.grad(lambda x: (pool(x, count) ** 2).sum()), dynamic_axes=({1: "n"},))
    for n in (1, 5, 7, 21):
        x = np.random.default_rng(n).normal(size=(2, n)).astype(np.float32)
        np.testing.assert_allclose(f(x), pool(x, count), rtol=1e-5)
        wanted = st.grad(lambda x: (pool(x, count) ** 2).sum())(x)
        np.testing.assert_allclose(slope(x), wanted, rtol=1e-5, atol=1e-6)
    image = np.random.default_rng(0).normal(size=(2, 4, 5)).astype(np.float32)
    two = {"adaptive_avg_pool1d": F.adaptive_avg_pool2d}.get(pool.__name__, F.adaptive_max_pool2d)
    over = st.jit(lambda x: two(x, (2, count)), dynamic_axes=({2: "n"},))
    np.testing.assert_allclose(over(image), two(image, (2, count)), rtol=1e-5)
