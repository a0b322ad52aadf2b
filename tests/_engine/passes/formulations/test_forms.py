"""Plans and the forms that they ask for."""

import pytest

from stretto._engine.core.known_settings import SETTINGS
from stretto._engine.passes.formulations.forms import Form, Plan


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
