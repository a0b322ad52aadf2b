"""Complex numbers of the same precision."""

import numpy as np
import pytest

import stretto as st
from stretto._engine.core.interpreter import as_value
from stretto.scipy.linalg.arguments import as_complex


@pytest.mark.parametrize(
    "dtype, wide",
    [("float32", "complex64"), ("float64", "complex128"), ("complex64", "complex64"),
     ("complex128", "complex128")],
)  # fmt: skip
def test_the_precision_stays(dtype, wide):
    with st.enable_x64():
        x = as_complex(as_value(np.arange(3).astype(dtype)))
    assert x.dtype == wide
    np.testing.assert_array_equal(x, np.arange(3))
