"""Gather and scatter: laws, the definition by loops, modes, and messages."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import stretto as st
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index import gather_scatter, primitives
from stretto._engine.ops.index.gather_scatter import (
    gather,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from stretto._engine.ops.index.geometry import GatherDimensionNumbers, ScatterDimensionNumbers
from stretto.laws import b1, bf16, c64, f16, f32, f64, i8, i32, law, u32

ROWS = GatherDimensionNumbers((1,), (0,), (0,))
SET_ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
IN_STEP = GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
SET_IN_STEP = ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
WINDOWS = GatherDimensionNumbers((1, 2), (), (0, 1))
SET_WINDOWS = ScatterDimensionNumbers((1, 2), (), (0, 1))

AT = np.array([[0], [3], [-1], [9]], np.int32)  # two of them out of bounds
APART = np.array([[2], [0], [3]], np.int32)
PAIRS = np.array([[0, 1], [2, 2], [5, -1]], np.int32)
IN_ROW = np.array([[[0], [2]], [[1], [1]], [[4], [-1]]], np.int32)


def reader(numbers, sizes, **options):
    return lambda x, i: gather(x, i, numbers, sizes, **options)


def writer(fun, numbers, **options):
    return lambda x, i, u: fun(x, i, u, numbers, **options)


def gather_laws():
    makers = (f32, f64, bf16, f16, c64, i8, i32, u32, b1)
    for mode, value in (("clip", None), ("fill", 1)):  # a NaN has no difference quotient
        for make in makers if mode == "clip" else (f32, bf16, i32):
            yield law(
                primitives.Gather, reader(ROWS, (1, 3), mode=mode, fill_value=value), make(4, 3), AT
            )
        windows = reader(WINDOWS, (2, 2), mode=mode, fill_value=value)
        yield law(primitives.Gather, windows, f32(4, 3), PAIRS)
        in_step = reader(IN_STEP, (1, 1), mode=mode, fill_value=value)
        yield law(primitives.Gather, in_step, f32(3, 4), IN_ROW)
    promise = reader(ROWS, (1, 3), mode="promise_in_bounds", unique_indices=True)
    yield law(primitives.Gather, promise, f32(4, 3), APART)
    yield law(primitives.Gather, reader(ROWS, (1, 0)), f32(4, 0), AT)
    yield law(primitives.Gather, reader(ROWS, (1, 3)), f32(4, 3), AT[:0])
    yield law(primitives.Gather, reader(ROWS, (1, 3)), f32(4, 3), AT.astype(np.int8))
    unsigned = reader(ROWS, (1, 3), mode="fill", fill_value=0)
    yield law(primitives.Gather, unsigned, f32(4, 3), AT.astype(np.uint32))


def scatter_laws():
    family = (
        (primitives.ScatterSet, scatter),
        (primitives.ScatterAdd, scatter_add),
        (primitives.ScatterSub, scatter_sub),
        (gather_scatter.ScatterMin, scatter_min),
        (gather_scatter.ScatterMax, scatter_max),
    )
    for primitive, fun in family:
        for mode in ("drop", "clip"):
            yield law(primitive, writer(fun, SET_ROWS, mode=mode), f32(4, 3), AT, f32(4, 3))
        yield law(primitive, writer(fun, SET_WINDOWS), f32(4, 3), PAIRS, f32(3, 2, 2))
        yield law(primitive, writer(fun, SET_IN_STEP), f32(3, 4), IN_ROW, f32(3, 2))
        yield law(primitive, writer(fun, SET_ROWS), f32(4, 3), AT[:0], f32(0, 3))
        apart = writer(fun, SET_ROWS, unique_indices=True)
        yield law(primitive, apart, f64(4, 3), APART, f64(3, 3))
        yield law(primitive, apart, bf16(4, 3), APART, bf16(3, 3))
        yield law(primitive, apart, i32(4, 3), APART, i32(3, 3))
    for _, fun in family[:3]:
        yield law(None, writer(fun, SET_ROWS), c64(4, 3), AT, c64(4, 3))
    for _, fun in (family[0], family[1], family[3], family[4]):
        yield law(None, writer(fun, SET_ROWS), b1(4, 3), AT, b1(4, 3))
    apart = writer(scatter_mul, SET_ROWS, unique_indices=True)
    for make in (f32, f64, c64, bf16, i32):
        yield law(gather_scatter.ScatterMul, apart, make(4, 3), APART, make(3, 3))
    # With a factor met twice, only the operand has a derivative.
    factors = np.arange(1, 13, dtype=np.int32).reshape(4, 3)
    twice = np.array([[0], [3], [3], [9]], np.int32)
    product = lambda x, i, u: scatter_mul(x, i, convert(u, x.dtype), SET_ROWS)
    yield law(gather_scatter.ScatterMul, product, f32(4, 3), twice, factors)


LAWS = [*gather_laws(), *scatter_laws()]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


# The definition, by loops (StableHLO's words)


def by_loops(operand, indices, numbers, sizes):
    """For each element of a gather's output the operand's index, and whether it is in bounds."""
    n = numbers
    left_out = (*n.collapsed_slice_dims, *n.operand_batching_dims)
    window = [d for d in range(operand.ndim) if d not in left_out]
    batch = iter(indices.shape[:-1])
    inner = iter([sizes[d] for d in window])
    ndim = indices.ndim - 1 + len(window)
    shape = [next(inner) if d in n.offset_dims else next(batch) for d in range(ndim)]
    for out in itertools.product(*map(range, shape)):
        at = tuple(out[d] for d in range(ndim) if d not in n.offset_dims)
        start = [0] * operand.ndim
        for k, d in enumerate(n.start_index_map):
            start[d] = int(indices[(*at, k)])
        inside = all(0 <= s <= operand.shape[d] - sizes[d] for d, s in enumerate(start))
        start = [min(max(s, 0), operand.shape[d] - sizes[d]) for d, s in enumerate(start)]
        for d, axis in zip(n.operand_batching_dims, n.start_indices_batching_dims, strict=True):
            start[d] = at[axis]
        for d, axis in zip(window, n.offset_dims, strict=True):
            start[d] += out[axis]
        yield out, tuple(start), inside, tuple(shape)


@some.composite
def geometries(draw):
    """An operand's shape, indices, dimension numbers and window sizes that fit each other."""
    ndim = draw(some.integers(1, 4))
    shape = [draw(some.integers(1, 4)) for _ in range(ndim)]
    kinds = [draw(some.sampled_from("wwcb")) for _ in range(ndim)]
    kinds = ["w" if k == "b" and "b" in kinds[:d] else k for d, k in enumerate(kinds)]
    batching = [d for d, k in enumerate(kinds) if k == "b"]
    collapsed = [d for d, k in enumerate(kinds) if k == "c"]
    window = [d for d, k in enumerate(kinds) if k == "w"]
    mapped = draw(some.permutations([d for d in range(ndim) if d not in batching]))
    mapped = mapped[: draw(some.integers(0, len(mapped)))]
    batch = [draw(some.integers(1, 3)) for _ in range(draw(some.integers(len(batching), 2)))]
    places = [draw(some.integers(0, len(batch) - 1))] if batching else []
    for d, axis in zip(batching, places, strict=True):
        batch[axis] = shape[d]
    sizes = [draw(some.integers(1, n)) if d in window else 1 for d, n in enumerate(shape)]
    out_ndim = len(batch) + len(window)
    offset = sorted(draw(some.permutations(range(out_ndim)))[: len(window)])
    seed = draw(some.integers(0, 2**32 - 1))
    indices = np.random.default_rng(seed).integers(-2, 5, (*batch, len(mapped)))
    numbers = GatherDimensionNumbers(offset, collapsed, mapped, batching, places)
    return tuple(shape), indices.astype(np.int32), numbers, tuple(sizes)


@settings(max_examples=150)
@given(geometries(), some.sampled_from(["clip", "fill"]))
def test_gather_is_the_loop(geometry, mode):
    shape, indices, numbers, sizes = geometry
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    got = np.asarray(gather(x, indices, numbers, sizes, mode=mode))
    for out, place, inside, whole in by_loops(x, indices, numbers, sizes):
        assert got.shape == whole
        if inside or mode == "clip":
            assert got[out] == x[place]
        else:
            assert np.isnan(got[out])


UPDATES = {
    scatter: lambda old, new: new,
    scatter_add: lambda old, new: old + new,
    scatter_sub: lambda old, new: old - new,
    scatter_mul: lambda old, new: old * new,
    scatter_min: min,
    scatter_max: max,
}


@settings(max_examples=150)
@given(geometries(), some.sampled_from(["clip", "drop"]), some.sampled_from(list(UPDATES)))
def test_scatter_is_the_loop(geometry, mode, fun):
    shape, indices, numbers, sizes = geometry
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, shape).astype(np.int32)
    steps = list(by_loops(x, indices, numbers, sizes))
    # The loop is over windows first, so that of several updates the last window's is the last.
    steps.sort(key=lambda s: [v for d, v in enumerate(s[0]) if d not in numbers.offset_dims])
    updates = rng.integers(-9, 9, steps[0][3]).astype(np.int32)
    want = x.copy()
    for out, place, inside, _ in steps:
        if inside or mode == "clip":
            want[place] = UPDATES[fun](want[place], updates[out])
    got = fun(x, indices, updates, ScatterDimensionNumbers.of(numbers), mode=mode)
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("seed", range(6))
def test_compiled_is_eager_for_mixed_numbers(seed):
    geometry = [
        ((3, 4, 2), (2, 3, 1), GatherDimensionNumbers((1, 3), (2,), (1,), (), ()), (1, 3, 1)),
        ((3, 4, 2), (3, 2, 2), GatherDimensionNumbers((0,), (1,), (2, 1), (0,), (0,)), (1, 1, 2)),
    ][seed % 2]
    shape, index_shape, numbers, sizes = geometry
    if seed % 2 == 0:
        numbers = GatherDimensionNumbers((1, 3), (2,), (1,))
        sizes = (3, 2, 1)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape).astype(np.float32)
    indices = rng.integers(-2, 6, index_shape).astype(np.int32)
    for mode in ("clip", "fill"):
        read = reader(numbers, sizes, mode=mode)
        np.testing.assert_array_equal(st.jit(read)(x, indices), read(x, indices))
    updates = np.asarray(read(x, indices)) * 0 + 1
    write = writer(scatter, ScatterDimensionNumbers.of(numbers))
    np.testing.assert_array_equal(st.jit(write)(x, indices, updates), write(x, indices, updates))


# Modes


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        (np.float32, np.nan),
        (ml_dtypes.bfloat16, np.nan),
        (np.int32, np.iinfo(np.int32).min),
        (np.int8, -128),
        (np.uint8, 255),
        (bool, True),
    ],
)
def test_what_is_read_out_of_bounds(dtype, fill):
    x = np.zeros((2, 1), dtype)
    read = reader(ROWS, (1, 1), mode="fill")
    for fun in (read, st.jit(read)):
        got = np.asarray(fun(x, np.array([[5], [0], [-1]], np.int32)))
        np.testing.assert_array_equal(got[:, 0].astype(np.float64), [fill, 0, fill])


def test_fill_value_is_constant_under_differentiation():
    read = lambda x: gather(x, AT, ROWS, (1, 2), mode="fill", fill_value=7.0)
    x = np.ones((4, 2), np.float32)
    np.testing.assert_array_equal(read(x)[2:], np.full((2, 2), 7.0))
    slope = st.grad(lambda x: read(x).sum())(x)
    np.testing.assert_array_equal(slope, [[1, 1], [0, 0], [0, 0], [1, 1]])


def test_narrow_indices_reach_past_their_own_bound():
    """An int8 index clamps against an axis longer than int8 can count."""
    x = np.arange(300, dtype=np.float32)[:, None]
    read = reader(ROWS, (1, 1))
    for dtype in (np.int8, np.uint8, np.uint32):
        at = np.array([[100], [127]], dtype)
        np.testing.assert_array_equal(st.jit(read)(x, at)[:, 0], [100, 127])
        np.testing.assert_array_equal(read(x, at)[:, 0], [100, 127])
    far = np.array([[2**31 + 5]], np.uint32)
    assert float(st.jit(read)(x, far)[0, 0]) == float(read(x, far)[0, 0]) == 299


def test_narrow_floats_accumulate_in_float32():
    """Adding 1 to 256 one at a time stays at 256 in bfloat16."""
    x = np.full((1, 1), 256, ml_dtypes.bfloat16)
    ones = np.ones((8, 1), ml_dtypes.bfloat16)
    write = writer(scatter_add, SET_ROWS)
    for fun in (write, st.jit(write)):
        assert float(fun(x, np.zeros((8, 1), np.int32), ones)[0, 0]) == 264


def test_an_operand_of_rank_0_is_updated():
    numbers = st.lax.ScatterDimensionNumbers((), (), ())
    one, two = np.float32(1), np.float32(2)
    out = st.lax.scatter_add(one, np.zeros(0, np.int32), two, numbers)
    assert out.shape == () and float(out) == 3


def test_the_operand_is_not_written():
    x = as_value(np.zeros((4, 3), np.float32))
    scatter_add(x, AT, np.ones((4, 3), np.float32), SET_ROWS)
    np.testing.assert_array_equal(x, np.zeros((4, 3)))


def test_a_repeated_operand_is_updated():
    """A broadcast operand has strides of zero; its copy must not."""
    x = st.lax.broadcast_in_dim(as_value(np.zeros(3, np.float32)), (4, 3), (1,))
    got = scatter_add(x, APART, np.ones((3, 3), np.float32), SET_ROWS)
    np.testing.assert_array_equal(got[:, 0], [1, 0, 1, 1])


def test_minimum_shares_the_derivative_between_equals():
    x, u = np.zeros((1, 1), np.float32), np.zeros((3, 1), np.float32)
    slope = st.grad(
        lambda x, u: scatter_min(x, np.zeros((3, 1), np.int32), u, SET_ROWS).sum(), (0, 1)
    )
    dx, du = slope(x, u)
    np.testing.assert_array_equal(dx, [[0.25]])
    np.testing.assert_array_equal(du, [[0.25]] * 3)


def test_nan_wins_a_minimum():
    x = np.array([[1.0], [np.nan]], np.float32)
    u = np.array([[np.nan], [0.0]], np.float32)
    write = writer(scatter_min, SET_ROWS)
    for fun in (write, st.jit(write)):
        assert np.isnan(np.asarray(fun(x, np.array([[0], [1]], np.int32), u))).all()


# Messages


def test_errors_name_what_does_not_fit():
    x = np.ones((4, 3), np.float32)
    with pytest.raises(TypeError, match=r"gather: indices must be integers, got float32\[4,1\]"):
        gather(x, AT.astype(np.float32), ROWS, (1, 3))
    with pytest.raises(ValueError, match="a window is larger than the operand"):
        gather(x, AT, ROWS, (1, 4))
    with pytest.raises(ValueError, match="collapsed axes need windows of size 1"):
        gather(x, AT, ROWS, (2, 3))
    with pytest.raises(ValueError, match="index vectors have 1 components, for 2 axes"):
        gather(x, AT, WINDOWS, (1, 3))
    with pytest.raises(ValueError, match="mode must be 'clip'"):
        gather(x, AT, ROWS, (1, 3), mode="wrap")
    with pytest.raises(TypeError, match=r"scatter: expected updates of type float32\[4,3\]"):
        scatter(x, AT, np.ones((2, 3), np.float32), SET_ROWS)
    with pytest.raises(TypeError, match=r"scatter_sub: not defined for bool\[4,3\]"):
        scatter_sub(x > 0, AT, x > 0, SET_ROWS)
    with pytest.raises(TypeError, match=r"scatter_min: not defined for complex64"):
        scatter_min(x + 0j, AT, (x + 0j).astype(np.complex64), SET_ROWS)


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        (st.lax.GatherScatterMode.CLIP, "clip"),
        (st.lax.GatherScatterMode.FILL_OR_DROP, "fill"),
        (st.lax.GatherScatterMode.ONE_HOT, "fill"),
        ("one_hot", "drop"),
    ],
    ids=str,
)
def test_modes_are_names_or_an_enumeration(mode, name):
    numbers, places = st.lax.GatherDimensionNumbers((), (0,), (0,)), np.array([[5], [1], [-1]])
    x = np.arange(4, dtype=np.float32)
    got, want = (st.lax.gather(x, places, numbers, (1,), mode=m) for m in (mode, name))
    np.testing.assert_array_equal(got, want)
    inside = st.lax.GatherScatterMode.PROMISE_IN_BOUNDS
    assert float(st.lax.gather(x, places[1], numbers, (1,), mode=inside)) == 1


def test_modes_from_names():
    modes = st.lax.GatherScatterMode
    for name, mode in (
        ("clip", modes.CLIP),
        (None, modes.FILL_OR_DROP),
        ("drop", modes.FILL_OR_DROP),
        ("promise_in_bounds", modes.PROMISE_IN_BOUNDS),
        ("one_hot", modes.ONE_HOT),
        (modes.ONE_HOT, modes.ONE_HOT),
    ):
        assert modes.from_any(name) is mode
    with pytest.raises(ValueError, match=r"mode must be 'clip', 'fill'.* got 'wrap'"):
        modes.from_any("wrap")


@pytest.mark.parametrize("numbers", [None, [1, 2]])
def test_dimension_numbers_of_another_class_are_refused(numbers):
    x, i = np.ones((2, 3)), np.array([[0]])
    reads, writes = (
        GatherDimensionNumbers((1,), (0,), (0,)),
        ScatterDimensionNumbers((1,), (0,), (0,)),
    )
    for other in (numbers, writes):
        with pytest.raises(TypeError, match=r"^gather: dimension_numbers must be a GatherD"):
            gather(x, i, other, (1, 3))
    for other in (numbers, reads):
        with pytest.raises(TypeError, match=r"^scatter_add: dimension_numbers must be a Scatter"):
            scatter_add(x, i, np.ones((1, 3)), other)


@pytest.mark.parametrize("fill", ["a", [1, 2], None.__class__])
def test_a_fill_value_must_be_a_scalar(fill):
    numbers = GatherDimensionNumbers((1,), (0,), (0,))
    with pytest.raises(TypeError, match=r"^gather: fill_value must be a scalar, got"):
        gather(np.ones((2, 3)), np.array([[5]]), numbers, (1, 3), fill_value=fill)


def test_sizes_and_modes_of_the_wrong_kind_are_named():
    x, i, numbers = np.ones((2, 3)), np.array([[0]]), GatherDimensionNumbers((1,), (0,), (0,))
    with pytest.raises(
        TypeError, match=r"^gather: slice_sizes must be an integer, got the float 1.5"
    ):
        gather(x, i, numbers, (1.5, 3))
    with pytest.raises(ValueError, match=r"^gather: mode must be .*; got \[1\]"):
        gather(x, i, numbers, (1, 3), mode=[1])


SCATTERS = [scatter, scatter_add, scatter_sub, scatter_mul, scatter_min, scatter_max]


@pytest.mark.parametrize(
    "f",
    [
        lambda x, **options: gather(x, APART, ROWS, (1, 3), **options),
        *[lambda x, f=f, **options: f(x, APART, x[:3], SET_ROWS, **options) for f in SCATTERS],
        lambda x, **options: st.lax.segment_sum(x, np.arange(4), 4, **options),
        lambda x, **options: st.lax.segment_max(x, np.arange(4), 4, **options),
        lambda x, **options: x.at[APART[:, 0]].get(**options),
    ],
)
def test_nothing_is_promised_of_indices_unless_told(f):
    def promised(**options):
        graph = st.make_graph(lambda x: f(x, **options))(np.ones((4, 3), np.float32))
        (op,) = [e.primitive for e in graph.equations if hasattr(e.primitive, "indices_are_sorted")]
        return op.indices_are_sorted, op.unique_indices

    assert promised() == (False, False)
    assert promised(indices_are_sorted=True) == (True, False)
    assert promised(unique_indices=True) == (False, True)


@pytest.mark.parametrize("kind", ["", "_add", "_sub", "_mul", "_min", "_max"])
def test_functions_of_one_making_have_names_and_pages_of_their_own(kind):
    f = getattr(st.lax, f"scatter{kind}")
    assert f.__name__ == f.__qualname__ == f"scatter{kind}"
    assert f"scatter{kind}(" in f.__doc__


def test_errors_of_both_operations_name_the_function_that_was_called():
    numbers = st.lax.ScatterDimensionNumbers((), (0,), (0,))
    f = lambda change, places: st.lax.scatter_apply(
        np.ones(3, np.float32), places, change, numbers, update_shape=(2,)
    )
    with pytest.raises(TypeError, match=r"^scatter_apply: expected updates of type float32"):
        f(lambda v: v > 0, np.array([[0], [1]]))
    with pytest.raises(TypeError, match=r"^scatter_apply: indices must be integers"):
        f(lambda v: v, np.array([[0.0], [1.0]]))
