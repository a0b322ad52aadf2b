"""A convolution without groups, and with features last: the same as it is."""

import numpy as np
import pytest

from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convolution.forms import by_group, features_last, with_features_last
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import conv_dimension_numbers
from tests._engine.ops.convolution.cases import check


def numbers(seed, *shape):
    random = np.random.default_rng(seed)
    return as_value(random.integers(-4, 5, shape).astype(np.float32))


def convolution(layout, feature_groups=1, batch_groups=1):
    dims = conv_dimension_numbers((1,) * 4, (1,) * 4, layout)
    return ConvGeneralDilated(
        (1, 2), ((1, 0), (2, 1)), (2, 1), (1, 2), dims, feature_groups, batch_groups
    )


CASES = {
    "first": (("NCHW", "OIHW", "NCHW"), (4, 6, 4, 5), (6, 6, 2, 2), 1, 1),
    "mixed": (("HNWC", "WHIO", "CWNH"), (4, 3, 5, 2), (2, 2, 2, 6), 1, 1),
    "feature groups": (("HNWC", "WHIO", "CWNH"), (4, 3, 5, 6), (2, 2, 2, 6), 3, 1),
    "batch groups": (("NCHW", "OIHW", "NCHW"), (4, 3, 4, 5), (6, 3, 2, 2), 1, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_turned(name):
    layout, lhs, rhs, *groups = CASES[name]
    op, x, y = convolution(layout, *groups), numbers(0, *lhs), numbers(1, *rhs)
    check(with_features_last, op, x, y)


@pytest.mark.parametrize("name", CASES)
def test_by_group(name):
    layout, lhs, rhs, *groups = CASES[name]
    op, x, y = convolution(layout, *groups), numbers(0, *lhs), numbers(1, *rhs)
    np.testing.assert_array_equal(by_group(op, x, y), op(x, y))


def test_features_last():
    named = conv_dimension_numbers((1,) * 4, (1,) * 4, ("NHWC", "HWIO", "NHWC"))
    assert features_last(4) == named
    assert features_last(2) == conv_dimension_numbers((1,) * 2, (1,) * 2, ("NC", "IO", "NC"))
