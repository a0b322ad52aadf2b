"""Faults in words: the operation, where it was, and the ranges of its operands."""

import numpy as np
import pytest

from stretto._engine.core.types import array_type
from stretto._engine.eager.checked import fault_of, operand, wrong

X = np.array([[1.0, np.nan], [np.inf, -2.0]], np.float32)
F32 = array_type((2, 2), np.dtype(np.float32))
I32 = array_type((2,), np.dtype(np.int32))


@pytest.mark.parametrize("nans, infs, count", [(True, False, 1), (False, True, 1), (True, True, 2)])
def test_what_is_looked_for(nans, infs, count):
    assert wrong(X, F32, nans, infs).sum() == count


def test_nothing_is_wrong_with_integers_or_with_finite_numbers():
    assert wrong(np.arange(2), I32, True, True) is None
    assert wrong(np.zeros((2, 2), np.float32), F32, True, True) is None


def test_ranges_leave_nan_out():
    assert str(operand(X, F32)) == "float32[2,2] from -2 to inf, 1 NaN"
    assert str(operand(np.array([3, -1]), I32)) == "int32[2] from -1 to 3, no NaN"
    nothing = array_type((0,), np.dtype(np.float32))
    assert str(operand(np.zeros(0, np.float32), nothing)) == "float32[0], no NaN"


def test_a_message_says_where_and_from_what():
    fault = fault_of("log", X, F32, np.isnan(X), None, [operand(X, F32)])
    fault.steps, fault.function = (("scan", 3),), "loss"
    fault.in_example(np.isnan(X), 1)
    fault.within_scope("transpose(jvp(sqrt))")
    assert str(fault).splitlines() == [
        "log made NaN, in 1 elements of float32[2,2], the first at [0, 1]",
        "  in example 1 of vmap, in step 3 of scan, in the backward pass of sqrt, in loss, jitted",
        "  operand 0: float32[2,2] from -2 to inf, 1 NaN",
    ]


def test_a_value_is_not_the_derivative_of_its_own_operation():
    fault = fault_of("log", X, F32, np.isinf(X), None)
    fault.within_rule("log")
    assert (fault.kind, fault.derivative_of) == ("infinity", None)
    fault.within_rule("sqrt")
    assert fault.where() == ["the derivative of sqrt"]
