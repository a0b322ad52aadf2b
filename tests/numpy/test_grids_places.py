from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def same(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_of_a_mask():
    same(snp.mask_indices(3, snp.triu, 1), np.mask_indices(3, np.triu, 1))
    rows, columns = st.jit(lambda k: snp.mask_indices(2, lambda x, k: x * k, k, size=5))(1.0)
    same((rows, columns), ([0, 0, 1, 1, 0], [0, 1, 0, 1, 0]))


def test_of_a_grid_with_booleans():
    same(
        snp.ix_(snp.array([0, 1]), snp.array([True, False, True])),
        np.ix_([0, 1], [True, False, True]),
    )
    assert snp.ix_(snp.zeros(0))[0].dtype == np.int32


def test_places_out_of_bounds():
    same(snp.unravel_index(snp.array([22, -1]), (3, 4)), ([2, 2], [3, 3]))
    at = (snp.array([0, 1]), snp.array([2, 1]))
    np.testing.assert_array_equal(snp.ravel_multi_index(at, (2, 3)), [2, 4])
    assert snp.ravel_multi_index(at, (2, 3), dtype="int8").dtype == np.int8
    with pytest.raises(ValueError, match="out of bounds for an axis of size 3"):
        snp.ravel_multi_index((5,), (3,))
    with pytest.raises(ValueError, match="mode='clip' or mode='wrap'"):
        st.jit(lambda i: snp.ravel_multi_index((i,), (3,)))(1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: snp.diag_indices(-1), ValueError, "must not be negative"),
        (lambda: snp.diag_indices_from(snp.ones((2, 3))), ValueError, "all of one size"),
        (lambda: snp.tril_indices_from(snp.ones(2)), ValueError, "rank 2"),
        (lambda: snp.ix_(snp.ones((2, 2))), ValueError, "rank 1"),
        (lambda: snp.ravel_multi_index((1,), (2, 3)), ValueError, "each of 2 axes"),
        (lambda: snp.ravel_multi_index((1,), (2,), "no"), ValueError, "mode must be"),
        (lambda: snp.ravel_multi_index((1.0,), (2,)), TypeError, "expected integers for axis 0"),
        (lambda: snp.ravel_multi_index((1,), (2,), order="K"), ValueError, "order must be"),
        (lambda: snp.unravel_index(1.0, (2,)), TypeError, "expected integers"),
        (lambda: snp.unravel_index(1, (2,), "K"), ValueError, "order must be"),
    ],
    ids=range(10),
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: snp.tril_indices_from(snp.ones((2, 2)), 1.5),
            TypeError,
            r"tril_indices_from: k must be an integer",
        ),
        (
            lambda: snp.triu_indices_from(snp.ones((2, 2)), 1.5),
            TypeError,
            r"triu_indices_from: k must be an integer",
        ),
        (
            lambda: snp.ravel_multi_index(1, (2,)),
            TypeError,
            r"ravel_multi_index: multi_index must have an index for each axis",
        ),
        (
            lambda: st.jit(snp.ix_)(snp.array([True])),
            st.errors.TracedValueError,
            r"ix_: how many places argument 0 stands for depends on values",
        ),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()
