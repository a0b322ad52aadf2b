"""Extrema of floats that several devices hold: by integers in the same order."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P
from stretto.sharding import NamedSharding

pytestmark = pytest.mark.devices

ROWS = np.array(
    [
        [0.0, -1.0, 1.0, np.nan, -np.inf, 3.0],
        [0.0, -2.0, 2.0, 1.0, 5.0, np.inf],
        [-0.0, -3.0, -3.0, -np.nan, -5.0, -np.inf],
        [0.0, -4.0, 4.0, 2.0, 0.0, np.nan],
    ]
)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_of_parts(dtype, name, axis):
    with st.enable_x64():
        x = snp.asarray(ROWS, dtype)
        split = NamedSharding(st.make_mesh((4,), ("x",)), P("x"))
        f = st.jit(lambda x: getattr(snp, name)(x, axis))
        got = f(st.device_put(x, split))
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(
            np.asarray(got, np.float64), getattr(ROWS, name)(axis), strict=True
        )
        assert "bitcast_convert" in f.lower(st.device_put(x, split)).as_text()
