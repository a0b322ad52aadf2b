"""Counts of integers, with lengths that depend on values."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def test_counts_of_integers():
    x = np.array([0, 3, 3, 1], np.int32)
    assert snp.bincount(snp.array(x)).tolist() == [1, 1, 0, 2]
    assert snp.bincount(snp.array(x), minlength=6).tolist() == [1, 1, 0, 2, 0, 0]
    assert snp.bincount(snp.array(x), length=2).tolist() == [1, 1]
    assert snp.bincount(snp.array([-1, 1]), length=2).tolist() == [1, 1]
    assert snp.bincount(snp.array([True, False, True])).tolist() == [1, 2]
    assert snp.bincount(snp.zeros(0, int)).shape == (0,)
    slope = st.jit(st.grad(lambda w: (snp.bincount(x, w, length=4) * snp.arange(4.0)).sum()))
    np.testing.assert_array_equal(slope(np.ones(4, np.float32)), x)


def test_messages():
    x = snp.array([0.5, 1.5])
    cases = [
        (lambda: snp.bincount(x), TypeError, "bincount: expected integers, of rank 1, in x"),
        (lambda: snp.bincount(snp.array([1]), snp.ones(2)), ValueError, "must have one shape"),
        (lambda: st.jit(snp.bincount)(snp.array([1])), st.errors.TracedValueError, "bincount"),
        (lambda: snp.digitize(x, 1.0), ValueError, "digitize: expected bins of rank 1"),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: snp.digitize(snp.ones(2), snp.ones(2, "float8_e5m2")),
            TypeError,
            r"digitize: types",
        )
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()
