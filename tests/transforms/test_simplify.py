"""Dead code: what no output depends on goes; and what is only to be seen, where asked for."""

import numpy as np

from stretto import debug, io_callback, jit, make_graph
from stretto import numpy as snp
from stretto.control.cond import cond
from stretto.control.scan import scan
from stretto.core.interpreter import as_value
from stretto.core.program import check
from stretto.core.recorder import record
from stretto.transforms.evaluate import evaluate
from stretto.transforms.simplify import drop_dead, silenced, used_inputs


def names(program):
    return [e.primitive.name for e in program.equations]


def recorded(fun):
    """All that a function does, for these arguments; ``make_graph`` leaves out the dead."""

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


def test_make_graph_shows_what_is_needed():
    assert names(make_graph(lambda x: (snp.sin(x), snp.cos(x))[1])(1.0)) == ["cos"]


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
    quiet = silenced(live)
    check(quiet)
    assert names(quiet) == ["call", "io_callback", "cond", "sin"]
    assert names(quiet.equations[0].primitive.program) == []
    assert [names(p) for p in quiet.equations[2].primitive.branches] == [[], []]
    pure = make_graph(snp.sin)(1.5)
    assert silenced(pure) is pure
