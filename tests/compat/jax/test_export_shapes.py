"""Symbolic shapes held to those of a call: what is found, and what the errors say."""

import re

import pytest

from stretto._engine.core.sizes import size_variable
from stretto.compat.jax.export_shapes import check_shapes, check_solvable, text_of
from stretto.export.size_text import parsed


def shape(text):
    return tuple(map(parsed, text.split(",")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + 2*b", "2*b + a"),
        ("a*a*a - 4*b + 1", "a^3 - 4*b + 1"),
        ("-a", "-a"),
        ("floordiv(b + a, 2) + 3", "floordiv(b + a, 2) + 3"),
        ("max(a - 5, 0)", "max(a - 5, 0)"),
        ("a*b + c", "b*a + c"),
    ],
)
def test_sizes_are_written_in_the_order_of_jax(text, expected):
    assert sorted(text_of(parsed(text))) == sorted(expected)
    assert text_of(parsed(text)) in (expected, expected.replace("b*a", "a*b"))


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        ("a + 2*b, a, a + b + c", (8, 2, 9)),
        ("3, a, a + 8", (3, 4, 12)),
        ("a, a*b", (3, 6)),
        ("6*a - 1", (11,)),
    ],
)
def test_shapes_that_fit(expected, given):
    check_shapes(["args[0]"], [shape(expected)], [given])


@pytest.mark.parametrize(
    ("expected", "given", "error"),
    [
        ("6*a", (13,), "Division had remainder 1 when computing the value of 'a'"),
        (
            "a + 1",
            (1,),
            "Expected value >= 1 for dimension variable 'a'. Using the following polymorphic "
            "shapes specifications: args[0].shape = (a + 1,). Obtained dimension variables: "
            "'a' = 0 from specification 'a + 1' for dimension args[0].shape[0] (= 1), .",
        ),
        (
            "a, a + 8",
            (4, 13),
            "Found inconsistency between dimension size args[0].shape[1] (= 13) and the "
            "specification 'a + 8' (= 12)",
        ),
        ("5*a", ("c",), "Division had remainder mod(c, 5) when computing the value of 'a'"),
        ("a, a", ("c", "c + 1"), "args[0].shape[1] (= c + 1) and the specification 'a' (= c)"),
        ("a, a + b", (4, "c"), "'b' = c - 4 from specification 'b + a' for dimension"),
    ],
)
def test_shapes_that_do_not(expected, given, error):
    sizes = tuple([parsed(n) if isinstance(n, str) else n for n in given])
    with pytest.raises(ValueError, match=re.escape(error)):
        check_shapes(["args[0]"], [shape(expected)], [sizes])


def test_bounds_are_those_of_the_variable():
    at_least_three = size_variable("b", 3)
    check_shapes(["x"], [(at_least_three,)], [(3,)])
    with pytest.raises(ValueError, match="Expected value >= 3 for dimension variable 'b'"):
        check_shapes(["x"], [(at_least_three,)], [(2,)])


def test_variables_that_do_not_follow():
    check_solvable(["x", "y"], [shape("a*b"), shape("b")])
    error = re.escape(
        "Cannot solve for values of dimension variables {'c'}. We can only solve linear "
        "uni-variate constraints. Using the following polymorphic shapes specifications: "
        "x.shape = (b + 2*a, a, c^2). Unprocessed specifications: 'c^2' for dimension size "
        "x.shape[2]."
    )
    with pytest.raises(ValueError, match=error):
        check_solvable(["x"], [shape("2*a + b, a, c*c")])
    with pytest.raises(ValueError, match=error):
        check_shapes(["x"], [shape("2*a + b, a, c*c")], [(7, 2, 36)])
