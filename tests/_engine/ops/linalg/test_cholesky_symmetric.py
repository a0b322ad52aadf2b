"""The product of a matrix and its transpose: the output's triangles, refusals."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto.lax.linalg import symmetric_product


def test_the_lower_triangle_stands_in_for_the_upper_one():
    a, c = np.eye(2, dtype=np.float32), np.array([[0, 7], [1, 0]], np.float32)
    np.testing.assert_array_equal(symmetric_product(a, c, beta=1.0), [[1, 7], [1, 1]])
    got = symmetric_product(a, c, beta=1.0, symmetrize_output=True)
    np.testing.assert_array_equal(got, [[1, 1], [1, 1]])
    assert symmetric_product(a, c, alpha=2.0).dtype == np.float32


def test_refusals():
    with pytest.raises(ValueError, match="symmetric_product: c_matrix must have 3 rows"):
        symmetric_product(snp.ones((3, 2)), snp.eye(2))
    with pytest.raises(TypeError, match="symmetric_product: expected float32"):
        symmetric_product(snp.ones((3, 2), int), snp.eye(3, dtype=int))


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_factors_of_symmetric_products_are_numbers(name):
    a = snp.eye(2)
    with pytest.raises(
        TypeError, match=rf"symmetric_product: {name} must be a number, got float32"
    ):
        symmetric_product(a, a, **{name: snp.ones(2)})
    assert symmetric_product(a, a, **{name: snp.float32(1)}).shape == (2, 2)
