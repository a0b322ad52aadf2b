"""NumPy's other products: values, and what is refused."""

import numpy as np
import pytest

from stretto._engine.core.errors import ContractionError
from stretto._engine.ops.contract import dot
from stretto._engine.ops.products import inner, outer, tensordot, vdot


@pytest.mark.parametrize(
    ("ours", "numpys", "left", "right"),
    [
        (dot, np.dot, (2, 3), (4, 3, 5)),
        (dot, np.dot, (3,), (3,)),
        (dot, np.dot, (), (3,)),
        (inner, np.inner, (2, 3), (4, 3)),
        (inner, np.inner, (2, 3), ()),
        (outer, np.outer, (2, 2), (3,)),
        (vdot, np.vdot, (2, 3), (3, 2)),
        (tensordot, np.tensordot, (2, 3, 4), (3, 4, 5)),
        (lambda x, y: tensordot(x, y, 0), lambda x, y: np.tensordot(x, y, 0), (2,), (3,)),
        (
            lambda x, y: tensordot(x, y, ((0, -1), (1, 0))),
            lambda x, y: np.tensordot(x, y, ((0, -1), (1, 0))),
            (2, 3, 4),
            (4, 2, 3),
        ),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32"])
def test_products_are_numpys(ours, numpys, left, right, dtype):
    rng = np.random.default_rng(0)
    x, y = (np.asarray(rng.integers(-3, 4, shape)).astype(dtype) for shape in (left, right))
    if dtype == "complex64":
        x = x * np.complex64(1 - 2j)
    np.testing.assert_array_equal(ours(x, y), numpys(x, y))


def test_refuses():
    x = np.ones((2, 3), np.float32)
    differ = r"contracted sizes differ, 3 \(axis 1 of x: float32\[2,3\]\) and 4 \(axis 0 of y"
    with pytest.raises(ContractionError, match=f"tensordot: {differ}"):
        tensordot(x, np.ones((4, 5), np.float32), 1)
    with pytest.raises(ContractionError, match=r"sizes differ, 6 .* and 4"):
        vdot(x, np.ones(4, np.float32))
    with pytest.raises(ValueError, match="do not both have 3 axes"):
        tensordot(x, x, 3)
    with pytest.raises(ValueError, match="two lists of axes"):
        tensordot(x, x, (0, 1, 0))
