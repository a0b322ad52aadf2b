"""Arguments of linear algebra: floats, matrices, systems, and what is refused."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto.numpy.linalg.arguments import floats, matrices, same_floats, systems


def test_whole_numbers_become_strong_floats():
    assert str(floats("f", np.arange(3)).type) == "float32[3]"
    assert str(floats("f", 2).type) == "float32[]"
    assert floats("f", snp.ones(2, snp.complex64)).dtype == np.complex64
    with pytest.raises(TypeError, match="f: x"):
        floats("f", "text", "x")


def test_matrices():
    assert matrices("f", np.ones((2, 3, 4))).shape == (2, 3, 4)
    with pytest.raises(ValueError, match="f: "):
        matrices("f", np.ones(3))
    with pytest.raises(ValueError, match="square"):
        matrices("f", np.ones((2, 3)), square=True)


def test_two_of_one_dtype():
    x, y = same_floats("f", np.arange(3), np.ones((2, 2), np.complex64))
    assert x.dtype == y.dtype == np.complex64 and x.shape == (3,)
    x, y = same_floats("f", np.arange(3), np.arange(2))
    assert x.dtype == y.dtype == np.float32


def test_systems_of_vectors_and_matrices():
    a, b, vector = systems("solve", np.eye(3), np.arange(3))
    assert b.shape == (3, 1) and vector and a.dtype == b.dtype == np.float32
    _, b, vector = systems("solve", np.ones((5, 3, 3)), np.ones((5, 3, 2)))
    assert b.shape == (5, 3, 2) and not vector
    for bad in (np.ones(2), np.ones((2, 3)), 1.0):
        with pytest.raises(ValueError, match="solve: b must have 3 rows, as a has: got a: float32"):
            systems("solve", np.eye(3), bad)
    with pytest.raises(ValueError, match="solve"):
        systems("solve", np.ones((2, 3)), np.ones(2))
