from __future__ import annotations

import enum
import sys
import types
from collections import deque

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


@pytest.mark.parametrize(
    ("given", "dtype", "weak"),
    [
        (1, "int32", True),
        (1.5, "float32", True),
        (True, "bool", False),
        (1j, "complex64", True),
        ([1, 2], "int32", False),
        ([1, 2.5], "float32", False),
        ([True, False], "bool", False),
        ([[1, 2], [3, 4j]], "complex64", False),
        ([], "float32", False),
        ([[], []], "float32", False),
        ((1, (2)), "int32", False),
        (np.float64(1.5), "float32", False),
        (np.arange(3), "int32", False),
        ([np.float16(1), 2.0], "float16", False),
        ([np.int8(1), np.uint8(2)], "int16", False),
    ],
)
def test_array(given, dtype, weak):
    got = snp.array(given)
    assert (got.dtype.name, got.weak_type) == (dtype, weak)
    np.testing.assert_array_equal(np.asarray(got), np.array(given))


@pytest.mark.parametrize(
    "dtype",
    [
        snp.int8,
        snp.uint8,
        snp.float16,
        snp.bfloat16,
        snp.float32,
        bool,
        "int16",
        np.float32,
        snp.complex64,
        snp.float8_e4m3fn,
        snp.int4,
    ],
)
def test_array_of_a_dtype(dtype):
    for given in ([1, 0, 3], [1.0, 0.0, 3.0], np.array([1, 0, 3]), snp.array([1, 0, 3])):
        got = snp.array(given, dtype=dtype)
        assert got.dtype == dtype
        assert not got.weak_type
        want = [True, False, True] if dtype is bool else [1, 0, 3]
        np.testing.assert_array_equal(np.asarray(got).astype(complex), want)


def test_array_with_x64():
    with st.enable_x64():
        assert snp.array([1.0]).dtype == np.float64
        assert snp.array([1]).dtype == np.int64
        assert snp.array([2**40]).tolist() == [2**40]
        assert snp.zeros(1, np.float64).dtype == np.float64
        assert snp.array([1.0], dtype=np.dtype("float64")).dtype == np.float64
    with pytest.warns(UserWarning, match="enable_x64"):
        assert snp.array([1.0], dtype=snp.float64).dtype == np.float32
    with pytest.warns(UserWarning, match="enable_x64"):
        assert snp.zeros(1, np.dtype("float64")).dtype == np.float32


def test_arrays_in_lists_stack():
    x, y = snp.array([1, 2]), snp.array([3.0, 4.0])
    got = snp.array([x, y])
    assert got.dtype == snp.float32
    np.testing.assert_array_equal(got, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(snp.array([[x[0], 5], [y[1], 6.5]]), [[1, 5], [4, 6.5]])


def test_tracers_in_lists_stack():
    def f(x, y):
        return snp.array([[x, 1.0], [y, x * y]])

    got = st.jit(f)(2.0, 3.0)
    np.testing.assert_array_equal(got, [[2, 1], [3, 6]])
    assert got.dtype == snp.float32
    assert float(st.grad(lambda x: snp.array([x, x * x]).sum())(3.0)) == 7
    rows = st.vmap(lambda x: snp.stack([x, snp.array([x, x])[0]]))(snp.arange(3.0))
    np.testing.assert_array_equal(rows, [[0, 0], [1, 1], [2, 2]])


def test_array_refuses():
    for ragged in ([[1, 2], [3]], [snp.ones(2), snp.ones(3)], [1, [2]]):
        with pytest.raises(ValueError, match="differ in length"):
            snp.array(ragged)
    with pytest.raises(ValueError, match="differ in length"):
        st.jit(lambda x: snp.array([[x, x], [x]]))(1.0)
    with pytest.raises(OverflowError):
        snp.array([2**40])
    with pytest.raises(OverflowError, match="int8"):
        snp.array([300], dtype=snp.int8)
    with pytest.raises(OverflowError):
        snp.array([-1], dtype=snp.uint8)
    for other in ("a", ["a"], None, [None], object()):
        with pytest.raises(TypeError):
            snp.array(other)


def test_asarray_copies_what_others_can_write():
    memory = np.zeros(3, np.float32)
    x, y = snp.asarray(memory), snp.array(memory)
    memory[:] = 7
    assert x.tolist() == y.tolist() == [0, 0, 0]
    view = np.asarray(x)
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


def test_asarray_of_an_array_is_itself():
    x = snp.ones(2)
    assert snp.asarray(x) is x
    assert snp.asarray(x, snp.float32) is x
    assert snp.asarray(x, copy=True) is not x
    assert snp.array(x) is not x
    assert snp.copy(x) is not x
    with pytest.raises(ValueError, match="copy=False"):
        snp.asarray(np.ones(2), copy=False)


def test_array_ndmin():
    assert snp.array(3, ndmin=2).shape == (1, 1)
    assert snp.array([[1]], ndmin=1).shape == (1, 1)


def test_numbers_too_large_become_infinite_without_a_warning():
    np.testing.assert_array_equal(snp.array([1e300, -1e300]), [np.inf, -np.inf])
    np.testing.assert_array_equal(snp.full((2,), 1e300), [np.inf, np.inf])


def test_arrays_are_contiguous_and_lie_whole():
    assert snp.ascontiguousarray(3.0).shape == (1,)
    assert snp.asanyarray is snp.asarray
    for made in (snp.zeros, snp.ones, snp.arange):
        with pytest.raises(TypeError, match="out_sharding must be a sharding"):
            made(2, out_sharding="x")
    with pytest.raises(TypeError):
        snp.array([1], None, False)


class Pair:
    """A sequence by its methods alone."""

    def __len__(self):
        return 2

    def __getitem__(self, i):
        if i > 1:
            raise IndexError
        return i


@pytest.mark.parametrize(
    "given",
    [range(3), deque([1.5, 2]), Pair(), [range(2), (4, 5)], [Pair(), [2, 3]]],
    ids=["range", "deque", "own", "ranges", "mixed"],
)
def test_any_sequence_is_an_array(given):
    for f in (snp.array, snp.asarray):
        np.testing.assert_array_equal(f(given), np.array(given))
    traced = st.jit(lambda x: snp.array([range(2), deque([x, 7])]))(5)
    assert traced.tolist() == [[0, 1], [5, 7]]


def test_numbers_of_an_enumeration_are_numbers():
    class Level(enum.IntEnum):
        LOW = 3
        HIGH = 5

    for f in (snp.array, snp.asarray):
        assert int(f(Level.LOW)) == 3 and f(Level.LOW).dtype == np.int32
        assert f(Level.HIGH, dtype=np.uint8).dtype == np.uint8
        np.testing.assert_array_equal(f([Level.LOW, Level.HIGH]), [3, 5])


def test_what_is_no_sequence_of_numbers_is_no_array():
    for given in ({1: 2}, {1, 2}, "12", ["12"], [{1: 2}], iter([1])):
        with pytest.raises(TypeError, match="must be an array or a number; got"):
            snp.array(given)


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False], dtype="float32")
DOORS = {
    "array": snp.array,
    "asarray of another dtype": lambda m: snp.asarray(m, dtype="int32"),
    "list": lambda m: snp.array([m, m]),
    "masked": lambda m: snp.array([1.0, np.ma.masked]),
    "scalar type": snp.float16,
    "function": snp.sin,
    "second argument": lambda m: snp.maximum(snp.ones(3), m),
    "operator": lambda m: snp.ones(3) + m,
    "reflected": lambda m: m * snp.ones(3),
    "matmul": lambda m: m @ snp.ones(3),
    "jit": st.jit(lambda x: x),
    "leaf": lambda m: st.jit(lambda d: d["a"])({"a": m}),
    "captured": lambda m: st.jit(lambda x: x + m)(snp.ones(3)),
    "grad": st.grad(lambda x: x.sum()),
    "vmap": st.vmap(lambda x: x),
    "scan": lambda m: st.lax.scan(lambda c, x: (c, x), 0.0, m),
    "index": lambda m: snp.ones(3)[m.astype(int)],
    "mask as index": lambda m: snp.ones(3)[m > 1],
    "update": lambda m: snp.ones(3).at[0:].set(m, mode="drop"),
    "stack": lambda m: st.stack([{"a": m}, {"a": m}]),
    "callback": lambda m: st.pure_callback(lambda: m, st.ShapeDtypeStruct((3,), snp.float32)),
    "dlpack": snp.from_dlpack,
}


def test_arrays_while_another_thread_is_loading_masked_ones(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy.ma", types.ModuleType("numpy.ma"))  # just begun
    np.testing.assert_array_equal(snp.asarray(np.ones(2)) + 1, [2, 2])


@pytest.mark.parametrize("door", DOORS)
def test_masked_arrays_are_refused(door):
    with pytest.raises(TypeError, match=r"NumPy masked array, .*: pass .*\.filled\(value\)"):
        DOORS[door](MASKED)


def test_the_compiled_way_refuses_masked_arrays_after_plain_ones():
    double = st.jit(lambda x: x * 2)
    for _ in range(3):
        double(MASKED.data)
        with pytest.raises(TypeError, match=r"NumPy masked array, float32\[3\] with 1 masked"):
            double(MASKED)
    compiled = double.lower(MASKED.data).compile()
    with pytest.raises(TypeError, match="masked array"):
        compiled(MASKED)


def test_complex_numbers_in_a_real_dtype_lose_their_imaginary_part():
    assert snp.array(2 + 1j, dtype=float).tolist() == 2
    assert snp.full(2, 2 + 1j, float).tolist() == [2, 2]


def test_known_arrays_in_lists_take_a_dtype_in_a_trace():
    x = snp.array([1.5, 2.5])
    total = st.jit(lambda y: snp.array([x, x], dtype=int) + y)(1)
    assert total.tolist() == [[2, 3], [2, 3]]
    assert total.dtype == snp.int32


def test_messages_of_ascontiguousarray():
    with pytest.raises(ValueError, match=r"^ascontiguousarray: the sequences differ in length"):
        snp.ascontiguousarray([[1], [1, 2]])


def test_a_dtype_that_is_asked_for_is_not_weak():
    weak = snp.array(1.0)
    assert weak.weak_type and snp.asarray(weak) is weak
    for make in (snp.asarray, snp.array):
        for way in (lambda f: f, st.jit):
            made = way(lambda x, make=make: make(x, dtype=x.dtype))(weak)
            assert (made.dtype, made.weak_type) == (snp.float32, False)
    strong = snp.asarray(weak, snp.float32)
    assert snp.asarray(strong, snp.float32) is strong
