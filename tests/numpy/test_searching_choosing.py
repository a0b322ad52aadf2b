from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

V = np.linspace(-2, 2, 5).astype(np.float32)


def test_numbers_must_be_in_bounds():
    assert int(snp.choose(snp.array(True), snp.array([1, 2]))) == 2
    with pytest.raises(ValueError, match="must be from 0 to 1"):
        snp.choose(snp.array([2]), [1, 2])
    with pytest.raises(ValueError, match="mode='clip' or mode='wrap'"):
        st.jit(lambda a: snp.choose(a, [1, 2]))(0)


def test_parts_while_tracing():
    def f(mask, x):
        return snp.compress(mask, x, axis=1, size=3, fill_value=-1)

    x = snp.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(
        st.jit(f)(snp.array([True, False, True]), x), [[0, 2, -1], [3, 5, -1]]
    )
    with pytest.raises(IndexError, match="past the 3 parts"):
        snp.compress(snp.ones(4), x, axis=1)


def test_zeros_are_trimmed_along_axes():
    x = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(snp.trim_zeros(snp.array(x)), [[1]])
    np.testing.assert_array_equal(snp.trim_zeros(snp.array(x), "b", axis=1), x[:, :2])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: snp.choose(snp.ones(2), [1, 2]), TypeError, "a must hold integers"),
        (lambda: snp.choose(0, snp.array(1)), TypeError, "a sequence of arrays"),
        (lambda: snp.choose(0, [1], mode="no"), ValueError, "mode must be"),
        (lambda: snp.select([snp.ones(2)], [1.0]), TypeError, "must be boolean"),
        (lambda: snp.select([], []), ValueError, "at least one"),
        (lambda: snp.compress(snp.ones((2, 2)), V), ValueError, "rank 1"),
        (lambda: snp.trim_zeros(V, "x"), ValueError, "trim must be"),
        (lambda: st.jit(snp.trim_zeros)(V), TypeError, "Trim outside"),
    ],
    ids=range(8),
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: snp.choose(snp.array(0), 1),
            TypeError,
            r"choose: choices must be a sequence of arrays, got 1",
        ),
        (lambda: snp.choose(snp.array(0), []), ValueError, r"choose: expected at least one array"),
        (
            lambda: snp.select(None, [1]),
            TypeError,
            r"select: condlist must be a sequence of arrays, got None",
        ),
        (
            lambda: snp.trim_zeros(snp.ones(2), 1),
            ValueError,
            r"trim_zeros: trim must be 'f', 'b' or 'fb', got 1",
        ),
        (
            lambda: st.jit(lambda m: snp.compress(m, snp.ones(2)))(snp.array([True, False])),
            st.errors.TracedValueError,
            r"compress: how many parts are kept depends on condition, a traced bool",
        ),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()
