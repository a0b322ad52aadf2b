"""Which of the stretches become loops, and what is done where one is refused."""

import types

import numpy as np
import pytest

import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.passes.rolling.rewrite import _clipped, with_loops
from stretto._engine.passes.rolling.roll_loops import Stretch, stretches, tokens_of
from tests._engine.passes.rolling.test_roll_loops import array, lengths, power, straight


def chosen(program, found, always=True):
    bodies = []

    def inner(body, flag):
        bodies.append((body, flag))
        return body

    tokens = tokens_of(program.equations, always=True)
    after = with_loops(program, found, tokens, always, inner)
    check(after)
    return after, bodies


def test_without_stretches_the_program_is_the_same():
    program = straight(power, array(3))
    assert chosen(program, [])[0] is program
    # Not so many copies that they were a loop.
    assert chosen(program, [Stretch(0, 20, 50)])[0] is program


@pytest.mark.parametrize("start", [0, 9])
@pytest.mark.parametrize(("count", "found"), [(3, []), (4, [4]), (5, [5])])
def test_the_fewest_copies_that_are_a_loop(start, count, found):
    after, _ = chosen(straight(power, array(3)), [Stretch(start, 1, count)])
    assert lengths(after) == found


def test_inner_is_given_each_body():
    program = straight(power, array(3))
    after, bodies = chosen(program, [Stretch(0, 1, 50)])
    assert lengths(after) == [50]
    ((body, flag),) = bodies
    assert flag is True and [e.primitive.name for e in body.equations] == ["mul"]


def test_of_stretches_that_overlap_the_first_has_the_place():
    program = straight(power, array(3))
    after, _ = chosen(program, [Stretch(0, 1, 30), Stretch(20, 1, 30)])
    assert lengths(after) == [30, 20]
    after, _ = chosen(program, [Stretch(10, 1, 30), Stretch(0, 1, 50)])
    # What is left on both sides of a loop is not one piece.
    assert lengths(after) == [30]
    x = array(3)
    np.testing.assert_array_equal(*evaluate(after, [x]), *evaluate(program, [x]))


def test_what_does_not_pay_is_left_unless_it_must_be_a_loop():
    program = straight(lambda x: power(x, 100), array(3))
    found = [Stretch(0, 1, 100)]
    assert chosen(program, found, always=False)[0] is program
    assert lengths(chosen(program, found, always=True)[0]) == [100]
    long = straight(lambda x: power(x, 1000), array(3))
    assert lengths(chosen(long, [Stretch(0, 1, 1000)], always=False)[0]) == [1000]


def test_another_takes_the_place_of_one_that_is_refused():
    long = straight(lambda x: power(x, 1000), array(3))
    after, _ = chosen(long, [Stretch(450, 1, 100), Stretch(0, 1, 1000)], always=False)
    assert lengths(after) == [1000]


def test_loops_on_both_sides_of_what_breaks_a_stretch():
    def f(x, y):
        for i in range(30):
            x = snp.sin(x) if i != 14 else snp.sin(y)
        return x

    program = straight(f, array(3), array(3, seed=1))
    tokens = tokens_of(program.equations, always=True)
    found = stretches(tokens)
    assert [tuple(s) for s in found] == [(0, 1, len(program.equations))]
    after, _ = chosen(program, found)
    args = [array(3), array(3, seed=1)]
    np.testing.assert_array_equal(*evaluate(after, args), *evaluate(program, args))
    assert sum(lengths(after)) >= 15


@pytest.mark.parametrize(
    ("taken", "bounds"),
    [([], (2, 6)), ([2], (3, 6)), ([5], (2, 5)), ([2, 3, 5], (4, 5)), ([2, 3, 4, 5], (6, 6))],
)
def test_a_stretch_without_what_other_loops_have_taken_at_its_ends(taken, bounds):
    stretch = types.SimpleNamespace(start=2, length=4)
    assert _clipped(stretch, [i not in (*taken, 1, 6) for i in range(8)]) == bounds
