"""Faults in words: the operation, where it was, and the ranges of its operands."""

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.core.types import array_type
from stretto._engine.eager.checked import Fault, fault_of, first_of, operand, wrong

X = np.array([[1.0, np.nan], [np.inf, -2.0]], np.float32)
F32 = array_type((2, 2), np.dtype(np.float32))
I32 = array_type((2,), np.dtype(np.int32))


@pytest.mark.parametrize("nans, infs, count", [(True, False, 1), (False, True, 1), (True, True, 2)])
def test_what_is_looked_for(nans, infs, count):
    assert wrong(X, F32, nans, infs).sum() == count


def test_nothing_is_wrong_with_integers_or_with_finite_numbers():
    assert wrong(np.arange(2), I32, True, True) is None
    assert wrong(np.zeros((2, 2), np.float32), F32, True, True) is None


@pytest.mark.parametrize(("nans", "infs"), [(True, False), (False, True), (True, True)])
def test_nothing_is_found_that_is_not_looked_for(nans, infs):
    assert wrong(X, F32, False, False) is None
    only = {(True, False): X[1:], (False, True): X[:1]}.get((nans, infs), X[:1, :1])
    assert wrong(only, F32, nans, infs) is None
    assert wrong(X[:0], F32, nans, infs) is None
    marks = wrong(X.astype(np.complex64), array_type((2, 2), np.dtype(np.complex64)), nans, infs)
    assert marks is not None and marks.dtype == bool and marks.shape == (2, 2)
    one = wrong(np.float32(np.nan), array_type((), np.dtype(np.float32)), True, infs)
    assert isinstance(one, np.ndarray) and one.shape == ()


def test_where_the_first_of_several_is():
    marks = np.zeros((3, 4), bool)
    marks[1, 2] = marks[2, 0] = True
    assert first_of(marks) == (1, 2) and first_of(np.array(True)) == ()
    assert all(type(i) is int for i in first_of(marks))


@pytest.mark.parametrize(
    ("array", "type", "words"),
    [
        (np.array([True]), "bool", "bool[1], no NaN"),
        (np.array([3 + 4j, np.nan, 0]), "complex64", "complex64[3] from 0 to 5, 1 NaN"),
        (np.array([np.nan, np.nan]), "float32", "float32[2], 2 NaN"),
        (np.array([2.5, np.nan, -1], ml_dtypes.bfloat16), "bfloat16",
         "bfloat16[3] from -1 to 2.5, 1 NaN"),
        (np.array([7], np.uint8), "uint8", "uint8[1] from 7 to 7, no NaN"),
    ],
)  # fmt: skip
def test_ranges_by_dtype(array, type, words):
    found = operand(array, array_type(array.shape, np.dtype(getattr(ml_dtypes, type, type))))
    assert str(found) == words


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


def test_where_a_fault_was_in_words():
    made = lambda **about: Fault("log", None, "NaN", None, "float32[]", 1, (), **about)
    assert str(made()) == "log made NaN, in 1 elements of float32[]"
    assert made().where() == [] and made(backward=True).where() == ["the backward pass"]
    assert made(derivative_of="sqrt").where() == ["the derivative of sqrt"]
    assert made(backward=True, derivative_of="exp").where() == ["the backward pass of exp"]
    both = made(examples=(1, 2), steps=(("scan", 0), ("while_loop", 3)), note="See there.")
    assert str(both).splitlines()[1:] == [
        "  in example 1 of vmap, in example 2 of vmap, in step 0 of scan, in step 3 of while_loop",
        "  See there.",
    ]
    came = Fault(None, "the argument x", "infinity", None, "float32[3]", 2, (1,))
    assert str(came) == (
        "infinity came in with the argument x, in 2 elements of float32[3], the first at [1]"
    )


@pytest.mark.parametrize(
    ("scope", "backward", "of"),
    [
        ("", False, None),
        ("f/g", False, None),
        ("jvp(sqrt)", False, "sqrt"),
        ("transpose(jvp(sqrt))", True, "sqrt"),
        ("jvp(exp)/jvp(sqrt)", False, "sqrt"),
        ("jvp(sqrt)/jvp(log)", False, None),  # its own value
        ("transpose(linear_call)", True, None),
    ],
)
def test_what_a_scope_tells(scope, backward, of):
    fault = fault_of("log", X, F32, np.isnan(X), None)
    fault.within_scope(scope)
    assert (fault.backward, fault.derivative_of) == (backward, of)
    fault.within_scope("transpose(jvp(tanh))")
    assert fault.backward and fault.derivative_of == (of or "tanh")


def test_the_innermost_place_that_was_gone_back_through_stays():
    fault = fault_of("log", X, F32, np.isnan(X), None)
    code = test_the_innermost_place_that_was_gone_back_through_stays.__code__
    fault.going_back(None)
    assert fault.backward and fault.position is None
    fault.going_back((code, 0, "jvp(exp)"))
    first = fault.position
    assert first is fault.innermost is not None and fault.derivative_of == "exp"
    fault.going_back((code, 2, "jvp(tanh)"))
    assert fault.position is first and fault.derivative_of == "exp"


def test_a_value_is_not_the_derivative_of_its_own_operation():
    fault = fault_of("log", X, F32, np.isinf(X), None)
    fault.within_rule("log")
    assert (fault.kind, fault.derivative_of) == ("infinity", None)
    fault.within_rule("sqrt")
    assert fault.where() == ["the derivative of sqrt"]
