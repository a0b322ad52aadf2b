"""A value of all members in its three forms: the ways between them, and what they copy."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto._engine.passes.formulations.values import Parts, Shared, Whole

ROWS = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def whole(axis):
    return Whole(as_value(np.moveaxis(ROWS, 0, axis)), axis)


def parts():
    return Parts([as_value(row) for row in ROWS])


FORMS = [*[lambda axis=axis: whole(axis) for axis in range(3)], parts]


@pytest.mark.parametrize("form", FORMS, ids=["first", "middle", "last", "parts"])
def test_each_form_holds_the_same(form):
    x = form()
    assert x.type.shape == (3, 4) and x.type.dtype == np.float32
    for i, row in enumerate(ROWS):
        np.testing.assert_array_equal(x.member(i), row)
    for axis in range(3):
        np.testing.assert_array_equal(form().at(axis), np.moveaxis(ROWS, 0, axis))
    np.testing.assert_array_equal(x.front(), ROWS)
    np.testing.assert_array_equal(np.moveaxis(np.asarray(x.value), x.axis, 0), ROWS)


def test_one_value_for_all_is_not_copied():
    value = as_value(ROWS)
    shared = Shared(value)
    assert shared.type is value.type
    assert shared.member(0) is shared.member(7) is value
    assert shared.to_cut == shared.to_stack == 0


def test_what_was_copied_once_is_not_counted_again():
    one = whole(1)
    assert (one.to_cut, one.to_stack) == (ROWS.nbytes, 0)
    first = one.member(0)
    assert one.to_cut == 0
    assert one.member(0) is first
    one = parts()
    assert (one.to_cut, one.to_stack) == (0, ROWS.nbytes)
    stacked = one.front()
    assert one.to_stack == 0
    assert one.front() is stacked is one.value


def test_the_members_stay_in_front_once_they_are():
    one = whole(2)
    assert one.front() is one.front()
    assert one.axis == 0 and one.type.shape == (3, 4)
    np.testing.assert_array_equal(one.member(1), ROWS[1])


def test_members_that_are_numbers_and_members_that_are_empty():
    numbers = Whole(snp.arange(3.0), 0)
    assert numbers.type.shape == () and float(numbers.member(2)) == 2
    np.testing.assert_array_equal(Parts([numbers.member(i) for i in range(3)]).front(), [0, 1, 2])
    empty = Whole(snp.zeros((2, 0)), 0)
    assert empty.member(1).shape == (0,) and empty.to_cut == 0
