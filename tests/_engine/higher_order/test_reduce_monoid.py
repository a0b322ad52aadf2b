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


@pytest.mark.parametrize(
    ("function", "start", "want"),
    [
        (lambda x, y: x * y, np.int32(1), True),
        (lambda x, y: x - y, np.int32(0), False),
        (lambda x, y: abs(x - y), np.int32(0), False),
        (lambda x, y: x + abs(y), np.int32(0), False),  # of positive numbers it is associative
        (lambda x, y: x * y, np.uint8(1), True),
        (lambda x, y: x // (y + 1), np.uint8(0), False),
        (lambda x, y: x ^ y, np.bool_(False), True),
        (lambda x, y: x ^ y, np.bool_(True), False),
        (lambda x, y: ~(x & y), np.bool_(True), False),
        (lambda x, y: x * y, np.complex64(1), True),
        (lambda x, y: x * snp.conj(y), np.complex64(1), False),
    ],
)
def test_which_functions_of_other_kinds_are_associative(function, start, want):
    _, starts, program, _ = combination("reduce", snp.ones(3, start.dtype), start, function)
    assert is_monoid(program, starts) is want


@pytest.mark.parametrize(
    "call",
    [
        lambda called, x: st.debug.callback(called.append, x) or x,
        lambda called, x: st.pure_callback(
            lambda x: called.append(x) or x, x, x, vmap_method="expand_dims"
        ),
        lambda called, x: st.io_callback(lambda x: called.append(x) or x, x, x),
    ],
    ids=["debug", "pure", "input and output"],
)
def test_what_calls_python_is_not_tried(call):
    called = []

    def function(x, y):
        return call(called, x) + y

    _, starts, program, _ = combination("reduce", snp.ones(3), snp.float32(0), function)
    assert is_monoid(program, starts) is None
    assert not called
