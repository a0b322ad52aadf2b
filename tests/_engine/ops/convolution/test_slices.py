"""The padded image, and slices of it."""

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from stretto._engine.ops.convolution.slices import cut, spread

FIRST = ConvDimensionNumbers(*(((0, 1, 2),) * 3))


def test_padding_and_zeros_between():
    x = as_value(np.arange(1.0, 4.0, dtype=np.float32).reshape(1, 1, 3))
    op = ConvGeneralDilated((1,), ((1, -1),), (2,), (1,), FIRST)
    np.testing.assert_array_equal(spread(op, x), [[[0, 1, 0, 2, 0]]])


def test_nothing_to_add():
    x = as_value(np.ones((1, 1, 3), np.float32))
    assert spread(ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), FIRST), x) is x


def test_slices():
    x = as_value(np.arange(24.0, dtype=np.float32).reshape(2, 3, 4))
    np.testing.assert_array_equal(
        cut(x, [2, 0], [1, 1], [2, 1], [2, 1]), np.asarray(x)[1:, :, 1::2]
    )
    assert cut(x, [1], [0], [0], [1]).shape == (2, 0, 4)
