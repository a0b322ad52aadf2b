"""What the table of functions cannot say of arrays that are made: dtypes, shapes, errors."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.lax import arrays as lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_dtypes():
    assert lax.dtype(1) == np.int32
    assert lax.dtype(float) == np.float32
    assert lax.dtype(np.ones(2, np.int8)) == np.int8
    assert lax.dtype("complex64") == np.complex64
    with pytest.raises(TypeError, match="dtype: x must be an array or a number"):
        lax.dtype([1])


def test_weak_values_make_weak_arrays():
    assert lax.full((2,), 3.0).weak_type
    assert not lax.full((2,), 3.0, np.float32).weak_type
    assert lax.full_like(X, 2).dtype == np.float32
    assert lax.full_like(X, 2, shape=(4,)).shape == (4,)
    assert lax.stage(snp.ones(2)).dtype == np.float32


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: lax.full((2,), X), TypeError, "fill_value must be a scalar"),
        (lambda: lax.full((2,), 1, sharding="x"), TypeError, "full: sharding must be a sharding"),
    ],
)
def test_refusals(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_of_a_type_alone():
    like = st.ShapeDtypeStruct((2,), np.int8)
    assert lax.dtype(like) == np.int8
    assert lax.full_like(like, 3).tolist() == [3, 3]
    assert lax.full_like(like, 3).dtype == np.int8
