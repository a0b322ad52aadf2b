"""Transformations with ``reduce_axes``."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax import reduced


def test_they_are_strettos():
    x = snp.array([1.0, 2.0])
    f = lambda x, y: (snp.sin(x) * y).sum()
    np.testing.assert_array_equal(reduced.grad(f, 1, reduce_axes=())(x, x), st.grad(f, 1)(x, x))
    value, gradient = reduced.value_and_grad(lambda x: (f(x, x), 3), has_aux=True)(x)
    assert value[1] == 3 and gradient.shape == (2,)
    out, back = reduced.vjp(f, x, x, reduce_axes=())
    assert len(back(snp.ones_like(out))) == 2
    (transposed,) = reduced.linear_transpose(lambda x: 3 * x, x)(x)
    np.testing.assert_array_equal(transposed, [3, 6])


@pytest.mark.parametrize("name", ["grad", "value_and_grad"])
def test_axes_are_refused(name):
    with pytest.raises(NotImplementedError, match=rf"jax\.{name}: reduce_axes=\('i',\)"):
        getattr(reduced, name)(lambda x: x, reduce_axes=("i",))
    with pytest.raises(NotImplementedError, match="reduce_axes"):
        reduced.vjp(lambda x: x, 1.0, reduce_axes=("i",))
    with pytest.raises(NotImplementedError, match="reduce_axes"):
        reduced.linear_transpose(lambda x: x, 1.0, reduce_axes=("i",))
