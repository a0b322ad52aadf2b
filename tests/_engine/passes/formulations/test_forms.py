"""Plans and the forms that they ask for."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.config import SETTINGS
from stretto._engine.core.interpreter import as_value
from stretto._engine.passes.formulations.forms import Form, Parts, Plan, Shared, Whole


def test_the_plans_are_those_of_the_setting():
    assert [*Plan] == sorted(SETTINGS["plan"].choices, key=[*Plan].index)
    assert {*Plan} == {*SETTINGS["plan"].choices}


@pytest.mark.parametrize("plan", [Plan.AUTO, Plan.AT_ONCE, Plan.MEASURE, Plan.IN_TURN])
def test_some_plans_leave_each_operation_to_the_estimate(plan):
    assert not any(plan.asks_for(form) for form in Form)


def test_others_ask_for_forms():
    assert [f for f in Form if Plan.WIDE.asks_for(f)] == [Form.WIDE_PRODUCT, Form.WIDE_CONVOLUTION]
    assert Plan.WRITTEN_OUT.asks_for(Form.WRITTEN_OUT)
    assert not Plan.BATCHED.asks_for(Form.WIDE_PRODUCT)


# A value of all members in its three forms: the ways between them, and what they copy.


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


def test_places_of_members_are_hidden():
    """So kernels that read several of them are compiled once."""
    graph = st.make_graph(lambda x: [*map(Whole(x, 1).member, range(3))])(ROWS)
    cuts = [e.primitive for e in graph.equations if e.primitive.name == "slice"]
    assert [cut.hidden for cut in cuts] == [True] * 3


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
