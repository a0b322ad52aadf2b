"""A function applied at places: repeated ones, out of bounds, derivatives, errors."""

import numpy as np
import pytest

from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.ops.index.geometry import ScatterDimensionNumbers
from stretto.lax.arrays import scatter_apply

NUMBERS = ScatterDimensionNumbers((), (0,), (0,))
X = np.float32([1, 2, 3, 4])


def squared(x, places, **options):
    shape = places.shape[:-1]
    return scatter_apply(x, places, lambda v: v * v, NUMBERS, update_shape=shape, **options)


def test_places_out_of_bounds():
    places = np.array([[1], [9], [-1]])
    assert squared(X, places).tolist() == [1, 4, 3, 4]
    assert squared(X, places, mode="clip").tolist() == [1, 4, 3, 16]


@pytest.mark.parametrize("unique", [False, True])
def test_gradients_and_examples(unique):
    places = np.array([[[1], [3]], [[0], [2]]])

    def loss(x, places):
        return squared(x, places, unique_indices=unique).sum()

    out = jit(vmap(grad(loss), in_axes=(None, 0)))(X, places)
    np.testing.assert_array_equal(out, [[1, 4, 1, 8], [2, 1, 6, 1]])


def test_repeated_places_are_mapped_as_often():
    places = np.array([[2], [2], [0]])
    assert squared(X, places).tolist() == [1, 2, 81, 4]
    slope = grad(lambda x: squared(x, places).sum())(X)
    np.testing.assert_allclose(slope, [2, 1, 4 * 27, 1])


def test_refusals():
    with pytest.raises(ValueError, match="update_shape must have 1 sizes"):
        scatter_apply(X, np.array([[1]]), lambda v: v, NUMBERS)


def test_refusals_name_the_function():
    x, places, ones = np.ones(3), np.array([[1]]), lambda v: v
    with pytest.raises(TypeError, match=r"^scatter_apply: indices must be integers"):
        scatter_apply(x, np.array([[1.0]]), ones, NUMBERS, update_shape=(1,))
    with pytest.raises(
        TypeError, match=r"^scatter_apply: dimension_numbers must be a ScatterDimens"
    ):
        scatter_apply(x, places, ones, [1], update_shape=(1,))
    with pytest.raises(TypeError, match=r"^scatter_apply: expected updates of type float32"):
        scatter_apply(x, places, lambda v: v[0], NUMBERS, update_shape=(1,))
    with pytest.raises(ValueError, match=r"^scatter_apply: mode must be"):
        scatter_apply(x, places, ones, NUMBERS, update_shape=(1,), mode="bad")
