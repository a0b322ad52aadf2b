"""Of the laws, one for each primitive."""

from types import SimpleNamespace

import pytest

from stretto._engine.ops.exponential import Exp, Log
from stretto.laws import f32, f64, law
from tests import once


@pytest.fixture
def chosen():
    """What is kept of tests with these parameters, by their numbers, and what is left out."""

    def choose(*parameters):
        items = [
            SimpleNamespace(number=n) if given is None
            else SimpleNamespace(number=n, callspec=SimpleNamespace(params=given))
            for n, given in enumerate(parameters)
        ]  # fmt: skip
        left_out = []

        def deselected(items):
            left_out.extend(items)

        hook = SimpleNamespace(pytest_deselected=deselected)
        once.pytest_collection_modifyitems(SimpleNamespace(hook=hook), items)
        return [item.number for item in items], [item.number for item in left_out]

    return choose


def test_the_first_law_of_each_primitive_is_kept(chosen):
    exp, log = law(Exp, lambda x: x, f32(2)), law(Log, lambda x: x, f32(2))
    again = law(Exp, lambda x: x, f64(2))
    assert chosen({"case": exp}, {"case": log}, {"case": again}) == ([0, 1], [2])
    assert chosen({"law": again}, {"law": exp}) == ([0], [1])


def test_what_is_no_law_is_kept(chosen):
    assert chosen(None, {"dtype": "float32"}, None, {"dtype": "float32"}) == ([0, 1, 2, 3], [])
