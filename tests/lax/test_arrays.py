"""What the table of functions cannot say of arrays repeated and read: shapes, errors."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto.lax import arrays as lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_shapes_broadcast():
    assert lax.broadcast_shapes((2, 1), [3], (1,)) == (2, 3)
    assert lax.broadcast_shapes() == ()
    with pytest.raises(ValueError, match="do not broadcast"):
        lax.broadcast_shapes((2,), (3,))


def test_indices_count_modulo_the_size():
    got = lax.index_take(snp.arange(12).reshape(3, 4), snp.array([[0, 2, 5], [1, 3, 9]]), (0, 1))
    assert got.tolist() == [1, 11, 9]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: lax.broadcast_to_rank(X, 1), ValueError, "has more axes than rank 1"),
        (lambda: lax.collapse(X, 2, 1), ValueError, "before start_dimension"),
        (lambda: lax.tile(X, (2,)), ValueError, "a number, 0 or more, for each axis"),
        (lambda: lax.stack([]), ValueError, "at least one operand"),
        (lambda: lax.stack([X, X.T]), ValueError, "operands must have one shape"),
        (lambda: lax.index_in_dim(X, 3, 1), IndexError, "index 3 is out of bounds for axis 1"),
        (lambda: lax.index_take(X, (0,), (0, 1)), ValueError, "an array of indices for each"),
        (lambda: lax.select_n(X, X, X), TypeError, "which must be an integer"),
        (lambda: lax.select_n(X > 0, X, X, X), TypeError, "boolean for two cases"),
        (lambda: lax.select_n(1, X, X.T), TypeError, "cases must be of one type"),
        (lambda: lax.select_n(np.ones(3, int), X, X), TypeError, "of the cases' shape"),
        (lambda: lax.select_n(0), ValueError, "at least one case"),
    ],
)
def test_refusals(make, error, words):
    with pytest.raises(error, match=words):
        make()
