"""Elements taken along an axis: NumPy's, the laws, messages."""

import numpy as np
import pytest

from stretto import laws
from stretto._engine.ops.index.along_axis import take_along_axis
from stretto.laws import f32


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_along_axis_is_numpys(axis):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4, 2)).astype(np.float32)
    at = rng.integers(-x.shape[axis], x.shape[axis], x.shape)
    got = take_along_axis(x, at.astype(np.int32), axis)
    np.testing.assert_array_equal(got, np.take_along_axis(x, at, axis))


def test_take_along_axis_laws():
    at = np.array([[0, 1, -1], [2, 2, 0]], np.int32)
    laws.check(lambda x, i: take_along_axis(x, i, 1), [(f32(2, 3), at), (f32(1, 3), at)])
    laws.check(lambda x, i: take_along_axis(x, i, 0), [(f32(2, 3), at[:1])])


def test_take_along_axis_of_nothing():
    assert take_along_axis(np.ones((0, 3), np.float32), np.zeros((0, 3), np.int32), 0).size == 0
    with pytest.raises(ValueError, match="take_along_axis: x and indices must have one number of"):
        take_along_axis(np.ones(3, np.float32), np.zeros((1, 1), np.int32), 0)
