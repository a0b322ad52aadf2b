"""Sizes as text, and what their variables are for given shapes."""

import pytest

from stretto._engine.core.sizes import size_variable
from stretto.export.size_text import at, evaluated, parsed, solved, text_of
from stretto.files.names import Damaged

B, C = size_variable("b"), size_variable("c")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("b", 5),
        ("2*b + 1", 11),
        ("-b + 2*c", 9),
        ("b^2 - c", 18),
        ("floordiv(b, 2)", 2),
        ("mod(c, 5)", 2),
        ("max(b, c) + min(b, 3)", 10),
        ("(b + 1)*c", 42),
        ("floordiv(2*b + 7, 4)*c", 28),
    ],
)
def test_what_is_read_has_the_value_and_is_written_again(text, value):
    size = parsed(text)
    known = {variable: {"b": 5, "c": 7}[variable.name] for variable in B.variables()}
    known |= dict.fromkeys(C.variables(), 7)
    assert evaluated(size, known) == value
    assert parsed(text_of(size)) is not None and text_of(parsed(text_of(size))) == text_of(size)


@pytest.mark.parametrize(
    "text",
    ["", "b +", "b b", "floordiv(b)", "b^99", "b // 2", "(" * 50 + "b" + ")" * 50, "floordiv(b, 0)",
     "b" + "+b" * 2000, "1e5", "b; c", "__import__('os')", "9" * 40, "mod(c, b)",
     "*".join(["(a+b+c+d+e)^8"] * 9), "99999999999^8"],
)  # fmt: skip
def test_what_is_no_size_is_refused(text):
    with pytest.raises(Damaged):
        parsed(text)


def test_variables_follow_from_shapes():
    known = solved([(2 * B + C, B), (4,)], [(13, 3), (4,)], ["x", "y"])
    assert {v.name: n for v, n in known.items()} == {"b": 3, "c": 7}
    assert at((B + C, C // 2, 5), known) == (10, 3, 5)


def test_variables_may_be_sizes_of_another_function():
    outer = size_variable("n")
    known = solved([(B, 2 * C)], [(outer + 1, 4)], ["x"])
    assert at((B * C, B), known) == (2 * outer + 2, outer + 1)


@pytest.mark.parametrize(
    ("shapes", "given", "words"),
    [
        ([(3,)], [(4,)], "axis 0 of x must have size 3, got 4"),
        ([(3,)], [(3, 1)], "must have 1 axes"),
        ([(2 * B,)], [(5,)], "b an integer of 1 or more, got 5"),
        ([(B + 3,)], [(3,)], "b an integer of 1 or more, got 3"),
        ([(B, B)], [(3, 4)], "must have size b, which is 3 for b=3, got 4"),
        ([(B * B,)], [(9,)], "what b is does not follow"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shapes, given, words):
    with pytest.raises(ValueError, match=words):
        solved(shapes, given, ["x"])


def test_a_result_that_has_a_variable_of_its_own_is_refused():
    with pytest.raises(ValueError, match="does not follow from the arguments"):
        at((C,), {})
