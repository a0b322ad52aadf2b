"""Dead code: what no output depends on goes; and what is only to be seen, where asked for."""

import time

import numpy as np
import pytest

from stretto import checkpoint, custom_jvp, debug, io_callback, jit, lax, make_graph, tree, vmap
from stretto import numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.program import Program, check
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import (
    changed_inside,
    depending,
    drop_dead,
    holds_programs,
    live,
    remember,
    restrict,
    silence_effects,
    types_made,
    used_inputs,
    with_equations,
    with_inputs,
    written_out,
)
from stretto._engine.higher_order.cond import cond
from stretto._engine.higher_order.scan import scan
from stretto._engine.higher_order.while_loop import while_loop


def names(program):
    return [e.primitive.name for e in program.equations]


def recorded(fun):
    """All that a function does, for these arguments."""

    def program(*args):
        def flat(*xs):
            out = fun(*xs)
            return [as_value(o) for o in (out if isinstance(out, tuple) else (out,))], None

        return record(flat, [as_value(a).type for a in args])[0]

    return program


def test_unused_work_is_dropped():
    def f(x, y):
        z = snp.sin(x)
        for _ in range(1000):
            z = z * y
        snp.exp(z)
        return snp.cos(x)

    program = recorded(f)(1.5, 2.5)
    assert len(program.equations) == 1003
    live = drop_dead(program)
    check(live)
    assert names(live) == ["cos"]
    assert live.inputs == program.inputs
    assert live.outputs == program.outputs
    assert live.name == program.name
    assert used_inputs(live) == (True, False)


def test_a_program_without_dead_work_is_itself():
    program = recorded(lambda x: snp.sin(snp.cos(x)))(1.5)
    assert drop_dead(program) is program


def test_the_order_is_kept():
    def f(x):
        y = snp.sin(x)
        snp.exp(y)
        z = snp.cos(y)
        return z + y

    assert names(drop_dead(recorded(f)(1.5))) == ["sin", "cos", "add"]


def test_an_operation_of_which_one_result_is_used_stays():
    def f(p, x):
        used, _ = cond(p, lambda v: (v, snp.sin(v)), lambda v: (snp.cos(v), v), x)
        return used

    assert len(drop_dead(recorded(f)(True, 1.5)).equations) == len(recorded(f)(True, 1.5).equations)


def test_calls_and_loops_give_what_is_needed_of_them():
    call = jit(lambda x: (snp.sin(x), snp.cos(x)))
    step = lambda c, x: (c + x, (snp.sin(x), snp.cos(c)))

    def f(x):
        total, (_, cosines) = scan(step, 0.0, x)
        return call(total)[1], cosines

    x = np.ones(3)
    program = recorded(f)(x)
    live = drop_dead(program)
    check(live)
    assert [len(e.outputs) for e in live.equations] == [2, 1]
    assert drop_dead(live) is live
    loop, called = (e.primitive for e in live.equations)
    assert [e.primitive.name for e in loop.body.equations] == ["add", "cos"]
    assert [e.primitive.name for e in called.program.equations] == ["cos"]
    again = drop_dead(recorded(lambda x: call(x)[1] + call(-x)[1])(1.0))
    first, second = (e.primitive.program for e in again.equations if e.primitive.name == "call")
    assert first is second
    for got, want in zip(evaluate(live, [as_value(x)]), f(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_outputs_that_are_inputs_or_constants():
    program = recorded(lambda x, y: (y, 2.0, snp.sin(x))[:2])(np.ones(2), 1.0)
    live = drop_dead(program)
    assert live.equations == ()
    assert used_inputs(live) == (False, True)


def test_inputs_read_by_equations_are_used_though_their_results_are_not():
    program = recorded(lambda x, y: (snp.sin(y), x)[1])(1.0, 2.0)
    assert used_inputs(program) == (True, True)
    assert used_inputs(drop_dead(program)) == (True, False)


def test_what_is_seen_is_kept_and_silenced_goes():
    def f(x):
        debug.callback(print, x)
        jit(lambda x: debug.print("{}", x))(x)
        y = io_callback(lambda x: x, as_value(1.0), x)
        cond(True, lambda: debug.print("in a branch"), lambda: None)
        return snp.sin(x), y

    program = make_graph(f)(1.5)
    live = drop_dead(program)
    assert names(live) == ["debug_callback", "call", "io_callback", "cond", "sin"]
    quiet = silence_effects(live)
    check(quiet)
    assert names(quiet) == ["call", "io_callback", "cond", "sin"]
    assert names(quiet.equations[0].primitive.program) == []
    assert [names(p) for p in quiet.equations[2].primitive.branches] == [[], []]
    pure = make_graph(snp.sin)(1.5)
    assert silence_effects(pure) is pure


def same_after(fun, *args):
    """What is left of the program of a function's first output; it gives the same."""
    program = recorded(fun)(*args)
    first = Program(program.inputs, program.equations, program.outputs[:1], program.name)
    left = drop_dead(first)
    check(left)
    assert drop_dead(left) is left
    values = [as_value(a) for a in args]
    for got, want in zip(evaluate(left, values), evaluate(first, values), strict=True):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()
    return left


X = np.arange(1.0, 4.0, dtype=np.float32)


def test_branches_give_what_is_needed_and_take_what_they_read():
    def f(x, y, z):
        both = lambda a, b, c: (snp.sin(a), snp.cos(b))
        return cond(x[0] > 0, both, lambda a, b, c: (a, snp.exp(b)), x, snp.tanh(y), snp.log(z))

    left = same_after(f, X, X, X)
    assert "tanh" not in names(left) and "log" not in names(left)
    (branching,) = (e for e in left.equations if e.primitive.name == "cond")
    assert (len(branching.inputs), len(branching.outputs)) == (2, 1)
    assert sorted([names(b) for b in branching.primitive.branches]) == [[], ["sin"]]


def test_branches_of_many_examples():
    def f(x, y):
        choose = lambda p, a, b: cond(p, lambda a, b: (a, b), lambda a, b: (snp.sin(a), a), a, b)
        return vmap(choose, (0, 0, None))(x > 1.5, x, snp.tanh(y))

    left = same_after(f, X, 2.0)
    (branching,) = (e for e in left.equations if e.primitive.name == "cond")
    assert branching.primitive.mapped == (True,) and "tanh" not in names(left)


def test_a_loop_does_not_carry_what_nobody_reads():
    def f(x, y, z):
        def step(carry, row):
            total, count, chain, unused = carry
            return (total + row, count + 1, chain * total, snp.sin(unused)), snp.cos(chain)

        return scan(step, (0.0, 0, y, z), x)[0]

    left = same_after(f, X, 1.0, 2.0)
    (loop,) = left.equations
    assert (loop.primitive.carry, loop.primitive.consts) == (1, 0)
    assert names(loop.primitive.body) == ["add"]
    assert used_inputs(left) == (True, False, False)


def test_a_loop_carries_what_the_rest_reads_in_later_steps():
    def f(x, y):
        def step(carry, row):
            a, b, c, d = carry
            return (b, c, a + row, d * y), None

        return scan(step, (0.0, 1.0, 2.0, 3.0), x)[0]

    left = same_after(f, X, 5.0)
    (loop,) = left.equations
    assert loop.primitive.carry == 3 and used_inputs(left) == (True, False)


def test_stacks_alone_need_no_carry():
    left = same_after(lambda x: scan(lambda c, row: (c + row, row * 2), 0.0, x)[1], X)
    (loop,) = left.equations
    assert loop.primitive.carry == 0 and names(loop.primitive.body) == ["mul"]


def test_a_while_loop_carries_what_it_ends_by():
    def f(x, y, z):
        def step(carry):
            value, count, other = carry
            return value * y, count + 1, other + snp.sin(z)

        return while_loop(lambda c: c[1] < 3, step, (x, 0, z))

    left = same_after(f, 1.0, 2.0, 3.0)
    (loop,) = (e for e in left.equations if e.primitive.name == "while")
    assert len(loop.outputs) == 2 and used_inputs(left) == (True, True, False)


def test_work_for_operands_that_nothing_reads_is_dropped():
    inner = jit(lambda x, y: (snp.sin(x), snp.cos(y)))
    left = same_after(lambda x, y: inner(x, snp.exp(y)), X, X)
    assert names(left) == ["call"] and used_inputs(left) == (True, False)


def test_dead_work_inside_is_dropped():
    def body(x):
        snp.exp(x)
        return snp.sin(x)

    def f(x):
        looped = scan(lambda c, row: (body(c), body(row)), x[0], x)
        chosen = cond(x[0] > 0, body, lambda x: x, x)
        until = while_loop(lambda c: c > 0.5, body, x[0])
        own = custom_jvp(body)
        own.defjvp(lambda p, t: (body(p[0]), t[0]))
        return jit(body)(x), looped, chosen, until, own(x), checkpoint(body)(x)

    program = recorded(lambda x: tuple(tree.leaves(f(x))))(X)
    assert str(program).count("exp") > 5
    left = drop_dead(program)
    assert "exp" not in str(left)
    assert drop_dead(left) is left


def test_what_is_seen_inside_keeps_what_it_reads():
    def f(x, y):
        def step(carry, row):
            total, shown = carry
            debug.print("{}", shown)
            return (total + row, shown * 2), None

        return scan(step, (0.0, y), x)[0]

    program = recorded(f)(X, 1.0)
    left = drop_dead(Program(program.inputs, program.equations, program.outputs[:1]))
    (loop,) = left.equations
    assert loop.primitive.carry == 2 and used_inputs(left) == (True, True)


def test_members_are_trimmed_too():
    weights = np.ones((4, 64, 64), np.float32)
    member = lambda w, x, y: (snp.tanh(x @ w), w[0] * y)
    program = make_graph(vmap(member, (0, None, None)))(weights, weights[0], weights[0, 0])
    assert names(program) == ["mapped"]
    for outputs, used in ((slice(1), (True, True, False)), (slice(1, 2), (True, False, True))):
        left = drop_dead(Program(program.inputs, program.equations, program.outputs[outputs]))
        check(left)
        assert names(left) == ["mapped"] and used_inputs(left) == used


def test_dropping_takes_time_in_proportion():
    """Per equation as long for eight times as many, dead or alive; three is for a busy machine."""

    def program(count):
        def f(x):
            y = x
            for _ in range(count):
                snp.sin(y)
                y = y * 1.5
            return y

        return recorded(f)(X)

    def each(count):
        program_ = program(count)
        times = []
        for _ in range(8):
            start = time.process_time()
            drop_dead(program_)
            times.append(time.process_time() - start)
        return min(times) / count

    assert each(4000) < 3 * each(500)


def test_what_a_program_holds_and_makes_is_looked_up_once():
    x = snp.ones((2, 3))
    flat = make_graph(lambda x: (x + 1).sum(0))(x)
    loop = make_graph(lambda x: lax.scan(lambda c, y: (c + y, None), x[0], x)[0])(x)
    assert (holds_programs(flat), holds_programs(loop)) == (False, True)
    assert {str(t) for t in types_made(flat)} == {"float32[2,3]", "float32[3]"}
    assert types_made(flat) is types_made(flat)


def test_what_is_derived_is_derived_once():
    """A program that is its own is not held by itself, which would be a cycle."""
    program, calls = recorded(snp.sin)(1.0), []
    other = recorded(snp.cos)(1.0)
    for made in (program, other):
        derive = lambda p, made=made: calls.append(p) or made
        assert remember(program, made, derive) is remember(program, made, derive) is made
    assert calls == [program, program] and program.cache[program] is None
    result = live(recorded(lambda x: (snp.sin(x), snp.cos(x))[0])(1.0))
    assert names(result) == ["sin"] and result.cache["live"] is None and live(result) is result


def test_some_of_the_outputs_and_inputs():
    program = recorded(lambda x, y: (snp.sin(x), snp.cos(y), x))(1.0, 2.0)
    assert restrict(program, [True] * 3) is live(program)
    part = restrict(program, [True, False, True])
    assert part is restrict(program, [True, False, True]) is not restrict(program, [False] * 3)
    assert names(part) == ["sin"] and part.inputs == program.inputs
    assert part.outputs == (program.outputs[0], program.outputs[2])
    assert with_inputs(part, [True, True]) is part
    less = with_inputs(part, used_inputs(part))
    check(less)
    assert less.inputs == program.inputs[:1] and less.outputs == part.outputs
    assert less is with_inputs(part, [True, False])


def test_outputs_that_depend_on_inputs():
    program = recorded(lambda x, y: (snp.sin(x) * 2, snp.cos(y) + x, y, 1.0))(1.0, 2.0)
    assert depending(program, [True, False]) == [True, True, False, False]
    assert depending(program, [False, True]) == [False, True, True, False]
    assert depending(program, [False, False]) == [False] * 4


def test_other_equations_of_a_program():
    program = recorded(lambda x: snp.sin(snp.cos(x)))(1.0)
    program.cache["noted"] = "what was noted"
    assert with_equations(program, list(program.equations)) is program
    changed = with_equations(program, program.equations[:1])
    assert changed.equations == program.equations[:1] and changed.name == program.name
    assert changed.cache == {"noted": "what was noted"}
    del program.cache["noted"]
    assert with_equations(program, ()).cache == {}


def test_programs_inside_are_written_out():
    inner = jit(lambda x, y: (snp.sin(x) * y, x))
    program = recorded(lambda x: inner(inner(x, x)[0], 2.0))(1.5)
    opened = written_out(program, lambda e: getattr(e.primitive, "program", None))
    check(opened)
    assert names(opened) == ["sin", "mul", "sin", "mul"] and opened.inputs == program.inputs
    assert written_out(program, lambda e: None).outputs == program.outputs
    for got, want in zip(evaluate(opened, [as_value(1.5)]), inner(inner(1.5, 1.5)[0], 2.0),
                         strict=True):  # fmt: skip
        np.testing.assert_array_equal(got, want)


def test_programs_inside_are_changed():
    program = recorded(lambda x: snp.cos(jit(snp.sin)(x)))(1.5)
    seen = []
    assert changed_inside(program, lambda p: (seen.append(p), p)[1]) is program
    assert [names(p) for p in seen] == [["sin"]]
    emptied = changed_inside(program, lambda p: Program(p.inputs, (), p.inputs))
    assert names(emptied) == names(program) == ["call", "cos"]
    assert [names(e.primitive.program) for e in emptied.equations[:1]] == [[]]
    flat = recorded(snp.sin)(1.0)
    assert changed_inside(flat, lambda p: None) is flat


@pytest.mark.parametrize("which", [(0,), (1,), (0, 1), ()])
def test_operations_stay_of_which_any_result_is_needed(which):
    def f(x, y):
        both = lax.sort((x, y), num_keys=1)
        return [both[i] for i in which]

    program = make_graph(f)(np.ones(3, np.float32), np.ones(3, np.float32))
    kept = drop_dead(program)
    assert len(kept.equations) == bool(which)
    assert kept.outputs == program.outputs
