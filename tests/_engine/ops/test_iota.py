"""Iota: the laws, and NumPy."""

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.ops.iota import Iota, broadcasted_iota, iota
from stretto.laws import f32, law

LAWS = [
    law(Iota, lambda x: x * broadcasted_iota(np.float32, (2, 3), 1), f32(2, 3)),
    law(Iota, lambda x: x + broadcasted_iota(np.complex64, (2, 0), 0), f32(2, 0)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32, ml_dtypes.bfloat16])
def test_counts(dtype):
    np.testing.assert_array_equal(iota(dtype, 5), np.arange(5).astype(dtype))
    assert iota(dtype, 5).dtype == dtype
    want = np.broadcast_to(np.arange(3).reshape(1, 3, 1), (2, 3, 4))
    np.testing.assert_array_equal(broadcasted_iota(dtype, (2, 3, 4), -2), want.astype(dtype))


def test_refuses():
    with pytest.raises(TypeError, match="got bool"):
        iota(bool, 2)
    with pytest.raises(ValueError, match="must not be negative"):
        iota(int, -1)
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        broadcasted_iota(int, (2,), 1)


@pytest.mark.parametrize(
    ("call", "caller"),
    [(lambda t: iota(t, 2), "iota"), (lambda t: broadcasted_iota(t, (2,), 0), "broadcasted_iota")],
)
def test_a_bad_dtype_is_refused_under_the_name_of_the_function(call, caller):
    with pytest.raises(TypeError, match=f"^{caller}: expected a dtype of numbers, got bool"):
        call(bool)
    with pytest.raises(TypeError, match=f"^{caller}: dtype must be a dtype of numbers"):
        call("bad")
