"""A matrix along an image's features, wherever these lie: the sum over them."""

import numpy as np
import pytest

from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from stretto._engine.ops.convolution.products import along_features

OP = ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), ConvDimensionNumbers(*(((0, 1, 2),) * 3)))


@pytest.mark.parametrize("axis", ["first", "last"])
@pytest.mark.parametrize("positions", [(), (3,), (9, 8), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("examples", [1, 5])
@pytest.mark.parametrize("summed", [0, 1])
def test_is_the_sum_over_features(examples, positions, axis, summed):
    random = np.random.default_rng(0)
    matrix = random.integers(-4, 5, (7, 6)).astype(np.float32)
    shape = (examples, 6, *positions) if axis == "first" else (examples, *positions, 6)
    image = random.integers(-4, 5, shape).astype(np.float32)
    place = 1 if axis == "first" else image.ndim - 1
    got = along_features(
        OP, as_value(matrix if summed else matrix.T.copy()), summed, as_value(image), place
    )
    want = np.moveaxis(np.tensordot(matrix, image, (1, place)), 0, place)
    np.testing.assert_array_equal(got, want)
