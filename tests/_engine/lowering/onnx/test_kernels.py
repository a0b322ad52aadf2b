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


@pytest.mark.parametrize("op", sorted(KERNELS))
def test_what_stands_in_has_a_kernel_and_loses_nothing(op):
    for name in ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8",
                 "uint64", "uint32", "uint16", "uint8", "bool"):  # fmt: skip
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        found = stand_in(op, dtype)
        assert found is None or found in KERNELS[op]
        assert (found is not None and found == dtype) == (dtype in KERNELS[op])
        if found is not None and name != "bfloat16":
            assert np.can_cast(dtype, found, "safe")


def test_every_operator_has_a_kernel_of_something():
    assert all(KERNELS.values())
