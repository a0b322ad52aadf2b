"""Functions that JAX calls otherwise: each is the function of that meaning."""

import pytest

import stretto.numpy as snp
from stretto import lax
from stretto.lax import elementary

CALLS = {
    "abs": ((-2.0,), 2.0),
    "complex": ((1.0, 2.0), 1 + 2j),
    "div": ((7.0, 2.0), 3.5),
    "map": ((lambda x: 2 * x, snp.array([1, 2])), [2, 4]),
    "max": ((1.0, 2.0), 2.0),
    "min": ((1.0, 2.0), 1.0),
    "neg": ((3,), -3),
    "pow": ((2.0, 3.0), 8.0),
    "rem": ((-7, 4), -3),
    "sort": ((snp.array([3, 1, 2]),), [1, 2, 3]),
    "sub": ((5, 3), 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_function_of_that_meaning(name):
    function = getattr(lax, name)
    args, expected = CALLS[name]
    assert function is getattr(elementary, name)
    assert function(*args).tolist() == expected
