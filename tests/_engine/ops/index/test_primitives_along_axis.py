"""Elements taken along an axis: NumPy's, the laws, messages."""

import numpy as np
import pytest

import stretto as st
from stretto import laws
from stretto._engine.ops.index.primitives import take_along_axis
from stretto.laws import f32


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_along_axis_is_numpys(axis):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4, 2)).astype(np.float32)
    at = rng.integers(-x.shape[axis], x.shape[axis], x.shape)
    got = take_along_axis(x, at.astype(np.int32), axis)
    np.testing.assert_array_equal(got, np.take_along_axis(x, at, axis))


def test_take_along_axis_laws():
    at = np.array([[0, 1, -1], [2, 2, 0]], np.int32)
    laws.check(lambda x, i: take_along_axis(x, i, 1), [(f32(2, 3), at), (f32(1, 3), at)])
    laws.check(lambda x, i: take_along_axis(x, i, 0), [(f32(2, 3), at[:1])])


def test_take_along_axis_of_nothing():
    assert take_along_axis(np.ones((0, 3), np.float32), np.zeros((0, 3), np.int32), 0).size == 0
    with pytest.raises(ValueError, match="take_along_axis: x and indices must have one number of"):
        take_along_axis(np.ones(3, np.float32), np.zeros((1, 1), np.int32), 0)


def test_take_along_axis_beside_an_axis_of_any_size():
    """The lines are of any number, or of any length, and the derivative is a scatter."""
    rng = np.random.default_rng(0)
    for axis in (0, 1):
        sizes = ({0: "n"}, {0: "n"})
        f = st.jit(lambda x, at, a=axis: take_along_axis(x, at, a).sum(0), dynamic_axes=sizes)
        slope = st.jit(
            st.grad(lambda x, at, a=axis: (take_along_axis(x, at, a) ** 2).sum()),
            dynamic_axes=sizes,
        )
        for n in (1, 5):
            x = rng.normal(size=(n, 3)).astype(np.float32)
            at = rng.integers(0, x.shape[axis], (n, 3)).astype(np.int32)
            taken = np.take_along_axis(x, at, axis)
            np.testing.assert_allclose(f(x, at), taken.sum(0), rtol=1e-5, atol=1e-6)
            wanted = np.zeros_like(x)
            lines = np.arange(n)[:, None] if axis else np.arange(3)[None]
            np.add.at(wanted, (lines, at) if axis else (at, lines), 2 * taken)
            np.testing.assert_allclose(slope(x, at), wanted, rtol=1e-5)
