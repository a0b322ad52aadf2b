from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def test_out_of_bounds():
    x, at = snp.zeros(3), snp.array([0, 9])
    np.testing.assert_array_equal(snp.put(x, at, 1, inplace=False), [1, 0, 0])
    with pytest.raises(IndexError):
        snp.put(x, at, 1, mode="raise", inplace=False)
    assert snp.put(x, snp.zeros(0, int), 1, inplace=False) is x


def test_while_tracing():
    def f(x, mask, values):
        return snp.place(x, mask, values, inplace=False)

    x, mask = snp.arange(4.0), snp.array([True, False, True, True])
    got = st.jit(st.grad(lambda v: (f(x, mask, v) * x).sum()))(snp.array([5.0, 7.0]))
    np.testing.assert_array_equal(got, [0 + 3, 2])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: snp.put(snp.ones(2), 0, 1), r"x = put\(x, ..., inplace=False\)"),
        (lambda: snp.put(snp.ones(2), 0, snp.zeros(0), inplace=False), "nothing to put"),
        (lambda: snp.put_along_axis(snp.ones(2), snp.array([[1]]), 1.0, 0, False), "of the rank"),
        (lambda: snp.place(snp.ones(2), snp.array([True]), 1.0, inplace=False), "the size of"),
        (lambda: snp.place(snp.ones(2), snp.ones(2), snp.ones(0), inplace=False), "vals is empty"),
        (lambda: snp.putmask(snp.ones(2), snp.ones(3), 1.0, inplace=False), "the size of"),
        (lambda: snp.fill_diagonal(snp.ones(2), 1.0, inplace=False), "two axes or more"),
        (lambda: snp.fill_diagonal(snp.ones((2, 2, 3)), 1.0, inplace=False), "one size"),
    ],
    ids=range(8),
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()
