"""Members in an array: tiled and split."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.ensemble.layers import repeat_members, split_members

X = snp.arange(6.0).reshape(2, 3)


def test_there_and_back():
    tiled = repeat_members(X, 4)
    assert tiled.shape == (8, 3)
    np.testing.assert_array_equal(tiled, np.tile(X, (4, 1)))
    np.testing.assert_array_equal(split_members(tiled, 4), np.stack([X] * 4))
    np.testing.assert_array_equal(st.jit(lambda x: split_members(x, 2))(X), X[:, None])
    slopes = st.grad(lambda x: repeat_members(x, 4).sum())(X)
    np.testing.assert_array_equal(slopes, 4 * np.ones((2, 3)))


def test_refused():
    with pytest.raises(ValueError, match=r"a batch for each of 4 members, got float32\[2,3\]"):
        split_members(X, 4)
    with pytest.raises(ValueError, match="split_members: axis 0"):
        split_members(1.0, 1)
    with pytest.raises(ValueError, match="x must have a batch axis"):
        repeat_members(1.0, 2)
    with pytest.raises(ValueError, match="repeat_members: num_estimators must be a positive"):
        repeat_members(X, 0)
