"""What each operand of a loop's body is, and which copies are the turns of one loop."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto._engine.core.program import Literal, Var
from stretto._engine.passes.rolling.operands import (
    Carried,
    Counted,
    Given,
    Made,
    Still,
    _cut,
    loop_in,
    wired,
)
from stretto._engine.passes.rolling.roll_loops import LEAST_COPIES, tokens_of
from tests._engine.passes.rolling.test_roll_loops import array, lengths, rolled, straight


def places(program):
    return {v: (i, o) for i, e in enumerate(program.equations) for o, v in enumerate(e.outputs)}


def read(f, *args, period=1, low=0, high=None):
    """The program of a function, and the loop that its equations are."""
    program = straight(f, *args)
    high = len(program.equations) if high is None else high
    return program, loop_in(program.equations, low, high, period, places(program))


def sources(loop):
    return [step.sources for step in loop.steps]


def test_the_same_in_all_copies_and_what_is_carried():
    def f(x, y):
        for _ in range(6):
            y = y * x
        return y

    program, loop = read(f, array(3), array(3, seed=1))
    x, y = program.inputs
    assert (loop.start, loop.period, loop.copies, loop.views, loop.end) == (0, 1, 6, 0, 6)
    assert sources(loop) == [[Carried(0, 0, (y,)), Still(x)]]


def test_what_the_same_copy_gives():
    def f(x):
        for _ in range(6):
            x = snp.exp(snp.sin(x))
        return x

    program, loop = read(f, array(3), period=2)
    names = [step.primitive.name for step in loop.steps]
    second = names.index("exp")
    assert sorted(names) == ["exp", "sin"]
    if second:
        assert sources(loop) == [[Carried(1, 0, program.inputs)], [Made(0, 0)]]
    else:  # cut after the sine
        assert isinstance(sources(loop)[1][0], Made)


def test_numbers_that_change_and_numbers_that_do_not():
    def f(x):
        for i in range(6):
            x = (x + 2.5) * float(i + 1)
        return x

    _, loop = read(f, array(3), period=2)
    by_name = {step.primitive.name: step.sources for step in loop.steps}
    (still,) = [s for s in by_name["add"] if isinstance(s, Still)]
    assert isinstance(still.atom, Literal) and still.atom.value == 2.5
    (counted,) = [s for s in by_name["mul"] if isinstance(s, Counted)]
    assert list(counted.values) == sorted(counted.values)
    assert len(counted.values) == loop.copies
    assert counted.type.shape == (3,)


@pytest.mark.parametrize(("moves", "is_found"), [(15, True), (16, False)])
def test_how_often_the_start_is_moved(moves, is_found):
    """One step of a copy becomes what it stays in each of the first copies."""

    def f(x, y):
        for copy in range(moves + 8):
            for step in range(moves):
                x = snp.maximum(x, y if copy > step else 2.0)
        return x

    program, loop = read(f, array(3), array(3, seed=1), period=moves)
    assert (loop is not None) == is_found
    if loop is not None:
        assert (loop.start, loop.copies, loop.end) == (15 * 15, 8, len(program.equations))


def test_a_negative_zero_is_another_number():
    def f(signs):
        def g(x):
            for zero in signs:
                x = snp.maximum(x, zero)
            return x

        return g

    def kinds(*signs):
        program = straight(f([0.0] * 6), array(3))
        for e, zero in zip(program.equations, signs, strict=True):
            e.inputs = [
                Literal(np.float32(zero), a.type) if isinstance(a, Literal) else a for a in e.inputs
            ]
        loop = loop_in(program.equations, 0, 6, 1, places(program))
        return [type(s) for s in loop.steps[0].sources]

    assert Counted not in kinds(*[0.0] * 6)
    assert Counted in kinds(0.0, -0.0, 0.0, 0.0, -0.0, 0.0)


@pytest.mark.parametrize(("unlike", "is_found"), [(0, True), (1, True), (2, False)])
def test_one_last_copy_may_be_unlike_the_others(unlike, is_found):
    def f(x, y):
        for copy in range(12):
            x = snp.maximum(snp.sin(x), 2.0 if copy < 12 - unlike else y)
        return x

    _, loop = read(f, array(3), array(3, seed=1), period=2)
    assert (loop is not None) == is_found


def test_another_array_in_each_copy():
    def f(x, *ys):
        for y in ys:
            x = snp.sin(x) * y
        return x

    ys = [array(3, seed=i) for i in range(1, 7)]
    program, loop = read(f, array(3), *ys, period=2)
    (given,) = [s for step in loop.steps for s in step.sources if isinstance(s, Given)]
    assert given.atoms == program.inputs[1:][-loop.copies :]


def test_arrays_that_take_turns_make_copies_longer():
    def f(x, a, b):
        for i in range(12):
            x = snp.sin(x) * (a, b)[i % 2]
        return x

    program, loop = read(f, array(3), array(3, seed=1), array(3, seed=2), period=2)
    assert loop.period == 4
    still = {s.atom for step in loop.steps for s in step.sources if isinstance(s, Still)}
    assert still == set(program.inputs[1:])


def test_a_slice_at_another_place_is_one_operation_with_the_place_as_operand():
    def f(x, rows):
        for i in range(6):
            x = x * rows[2 * i]
        return x

    _, loop = read(f, array(3), array(12, 3), period=3)
    first = loop.steps[[s.primitive.name for s in loop.steps].index("dynamic_slice")]
    assert first.equation.outputs[0].type.shape == (1, 3)
    whole, row, column = first.sources
    assert isinstance(whole, Still) and isinstance(whole.atom, Var)
    assert isinstance(row, Counted)
    assert set(np.diff(row.values).tolist()) == {2}
    assert isinstance(column, Still) and column.atom.value == 0


def test_views_that_stand_elsewhere_are_steps_of_the_body():
    def f(x, rows):
        parts = [rows[i] for i in range(6)]
        for part in parts:
            x = x * part
        return x

    program = straight(f, array(3), array(6, 3))
    muls = [i for i, e in enumerate(program.equations) if e.primitive.name == "mul"]
    assert muls == list(range(muls[0], muls[0] + 6))  # the slices are before
    loop = loop_in(program.equations, muls[0], muls[-1] + 1, 1, places(program))
    assert loop.views == 2
    names = [step.primitive.name for step in loop.steps]
    assert sorted(names[:2]) == ["dynamic_slice", "reshape"] and names[2:] == ["mul"]
    # They come in an order in which each reads only what was before.
    for n, step in enumerate(loop.steps):
        assert all(s.step < n for s in step.sources if isinstance(s, Made))


def test_values_may_come_from_up_to_three_copies_before():
    def f(delay):
        def g(*xs):
            xs = list(xs)
            for _ in range(12):
                xs.append(snp.sin(xs[-delay]))
            return xs[-delay:]

        return g

    def first(delay):
        args = [array(3, seed=i) for i in range(delay)]
        program, loop = read(f(delay), *args)
        return program, loop

    for delay in (1, 2, 3):
        program, loop = first(delay)
        assert sources(loop) == [[Carried(0, 0, program.inputs)]]
    _, loop = first(4)  # what is left are four independent chains, side by side
    assert [type(s) for s in sources(loop)[0]] == [Given] and loop.copies == 4


def test_the_first_copies_may_be_of_no_loop():
    def f(x, y):
        x = x * y
        for _ in range(8):
            x = x * 3.0
        return x

    program, loop = read(f, array(3), array(3, seed=1))
    assert (loop.start, loop.copies) == (1, 8)
    assert sources(loop)[0][0] == Carried(0, 0, program.equations[0].outputs)


def test_what_the_first_copy_makes_for_itself_is_not_carried_into_it():
    """Later copies take what the one before made with another operation."""

    def f(x, y):
        z = None
        for _ in range(8):
            x = snp.sin(x)
            z = (x if z is None else z) * y
        return x, z

    program, loop = read(f, array(3), array(3, seed=1), period=2)
    assert loop.copies == 7
    made = {e.outputs[0] for e in program.equations[loop.start : loop.end]}
    carried = [s for step in loop.steps for s in step.sources if isinstance(s, Carried)]
    assert len(carried) == 2 and made.isdisjoint([v for s in carried for v in s.first])
    assert lengths(rolled(f, array(3), array(3, seed=1))) == [7]


def test_the_last_copy_may_be_unlike():
    def f(x, y):
        for _ in range(8):
            x = x * 3.0
        return x * y

    _, loop = read(f, array(3), array(3, seed=1))
    assert (loop.start, loop.copies) == (0, 8)


def test_what_is_no_loop():
    def chain(turns):
        def f(x):
            for _ in range(turns):
                x = snp.sin(x)
            return x

        return f

    assert read(chain(LEAST_COPIES - 1), array(3))[1] is None
    assert read(chain(LEAST_COPIES), array(3))[1].copies == LEAST_COPIES

    def views(x):
        return [snp.reshape(x[i], (3, 1)) for i in range(8)]

    program = straight(views, array(8, 3))
    assert {e.primitive.name for e in program.equations} <= {"slice", "reshape"}
    assert loop_in(program.equations, 0, 16, 2, places(program)) is None

    def growing(x):
        for _ in range(8):
            x = snp.concatenate([x, x[:1]])
        return x

    assert read(growing, array(3), period=2)[1] is None


def test_the_cut_is_where_least_is_carried():
    def f(x):
        for _ in range(8):
            wide = snp.outer(x, x)
            x = snp.sum(snp.sin(wide), axis=0)
        return x

    program = straight(f, array(30))
    period = len(program.equations) // 8
    assert len(program.equations) == 8 * period
    loop = loop_in(program.equations, 0, len(program.equations), period, places(program))
    carried = {s for step in loop.steps for s in step.sources if isinstance(s, Carried)}
    assert {s.first[0].type.shape for s in carried} <= {(30,), (30, 1), (1, 30)}


def test_the_cut_is_not_where_the_copies_happen_to_begin():
    def f(wide):
        for _ in range(8):
            x = snp.sum(snp.sin(wide), axis=0)
            wide = snp.outer(x, x)
        return wide

    program = straight(f, array(30, 30))
    period = len(program.equations) // 8
    count = period * 8
    cut = _cut(program.equations, 0, count, period)
    between = program.equations[cut - 1].outputs[0] if cut else program.inputs[0]
    assert between.type.size <= 30


def test_stretches_by_what_is_read_from_where():
    def f(x, y):
        for i in range(24):  # all products, but with another wiring in every third
            x, y = (y, x * y) if i % 3 else (x, x * y)
        return x, y

    program = straight(f, array(3), array(3, seed=1))
    tokens = tokens_of(program.equations, always=True)
    assert len(set(tokens.tolist())) == 1
    first, *_ = wired(program.equations, 0, 24, tokens, places(program))
    assert first.period == 3
    assert first.start + first.length <= 24
    shifted = wired(program.equations, 6, 24, tokens, places(program))
    assert all(s.start >= 6 for s in shifted)


@pytest.mark.parametrize(("low", "high", "period"), [(8, 28, 1), (8, 36, 2)])
def test_how_far_back_distances_count(low, high, period):
    """As far as a quarter of what is looked at: the least copies are four."""

    def f(x, y):
        made = [x, y, x + y, x - y] * 2
        for i in range(40):  # reads what is 6 back, and what is 7 back, by turns
            made.append(made[-1] * made[-6 - i % 2])
        return made[-1]

    program = straight(f, array(3), array(3, seed=1))
    products = [e for e in program.equations if e.primitive.name == "mul"]
    assert len(products) == 40
    first = program.equations.index(products[0])
    tokens = tokens_of(program.equations, always=True)
    found = wired(program.equations, first + low, first + high, tokens, places(program))
    assert found[0].period == period


def reads_what_the_first_made(x, y, *_):
    for i in range(8):
        x = snp.sin(x)
        first = x if i == 0 else first  # noqa: F821 (of the copy before)
        y = y * first
    return x, y


def reads_one_that_another_copy_made(x, y, *given):
    made = []
    for i in range(8):
        x = snp.sin(x)
        made.append(x)
        y = y * (made[0] if i == 2 else given[i])
    return x, y


def begins_anew(x, y, *given):
    ends = []
    for i in range(12):
        x = (given[0] if i == 4 else x) * y
        ends += [x] * (i in (3, 11))
    return ends


def begins_with_another_operation(x, y, *_):
    for i in range(9):
        x = snp.cos(x) if i == 0 else snp.sin(x)
    return x


def is_of_another_shape_first(x, y, *given):
    return [snp.sin(z) for z in (snp.concatenate([x, y]), *given[:7])]


@pytest.mark.parametrize(
    ("f", "period", "first", "copies"),
    [
        (reads_what_the_first_made, 2, 1, 7),
        (reads_one_that_another_copy_made, 2, 3, 5),
        (begins_anew, 1, 4, 8),
        (begins_with_another_operation, 1, 1, 8),
        (is_of_another_shape_first, 1, 1, 7),
    ],
)
def test_copies_before_the_loop(f, period, first, copies):
    """What differs in the last of them is where the loop begins."""
    args = [array(3, seed=i) for i in range(10)]
    program = straight(f, *args)
    names = [e.primitive.name for e in program.equations]
    low = names.index("concatenate") + 1 if "concatenate" in names else 0
    loop = loop_in(program.equations, low, len(names), period, places(program))
    assert (loop.start - low, loop.copies) == (first * period, copies)
    rolled(f, *args)


def test_results_of_the_first_copy_may_be_of_a_weaker_type():
    """So they are of no loop, in which all copies have one type."""

    def f(weak, strong):
        x, outs = 3.0, []
        for _ in range(8):
            y = x * weak
            outs.append(y)
            x = y * strong
        return outs, x

    args = snp.asarray(0.5), snp.float32(1.5)
    assert args[0].weak_type and not args[1].weak_type
    program, loop = read(f, *args, period=2)
    assert loop.copies == 7 and loop.end == len(program.equations)
    rolled(f, *args)


def test_a_number_that_the_loop_begins_with_takes_the_type_of_what_is_carried():
    def f(strong):
        x = 3.0
        for _ in range(8):
            x = x * strong
        return x

    program, loop = read(f, snp.float32(1.5))
    assert loop.copies == 8
    (carried,) = [s for s in loop.steps[0].sources if isinstance(s, Carried)]
    (first,) = carried.first
    assert first.value == 3 and first.type == program.outputs[0].type
    rolled(f, snp.float32(1.5))
