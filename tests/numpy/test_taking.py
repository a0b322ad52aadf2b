from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

A = np.arange(6, dtype=np.float32).reshape(2, 3)
V, W = np.array([1.0, 2.0, 3.0], np.float32), np.array([4.0, 5.0, 6.0], np.float32)


@pytest.mark.parametrize("reps", [2, (2,), (2, 1), (1, 2, 3), ()])
def test_tile(agree, reps):
    agree("tile", A, reps)
    agree("tile", V, reps)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_repeat(agree, axis):
    agree("repeat", A, 2, axis=axis)
    agree("repeat", A, 0, axis=axis)


def test_repeat_each_its_own(agree):
    counts = np.array([2, 0, 1])
    np.testing.assert_array_equal(snp.repeat(snp.array(A), counts, axis=1), np.repeat(A, counts, 1))
    np.testing.assert_array_equal(snp.repeat(snp.array(V), snp.array(counts)), np.repeat(V, counts))
    repeat = st.jit(lambda x, n: snp.repeat(x, n, total_repeat_length=5))
    np.testing.assert_array_equal(repeat(V, counts), [1, 1, 3, 3, 3])
    np.testing.assert_array_equal(repeat(V, np.array([1, 9, 9])), [1, 2, 2, 2, 2])
    with pytest.raises(ValueError, match="2 repeats for 3 parts"):
        snp.repeat(snp.array(V), np.array([1, 2]))


def test_resize(agree):
    agree("resize", A, (2, 2))
    agree("resize", V, (3, 4))


def test_take(agree):
    at = np.array([[0, 2], [1, -1]], np.int32)
    agree("take", V, at)
    agree("take", A, at, axis=1)
    agree("take", A, 1, axis=0)
    agree("take", V, np.array([-4, 5, 3]), mode="wrap")
    assert snp.take(snp.array(V), 10).item() == 3
    assert np.isnan(snp.take(snp.array(V), 10, mode="fill").item())
    assert snp.take(snp.array(V), 10, mode="fill", fill_value=-1).item() == -1
    with pytest.raises(IndexError):
        snp.take(snp.array(V), 10, mode="raise")


def test_modes_of_take():
    x, at = snp.arange(3.0), snp.array([5, -1, -7])
    np.testing.assert_array_equal(snp.take(x, at), [2, 2, 0])
    np.testing.assert_array_equal(snp.take(x, at, mode="clip"), np.take(x, at, mode="clip"))
    np.testing.assert_array_equal(snp.take(x, at, mode="wrap"), np.take(x, at, mode="wrap"))
    np.testing.assert_array_equal(snp.take(x, at, mode="fill", fill_value=9), [9, 2, 9])
    with pytest.raises(IndexError, match="out of bounds"):
        snp.take(x, at, mode="raise")


def test_a_fill_value_asks_for_the_mode():
    x, at = snp.arange(4.0), snp.array([1, -1, 4, -5])
    want = [1.0, 3.0, -7.0, -7.0]
    for f in (
        lambda x, at: snp.take(x, at, fill_value=-7),
        lambda x, at: snp.take_along_axis(x, at, 0, fill_value=-7),
        lambda x, at: x.at[at].get(fill_value=-7),
    ):
        np.testing.assert_array_equal(f(x, at), want)
        np.testing.assert_array_equal(st.jit(f)(x, at), want)
        mapped = st.vmap(f, (None, 0))(x, at[:, None])
        np.testing.assert_array_equal(mapped[:, 0], want)
    np.testing.assert_array_equal(snp.take(x, at, mode="clip", fill_value=-7), [1, 0, 3, 0])


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
@pytest.mark.parametrize("new", [0, 5, (), (2, 3), (0, 4)])
def test_resize_of_nothing_gives_zeros(shape, new):
    x = snp.ones(shape, snp.int32)
    for found in (snp.resize(x, new), st.jit(lambda x: snp.resize(x, new))(x)):
        want = np.resize(np.ones(shape, np.int32), new)
        assert found.shape == want.shape
        np.testing.assert_array_equal(found, want)


def test_resize_refuses_negative_sizes():
    for x in (snp.ones(3), snp.ones(0)):
        for f in (snp.resize, st.jit(snp.resize, static_argnums=1)):
            with pytest.raises(
                ValueError, match=r"resize: sizes must not be negative, got \(2, -1\)"
            ):
                f(x, (2, -1))


def test_a_scalar_has_one_part_to_repeat():
    for axis in (None, 0, -1):
        f = lambda x, a=axis: snp.repeat(x, 3, a)
        for found in (f(snp.ones(())), st.jit(f)(1.0)):
            np.testing.assert_array_equal(found, [1.0, 1.0, 1.0])
    with pytest.raises(np.exceptions.AxisError):
        snp.repeat(snp.ones(()), 3, 1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: snp.take(snp.ones(3), 1.5),
            TypeError,
            r"take: indices must be integers, got float32",
        ),
        (
            lambda: snp.take(snp.ones(3), snp.array([True, False])),
            TypeError,
            r"take: indices must be integers, got bool",
        ),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_nothing_taken_along_an_axis_has_a_slope(shape):
    def total(x):
        return snp.take_along_axis(x, snp.argsort(x, -1), -1).sum()

    for run in (st.grad(total), st.jit(st.grad(total))):
        assert run(snp.zeros(shape)).shape == shape
    none = snp.take_along_axis(snp.ones(3), snp.zeros(0, snp.int32), 0)
    assert none.shape == (0,) and none.dtype == np.float32
