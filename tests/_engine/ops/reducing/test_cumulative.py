"""Running reductions: the laws, and NumPy."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.api.jit.jit import jit
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.reducing.cumulative import (
    Cumlogsumexp,
    Cummax,
    Cummin,
    Cumprod,
    Cumsum,
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
)
from stretto._engine.ops.shape import slice_in_dim
from stretto.laws import b1, bf16, c64, f32, i8, i32, law, u32
from tests.any_size import holds

RUNNING = {
    Cumsum: cumsum,
    Cumprod: cumprod,
    Cummax: cummax,
    Cummin: cummin,
    Cumlogsumexp: cumlogsumexp,
}
UFUNCS = {
    cumsum: np.add,
    cumprod: np.multiply,
    cummax: np.maximum,
    cummin: np.minimum,
    cumlogsumexp: np.logaddexp,
}
SPECIAL = np.array([3, 1, -np.inf, np.inf, -np.inf, np.inf, 2, np.nan, 1], np.float32)
FAR = np.array([-np.inf, -np.inf, -1000, 3, 1000], np.float32)


def along(f, axis, reverse=False):
    return lambda *xs: f(*xs, axis, reverse)


LAWS = [
    *(
        law(primitive, along(f, 1, reverse), case)
        for primitive, f in RUNNING.items()
        for reverse, case in [(False, f32(2, 19)), (True, f32(2, 5)), (False, bf16(2, 6))]
    ),
    *(law(primitive, along(f, 0), f32(0, 2)) for primitive, f in RUNNING.items()),
    *(
        law(primitive, along(f, 0, True), case, derivative=False)
        for primitive, f in RUNNING.items()
        for case in (SPECIAL, FAR)
    ),
    *(law(primitive, along(f, 0), i8(5)) for primitive, f in list(RUNNING.items())[:4]),
    *(law(primitive, along(f, 0), u32(5)) for primitive, f in list(RUNNING.items())[:4]),
    law(Cummax, along(cummax, 0), b1(5)),
    law(Cummin, along(cummin, 0), b1(5)),
    law(Cumsum, along(cumsum, 0), c64(5)),
    law(Cumprod, along(cumprod, 0), c64(5)),
    law(Cumprod, along(cumprod, 0), np.array([1, 2, 0, 3, 0, 4], np.float32)),
    law(Cumprod, along(cumprod, 0, True), np.array([1, 2, 0, 3, 0, 4], np.float64)),
    law(Cumsum, along(cumsum, 1), i32(2, 40)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@pytest.mark.parametrize("f", UFUNCS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("reverse", [False, True])
def test_is_numpys(f, reverse):
    x = np.random.default_rng(0).uniform(0.5, 1.5, (3, 700)).astype(np.float32)
    flip = slice(None, None, -1 if reverse else 1)
    want = UFUNCS[f].accumulate(x.astype(np.float64)[:, flip], axis=1)[:, flip]
    for run in (lambda g: g, jit):
        # 700 sums, or products, each rounded
        np.testing.assert_allclose(run(along(f, -1, reverse))(x), want, rtol=700 * 2.0**-24)


@pytest.mark.parametrize("f", [cumsum, cummax], ids=lambda f: f.__name__)
def test_long_axes_take_no_quadratic_time(f):
    x = np.random.default_rng(0).uniform(-1, 1, 300_000).astype(np.float32)
    scale = np.abs(np.asarray(f(x))).max()
    np.testing.assert_allclose(jit(f)(x), f(x), atol=1e-4 * scale)


def test_narrow_sums_accumulate_in_float32():
    x = np.ones(400, ml_dtypes.bfloat16)
    for run in (lambda g: g, jit):
        assert float(np.asarray(run(cumsum)(x))[-1]) == 400


@pytest.mark.parametrize("f", [cummax, cummin], ids=lambda f: f.__name__)
def test_ties_share_the_derivative(f):
    x = np.array([2, 2, 2, 2], np.float32)
    shares = [1 / 1 + 1 / 2 + 1 / 3 + 1 / 4, 1 / 2 + 1 / 3 + 1 / 4, 1 / 3 + 1 / 4, 1 / 4]
    np.testing.assert_allclose(grad(lambda x: reduce_sum(f(x), (0,)))(x), shares, rtol=1e-6)


@pytest.mark.parametrize("f", [cummax, cummin], ids=lambda f: f.__name__)
def test_nan_has_the_derivative_of_what_follows_it(f):
    x = np.array([2, np.nan, 5, np.nan, 1], np.float32)
    for run in (lambda g: g, jit):
        got = run(grad(lambda x: reduce_sum(f(x), (0,))))(x)
        np.testing.assert_allclose(got, [1, 1 + 1 + 1 / 2 + 1 / 2, 0, 1 / 2 + 1 / 2, 0])


@pytest.mark.parametrize("reverse", [False, True])
def test_logsumexp_derivative_does_not_depend_on_a_shift(reverse):
    x = np.random.default_rng(0).uniform(-4, 4, 9).astype(np.float32)
    scale = np.linspace(0.5, 1.5, 9, dtype=np.float32)
    slopes = grad(lambda x: reduce_sum(cumlogsumexp(x, 0, reverse) * scale, (0,)))
    far = np.round(x * 1024) / 1024  # float32 has these, and their sums with 4096
    np.testing.assert_allclose(slopes(far + 4096), slopes(far), rtol=1e-6, atol=1e-7)


def test_logsumexp_derivative_is_finite_far_out():
    weights = grad(lambda x: reduce_sum(slice_in_dim(cumlogsumexp(x), -1, None), (0,)))
    np.testing.assert_array_equal(weights(FAR), [0, 0, 0, 0, 1])
    np.testing.assert_array_equal(weights(FAR[:2]), [0, 0])
    infinite = np.array([0, np.inf, 5], np.float32)
    np.testing.assert_array_equal(weights(infinite), [0, 1, 0])


def test_refuses():
    with pytest.raises(TypeError, match=r"cumsum: expected .* got bool\[2\]; convert it"):
        cumsum(np.ones(2, bool))
    with pytest.raises(TypeError, match=r"cumlogsumexp: expected .* got int32\[2\]"):
        cumlogsumexp(np.ones(2, np.int32))
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        cummax(np.ones(2, np.float32), 1)
    with pytest.raises(ValueError, match="out of bounds"):
        cummin(np.float32(1))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_any_size(name, reverse):
    x = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    holds(lambda x: getattr(st.lax, name)(x, 0, reverse), [x], {(0, 0): 0}, tolerance=10)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_an_axis_of_any_size_in_a_file(name):
    """There a loop goes along it; what is narrow adds up in float32."""
    function = getattr(st.lax, name)

    def results(x):
        narrow = function(x.astype("bfloat16"), 0).astype("float32")
        slope = grad(lambda x: reduce_sum(function(x, 0) * x, (0, 1)))(x)
        return function(x, 0), function(x, 0, reverse=True), narrow, slope

    x = np.array([[0.5, -1], [2, 0.25], [-0.5, 1.5], [1, 2]], np.float32)
    file = st.export.stablehlo(results, x, dynamic_axes=({0: "n"},))
    for n in (1, 3):
        for got, want in zip(file(x[:n]), results(st.numpy.array(x[:n])), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
