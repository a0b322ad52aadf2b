"""Tensors as arrays: dtypes, layouts, copies."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stretto.torch.crossing import to_numpy  # noqa: E402 (only where PyTorch is)

DTYPES = "float64 float32 float16 bfloat16 complex64 int64 int32 int16 int8 uint8 bool"


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_dtypes(dtype):
    tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype)).T
    array = to_numpy(tensor, "f")
    assert array.dtype.name == dtype and array.shape == (3, 2)
    np.testing.assert_array_equal(array.astype(complex), tensor.to(torch.complex128))


def test_a_copy():
    tensor = torch.ones(3)
    array = to_numpy(tensor, "f")
    tensor.zero_()
    np.testing.assert_array_equal(array, [1, 1, 1])


def test_views_that_are_not_written_out():
    tensor = torch.complex(torch.ones(2), torch.ones(2)).conj()
    np.testing.assert_array_equal(to_numpy(tensor, "f"), [1 - 1j, 1 - 1j])


def test_what_is_not_dense():
    with pytest.raises(TypeError, match=r"expected dense tensors.*to_dense"):
        to_numpy(torch.ones(2, 2).to_sparse(), "f")
