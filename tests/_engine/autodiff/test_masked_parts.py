"""Masked cotangents at the ends of programs: calls, checkpoints, branches, loops, mapped calls."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.masked import chosen
from stretto._engine.autodiff.masked_parts import (
    apart,
    everywhere,
    shared,
    together,
    with_conditions,
)
from stretto._engine.core.interpreter import as_value

X = np.array([4.0, 0.0, -1.0], np.float32)
MASK = np.array([True, False, False])
SLOPE = np.array([0.25, 0, 0], np.float32)
SECOND = np.array([-1 / 16, 0, 0], np.float32)
CT = as_value(np.array([1.0, np.nan, 3.0], np.float32))


def test_cotangents_are_taken_apart_and_put_together():
    mask, other = as_value(MASK), as_value(~MASK)
    cts = [chosen(CT, mask, True), None, CT, chosen(chosen(CT, mask, True), other, False)]
    parts = apart(cts)
    assert len(parts.values) == 3
    assert [a is b for a, b in zip(parts.arrays, (mask, other), strict=True)] == [True, True]
    again = together(parts.form, parts.values, parts.arrays)
    np.testing.assert_array_equal(again[0].settled(), [1, 0, 0])
    assert again[1] is CT
    np.testing.assert_array_equal(again[2].settled(), [1, 0, 0])


def test_by_row_conditions_have_an_axis_less():
    rows, whole = as_value(np.array([[True, False], [False, True]])), as_value(np.array(False))
    ct = as_value(np.ones((2, 2), np.float32))
    parts = apart([chosen(chosen(ct, rows, True), whole, False)], by_row=True)
    assert parts.rows == [True, False]
    assert [t.shape for t in parts.types] == [(2,), ()]
    (again,) = together(parts.form, [ct], parts.arrays, parts.rows)
    np.testing.assert_array_equal(again.settled(), [[1, 0], [0, 1]])


def test_conditions_that_are_not_known_outside_are_applied():
    mask, own = as_value(MASK), as_value(np.array([True, True, False]))
    value, (is_settled, places) = with_conditions(chosen(chosen(CT, mask, True), own, True), [mask])
    np.testing.assert_array_equal(value, [1, np.nan, 0])
    assert not is_settled
    assert places == ((0, True, (0,)),)
    value, form = with_conditions(chosen(CT, own, True), [mask])
    np.testing.assert_array_equal(value, [1, np.nan, 0])
    assert form == (True, ())


def test_conditions_on_everything_that_all_have():
    ok = as_value(np.array(True))
    first, second = chosen(CT, ok, True), chosen(chosen(CT, ok, True), as_value(MASK), True)
    assert len(shared([first, None, second])) == 1
    assert shared([first, CT]) == ()
    assert shared([None]) == ()
    assert everywhere(first) is first
    np.testing.assert_array_equal(everywhere(second), [1, 0, 0])


log = snp.log
THROUGH = {
    "a call": st.jit(log),
    "two calls": lambda x: st.jit(lambda x: 2 * x)(st.jit(log)(x) / 2),
    "a checkpoint": st.checkpoint(log),
    "a branch": lambda x: st.lax.cond(snp.array(True), log, lambda x: x, x),
    "branches of examples": st.vmap(lambda x: st.lax.cond(x > -9, log, lambda x: x * 0, x)),
    "a map": lambda x: st.lax.map(log, x),
    "a loop's results": lambda x: st.lax.scan(lambda c, x: (c, st.jit(log)(x)), 0.0, x)[1],
    "a choice in a call": lambda x: st.jit(lambda y: snp.where(y > 9, 0.0, y))(log(x)),
    "a custom jvp": None,
}


@st.custom_jvp
def by_hand(x):
    return snp.log(x)


by_hand.defjvp(lambda primals, tangents: (snp.log(primals[0]), tangents[0] / primals[0]))
THROUGH["a custom jvp"] = by_hand


@pytest.mark.parametrize("compiled", [False, True], ids=["eagerly", "compiled"])
@pytest.mark.parametrize("name", THROUGH)
def test_through(name, compiled):
    f = lambda x: snp.sum(snp.where(MASK, THROUGH[name](x), 0.0))
    done = st.jit if compiled else lambda f: f
    x = snp.array(X)
    np.testing.assert_allclose(done(st.grad(f))(x), SLOPE)
    np.testing.assert_allclose(done(st.grad(lambda x: st.grad(f)(x).sum()))(x), SECOND)
    np.testing.assert_allclose(
        done(lambda x: st.jvp(st.grad(f), (x,), (snp.ones(3),))[1])(x), SECOND
    )


@pytest.mark.parametrize("wrap", [st.jit, st.checkpoint], ids=["a call", "a checkpoint"])
def test_forward_into_and_out_of(wrap):
    f = lambda x: wrap(log)(wrap(lambda y: y / 2)(snp.where(MASK, x, 0.0)))
    np.testing.assert_array_equal(st.jvp(f, (snp.array(X),), (snp.ones(3),))[1], SLOPE)


def test_a_mask_inside_of_a_call_protects_what_is_in_front_of_the_call():
    f = lambda x: snp.sum(st.jit(st.nn.relu)(snp.log(x)))
    np.testing.assert_allclose(st.grad(f)(snp.array([4.0, 0.0])), [0.25, 0])
    np.testing.assert_allclose(st.jit(st.grad(f))(snp.array([4.0, 0.0])), [0.25, 0])


def test_a_condition_that_is_one_number_reaches_the_carry_of_a_loop():
    def f(x, ok):
        total, _ = st.lax.scan(lambda c, e: (c * snp.log(x) + e, None), 1.0, snp.arange(3.0))
        return snp.where(ok, total, 0.0)

    assert st.grad(f)(-1.0, False) == 0
    assert np.isnan(st.grad(f)(-1.0, True))


def test_members_that_are_planned():
    """A mapped call of products, with a mask for each member's results."""
    w, x = snp.ones((4, 200, 200)) / 200, snp.full((4, 8, 200), -1.0).at[0].set(1.0)
    mask = snp.array([True, False, False, False])[:, None, None]

    def f(x):
        return snp.sum(snp.where(mask, st.vmap(lambda w, x: snp.log(x @ w))(w, x), 0.0))

    assert "mapped" in str(st.make_graph(f)(x))
    back = st.jit(st.grad(f))(x)
    np.testing.assert_allclose(back[0], 1, rtol=1e-5)
    np.testing.assert_array_equal(back[1:], 0)


def test_examples_that_take_another_branch():
    f = lambda x: st.lax.cond(x > 0, snp.log, lambda x: 0 * x, x)
    g = lambda x: snp.sum(st.vmap(f)(x))
    np.testing.assert_allclose(st.grad(g)(snp.array(X)), SLOPE)
    np.testing.assert_allclose(st.jit(st.vmap(st.grad(st.grad(f))))(snp.array(X)), SECOND)
