"""Mutations: which lines are broken, and how."""

import ast

import numpy as np
import pytest

from tests import mutations
from tests.mutants import ROOT

SOURCE = '''
"""A docstring, with 1 and True."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import a
X: int = 3
class Called(Protocol[T]):
    def __call__(self, x: int = 8): ...
class Named:
    y = 9
def f(x: int = 4, *, flag: bool = False) -> "1 + 1":
    """Not 5."""
    if x < 2 and not flag:
        raise ValueError(f"{x + 1} is" + "small")
    x += 1
    y.z = x * 2.0
    g(x)
    logger.warning("%s", 7)
    for _ in zip(x, x.astype(y[0], copy=False), strict=True):
        continue
    return x if flag else -x
'''


def broken_lines(source):
    return {mutant.after.strip() for mutant in mutations.mutants_of("a.py", source)}


def test_what_is_broken_and_what_is_not():
    assert broken_lines(SOURCE) == {
        "X: int = 4",
        "y = 10",
        'def f(x: int = 5, *, flag: bool = False) -> "1 + 1":',
        'def f(x: int = 4, *, flag: bool = True) -> "1 + 1":',
        "if x <= 2 and not flag:",
        "if x < 3 and not flag:",
        "if x < 2 or not flag:",
        "if (not (x < 2 and not flag)):",
        "pass",
        "x += 2",
        "y.z = x + 2.0",
        "y.z = x * 2.02",
        "for _ in zip(x, x.astype(y[1], copy=False), strict=True):",
        "return x if (not (flag)) else -x",
    }


@pytest.mark.parametrize(
    "line, after",
    [
        ("(a) == (b)", "(a) != (b)"),
        ("a is not  b", "a is  b"),
        ("a not in b", "a in b"),
        ("a ** b", "a * b"),
        ("'ä' + f(a) - b", "'ä' + f(a) + b"),
        ("True", "False"),
        ("0.0", "0.01"),
    ],
)
def test_each_kind(line, after):
    assert after in broken_lines(f"x = [{line}]".replace("x = [", "x = (")[:-1] + ")") or (
        f"x = ({after})" in broken_lines(f"x = ({line})")
    )


@pytest.mark.parametrize(
    "line, broken",
    [
        ("x.reshape(-1)", set()),
        ("x.reshape(y[0], -1)", {"x.reshape(y[1], -1)"}),
        ("x.reshape(n - 1)", {"x.reshape(n + 1)", "x.reshape(n - 2)"}),
        ("reshape(x, -1)", {"reshape(x, -2)"}),
        ("x.sum(-1)", {"x.sum(-2)"}),
        ("x.astype(d, copy=True)", set()),
        ("x.view(copy=True)", {"x.view(copy=False)"}),
    ],
)
def test_arguments_that_may_be_others(line, broken):
    assert broken_lines(f"y = {line}") == {f"y = {each}" for each in broken}


def test_numpy_takes_any_negative_size_for_the_one_that_is_not_known():
    for shape in [-1, (2, -1), (-1, 3)]:
        other = tuple(n - 1 if n == -1 else n for n in np.atleast_1d(shape))
        assert np.arange(6).reshape(other).shape == np.arange(6).reshape(shape).shape


def test_each_mutant_is_another_program():
    for mutant in mutations.mutants_of("a.py", SOURCE):
        text = mutations.broken(SOURCE, mutant)
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(SOURCE))
        changed = [a != b for a, b in zip(text.split("\n"), SOURCE.split("\n"), strict=True)]
        assert sum(changed) == 1


def test_those_of_the_engine_are_programs_and_the_seed_decides():
    first = mutations.chosen(ROOT, 30, 1)
    assert first == mutations.chosen(ROOT, 30, 1)
    assert first != mutations.chosen(ROOT, 30, 2)
    assert len({(m.path, m.line) for m in first}) == 30
    for mutant in first:
        text = (ROOT / mutant.path).read_text("utf-8")
        ast.parse(mutations.broken(text, mutant))
