from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import TracedValueError

V = np.arange(1, 5, dtype=np.float32)
A = np.arange(12, dtype=np.float32).reshape(3, 4)
SLICES = [slice(0, 2), slice(None, None, -2), slice(-3, None), slice(9, 1)]


def test_delete(agree):
    for at in (1, -1, [0, 2], [0, 0], [], [True, False, True, False], *SLICES):
        agree("delete", A, at, axis=1)
        agree("delete", V, at)
    np.testing.assert_array_equal(snp.delete(V, np.array([[0], [2]])), [2, 4])


def test_insert(agree):
    for at in (1, -1, 4, [0, 2], [2, 2], [-1, 0], [], [3], *SLICES):
        agree("insert", V, at, 9)
        agree("insert", A, at, 5, axis=1)
    agree("insert", A, 1, V, axis=0)
    agree("insert", A, 1, V[:3], axis=1)  # a column: values of one index go along the axis
    agree("insert", A, [1], V[:3, None], axis=1)
    agree("insert", A, [1, 3], V[:2], axis=1)
    agree("insert", A, [1, 3], A[:, :2], axis=1)
    agree("insert", V, 2, V)
    agree("insert", V, [2], V)
    agree("insert", V, [2, 0], V[:2])
    agree("insert", V, slice(1, 4, 2), V[:2])
    np.testing.assert_array_equal(snp.insert(V, [True, False, False, True], 9), [9, 1, 2, 3, 9, 4])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_insert_at_traced_places(dtype):
    insert = st.jit(snp.insert, static_argnames="axis")
    np.testing.assert_array_equal(snp.insert(V, np.array([2, 1], dtype), 9.0), [1, 9, 2, 9, 3, 4])
    for at in (0, 2, 4, [1, 3, 1], [4, 0], [2]):
        for values in (9.0, V[: np.size(at)]):
            want = np.insert(V, at, values)
            np.testing.assert_array_equal(insert(V, np.array(at, dtype), values), want)
    for at in ([3, 0, 3], 3):
        want = np.insert(A, at, V[:3], axis=1)
        np.testing.assert_array_equal(insert(A, np.array(at, dtype), V[:3], axis=1), want)


def test_traced_places_from_the_end_and_out_of_bounds():
    insert = st.jit(snp.insert)
    np.testing.assert_array_equal(insert(V, -1, 9.0), [1, 2, 3, 9, 4])
    np.testing.assert_array_equal(insert(V, np.array([-2, 1]), V[:2]), [1, 2, 2, 1, 3, 4])
    np.testing.assert_array_equal(insert(V, 17, 9.0), [1, 2, 3, 4, 9])
    np.testing.assert_array_equal(insert(V, -17, 9.0), [9, 1, 2, 3, 4])


def test_insert_vectorises_and_differentiates():
    rows = st.vmap(lambda k: snp.insert(snp.array(V), k, 9.0))(snp.arange(3))
    np.testing.assert_array_equal(rows, [np.insert(V, k, 9) for k in range(3)])

    def f(x, y, k):
        return (snp.insert(x, k, y) * snp.arange(6.0)).sum()

    gx, gy = st.jit(st.grad(f, (0, 1)))(snp.array(V), snp.zeros(2), snp.array([3, 0]))
    assert (gx.tolist(), gy.tolist()) == ([1, 2, 3, 5], [4, 0])


def test_parts_at_traced_places_are_left_out():
    def f(at):
        return snp.delete(snp.arange(10).reshape(2, 5), at, 1, assume_unique_indices=True)

    at = snp.array([1, -1])
    want = np.delete(np.arange(10).reshape(2, 5), np.array([1, -1]), 1)
    np.testing.assert_array_equal(st.jit(f)(at), want)
    np.testing.assert_array_equal(f(at), want)
    # One index names no part twice: there is nothing to promise.
    np.testing.assert_array_equal(st.jit(snp.delete)(V, -2), [1, 2, 4])


def test_errors():
    with pytest.raises(TracedValueError, match=r"delete: .*traced int32\[2\].*assume_unique"):
        st.jit(snp.delete)(V, np.array([1, 2], np.int32))
    for f in (snp.delete, lambda x, obj: snp.insert(x, obj, 9)):
        with pytest.raises(TracedValueError, match=r"a traced mask, bool\[4\]: the argument obj"):
            st.jit(f)(V, np.array([True, False] * 2))
        for bad in (2.5, np.array([1.0]), np.array([]), True):
            with pytest.raises(IndexError, match="obj must be an integer, a slice, integers, or a"):
                f(V, bad)
    with pytest.raises(IndexError, match=r"mask of the axis's size, 4; got bool\[2\]"):
        snp.delete(V, np.array([True, False]))
    with pytest.raises(IndexError, match=r"insert: .* got int64\[1, 1\]"):
        snp.insert(V, np.array([[1]]), 9)
    with pytest.raises(IndexError, match="out of bounds"):
        snp.insert(V, 7, 9)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: snp.delete(snp.ones(3), 7),
            IndexError,
            r"delete: index 7 in obj is out of bounds",
        ),
        (
            lambda: snp.delete(snp.ones(3), None),
            IndexError,
            r"delete: obj must be an integer, a slice",
        ),
        (
            lambda: snp.insert(snp.ones(3), 7, 1.0),
            IndexError,
            r"insert: index 7 in obj is out of bounds",
        ),
        (
            lambda: snp.insert(snp.ones(3), snp.array([0, 1]), snp.ones(3)),
            ValueError,
            r"insert: values, float32\[3\], does not broadcast to shape \(2,\)",
        ),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()
