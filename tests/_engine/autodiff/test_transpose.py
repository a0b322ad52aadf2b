"""Transposition: linear programs run backwards."""

import numpy as np
import pytest

import stretto as st
from stretto import make_graph
from stretto import numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.transpose import (
    Masks,
    _early,
    _split_known,
    backward,
    masked_transpose,
    open_cotangents,
    transpose_program,
)
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.program import check
from stretto._engine.higher_order.linear_call import LinearCall

W = as_value(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
X = as_value(np.array([0.5, 1.5], np.float32))
CT = as_value(np.array([1.0, -2.0], np.float32))


def program(f, *args):
    return make_graph(f)(*args)


def test_the_transpose_of_a_product():
    p = program(lambda w, x: w @ x, W, X)
    (ct,) = backward(p, (False, True), [W], [CT])
    np.testing.assert_allclose(ct, np.asarray(W).T @ np.asarray(CT))
    (ct,) = backward(p, (True, False), [X], [CT])
    np.testing.assert_allclose(ct, np.outer(CT, X))


def test_cotangents_of_several_uses_add_up():
    p = program(lambda x: x * 2.0 + x + x, X)
    (ct,) = backward(p, (True,), [], [CT])
    np.testing.assert_allclose(ct, np.asarray(CT) * 4)


def test_cotangents_of_several_outputs_add_up():
    p = program(lambda x: (x, x, x * 3.0), X)
    (ct,) = backward(p, (True,), [], [CT, CT, CT])
    np.testing.assert_allclose(ct, np.asarray(CT) * 5)
    (ct,) = backward(p, (True,), [], [CT, None, None])
    assert ct is CT


def test_zeros_stay_symbolic():
    p = program(lambda x, y: (x * 2.0, y * 3.0), X, X)
    first, second = backward(p, (True, True), [], [CT, None])
    assert second is None
    np.testing.assert_allclose(first, np.asarray(CT) * 2)
    assert backward(p, (True, True), [], [None, None]) == [None, None]


def test_an_unused_input_gets_nothing():
    p = program(lambda x, y: x * 2.0, X, X)
    assert backward(p, (True, True), [], [CT])[1] is None


def test_what_does_not_vary_is_run_forwards():
    p = program(lambda w, x: snp.sin(w * 2.0) @ x, W, X)
    (ct,) = backward(p, (False, True), [W], [CT])
    np.testing.assert_allclose(ct, np.sin(2 * np.asarray(W)).T @ np.asarray(CT), rtol=1e-6)


def test_what_is_not_linear_is_refused():
    p = program(snp.sin, X)
    with pytest.raises(
        MissingRuleError, match="sin has no transpose rule: it is not linear in any"
    ):
        backward(p, (True,), [], [CT])


LINEAR = program(lambda w, x, y: (w @ x, snp.sum(y), x * 2.0), W, X, X)


@pytest.mark.parametrize(
    "active, given",
    [
        ((True, True, True), (True, True)),
        ((True, False, False), (True, False)),
        ((False, True, False), (False, True)),
        ((False, False, False), (False, False)),
    ],
)
def test_programs(active, given):
    made, mask = transpose_program(LINEAR, (False, True, True), active)
    check(made)
    assert mask == given
    assert made.in_types == (
        W.type,
        *(t for t, a in zip(LINEAR.out_types, active, strict=True) if a),
    )
    cts = [CT, as_value(np.float32(3)), X]
    got = evaluate(made, [W, *(c for c, a in zip(cts, active, strict=True) if a)])
    want = backward(
        LINEAR,
        (False, True, True),
        [W],
        [c if a else None for c, a in zip(cts, active, strict=True)],
    )
    for g, w in zip(got, [w for w in want if w is not None], strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)


def test_forced_cotangents_are_zeros():
    made, mask = transpose_program(LINEAR, (False, True, True), (True, False, False), (True, True))
    check(made)
    assert mask == (True, True)
    np.testing.assert_array_equal(evaluate(made, [W, CT])[1], [0, 0])


def test_programs_are_made_once():
    args = LINEAR, (False, True, True), (True, True, True)
    assert transpose_program(*args)[0] is transpose_program(*args)[0]


def test_a_transpose_transposed_is_the_program():
    p = program(lambda x: snp.stack([x, x * 2.0, x * 3.0]).sum(0)[::-1], X)
    back, _ = transpose_program(p, (True,), (True,))
    again, _ = transpose_program(back, (True,), (True,))
    np.testing.assert_allclose(evaluate(again, [X])[0], evaluate(p, [X])[0], rtol=1e-6)


def test_a_fault_on_the_way_back_is_found_at_the_line_of_the_way_forward():
    p = program(lambda w, x: x / w, X, X)
    with st.config(debug_infs=True), pytest.raises(st.errors.NonFiniteError) as raised:
        backward(p, (False, True), [snp.zeros(2)], [CT])
    fault = raised.value.fault
    assert fault.backward and fault.operation == "div"
    assert fault.position == p.equations[0].position


def one_more(x):
    """The identity, of which only a backward function is known, which adds 1."""
    back = lambda _, cts: [snp.ones(2) if cts[0] is None else cts[0] + 1]
    return LinearCall("one_more", (x.type,), 1, back, None)(x)[0]


def test_a_backward_function_of_a_users_runs_for_cotangents_that_are_zero():
    """Where an output with a cotangent depends on it, wherever that has become zero."""
    never = lambda m, x: snp.where(m, 0.0, snp.where(m, one_more(x), 0.0))
    p = program(lambda m, x, y: (never(m, x), x * 2.0, one_more(y)), X > 1, X, X)
    linear = (False, True, True)
    first, second = backward(p, linear, [X > 1], [CT, CT, None])
    np.testing.assert_array_equal(first, 2 * np.asarray(CT) + 1)
    assert second is None
    first, second = backward(p, linear, [X > 1], [None, CT, CT])
    np.testing.assert_array_equal(first, 2 * np.asarray(CT))
    np.testing.assert_array_equal(second, np.asarray(CT) + 1)


def test_cotangents_are_added_to_totals_that_are_given():
    for onto in ((True, False), (False, True), (True, True)):
        p = program(lambda w, x, y: (w @ x, y * 3.0), W, X, X)
        made, mask = transpose_program(p, (False, True, True), (True, True), None, onto)
        assert mask == (True, True) and len(made.inputs) == 3 + sum(onto)
        first, second = evaluate(made, [W, CT, CT, *[X] * sum(onto)])
        np.testing.assert_allclose(first, np.asarray(W).T @ np.asarray(CT) + onto[0] * X)
        np.testing.assert_allclose(second, 3 * np.asarray(CT) + onto[1] * X)
    made, _ = transpose_program(p, (False, True, True), (False, True), None, (True, True))
    np.testing.assert_allclose(evaluate(made, [W, CT, X, CT])[0], X)


WHERE = program(lambda m, y, x: snp.where(m, snp.where(y > 1, x, 0.0), 0.0), X > 1, X, X)


@pytest.mark.parametrize(
    ("masks", "form", "count"),
    [
        (Masks(), (True, ()), 1),
        (Masks(open=(True,)), (False, ((0, True, (0,)),)), 1),
        (Masks(open=(True,), more=True), (False, ((0, True, (0,)), (2, True, (0,)))), 2),
        (Masks(more=True), (True, ()), 1),
    ],
)
def test_conditions_at_the_end_are_named_or_handed_out_or_applied(masks, form, count):
    made, mask, forms = masked_transpose(WHERE, (False, False, True), (True,), None, None, masks)
    check(made)
    assert mask == (True,) and forms == [form]
    assert len(made.outputs) == count
    y = as_value(np.array([0.0, 2.0], np.float32))
    value, *more = evaluate(made, [snp.array([True, True]), y, CT])
    applied = form[0] or len(form[1]) == 1
    np.testing.assert_array_equal(value, np.asarray(CT) * [not applied, 1])
    assert [m.tolist() for m in more] == [[False, True]] * (count - 1)


def test_a_cotangent_stays_masked_where_one_of_several_programs_gives_it():
    other = program(lambda m, y, x: x * 0, X > 1, X, X)
    unused = program(lambda m, y, x: snp.zeros(2), X > 1, X, X)
    linear, active = (False, False, True), (True,)
    masks = Masks(open=(True,))
    found, forms = open_cotangents([WHERE, unused], linear, active, masks)
    assert found.open == (True,) and forms == [(False, ((0, True, (0,)),))]
    for programs, given in (([WHERE, other], masks), ([WHERE, unused], Masks(open=(False,)))):
        found, forms = open_cotangents(programs, linear, active, given)
        assert not any(found.open) and forms == [(True, ())]


def parts(x, i):
    """Two parts of an array, read beside other uses of it."""
    y = x * 5.0
    first = st.lax.dynamic_slice(x, (i,), (2,)) * 2.0
    return first, st.lax.dynamic_slice(x, (i + 1,), (2,)) * 3.0, y, snp.sum(x)


LONG = as_value(np.arange(6.0, dtype=np.float32))


def test_cotangents_of_parts_are_added_where_they_were_read():
    """To the sum so far, in place: no array as long as the whole is made for each part."""
    p = program(parts, LONG, 1)
    back = lambda i, *cts: backward(p, (True, False), [i], cts)[0]
    cts = X, CT, LONG, as_value(np.float32(7))
    made = make_graph(back)(1, *cts)
    long = [e.primitive.name for e in made.equations if e.outputs[0].type.shape == (6,)]
    assert long.count("scatter_add") == 2 and long.count("add") == 1 and "pad" not in long
    expected = 5 * np.arange(6.0) + 7
    expected[1:3] += 2 * np.asarray(X)
    expected[2:4] += 3 * np.asarray(CT)
    np.testing.assert_allclose(back(as_value(1), *cts), expected)


def test_reads_of_parts_come_as_soon_as_what_they_read():
    """So that backwards the sum of all other uses is there before their turn."""
    p = program(parts, LONG, 1)
    _, _, pending = _split_known(p, (True, False), [as_value(1)], None)
    names = [e.primitive.name for e in pending]
    assert names[:2] == ["dynamic_slice"] * 2 and names.count("dynamic_slice") == 2
    late = program(lambda x, i: parts(x * 2.0, i), LONG, 1)
    _, _, pending = _split_known(late, (True, False), [as_value(1)], None)
    names = [e.primitive.name for e in pending]
    assert names[:3] == ["mul", "dynamic_slice", "dynamic_slice"]
    plain = program(lambda x: (x * 2.0, x * 3.0), X)
    assert _early([*plain.equations], {*plain.inputs}) == [*plain.equations]


@pytest.mark.parametrize(("ok", "slope"), [(False, 0), (True, np.inf)])
def test_a_condition_on_all_results_of_an_operation_is_one_on_its_operands(ok, slope):
    """The slope of log is infinite at 0, which does not count where the condition fails."""

    def f(x, ok):
        halves = st.lax.custom_linear_solve(
            lambda v: 2 * v, snp.log(x), lambda _, b: b / 2, symmetric=True
        )
        return snp.where(ok, halves.sum(), 0.0)

    np.testing.assert_array_equal(st.grad(f)(snp.zeros(2), ok), [slope] * 2)
