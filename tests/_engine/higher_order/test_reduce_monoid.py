"""Which functions of two elements are associative, as random elements show."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.higher_order.reduce import combination, is_monoid


@pytest.mark.parametrize(
    ("function", "start", "want"),
    [
        (lambda x, y: x + y, 0.0, True),
        (lambda x, y: x + y, 1.0, False),  # no identity
        (lambda x, y: x - y, 0.0, False),
        (snp.logaddexp, -np.inf, True),
        (lambda x, y: snp.where(x > y, x, y), -np.inf, True),
        (lambda x, y: (x + y) / 2, 0.0, False),
        (st.jit(lambda x, y: x * y + x + y), 0.0, True),
        (lambda x, y: lax.fori_loop(0, 2, lambda i, c: c + y / 2, x), 0.0, None),
    ],
)
def test_whether_a_function_is_associative(function, start, want):
    _, starts, program, _ = combination("reduce", snp.ones(3), snp.float32(start), function)
    assert is_monoid(program, starts) is want
