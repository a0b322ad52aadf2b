"""The operation behind NaN in the results of jitted functions, through all that holds programs."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.eager.checked import check_results
from tests._engine.eager.test_checked import fault

X = snp.array([1.0, 2.0, -3.0])


def log_in_line(x):
    return snp.log(x)


LINE = log_in_line.__code__.co_firstlineno + 1
lax = st.lax


def with_rule():
    f = st.custom_jvp(log_in_line)
    f.defjvp(lambda p, t: (f(*p), t[0]))
    return f


@pytest.fixture(autouse=True)
def debugging():
    with st.config(debug_nans=True):
        yield


@pytest.mark.parametrize(
    "f",
    [
        log_in_line,
        st.jit(log_in_line),
        st.vmap(log_in_line),
        lambda x: st.jvp(log_in_line, (x,), (x,)),
        lambda x: st.vjp(log_in_line, x)[0],
        st.checkpoint(log_in_line),
        lambda x: lax.cond(True, log_in_line, snp.sin, x),
        lambda x: lax.map(log_in_line, x),
        lambda x: st.vmap(lambda i: lax.switch(i % 2, [log_in_line, snp.log], x))(snp.arange(2)),
        lambda x: lax.while_loop(
            lambda c: c[0] < 1, lambda c: (c[0] + 1, log_in_line(c[1])), (0, x)
        ),
        lambda x: lax.associative_scan(lambda a, b: log_in_line(a + b), x),
        with_rule(),
        lambda x: st.lax.linear_call(lambda r, x: log_in_line(r) * x, lambda r, x: x, x, x),
    ],
)
def test_the_line_is_found(f):
    found = fault(st.jit(lambda x: (f(x), x)), X)
    assert (found.operation, found.position.line) == ("log", LINE)
    assert found.position.file == __file__


def roll(w, xs):
    def step(c, x):
        c = c - w
        return c, snp.sqrt(c) * x

    return lax.scan(step, 4.5, xs)[1]


def test_steps_of_loops():
    found = fault(st.jit(roll), 1.0, snp.ones(8))
    assert (found.operation, found.steps) == ("sqrt", (("scan", 4),))
    outer = lambda c, w: (c, roll(w, snp.ones(8)))
    nested = st.jit(lambda: lax.scan(outer, 0.0, snp.array([0.5, 1.0])))
    assert fault(nested).steps == (("scan", 1), ("scan", 4))


def test_steps_and_examples_together():
    found = fault(st.jit(st.vmap(roll, in_axes=(0, None))), snp.array([0.1, 1.0]), snp.ones(8))
    assert (found.steps, found.examples) == ((("scan", 4),), (1,))


def test_the_backward_pass_of_a_loop_has_its_step_and_its_line():
    f = lambda w, xs: roll(w, xs).sum()
    found = fault(st.jit(st.grad(f)), 1.5, snp.array([1.0, 1.0, 0.0]))
    assert found.backward
    assert found.derivative_of == "sqrt"
    assert found.steps == (("scan", 2),)
    assert found.position.line in range(roll.__code__.co_firstlineno, LINE + 60)
    assert found.position.code.co_name == "step"


def test_the_derivative_forward():
    found = fault(st.jit(lambda x: st.jvp(snp.sqrt, (x,), (x,))), snp.zeros(2))
    assert (found.backward, found.derivative_of) == (False, "sqrt")
    second = fault(st.jit(st.grad(st.grad(lambda x: snp.sqrt(x) * 0))), 0.0)
    assert second.backward


def test_what_is_not_selected_is_left_behind():
    safe = st.jit(lambda x: snp.where(x > 0, snp.log(x), 0))
    assert np.isfinite(np.asarray(safe(X))).all()

    @st.jit
    def both(x):
        y = snp.where(x > 0, snp.log(x), 0)
        return y + snp.sqrt(x)

    assert fault(both, X).operation == "sqrt"


def test_an_element_that_no_operand_had():
    @st.jit
    def f(x, y):
        return x / y

    found = fault(f, snp.array([np.nan, 0.0]), snp.array([1.0, 0.0]))
    assert (found.operation, found.operands[0].nans) == ("div", 1)


def test_what_came_in_is_named_with_its_path():
    found = fault(st.jit(lambda p: p["w"][1] * 2), {"w": [X, X * np.nan]})
    assert (found.operation, found.source) == (None, "the argument p['w'][1]")
    kept = X * np.nan
    assert fault(st.jit(lambda x: x + kept), X).source == "a captured array"


def test_constants_are_meant_and_arguments_pass_through():
    y, z = st.jit(lambda x: (snp.where(x > 0, x, np.nan), x))(X)
    assert np.isnan(np.asarray(y)).sum() == 1
    nan = snp.array([np.nan])
    assert z.shape == (3,)
    assert st.jit(lambda x: x)(nan).shape == (1,)


def test_a_constant_that_is_computed_while_tracing_is_a_fault():
    assert fault(st.jit(lambda x: x + snp.log(snp.full(3, -1.0))), X).operation == "log"


def test_members_of_chunks_and_planned_calls():
    w = snp.stack([snp.eye(64), snp.eye(64) * -1])
    f = lambda w, x: snp.log(x @ w)
    found = fault(st.jit(st.vmap(f, in_axes=(0, None))), w, snp.ones((64, 64)) + 1)
    assert found.operation == "log"
    assert found.examples[:1] == (0,) or found.examples[:1] == (1,)
    found = fault(st.jit(st.vmap(snp.log, chunk_size=2)), snp.array([1.0, 2.0, 3.0, -4.0]))
    assert (found.steps, found.examples) == ((("scan", 1),), (1,))


def test_a_call_under_a_derivative_at_rest():
    assert fault(st.grad(st.jit(lambda x: snp.sqrt(x) * 0)), 0.0).derivative_of == "sqrt"


def test_donated_arguments_can_be_looked_at_again():
    f = st.jit(snp.log, donate_argnums=0)
    x = X + 0
    assert fault(f, x).operation == "log"
    assert x.shape == (3,)


def test_sizes_that_vary():
    f = st.jit(lambda x: snp.log(x).sum(), dynamic_axes=({0: "n"},))
    assert fault(f, X).operation == "log"


def test_what_only_the_compiled_program_makes():
    """Its name and the type are said: operation by operation nothing is wrong."""
    program = st.make_graph(lambda x: x * 2)(1.0)
    wrong = snp.array(np.nan)
    with pytest.raises(st.errors.NonFiniteError) as caught:
        check_results(program, [snp.array(1.0)], ["x"], [wrong])
    found = caught.value.fault
    assert (found.operation, found.source, found.function) == (None, None, program.name)
    assert str(found).startswith("there is NaN in 1 elements of float32[]")
    assert "run operation by operation the program makes none" in str(found)
    check_results(program, [snp.array(1.0)], ["x"], [snp.array(2.0)])


def test_what_came_in():
    program = st.make_graph(lambda x: x * 2)(1.0)
    wrong = snp.array(np.nan)
    with pytest.raises(st.errors.NonFiniteError, match=r"NaN came in with x, in 1 elements of"):
        check_results(program, [wrong], ["x"], [wrong])


def test_faults_are_printed_without_what_was_used_to_find_them():
    with pytest.raises(st.errors.NonFiniteError) as caught:
        log_in_line(X)
    shown = repr(caught.value.fault)
    assert "operation='log'" in shown and "innermost" not in shown


def test_what_is_found_says_of_which_program():
    program = st.make_graph(lambda x: snp.log(x) + 1)(1.0)
    with pytest.raises(st.errors.NonFiniteError) as caught:
        check_results(program, [snp.array(-1.0)], ["x"], [snp.array(np.nan)])
    found = caught.value.fault
    assert (found.operation, found.function) == ("log", program.name)


def fall(x):
    """Take one from a number while it is above -9, and the root of each."""
    body = lambda c: (c[0] - 1, c[1] + snp.sqrt(c[0]))
    return lax.while_loop(lambda c: c[0] > -9, body, (x, 0.0))


STEPS = {
    "while_loop": (fall, 2.5, (("while_loop", 3),)),
    "the first step": (fall, -1.0, (("while_loop", 0),)),
    "while_loop in scan": (
        lambda x: lax.scan(lambda c, x: (c, fall(x)), 0.0, snp.array([-10.0, x]))[1],
        1.5,
        (("scan", 1), ("while_loop", 2)),
    ),
    "backwards": (
        lambda x: lax.scan(lambda c, x: (c - 1, snp.sqrt(c)), x, None, length=6, reverse=True)[1],
        1.5,
        (("scan", 3),),
    ),
    "the condition": (
        lambda x: lax.while_loop(lambda c: snp.sqrt(c) >= 0, lambda c: c - 1, x) / 0 * 0,
        2.5,
        (),
    ),
    "after a loop": (lambda x: snp.sqrt(lax.fori_loop(0, 3, lambda i, c: c - 1, x)), 2.5, ()),
    "fori_loop": (
        lambda x: lax.fori_loop(0, 9, lambda i, c: snp.sqrt(c) - 0.5, x),
        1.5,
        (("scan", 4),),
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_counted_from_the_first_that_runs(name):
    f, x, steps = STEPS[name]
    assert fault(st.jit(f), x).steps == steps


@pytest.mark.parametrize(("first", "found"), [(True, "log"), (False, "sqrt")])
def test_what_was_chosen_is_to_blame(first, found):
    """Both have NaN in one place, of which one is taken."""
    both = st.jit(lambda x: snp.where(np.array([first, not first]), snp.log(x), snp.sqrt(x)))
    assert fault(both, snp.array([-1.0, 2.0])).operation == found
