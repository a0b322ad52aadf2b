"""How loops are written down: carries, stacks, what follows them, sums in place."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.passes.rolling.operands import loop_in
from stretto._engine.passes.rolling.profit import exchange
from stretto._engine.passes.rolling.rewrite import write_loops
from tests._engine.passes.rolling.test_operands import places
from tests._engine.passes.rolling.test_roll_loops import array, gradient, rolled, straight


def rewritten(program, *stretches, inner=lambda body: body):
    """With loops at these (low, high, period)."""
    homes = places(program)
    loops = [loop_in(program.equations, *s, homes) for s in stretches]
    assert None not in loops
    after = write_loops(program, loops, exchange(program, loops, homes), inner)
    check(after)
    assert after.inputs == program.inputs and after.outputs == program.outputs
    return after


def same(program, after, *args):
    for one, other in zip(evaluate(program, args), evaluate(after, args), strict=True):
        np.testing.assert_array_equal(one, other)


def names(program):
    return [e.primitive.name for e in program.equations]


def chain(x, y, turns=8):
    values = []
    for _ in range(turns):
        x = x * y
        values.append(x)
    return values


ARGS = array(3), array(3, seed=1)


def test_the_last_value_is_carried_and_nothing_stacked():
    program = straight(lambda x, y: chain(x, y)[-1], *ARGS)
    after = rewritten(program, (0, 8, 1))
    (scan,) = [e.primitive for e in after.equations]
    assert (scan.length, scan.consts, scan.carry) == (8, 1, 1)
    assert len(scan.body.outputs) == 1
    same(program, after, *ARGS)


def test_values_on_the_way_are_taken_out_of_a_stack():
    program = straight(lambda x, y: [chain(x, y)[i] for i in (2, 5, 7)], *ARGS)
    after = rewritten(program, (0, 8, 1))
    assert names(after)[0] == "scan"
    scan = after.equations[0]
    assert [v.type.shape for v in scan.outputs[scan.primitive.carry :]] == [(8, 3)]
    same(program, after, *ARGS)


def test_the_last_of_what_is_not_carried_takes_no_stack():
    def f(x, y):
        for _ in range(8):
            x = x * y
            z = snp.sin(x)
        return z

    program = st.make_graph(f)(*ARGS)
    after = rewritten(program, (0, 16, 2))
    scan = after.equations[0]
    assert {v.type.shape for v in scan.outputs} == {(3,)}
    same(program, after, *ARGS)


def test_a_loop_that_nobody_reads_is_left_out():
    def f(x, y):
        chain(snp.sin(x), y)
        return chain(x, y)[-1]

    program = st.make_graph(f)(*ARGS)
    assert names(program) == ["sin", *["mul"] * 16]
    after = rewritten(program, (1, 9, 1), (9, 17, 1))
    assert names(after) == ["scan"]
    same(program, after, *ARGS)


def test_a_concatenation_of_all_copies_is_their_stack():
    for axis in (0, 1):
        program = straight(lambda x, y, axis=axis: snp.stack(chain(x, y), axis), *ARGS)
        after = rewritten(program, (0, 8, 1))
        assert "concatenate" not in names(after)
        same(program, after, *ARGS)
    program = straight(lambda x, y: snp.stack(chain(x, y)[7:3:-1]), *ARGS)
    after = rewritten(program, (0, 8, 1))
    assert "rev" in names(after) and "concatenate" not in names(after)
    same(program, after, *ARGS)
    program = straight(lambda x, y: snp.concatenate([y, *chain(x, y), x]), *ARGS)
    after = rewritten(program, (0, 8, 1))
    (joined,) = [e for e in after.equations if e.primitive.name == "concatenate"]
    assert len(joined.inputs) == 3
    same(program, after, *ARGS)


def test_arrays_of_their_own_are_joined_in_front_once():
    def f(x, *ys):
        for y in ys:
            x = snp.sin(x * y) * y
        return x

    ys = [array(3, seed=i) for i in range(1, 9)]
    program = straight(f, array(3), *ys)
    after = rolled(f, array(3), *ys)
    assert names(after).count("concatenate") == 1
    same(program, after, array(3), *ys)


def test_numbers_of_each_copy_are_one_constant():
    def f(x):
        for i in range(8):
            x = x * float(i + 1) + float(i + 1)
        return x

    after = rolled(f, array(3))
    (held,) = [e for e in after.equations if e.primitive.name == "constant"]
    assert held.outputs[0].type.shape == (8,)


def test_several_copies_back_take_a_carry_each():
    def f(x, y):
        for _ in range(8):
            x, y = y, x * y
        return x, y

    program = straight(f, *ARGS)
    after = rewritten(program, (0, 8, 1))
    (scan,) = [e.primitive for e in after.equations]
    assert scan.carry == len(scan.body.outputs) == 2  # the last two are there, and take no stack
    same(program, after, *ARGS)


def test_parts_of_a_gradient_are_added_where_they_go():
    """Each copy's slice of the rows gives a part in zeros: no array of all rows is added up."""

    def f(x, rows):
        for i in range(12):
            x = snp.sin(x * rows[i])
        return x

    after = rolled(gradient(f, 1), array(3), array(12, 3))
    scans = [e.primitive for e in after.equations if e.primitive.name == "scan"]
    body = names(scans[-1].body)
    assert "pad" not in body
    (update,) = [e for e in scans[-1].body.equations if e.primitive.name == "dynamic_update_slice"]
    assert update.outputs[0].type.shape == (12, 3)
    sums = [e for e in scans[-1].body.equations if e.primitive.name in ("add", "add_any")]
    assert all(e.outputs[0].type.shape != (12, 3) for e in sums)


def test_inner_treats_the_body():
    program = straight(lambda x, y: chain(x, y)[-1], *ARGS)
    bodies = []
    rewritten(program, (0, 8, 1), inner=lambda body: bodies.append(body) or body)
    (body,) = bodies
    check(body)
    assert names(body) == ["mul"]


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("outside", [(), (5,), (11,), (2, 7)])
def test_parts_in_zeros_that_are_read_elsewhere_too_are_arrays(twice, outside):
    def f(x, y):
        total = other = y
        seen = []
        for i in range(12):
            x = snp.sin(x)
            part = snp.pad(x[None], ((i, 11 - i), (0, 0)))
            total = total + part
            if twice:
                other = snp.cos(other + snp.sin(part))
            if i in outside:
                seen.append(part)
        return total, other, x, seen

    args = array(3), array(12, 3)
    program = straight(f, *args)
    after = rolled(f, *args)
    check(after)
    same(program, after, *args)
    (scan,) = [e.primitive for e in after.equations if e.primitive.name == "scan"]
    # The part is added to a slice of the sum only where nothing else reads it.
    assert ("dynamic_slice" in names(scan.body)) == (not twice and not outside)
