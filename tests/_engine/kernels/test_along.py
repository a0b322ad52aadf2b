"""The kernels along an axis: values against float64, special numbers, and what bits depend on."""

import os
import subprocess
import sys

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.kernels import LEVEL, kernels
from stretto._engine.ops.reducing.cumulative import LinearRecurrence

pytestmark = pytest.mark.skipif(kernels is None, reason="needs the kernels")


@pytest.fixture(autouse=True)
def _wide():
    with st.enable_x64(True), st.config(interpret_small=False):
        yield


# Lines side by side, in one part or several; in squares, whole and not; one or two alone; apart.
SHAPES = [
    *[((129, 40), 0), ((5, 33, 16), 1), ((4, 20, 700), 1), ((3, 16, 257), 1)],
    *[((40, 129), 1), ((17, 16), 1), ((16, 32), 1), ((3, 50), 1), ((5, 1), 1), ((100, 3), 1)],
    *[((5000,), 0), ((2, 77), 1), ((300, 3), 0), ((9, 31, 7), 1)],
]
BOTH = pytest.mark.parametrize("dtype", ["float32", "float64"])
EACH_SHAPE = pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)


def drawn(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def accumulated(ufunc, x, axis, reverse):
    flip = (lambda v: np.flip(v, axis)) if reverse else (lambda v: v)
    return flip(ufunc.accumulate(flip(x), axis=axis))


@BOTH
@EACH_SHAPE
@pytest.mark.parametrize("reverse", [False, True])
def test_running(shape, axis, reverse, dtype):
    x = drawn(shape, dtype)
    eps, n = np.finfo(dtype).eps, shape[axis]

    @st.jit
    def all_of(x, near):
        names = ("cumsum", "cumprod", "cummax", "cummin")
        given = (x, near, x, x)
        return [getattr(lax, name)(v, axis, reverse) for name, v in zip(names, given, strict=True)]

    near = np.exp(0.1 * x)
    sums, products, greatest, least = map(np.asarray, all_of(x, near))
    wide = x.astype(np.float64)
    sizes = np.abs(wide).sum(axis, keepdims=True)
    apart = np.abs(sums - accumulated(np.add, wide, axis, reverse))
    assert (apart <= 10 * eps * sizes).all()
    expected = accumulated(np.multiply, near.astype(np.float64), axis, reverse)
    np.testing.assert_allclose(products, expected, rtol=n * eps)
    np.testing.assert_array_equal(greatest, accumulated(np.maximum, x, axis, reverse))
    np.testing.assert_array_equal(least, accumulated(np.minimum, x, axis, reverse))


@BOTH
@EACH_SHAPE
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrences(shape, axis, reverse, dtype):
    a, b = np.clip(drawn(shape, dtype), -1, 1), drawn(shape, dtype, 1)
    flip = (lambda v: np.flip(v, axis)) if reverse else (lambda v: v)
    expected, y = [], 0.0
    wide = [np.moveaxis(flip(v), axis, 0).astype(np.float64) for v in (a, b)]
    for factor, added in zip(*wide, strict=True):
        y = factor * y + added
        expected.append(y)
    expected = flip(np.moveaxis(np.stack(expected), 0, axis))
    recur = lambda a, b: LinearRecurrence(axis, reverse)(as_value(a), as_value(b))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(st.jit(recur)(a, b), expected, rtol=0, atol=100 * eps)


def test_the_first_factor_of_a_recurrence_counts_for_nothing():
    recur = lambda a, b: LinearRecurrence(1, False)(as_value(a), as_value(b))
    for rows in (1, 40):
        a = np.tile(np.array([np.inf, 2, np.nan], np.float32), (rows, 1))
        got = st.jit(recur)(a, np.ones((rows, 3), np.float32))
        np.testing.assert_array_equal(got, np.tile([1, 3, np.nan], (rows, 1)))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_sums_of_integers_wrap(dtype):
    x = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, (40, 33), dtype)
    for axis in (0, 1):
        got = st.jit(lambda x: lax.cumsum(x, axis))(x)  # noqa: B023
        np.testing.assert_array_equal(got, np.cumsum(x, axis, dtype=dtype))


@BOTH
@EACH_SHAPE
def test_places(shape, axis, dtype):
    x = np.round(drawn(shape, dtype))  # equals, and zeros of both signs
    for special in (0, np.nan, np.inf, -np.inf):
        x.ravel()[:: max(x.size // 7, 5)] = special
        for name in ("argmax", "argmin"):
            got = np.asarray(st.jit(lambda x: getattr(lax, name)(x, axis, np.int64))(x))  # noqa: B023
            assert got.dtype == np.int64
            np.testing.assert_array_equal(got, getattr(np, name)(x, axis))


@BOTH
def test_places_in_what_is_infinite_throughout(dtype):
    for shape in ((3, 100), (100, 3), (100, 40), (4, 5)):
        for axis in (0, 1):
            for x in (np.full(shape, -np.inf, dtype), np.full(shape, np.inf, dtype)):
                places = st.jit(lambda x: (lax.argmax(x, axis), lax.argmin(x, axis)))(x)  # noqa: B023
                assert not np.asarray(places).any()


def greatest(x, k):
    order = x.shape[-1] - 1 - np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1][..., :k]
    return np.take_along_axis(x, order, -1), order


@BOTH
@pytest.mark.parametrize("kind", ["drawn", "equals", "rising", "falling", "constant", "special"])
@pytest.mark.parametrize(("shape", "k"), [((7, 1000), 10), ((3, 33), 33), ((2, 3000), 300)])
def test_greatest(shape, k, kind, dtype):
    x = drawn(shape, dtype)
    if kind == "equals":
        x = np.round(x)
    if kind in ("rising", "falling"):
        x = np.sort(x)[..., :: 1 if kind == "rising" else -1].copy()
    if kind == "constant":
        x[:] = 2
    if kind == "special":
        x.ravel()[::11], x.ravel()[::17], x.ravel()[5::50] = np.nan, -np.nan, -np.inf
        x.ravel()[3::9], x.ravel()[7::31] = -0.0, 0.0
    values, places = st.jit(lambda x: lax.top_k(x, k))(x)
    expected, order = greatest(x, k)
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(np.signbit(values), np.signbit(expected))


def test_the_least_numbers_are_chosen_where_there_are_no_others():
    x = np.full((2, 70), -np.inf, np.float32)
    x[:, 60] = np.finfo(np.float32).min
    places = np.asarray(st.jit(lambda x: lax.top_k(x, 3)[1])(x))
    np.testing.assert_array_equal(places, [[60, 0, 1]] * 2)


def test_what_is_not_a_number_or_infinite_stays():
    x = np.ones((3, 40), np.float32)
    x[0, 5], x[1, 5], x[1, 30], x[2, 20] = np.inf, np.inf, -np.inf, np.nan
    for y, line in ((x, 1), (x.T.copy(), 0), (x[:1], 1), (np.tile(x, (8, 1)), 1)):
        sums, most = st.jit(lambda x: (lax.cumsum(x, line), lax.cummax(x, line)))(y)  # noqa: B023
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(sums, np.cumsum(y, line))
        np.testing.assert_array_equal(most, np.maximum.accumulate(y, line))


def test_zeros_keep_their_signs():
    zeros = np.full((2, 40), -0.0, np.float32)
    zeros[1, 20] = 0.0
    run = st.jit(lambda x: [f(x, 1) for f in (lax.cumsum, lax.cummax, lax.cummin)])
    sums, most, fewest = [np.signbit(y) for y in run(zeros)]
    before = np.arange(40) < 20
    np.testing.assert_array_equal(sums, [np.full(40, True), before])
    np.testing.assert_array_equal(most, [np.full(40, True), before])
    assert fewest.all()


def test_errors_do_not_grow_with_the_line():
    x = np.full(1 << 20, 0.1, np.float32)
    exact = np.float32(0.1).astype(np.float64) * np.arange(1, x.size + 1)
    np.testing.assert_allclose(st.jit(snp.cumsum)(x), exact, rtol=6e-7)  # of a block


def test_a_line_has_the_same_bits_however_many_there_are_and_wherever_they_lie():
    x = drawn((40, 3000), np.float32)
    one = st.jit(lambda x: (lax.cumsum(x, 0), lax.cumprod(1 + 0.01 * x, 0)))
    for name, y in zip("sp", one(x[7]), strict=True):
        rows = st.jit(st.vmap(one))
        columns = st.jit(st.vmap(one, in_axes=1, out_axes=1))
        of = "sp".index(name)
        for count in (8, 9, 24, 40):
            np.testing.assert_array_equal(rows(x[:count])[of][7], y)
            np.testing.assert_array_equal(columns(x[:count].T.copy())[of][:, 7], y)


_BITS = """
import hashlib, numpy as np, stretto as st
from stretto import lax
x = np.random.default_rng(0).standard_normal((70, 3000)).astype(np.float32)
f = lambda x: [*[lax.cumsum(x, i) for i in (0, 1)], lax.cumprod(x, 1), *lax.top_k(x, 9)]
print(hashlib.sha256(b"".join([np.asarray(y).tobytes() for y in st.jit(f)(x)])).hexdigest())
"""


def test_bits_depend_on_neither_threads_nor_vectors():
    found = set()
    for level in {"avx2", LEVEL} & set(kernels.levels()):
        for threads in ("1", "2"):
            environment = {
                **os.environ,
                "STRETTO_KERNELS_LEVEL": level,
                "NPROC": threads,
            }
            run = subprocess.run(
                [sys.executable, "-c", _BITS],
                env=environment, check=True, capture_output=True, text=True,
            )  # fmt: skip
            found.add(run.stdout)
    assert len(found) == 1


@pytest.mark.parametrize("name", ["cumprod", "cumsum", "cummax", "cumlogsumexp"])
def test_slopes_are_those_without_kernels(name):
    x, ct = drawn((20, 60), np.float32), drawn((20, 60), np.float32, 1)
    x[3, 7] = x[3, 9] = x[4, 0] = 0
    slope = st.jit(st.grad(lambda x: snp.sum(getattr(lax, name)(x, 1) * ct)))
    got = slope(x)
    with st.config(kernels=False):
        expected = slope(x)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
