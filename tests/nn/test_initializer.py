"""What all initializers share: dtypes, shapes, and errors that name the one called."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.nn import initializers
from stretto.nn.initializer import dtype_or, initializer, scaled

KEY = st.random.PRNGKey(0)


def test_dtypes():
    draw = initializer("x", snp.float16, lambda key, shape, dtype: snp.ones(shape, dtype))
    assert draw(KEY, [2, 3]).dtype == snp.float16 and draw(KEY, [2, 3]).shape == (2, 3)
    assert draw(KEY, (2,), snp.complex64).dtype == snp.complex64
    assert dtype_or(None) == np.float32 and dtype_or(None, snp.int8) == np.int8


def test_scaled_keeps_the_dtype():
    assert scaled(snp.ones(2, snp.bfloat16), np.float32(3)).dtype == snp.bfloat16


DRAWS = {
    "uniform": initializers.uniform(),
    "normal": initializers.normal(),
    "truncated_normal": initializers.truncated_normal(),
    "variance_scaling": initializers.he_normal(),
    "orthogonal": initializers.orthogonal(),
    "delta_orthogonal": initializers.delta_orthogonal(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_messages(name):
    draw = DRAWS[name]
    with pytest.raises(ValueError, match=f"initializers.{name}: dtype must be floating or complex"):
        draw(KEY, (1, 2, 2), int)
    with pytest.raises(TypeError, match=f"initializers.{name}: .*shape"):
        draw(KEY, (1.5, 2, 2))
    with pytest.raises(TypeError, match=f"initializers.{name}: out_sharding must be a sharding"):
        draw(KEY, (1, 2, 2), out_sharding="x")
