"""Bits read as another dtype: the laws, NumPy's views, refusals."""

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.ops.bitcast import BitcastConvertType, bitcast_convert_type
from stretto.laws import bf16, f16, f32, f64, i8, law, u32


def to(dtype):
    return lambda x: bitcast_convert_type(x, dtype)


LAWS = [
    law(BitcastConvertType, to("uint32"), f32(2, 3), derivative=False),
    law(BitcastConvertType, to("uint16"), bf16(3), derivative=False),
    law(BitcastConvertType, to("bfloat16"), f16(3), derivative=False),
    law(BitcastConvertType, to("int8"), f32(2, 3), derivative=False),
    law(BitcastConvertType, to("int8"), u32(), derivative=False),
    law(BitcastConvertType, to("uint32"), f64(2), derivative=False),
    law(BitcastConvertType, to("uint32"), i8(3, 4)),
    law(BitcastConvertType, to("uint16"), i8(2)),
    law(BitcastConvertType, to("uint8"), f32(0, 3), derivative=False),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_is_a_view():
    x = np.array([[1.0, -0.0, np.nan], [np.inf, 1e-45, 3.5]], np.float32)
    np.testing.assert_array_equal(bitcast_convert_type(x, np.int32), x.view(np.int32))
    parts = x.view(np.uint8).reshape(2, 3, 4)
    np.testing.assert_array_equal(bitcast_convert_type(x, np.uint8), parts)
    back = np.asarray(bitcast_convert_type(parts, np.float32))
    assert back.tobytes() == x.tobytes()
    flipped = x.T  # not contiguous
    np.testing.assert_array_equal(
        bitcast_convert_type(flipped, np.int32), np.ascontiguousarray(flipped).view(np.int32)
    )


def test_refuses():
    with pytest.raises(TypeError, match=r"whole bytes, got bool\[2\] to uint8"):
        bitcast_convert_type(np.ones(2, bool), np.uint8)
    with pytest.raises(TypeError, match="whole bytes, got complex64"):
        bitcast_convert_type(np.ones(2, np.complex64), np.float32)
    with pytest.raises(TypeError, match="whole bytes"):
        bitcast_convert_type(np.ones(2, ml_dtypes.int4), np.int8)
    with pytest.raises(ValueError, match=r"last axis must have size 4; got uint8\[3\]"):
        bitcast_convert_type(np.ones(3, np.uint8), np.float32)
    with pytest.raises(TypeError, match="bitcast_convert_type: new_dtype must be a dtype"):
        bitcast_convert_type(np.ones(2, np.float32), "bad")
