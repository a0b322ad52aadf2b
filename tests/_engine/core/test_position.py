"""Positions: the user's own line, found through the package's frames."""

import functools
import inspect
import warnings

import numpy as np
import pytest

from stretto import numpy as snp
from stretto import vmap
from stretto._engine.api.graph import make_graph
from stretto._engine.core import position
from stretto._engine.core.position import (
    Position,
    line_at,
    lines_of,
    place,
    user_position,
    user_stack_level,
)


def line():
    return inspect.currentframe().f_back.f_lineno


def positions(program):
    return [e.position for e in program.equations]


def test_the_line_of_each_equation():
    lines = []

    def f(x):
        lines.append(line() + 1)
        y = snp.sin(x)
        lines.append(line() + 1)
        return y * x

    found = positions(make_graph(f)(1.5))
    assert [p.line for p in found] == lines
    assert all(p.file == __file__ for p in found)
    assert str(found[0]) == f"{__file__}:{lines[0]} (f)"


def test_through_transformations_and_helpers():
    def helper(x):
        return snp.cos(x)

    def f(x):
        return functools.reduce(lambda y, g: g(y), [helper], x)

    (p,) = positions(make_graph(vmap(f))(np.ones(3, np.float32)))
    assert p.code is helper.__code__


def test_an_expression_over_several_lines():
    def f(x):
        return (
            x +
            snp.exp(x)
        )  # fmt: skip

    start = f.__code__.co_firstlineno
    exp, add = positions(make_graph(f)(1.0))
    assert exp.line == start + 3
    assert start + 1 <= add.line <= start + 3


def test_a_position_without_a_line_gives_that_of_the_function():
    code = line.__code__
    assert Position(code, 10**6).line == code.co_firstlineno


def test_called_from_here():
    def asked():
        return user_position()

    here = line() + 1
    p = asked()
    assert (p.file, p.line) == (__file__, here)


def test_warnings_point_at_the_user():
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        here = line() + 1
        snp.ones(2, dtype="float64")
    assert [(w.filename, w.lineno) for w in given] == [(__file__, here)]
    assert user_stack_level() == 1


def test_the_lines_of_a_function_and_the_last_for_what_lies_beyond():
    def f(x):
        y = x + 1
        return y * 2

    start = f.__code__.co_firstlineno
    lines = lines_of(f.__code__)
    assert {start + 1, start + 2} <= set(lines) <= {start, start + 1, start + 2}
    assert line_at(lines, 10**6) == lines[-1] == start
    assert line_at(lines, 0) == lines[0]


def test_a_place_is_a_position_without_names():
    def ours():
        return place()

    def asked():
        return ours()

    here = line() + 1
    code, offset, scope = asked()
    assert Position(code, offset, scope).line == here
    assert scope == ""


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        (position.PACKAGE + "nobody.py", True),
        ("<frozen somewhere>", True),
        ("<string>", True),
        ("/lib/functools.py", True),
        ("/home/user/nobody.py", False),
    ],
)
def test_whose_a_file_is_is_found_out_once(name, ours, monkeypatch):
    monkeypatch.setattr(position, "_OURS", set())
    monkeypatch.setattr(position, "_THEIRS", set())
    assert position._is_ours(name) is ours
    assert (name in position._OURS, name in position._THEIRS) == (ours, not ours)
