"""Linearization: values at once, and a linear program with what it needs of them."""

import numpy as np
import pytest

from stretto import custom_jvp, errors, make_graph, new_ref
from stretto import numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_flat
from stretto._engine.autodiff.linearize import linearize_flat, linearize_program
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.program import check

X = as_value(np.array([0.5, 1.5], np.float32))
Y = as_value(np.array([2.0, 3.0], np.float32))
DX = as_value(np.array([1.0, -2.0], np.float32))


def f(x, y):
    return [snp.sin(x) * y, snp.cos(y), snp.floor(x), x]


def apply(linear, *tangents):
    return evaluate(linear.program, [*tangents, *linear.residuals])


def test_values_and_the_linear_map():
    outs, linear = linearize_flat(f, [X, Y], [True, True])
    check(linear.program)
    assert linear.active_in == (True, True)
    assert linear.active_out == (True, True, False, True)
    want, tangents = jvp_flat(f, [X, Y], [DX, DX])
    for o, w in zip(outs, want, strict=True):
        np.testing.assert_array_equal(o, w)
    got = apply(linear, DX, DX)
    for g, t in zip(got, [t for t in tangents if t is not None], strict=True):
        np.testing.assert_allclose(g, t, rtol=1e-6)


def test_the_map_is_linear():
    _, linear = linearize_flat(f, [X, Y], [True, True])
    both = lambda a, b: apply(linear, a, b)
    for s, u, v in zip(both(DX * 2 + X, Y), both(DX * 2, Y * 0), both(X, Y), strict=True):
        np.testing.assert_allclose(s, u + v, rtol=1e-5)


def test_what_the_primals_give_is_not_in_the_linear_program():
    _, linear = linearize_flat(lambda x: [snp.exp(snp.sin(x)) * snp.tanh(x)], [X], [True])
    names = {e.primitive.name for e in linear.program.equations}
    assert names <= {"mul", "add", "neg", "sub"}
    assert all(e.position is None for e in linear.program.equations)


def test_inactive_inputs_have_no_tangent():
    _, linear = linearize_flat(f, [X, Y], [False, True])
    assert len(linear.program.inputs) == 1 + len(linear.residuals)
    assert linear.active_out == (True, True, False, False)


def test_a_residual_used_twice_is_kept_once():
    _, linear = linearize_flat(lambda x, w: [x * w, snp.sum(x * w)], [X, Y], [True, False])
    assert len(linear.residuals) == 1
    assert linear.residuals[0] is Y


def test_splat_residuals_are_literals():
    _, linear = linearize_flat(lambda x: [x * 3.0], [X], [True])
    assert linear.residuals == []
    np.testing.assert_array_equal(apply(linear, DX)[0], np.asarray(DX) * 3)


def test_an_output_that_is_an_input():
    outs, linear = linearize_flat(lambda x: [x], [X], [True])
    assert outs[0] is X
    assert linear.program.equations == ()
    assert apply(linear, DX)[0] is DX


def test_no_active_input():
    outs, linear = linearize_flat(f, [X, Y], [False, False])
    assert linear.active_out == (False,) * 4
    assert linear.program.outputs == () and linear.residuals == []
    np.testing.assert_allclose(outs[1], np.cos([2.0, 3.0]), rtol=1e-6)


PROGRAM = make_graph(lambda x, y: tuple(f(x, y)))(X, Y)


@pytest.mark.parametrize("active", [(True, True), (True, False), (False, True)])
def test_programs(active):
    split = linearize_program(PROGRAM, active)
    check(split.primal)
    check(split.linear)
    outs = evaluate(split.primal, [X, Y])
    values, residuals = outs[:4], outs[4:]
    assert tuple(r.type for r in residuals) == split.residual_types
    want, tangents = jvp_flat(
        lambda x, y: evaluate(PROGRAM, [x, y]), [X, Y], [DX if a else None for a in active]
    )
    for v, w in zip(values, want, strict=True):
        np.testing.assert_array_equal(v, w)
    assert split.active_out == tuple(t is not None for t in tangents)
    got = evaluate(split.linear, [*[DX] * sum(active), *residuals])
    for g, t in zip(got, [t for t in tangents if t is not None], strict=True):
        np.testing.assert_allclose(g, t, rtol=1e-6)


def test_forced_tangents_are_zeros():
    split = linearize_program(PROGRAM, (False, True), (False, False, True, True))
    check(split.linear)
    assert split.active_out == (True, True, True, True)
    residuals = evaluate(split.primal, [X, Y])[4:]
    *_, third, fourth = evaluate(split.linear, [DX, *residuals])
    np.testing.assert_array_equal(third, [0, 0])
    np.testing.assert_array_equal(fourth, [0, 0])


def test_programs_are_split_once():
    assert linearize_program(PROGRAM, (True, True)) is linearize_program(PROGRAM, (True, True))


def test_rules_of_the_user_s_are_passed_over_only_where_the_function_is_said_to_be_linear():
    @custom_jvp
    def same(x):
        return 1 * x

    same.defjvp(lambda primals, tangents: (same(*primals), 7 * tangents[0]))
    for options, slope in (((), 7), ((True,), 1)):
        _, linear = linearize_flat(lambda x: [same(x)], [X], [True], *options)
        np.testing.assert_array_equal(apply(linear, DX)[0], slope * np.asarray(DX))


def test_what_escapes_is_refused():
    """A value of the function's, a reference that it made, and a tangent that a rule was given."""
    kept = []

    @custom_jvp
    def same(x):
        return x

    def rule(primals, tangents):
        kept.append(tangents[0])
        return primals[0], tangents[0]

    def keeping(x):
        kept.extend((x, new_ref(x)))
        return [same(x)]

    same.defjvp(rule)
    linearize_flat(keeping, [as_value(np.float32(1))], [True])
    value, reference, tangent = kept
    with pytest.raises(errors.EscapedTracerError, match="differentiated, while keeping was trans"):
        bool(value)
    with pytest.raises(errors.EscapedTracerError, match="a reference of type float32"):
        reference[...]
    for use in (bool, lambda t: make_graph(lambda x: x + t)(1.0)):
        with pytest.raises(errors.EscapedTracerError, match="outlived the transformation that"):
            use(tangent)
