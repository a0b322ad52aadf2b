"""Complex numbers of the same precision, and arguments by their names in errors."""

import numpy as np
import pytest

import stretto as st
from stretto._engine.core.interpreter import as_value
from stretto.scipy import linalg
from stretto.scipy.linalg.arguments import as_complex, values_of


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
