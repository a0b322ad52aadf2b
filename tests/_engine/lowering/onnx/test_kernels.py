"""Which dtype stands in where onnxruntime has no kernel."""

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.lowering.onnx.kernels import KERNELS, stand_in

BF16 = ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        ("Sin", "float32", "float32"),
        ("Sin", BF16, "float32"),
        ("Max", "int16", "int32"),
        ("Where", "uint16", "uint32"),
        ("ReduceSum", "int8", "int32"),
        ("ReduceSum", "uint32", "int64"),
        ("Reshape", BF16, BF16),
        ("Erf", "float64", None),
        ("ReduceMax", "uint64", None),
        ("BitShift", "uint8", "uint8"),
    ],
)
def test_the_dtype_that_stands_in_has_all_values(op, dtype, expected):
    found = stand_in(op, np.dtype(dtype))
    assert found == (None if expected is None else np.dtype(expected))


def test_every_operator_has_a_kernel_of_something():
    assert all(KERNELS.values())
