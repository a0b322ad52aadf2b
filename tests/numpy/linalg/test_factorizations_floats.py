"""Arguments of linear algebra: floats, matrices, systems, and what is refused."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto.numpy.linalg.factorizations import (
    as_complex,
    floats,
    matrices,
    same_floats,
    systems,
    values_of,
)
from stretto.scipy import linalg


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


def test_values_in_order():
    x, y = values_of("f", a=1.5, b=np.ones(2, np.float32))
    assert float(x) == 1.5 and y.shape == (2,)


@pytest.mark.parametrize(
    "name, arguments, count",
    [
        ("expm_frechet", "A E", 2),
        ("qr_multiply", "a c", 2),
        ("eigh", "a b", 2),
        ("rsf2csf", "T Z", 2),
        ("eigh_tridiagonal", "d e", 2),
        ("solve_sylvester", "A B C", 3),
        ("solve", "a b", 2),
        ("solve_triangular", "a b", 2),
    ],
)
def test_errors_name_the_argument(name, arguments, count):
    for i, argument in enumerate(arguments.split()):
        operands = [np.eye(2, dtype=np.float32)] * count
        operands[i] = [[1.0, 0.0], [0.0, 1.0]]
        with pytest.raises(TypeError, match=f"^{name}: {argument} must be an array"):
            getattr(linalg, name)(*operands)


def test_errors_name_the_parts_of_factors():
    factor, pivots = np.eye(2, dtype=np.float32), np.arange(2, dtype=np.int32)
    with pytest.raises(TypeError, match=r"^cho_solve: c must be an array"):
        linalg.cho_solve(([[1.0]], True), factor)
    with pytest.raises(TypeError, match=r"^cho_solve: b must be an array"):
        linalg.cho_solve((factor, True), [1.0, 1.0])
    with pytest.raises(TypeError, match=r"^lu_solve: lu must be an array"):
        linalg.lu_solve(([[1.0]], pivots), factor)
    with pytest.raises(TypeError, match=r"^lu_solve: b must be an array"):
        linalg.lu_solve((factor, pivots), [1.0, 1.0])
