"""Triangles, diagonals and adjoints against NumPy."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.linalg import matrix_parts as parts
from stretto.laws import check, f32
from tests.any_size import holds

X = (np.arange(24).reshape(2, 3, 4) * (1 + 2j)).astype(np.complex64)


@pytest.mark.parametrize("k", [-4, -1, 0, 2, 5])
def test_triangles_and_diagonals(k):
    x = snp.array(X)
    np.testing.assert_array_equal(parts.lower_part(x, k), np.tril(X, k))
    np.testing.assert_array_equal(parts.upper_part(x, k), np.triu(X, k))
    np.testing.assert_array_equal(parts.on_diagonal((3, 4), k), np.eye(3, 4, k, dtype=bool))
    np.testing.assert_array_equal(parts.below((3, 4), k), np.tri(3, 4, k, dtype=bool))
    want = np.stack([np.diagonal(m, k) if -3 < k < 4 else np.zeros(0) for m in X])
    np.testing.assert_array_equal(parts.diagonal_of(x, k), want)


def test_the_main_diagonal():
    x = snp.array(X)
    np.testing.assert_array_equal(parts.keep_diagonal(x), X * np.eye(3, 4))
    np.testing.assert_array_equal(parts.lower_part(x), np.tril(X))
    np.testing.assert_array_equal(parts.upper_part(x), np.triu(X))
    np.testing.assert_array_equal(parts.on_diagonal((3, 4)), np.eye(3, 4, dtype=bool))
    np.testing.assert_array_equal(parts.diagonal_of(x), [np.diagonal(m) for m in X])
    v = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(parts.diagonal_matrix(snp.array(v)), v[..., None] * np.eye(3))
    np.testing.assert_array_equal(parts.identity((2, 3, 2), np.dtype(np.int32)), [np.eye(3, 2)] * 2)


def test_transposes():
    np.testing.assert_array_equal(parts.matrix_transpose(snp.array(X)), X.transpose(0, 2, 1))
    np.testing.assert_array_equal(parts.adjoint(snp.array(X)), X.conj().transpose(0, 2, 1))


@pytest.mark.parametrize("name", ["lower_part", "upper_part", "keep_diagonal", "diagonal_of"])
def test_laws(name):
    check(getattr(parts, name), [f32(2, 3, 4)])
    assert st.jit(getattr(parts, name))(snp.array(X)).dtype == np.complex64


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("k", [-3, -1, 0, 1, 4])
def test_diagonals_of_nothing(shape, k):
    got = parts.diagonal_of(snp.zeros(shape), k)
    assert (
        got.shape == np.diagonal(np.zeros(shape), min(max(k, -shape[-2]), shape[-1]), -2, -1).shape
    )


@pytest.mark.parametrize("k", [-2, -1, 0, 1, 2])
def test_diagonals_of_any_size(k):
    x = np.real(X)
    diagonal = lambda x: parts.diagonal_of(x, k)
    for axes in ({(0, 1): 0}, {(0, 2): 0}, {(0, 0): 0, (0, 1): 1, (0, 2): 2}):
        holds(diagonal, [x], axes)


@pytest.mark.parametrize("k", [-(10**12), 10**12])
def test_diagonals_far_beyond_a_corner(k):
    lower = lambda x: parts.lower_part(x, k)
    holds(lower, [np.real(X)], {(0, 1): 0})
    np.testing.assert_array_equal(lower(snp.array(X)), X if k > 0 else 0 * X)
