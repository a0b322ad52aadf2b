"""Reductions over windows: the laws, the definition by loops, ties, second derivatives."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as some

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.types import array_type
from stretto._engine.ops.reducing.window import (
    PLAIN,
    AxisWindow,
    ReduceWindowAnd,
    ReduceWindowMax,
    ReduceWindowMin,
    ReduceWindowOr,
    ReduceWindowProd,
    ReduceWindowSum,
    ReduceWindowXor,
    patches,
    patches_reference,
)
from stretto.laws import b1, bf16, c64, f16, f32, f64, i8, i32, law, u32
from tests.any_size import holds

PAIRS = AxisWindow(2, 2)
OVERLAP = AxisWindow(3, 2, 1, 2)
SPREAD = AxisWindow(2, 3, 1, 2, base_dilation=2, dilation=3)
CROPPED = AxisWindow(2, 1, -1, -2)
LONG = AxisWindow(40, 7, 20, 20)
ARITHMETIC = {ReduceWindowSum: np.add, ReduceWindowProd: np.multiply}
ORDER = {ReduceWindowMax: np.maximum, ReduceWindowMin: np.minimum}
BITS = {
    ReduceWindowAnd: np.bitwise_and,
    ReduceWindowOr: np.bitwise_or,
    ReduceWindowXor: np.bitwise_xor,
}
UFUNCS = {**ARITHMETIC, **ORDER, **BITS}


def over(primitive, *windows):
    return primitive(windows)


LAWS = [
    *(
        law(primitive, over(primitive, *windows), kind)
        for primitive in (*ARITHMETIC, *ORDER)
        for windows, kind in [
            ((OVERLAP, PAIRS), f32(4, 4)),
            ((SPREAD, CROPPED), f64(3, 5)),
            ((PLAIN, LONG), f64(2, 9)),
            ((OVERLAP,), bf16(6)),
        ]
    ),
    *(law(p, over(p, OVERLAP), k(5)) for p in UFUNCS if p not in BITS for k in (f16, i32, u32)),
    *(law(p, over(p, SPREAD), c64(4)) for p in ARITHMETIC),
    *(law(p, over(p, OVERLAP), k(5)) for p in BITS for k in (i8, u32, b1)),
    *(law(p, over(p, OVERLAP), b1(5)) for p in ORDER),
    *(law(p, over(p, PAIRS, PLAIN), f32(0, 2)) for p in (*ARITHMETIC, *ORDER)),
    *(law(p, over(p, AxisWindow(2, 1, 2, 1)), f32(0)) for p in ARITHMETIC),
    *(law(p, over(p, AxisWindow(2, 1, 2, 1)), f32(0), difference=False) for p in ORDER),  # infinite
    *(law(p, over(p, AxisWindow(5)), f32(3)) for p in (*ARITHMETIC, *ORDER)),
    # With zeros, one and two in a window.
    law(ReduceWindowProd, over(ReduceWindowProd, AxisWindow(3)), np.array([2.0, 0, 3, 0, 0, 5])),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


# The definition, by loops (StableHLO's words)


def by_loops(primitive, x, windows):
    """Each window's elements, one by one, in the operand that padding has spread out."""
    ufunc = UFUNCS[primitive]
    out = np.empty([w.count(n) for n, w in zip(x.shape, windows, strict=True)], x.dtype)
    for at in np.ndindex(*out.shape):
        total = np.asarray(primitive.identity(x.dtype)).astype(x.dtype)
        for k in itertools.product(*(range(w.size) for w in windows)):
            source = []
            for o, j, w, n in zip(at, k, windows, x.shape, strict=True):
                i, rest = divmod(o * w.stride + j * w.dilation - w.low, w.base_dilation)
                source.append(i if not rest and 0 <= i < n else None)
            if None not in source:
                total = ufunc(total, x[tuple(source)])
        out[at] = total
    return out


@some.composite
def axis_windows(draw):
    """Windows over an axis, and a size that they can lie over."""
    n = draw(some.integers(0, 6))
    size, stride, base, dilation = (draw(some.integers(1, 3)) for _ in range(4))
    length = (n - 1) * base + 1 if n else 0
    low = draw(some.integers(-1, 3))
    high = draw(some.integers(max(-1, -length - low), 3))
    return n, AxisWindow(size, stride, low, max(high, -length - low), base, dilation)


@settings(max_examples=60)
@given(some.lists(axis_windows(), min_size=1, max_size=2), some.sampled_from([*ARITHMETIC, *ORDER]))
def test_what_a_window_holds(axes, primitive):
    sizes, windows = zip(*axes, strict=True)
    x = np.random.default_rng(0).integers(-4, 5, sizes).astype(np.float64)
    with st.config(enable_x64=True):
        got = primitive(windows)(snp.array(x))
        np.testing.assert_array_equal(got, by_loops(primitive, x, windows))


@settings(max_examples=60)
@given(axis_windows())
def test_windows_that_hold_an_element(case):
    n, window = case
    count = window.count(n)
    if not n or not count:
        return
    back = window.transposed(n)
    assert back.count(count) == n
    holds = by_loops_matrix(window, n)
    np.testing.assert_array_equal(by_loops_matrix(back, count), holds.T)


def by_loops_matrix(window, n):
    """How often each window has each element."""
    rows = [by_loops(ReduceWindowSum, row, (window,)) for row in np.eye(n)]
    return np.stack(rows, 1)


@pytest.mark.parametrize("window", [PAIRS, OVERLAP, SPREAD, CROPPED, AxisWindow(9)], ids=str)
def test_patches_are_those_of_numpy(window):
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    want = patches_reference(x, 1, window, 7)
    for run in (lambda f: f, st.jit):
        got = run(lambda x: patches(x, 1, window, snp.float32(7)))(snp.array(x))
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("run", [lambda f: f, st.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_large_ones_are_compiled(run, dtype):
    x = np.random.default_rng(1).integers(-50, 50, (3, 130, 130)).astype(dtype)
    windows = (PLAIN, AxisWindow(3, 2, 1, 1), AxisWindow(3, 2, 1, 1))
    padded = np.pad(x, [(0, 0), (1, 1), (1, 1)])
    blocks = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2]
    got = run(ReduceWindowSum(windows))(snp.array(x))
    np.testing.assert_array_equal(got, blocks.sum((-1, -2)))


# Derivatives


RUNS = pytest.mark.parametrize("run", [lambda f: f, st.jit], ids=["eager", "jit"])


@RUNS
def test_of_equals_the_first_has_the_derivative(run):
    # As JAX 0.10.2 has it.
    x = snp.array([1.0, 1, 1, 0, 0, 2, 2])
    summed = lambda x: ReduceWindowMax((AxisWindow(3, 1, 1, 1),))(x).sum()
    assert run(st.grad(summed))(x).tolist() == [2, 1, 1, 0, 0, 3, 0]
    flat = lambda x: ReduceWindowMax((AxisWindow(2), AxisWindow(2)))(x).sum()
    assert run(st.grad(flat))(snp.ones((3, 3))).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]


@RUNS
def test_nan_has_the_derivative_where_it_is_chosen(run):
    x = snp.array([1.0, np.nan, 2.0, np.nan, 5.0, 4.0])
    for primitive in ORDER:
        summed = lambda x, primitive=primitive: primitive((AxisWindow(2, 2),))(x).sum()
        got = run(st.grad(summed))(x)
        first = 1.0 if primitive is ReduceWindowMax else 0.0
        assert got.tolist() == [0, 1, 0, 1, first, 1 - first]


@RUNS
@pytest.mark.parametrize("primitive", [*ARITHMETIC, *ORDER], ids=lambda p: p.__name__)
def test_hessians(run, primitive):
    """Of sin(window(x³)), beside the same over slices put together."""
    with st.config(enable_x64=True):
        x = snp.array(np.random.default_rng(2).uniform(0.5, 1.5, (5, 4)))
        windows = (AxisWindow(3, 2), AxisWindow(2, 2))

        def pooled(x):
            return snp.sum(snp.sin(primitive(windows)(x**3)))

        def by_slices(x):
            whole = {"ReduceWindowSum": snp.sum, "ReduceWindowProd": snp.prod}
            reduce = whole.get(primitive.__name__) or (
                snp.max if primitive is ReduceWindowMax else snp.min
            )
            blocks = [(x**3)[i : i + 3, j : j + 2] for i in (0, 2) for j in (0, 2)]
            return sum(snp.sin(reduce(block)) for block in blocks)

        np.testing.assert_allclose(run(st.hessian(pooled))(x), st.hessian(by_slices)(x), 1e-9, 1e-9)
        many = snp.stack([x, x[::-1]])
        np.testing.assert_allclose(
            run(st.vmap(st.grad(pooled)))(many), st.vmap(st.grad(by_slices))(many), 1e-9, 1e-9
        )
        mean = lambda f: lambda x: snp.sum(st.vmap(f)(x))
        np.testing.assert_allclose(
            run(st.grad(mean(pooled)))(many), st.grad(mean(by_slices))(many), 1e-9, 1e-9
        )


@RUNS
def test_inside_loops_and_branches(run):
    pool = ReduceWindowMax((AxisWindow(3, 1, 1, 1),))

    def rising(x):
        step = lambda c, _: (st.lax.cond(c[0] > 0, lambda c: pool(c) * 1.5, pool, c), None)
        return snp.sum(st.lax.scan(step, x, None, length=3)[0] ** 2)

    x = snp.array([0.5, -1.0, 2.0, 0.25])
    # After three steps of radius one the third element, times 1.5³, is everywhere.
    assert run(rising)(x) == pytest.approx(4 * (2.0 * 1.5**3) ** 2)
    np.testing.assert_allclose(run(st.grad(rising))(x), [0, 0, 8 * 2.0 * 1.5**6, 0])


# Messages


def test_errors_name_what_does_not_fit():
    x = snp.ones((2, 3))
    with pytest.raises(
        ValueError, match=r"reduce_window_sum: expected a window size for each axis"
    ):
        ReduceWindowSum((PLAIN,))(x)
    with pytest.raises(
        ValueError, match=r"must be positive; axis 1 of float32\[2,3\] has \(size=0"
    ):
        ReduceWindowMax((PLAIN, AxisWindow(0)))(x)
    with pytest.raises(ValueError, match="padding takes away more than axis 0 of"):
        ReduceWindowMin((AxisWindow(1, 1, -2, -1), PLAIN))(x)
    with pytest.raises(TypeError, match=r"reduce_window_max: expected an array of kind .* complex"):
        ReduceWindowMax((PLAIN, PLAIN))(x + 1j)
    with pytest.raises(st.errors.MissingRuleError, match="only its jvp is ever transposed"):
        ReduceWindowMax.transpose(None)


@given(some.integers(1, 9), some.integers(1, 4), some.integers(-2, 3), some.integers(-2, 5))
def test_transpose_of_tiles_gives_each_element_its_window(n, size, low, high):
    assume(n + low + high >= size)
    window = AxisWindow(size, size, low, high)
    count = window.count(n)
    ct = np.arange(1.0, 2 * count + 1, dtype=np.float32).reshape(2, count)
    want = np.zeros((2, n), np.float32)
    for i in range(n):
        if 0 <= (i + low) // size < count:
            want[:, i] = ct[:, (i + low) // size]
    total = ReduceWindowSum((PLAIN, window))
    for run in (lambda f: f, st.jit):
        back = run(lambda ct: st.vjp(total, snp.zeros((2, n)))[1](ct)[0])
        np.testing.assert_array_equal(back(snp.asarray(ct)), want)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize(("f", "start"), [(lax.add, 0.0), (lax.max, -np.inf), (lax.min, np.inf)])
def test_windows_over_any_size(f, start, stride):
    x = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    windows = lambda x: lax.reduce_window(x, start, f, (4, 1), (stride, 1), "SAME")
    holds(windows, [x], {(0, 0): 0}, tolerance=10)


def test_the_work_of_windows_is_what_they_hold():
    x = array_type((10, 8), np.dtype(np.float32))
    op = ReduceWindowSum((AxisWindow(3, 2), AxisWindow(4, 4)))
    assert op.work((x,), (op.infer(x),)) == (4 * 2) * (3 * 4)
