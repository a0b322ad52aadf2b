"""Arrays of other libraries: what stays as it is, narrowing, refusals.

`tests/conformance/test_dlpack.py` has the protocol, both ways.
"""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def test_an_array_of_one_s_own_stays_unless_a_copy_is_asked_for():
    x = snp.arange(3.0)
    assert snp.from_dlpack(x) is snp.from_dlpack(x, copy=False) is x
    assert snp.from_dlpack(x, copy=True) is not x
    np.testing.assert_array_equal(st.jit(snp.from_dlpack)(x), x)


def test_numbers_of_64_bits():
    wide = np.arange(3.0)
    assert snp.from_dlpack(wide).dtype == np.float32
    with pytest.raises(BufferError, match="float64 becomes float32, which needs a copy, and copy="):
        snp.from_dlpack(wide, copy=False)
    with st.enable_x64():
        assert snp.from_dlpack(wide, copy=False).dtype == np.float64


def test_refusals():
    with pytest.raises(TypeError, match=r"x must have __dlpack__ and .* got builtins\.list; use"):
        snp.from_dlpack([1.0])
    with pytest.raises(ValueError, match="from_dlpack"):
        snp.from_dlpack(np.ones(2), device="tpu")
    assert snp.from_dlpack(np.ones(2, np.float32), device=st.devices()[0]).shape == (2,)
