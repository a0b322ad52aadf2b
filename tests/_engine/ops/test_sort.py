"""Sorting and the k greatest: the laws, and NumPy."""

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import stretto
from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.api.jit.jit import jit
from stretto._engine.core.config import enable_x64
from stretto._engine.core.types import array_type
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.sort import (
    Sort,
    TopK,
    _counting_argsort,
    argsort,
    sort,
    sort_operands,
    stable_order,
    top_k,
)
from stretto._engine.ops.thresholds import TOP_K
from stretto.laws import b1, bf16, c64, f32, f64, i8, i32, law, u32
from tests.meshes import mesh

BOTH = pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
FLOATS = (np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)
SPECIAL = np.array(
    [[3, np.nan, -0.0, 0, -np.inf], [0, -0.0, np.inf, -np.nan, 1], [2, 2, 1, 1, 0]], np.float32
)


def down(x):
    return sort(x, 0, descending=True)


def places(x):
    return argsort(x, 1), argsort(x, 0, descending=True)


def three(num_keys):
    return lambda *xs: sort_operands(xs, 0, num_keys=num_keys)


def greatest(x):
    return top_k(x, 2)


LAWS = [
    *(law(Sort, sort, case) for case in (f32(4, 5), bf16(4, 3), b1(3, 4), u32(2, 3), c64(3, 4))),
    *(law(Sort, down, case) for case in (f32(0, 2), f32(2, 0), f64(3, 3), i8(3, 3))),
    *(
        law(Sort, places, case, derivative=False)
        for case in (f32(4, 5), b1(3, 4), c64(3, 4), f64(3, 3), u32(2, 3), i8(3, 9).within(0, 2))
    ),
    *(law(Sort, places, SPECIAL.astype(d), derivative=False) for d in FLOATS),
    *(law(Sort, sort, SPECIAL.astype(d), derivative=False) for d in FLOATS),
    law(Sort, three(2), i8(30).within(0, 2), b1(30), f32(30)),
    law(Sort, three(1), f32(6), f32(6), i32(6)),
    law(Sort, three(3), c64(5), i32(5), f32(5)),
    law(Sort, three(2), f64(5), f64(5), f64(5)),
    *(law(TopK, greatest, case) for case in (f32(2, 5), bf16(3, 4), f64(2, 4), f32(0, 3))),
    *(law(TopK, greatest, case) for case in (i8(4, 9).within(0, 2), u32(2, 3), b1(2, 5))),
    law(TopK, lambda x: top_k(x, 0), f32(2, 0)),
    law(TopK, lambda x: top_k(x, 4), SPECIAL, derivative=False),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@settings(max_examples=50)
@given(arrays.arrays(np.float32, st.integers(1, 40), elements=st.floats(width=32)))
def test_is_numpys(x):
    np.testing.assert_array_equal(sort(x), np.sort(x))
    order = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(argsort(x), order)
    np.testing.assert_array_equal(top_k(x[::-1].copy(), 1)[0], np.sort(x)[-1:])


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32, np.int8, np.float64, np.uint64])
def test_many(run, dtype):
    """Enough elements that equal keys abound, and that NumPy sorts keys with their indices."""
    with enable_x64():
        rng = np.random.default_rng(0)
        if np.dtype(dtype).kind == "f":
            x = (rng.integers(-50, 50, (2, 3000)) / 4).astype(dtype)
            x[:, ::7] = -0.0
            x[:, ::11] = np.nan
        else:
            x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (2, 3000), dtype)
            x[:, ::2] //= max(np.iinfo(dtype).max // 20, 1)
        np.testing.assert_array_equal(run(sort)(x), np.sort(x))
        np.testing.assert_array_equal(run(argsort)(x), np.argsort(x, kind="stable"))
        fallen = run(lambda x: argsort(x, descending=True))(x)
        want = 2999 - np.argsort(x[:, ::-1], kind="stable")[:, ::-1]
        np.testing.assert_array_equal(fallen, want)


@BOTH
def test_bounds_of_integers(run):
    for x in ([0, 2**32 - 1, 2**31, 2**31 - 1], np.uint32), ([2**31 - 1, -(2**31), 0], np.int32):
        x = np.array(*x)
        np.testing.assert_array_equal(run(sort)(x), np.sort(x))
        np.testing.assert_array_equal(run(argsort)(x), np.argsort(x))


@BOTH
def test_complex_by_parts(run):
    nan = float("nan")
    x = np.array([complex(1, nan), 2, complex(nan, 1), 1 - 1j, 1 + 1j], np.complex64)
    np.testing.assert_array_equal(run(argsort)(x), [3, 4, 0, 1, 2])


@BOTH
def test_signs_of_zeros_are_kept(run):
    x = np.array([1, 0.0, -0.0, -1, -0.0], np.float32)
    np.testing.assert_array_equal(np.signbit(run(sort)(x)), [True, True, True, False, False])


@BOTH
def test_keys_foremost_first(run):
    keys, more, values = np.array([1, 0, 1, 0]), np.array([5, 4, 3, 4]), np.arange(4)
    out = run(lambda *xs: sort_operands(xs, num_keys=2))(keys, more, values)
    np.testing.assert_array_equal(out, [[0, 0, 1, 1], [4, 4, 3, 5], [1, 3, 2, 0]])


def test_index_dtype():
    assert argsort(np.ones(2, np.float32)).dtype == np.int32
    with enable_x64():
        assert argsort(np.ones(2)).dtype == np.int64


def test_derivative_follows_the_elements():
    x = np.array([3, 1, 2], np.float32)
    weights = np.array([10, 20, 30], np.float32)
    np.testing.assert_array_equal(
        grad(lambda x: reduce_sum(sort(x) * weights, (0,)))(x), [30, 10, 20]
    )
    second = grad(lambda x: reduce_sum(slice_in_dim(top_k(x, 2)[0], 1, 2), (0,)))
    np.testing.assert_array_equal(second(x), [0, 0, 1])


@BOTH
def test_top_k_of_many(run):
    x = np.random.default_rng(0).integers(0, 50, (40, 1000)).astype(np.float32)
    values, order = run(lambda x: top_k(x, 30))(x)
    want = 999 - np.argsort(x[:, ::-1], kind="stable")[:, ::-1][:, :30]
    np.testing.assert_array_equal(order, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, 1))


@BOTH
def test_the_derivative_at_ties_follows_the_order(run):
    """As JAX 0.10.2 has it; and an index has none."""
    x = np.array([2, 1, 2, 1], np.float32)
    weights = np.array([1, 10, 100, 1000], np.float32)
    total = lambda x: reduce_sum(sort(x) * weights, (0,))
    assert run(grad(total))(x).tolist() == [100, 1, 1000, 10]
    carried = lambda y: reduce_sum(sort_operands((x, y), num_keys=1)[1] * weights, (0,))
    assert run(grad(carried))(x).tolist() == [100, 1, 1000, 10]
    first = lambda x: reduce_sum(top_k(x, 2)[0] * weights[:2], (0,))
    assert run(grad(first))(x).tolist() == [1, 0, 10, 0]
    place = lambda x: reduce_sum(argsort(x) * x * 0 + argsort(x) * 1.0, (0,))
    assert run(grad(place))(x).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int8", -128, 128), ("uint8", 0, 256), ("int16", -(2**15), 2**15), ("int32", -5, 5),
        ("int32", -(2**31), -(2**31) + 65536), ("int32", 2**31 - 65538, 2**31 - 1),
        ("uint32", 2**32 - 300, 2**32), ("int64", -(2**63), 2**63 - 1), ("int64", 0, 1 << 16),
    ],
)  # fmt: skip
def test_integers_near_each_other_keep_their_order(dtype, low, high):
    key = np.random.default_rng(0).integers(low, high, 2400, dtype=dtype)
    for shape, axis in (((2400,), 0), ((4, 600), 1), ((600, 4), 0)):
        x = key.reshape(shape)
        np.testing.assert_array_equal(stable_order([x], axis), np.argsort(x, axis, kind="stable"))


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_many_floats_keep_their_order(scale):
    """Of any magnitude, equal ones and zeros of both signs among them."""
    x = np.random.default_rng(0).integers(-300, 300, 2400).astype(np.float32) * np.float32(scale)
    x[::7] *= -1  # which makes zeros negative
    for key, axis in ((x, 0), (x.reshape(600, 4), 0), (x.reshape(4, 600), 1)):
        wanted = np.argsort(key, axis, kind="stable")
        np.testing.assert_array_equal(stable_order([key], axis), wanted)


def test_permutations_are_inverted():
    key = np.random.default_rng(0).permutation(1 << 17).astype(np.int32) - 1000
    twice = np.where(key == 5, 6, key)
    for x in (key, twice, key.reshape(-1, 1)):
        np.testing.assert_array_equal(stable_order([x], 0), np.argsort(x, 0, kind="stable"))
    np.testing.assert_array_equal(_counting_argsort(key, 0), np.argsort(key))
    assert _counting_argsort(twice, 0) is None


@pytest.mark.parametrize("dtype", FLOATS)
def test_negative_zeros_come_first(dtype):
    for values in ([0, 1, -1, 0], [0.0, -0.0, 1, -0.0, 0, -1], [-0.0], []):
        x = np.array(values, dtype)
        want = sorted(values, key=lambda v: (v, np.copysign(1, v)))
        got = np.asarray(sort(x)).astype(float)
        assert got.tolist() == want
        assert np.signbit(got).tolist() == np.signbit(np.array(want, float)).tolist()


def test_refuses():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match="at least one operand"):
        sort_operands([])
    with pytest.raises(ValueError, match="expected 1 to 1 keys for 1 operands, got 2"):
        sort_operands([x], num_keys=2)
    with pytest.raises(ValueError, match=r"got float32\[2,3\] .* float32\[3\] \(operand 1\)"):
        sort_operands([x, x[0]])
    with pytest.raises(ValueError, match=r"last axis of float32\[2,3\], got 4"):
        top_k(x, 4)
    with pytest.raises(TypeError, match=r"top_k: expected real .* got complex64\[2\]"):
        top_k(np.ones(2, np.complex64), 1)
    with pytest.raises(ValueError, match="out of bounds"):
        sort(np.float32(1))


def test_the_greatest_along_any_axis():
    x = np.float32([[1, 5, 2], [4, 3, 6], [7, 0, 8]])
    values, places = top_k(x, 2, axis=0)
    assert (values.tolist(), places.tolist()) == ([[7, 5, 8], [4, 3, 6]], [[2, 0, 2], [1, 1, 1]])
    with pytest.raises(ValueError, match="top_k: axis 2 is out of bounds"):
        top_k(x, 2, axis=2)


@pytest.mark.devices
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint16, bool, np.float16])
def test_top_k_where_rows_are_split_needs_no_collective(dtype):
    x = np.random.default_rng(0).integers(-3, 4, (16, 9)).astype(dtype)
    if x.dtype.kind == "f":
        x[::2, :4] = np.nan, -np.inf, 0.0, -0.0
    split = stretto.device_put(x, stretto.sharding.NamedSharding(mesh(x=8), stretto.P("x")))
    f = jit(lambda x: top_k(x, 5))
    assert not re.search(r"all-gather|all-to-all|all-reduce", f.lower(split).compile().as_text())
    for out, whole in zip(f(split), f(x), strict=True):
        np.testing.assert_array_equal(out, whole)
    across = stretto.device_put(x, stretto.sharding.NamedSharding(mesh(x=8), stretto.P("x"))).T
    np.testing.assert_array_equal(f(across)[1], f(x.T)[1])


@pytest.mark.parametrize("k", [1, 3])
def test_the_greatest_of_many_are_found_by_a_program(k):
    for n, compiled in ((TOP_K, True), (TOP_K - 1, False)):
        assert TopK(k).compiled((array_type((n,), np.dtype(np.float32)),)) is compiled
