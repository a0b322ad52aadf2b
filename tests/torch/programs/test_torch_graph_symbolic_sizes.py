"""Sizes and conditions as text: their values, names that are solved for, and what is no text."""

import pytest

from stretto.torch.programs.torch_graph import Condition, bind, names, value_of

SIZES = {"s0": 6, "s1": 4}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s0", 6),
        ("2*s0 + 1", 13),
        ("(s0 + 2)//3 - 1", 1),
        ("-s0 % s1", 2),
        ("s0**2 / 8", 4.5),
        ("min(3, s0)*max(s0, s1)", 18),
        ("math.ceil(s0 / 4)", 2),
        ("math.floor(float(s0) / 4)", 1),
        ("s0 % 2 == 0", True),
        ("s0 < s1", False),
        ("s0 != 1 and not (s1 > 4)", True),
        ("s0 == 1 or s1 == 4", True),
        ("s0 if s1 <= 3 else s1", 4),
    ],
)
def test_values(text, expected):
    assert value_of(text, SIZES) == expected
    assert names(text) <= SIZES.keys()


def test_a_size_without_a_value():
    assert names("s0 + u3") == {"s0", "u3"}
    with pytest.raises(KeyError):
        value_of("s0 + u3", SIZES)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()",
        "s0.real",
        "open(s0)",
        "[s0]",
        "s0 = 3",
        "lambda: 1",
        "9**999999",
        "s0**s1",
        "'a'",
        "min(s0, key=s1)",
        "s0 +",
        "(" * 5000,
    ],
)
def test_what_is_no_arithmetic(text):
    for reader in (names, Condition):
        with pytest.raises(ValueError, match="no arithmetic of sizes"):
            reader(text)


def test_names_have_the_sizes_of_their_axes():
    assert bind([(("s0", 3), (6, 3)), (("s1", "s0", None), (4, 7, 2))]) == SIZES


def test_names_of_linear_expressions_are_solved_for():
    assert bind([(("2*n + 1",), (7,))]) == {"n": 3}
    assert bind([(("n + m", "m"), (7, 5))]) == {"n": 2, "m": 5}
    assert bind([(("2*n",), (7,))]) == {}
    assert bind([(("n - 9",), (3,))]) == {"n": 12}
    assert bind([(("n*n",), (9,)), (("8//n",), (2,)), (("m + k",), (2,))]) == {}
