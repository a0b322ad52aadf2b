"""Cotangents that a choice has made zero in places: what they are, and what they cost."""

from collections import Counter

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.masked import (
    Condition,
    Later,
    Masked,
    add_masked,
    chosen,
    everywhere,
    is_same,
    narrow_condition,
    put_together,
    shared_conditions,
    take_apart,
    under,
    with_conditions,
    with_zeros,
)
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.recorder import Traced

MASK = as_value(np.array([True, False, True]))
OTHER = as_value(np.array([True, True, False]))
CT = as_value(np.array([1.0, np.nan, 3.0], np.float32))


def operations(f, *args):
    found = Counter()

    def count(program):
        for equation in program.equations:
            found[equation.primitive.name] += 1
            if equation.primitive.holds_programs:
                for inner in equation.primitive.programs():
                    count(inner)

    count(st.make_graph(f, simplified=True)(*args))
    return found


def test_zeros_are_put_in_when_they_are_asked_for():
    masked = chosen(CT, MASK, True)
    np.testing.assert_array_equal(masked.raw(), CT)
    np.testing.assert_array_equal(masked.with_zeros(), [1, 0, 3])
    assert masked.with_zeros() is masked.with_zeros()


def test_what_is_chosen_by_the_same_array_twice_is_chosen_once():
    masked = chosen(CT, MASK, True)
    assert chosen(masked, MASK, True) is masked
    assert chosen(masked, MASK, False) is None


def test_both_conditions_must_hold():
    masked = chosen(chosen(CT, MASK, True), OTHER, False)
    np.testing.assert_array_equal(masked.with_zeros(), [0, 0, 3])


def test_many_conditions_are_joined():
    masked = CT
    arrays = [as_value(np.array([i != k for k in range(3)])) for i in (0, 5, 6, 7, 8, 9, 10, 11)]
    for array in (*arrays, MASK):
        masked = chosen(masked, array, True)
    assert len(masked.conditions) < len(arrays)
    np.testing.assert_array_equal(masked.with_zeros(), [0, 0, 3])


def test_a_long_chain_is_computed_on_the_way():
    """Sixteen choices wait for each other at most, and no more than six conditions are kept."""
    chain, depths, counts = [chosen(CT, MASK, True)], [], []
    for k in range(40):
        array = as_value(np.array([True, k % 2 == 0, True]))
        chain.append(chosen(chain[-1], array, True))
        depths.append(chain[-1].depth)
        counts.append(len(chain[-1].conditions))
    assert chain[0].depth in (0, 1) and depths[:16] == [*range(1, 17)] and depths[16] == 1
    assert max(depths) == 16 and max(counts) == 6
    assert [masked.has_zeros for masked in chain] == [True] * 33 + [False] * 8
    np.testing.assert_array_equal(chain[-1].with_zeros(), [1, 0, 3])


def test_uses_under_one_condition_are_under_it_together():
    total = add_masked(chosen(CT, MASK, True), chosen(CT, MASK, True))
    assert len(total.conditions) == 1
    np.testing.assert_array_equal(total.with_zeros(), [2, 0, 6])


def test_opposite_choices_are_one_choice():
    finite = as_value(np.array([10.0, 20.0, np.inf], np.float32))
    total = add_masked(chosen(CT, MASK, True), chosen(finite, MASK, False))
    assert total.__class__ is not Masked
    np.testing.assert_array_equal(total, [1, 20, 3])


def test_uses_under_several_conditions_count_where_any_does():
    finite = as_value(np.array([10.0, 20.0, 30.0], np.float32))
    total = add_masked(chosen(CT, MASK, True), chosen(finite, OTHER, True))
    assert total.has_zeros
    np.testing.assert_array_equal(total.with_zeros(), [11, 20, 3])
    nowhere = as_value(np.array([False, False, True]))
    some = add_masked(chosen(CT, nowhere, True), chosen(finite, as_value(np.arange(3) == 0), True))
    (condition,) = some.conditions
    np.testing.assert_array_equal(condition.mask((3,)), [True, False, True])


def test_one_that_counts_everywhere_makes_the_sum_count_everywhere():
    total = add_masked(chosen(CT, MASK, True), as_value(np.ones(3, np.float32)))
    assert total.__class__ is not Masked
    np.testing.assert_array_equal(total, [2, 1, 4])


def test_values_may_be_put_under_conditions():
    (condition,) = chosen(CT, MASK, True).conditions
    np.testing.assert_array_equal(under(CT, (condition,), False).with_zeros(), [1, 0, 3])
    np.testing.assert_array_equal(with_zeros(under(CT, (condition,), True)), CT)
    assert with_zeros(None) is None


def test_arrays_are_the_same_if_they_stand_for_one_value():
    assert is_same(MASK, MASK)
    assert not is_same(MASK, as_value(np.array(MASK)))
    found = []

    def f(x):
        found.append((is_same(x, Traced(x.interpreter, x.atom)), is_same(x, x + 1)))
        return x

    st.make_graph(f)(1.0)
    assert found == [(True, False)]


# Nothing more is computed than where zeros were put in at once. The numbers are those of that time.


def network(activation):
    def loss(w, x):
        for each in w:
            x = activation(x @ each)
        return snp.mean(x**2)

    return loss


@pytest.mark.parametrize(
    ("activation", "selects", "all_in_all"),
    [
        (st.nn.relu, 6, 19),
        (st.nn.relu6, 12, 28),
        (st.nn.leaky_relu, 9, 31),
        (lambda x: snp.where(x > 0, x, 0.0), 6, 19),
    ],
)
def test_gradients_of_networks_have_no_more_operations(activation, selects, all_in_all):
    w, x = [snp.ones((4, 4))] * 3, snp.ones((5, 4))
    found = operations(st.grad(network(activation)), w, x)
    assert found["select"] <= selects
    assert found.total() <= all_in_all


def test_attention_computes_what_it_did():
    mask = snp.tril(snp.ones((6, 6), bool))

    def loss(q, k, v):
        weights = st.nn.softmax(snp.where(mask, q @ k.T, -snp.inf), dim=-1)
        return snp.mean((weights @ v) ** 2)

    x = snp.ones((6, 4))
    found = operations(st.grad(loss, (0, 1, 2)), x, x, x)
    assert found["select"] == 2  # one for the values, one for the cotangents
    assert not found.keys() & {"and", "or", "not"}


def test_a_choice_behind_a_choice_by_the_same_array_is_one():
    def f(x):
        positive = x > 0
        return snp.sum(snp.where(positive, snp.log(snp.where(positive, x, 1.0)), 0.0))

    assert operations(st.grad(f), snp.ones(3))["select"] == 2  # x or 1, and the cotangent


def _chain(step, last):
    def f(x):
        for i in range(1500):
            x = step(x, i)
        return last(x).sum()

    return f


CHAINS = {
    "behind a choice": _chain(
        lambda x, i: snp.sin(x) * 1.01, lambda x: snp.where(x > 0, snp.log(x), 0.0)
    ),
    "choices": _chain(lambda x, i: snp.where(x > i * 1e-9, x * 1.0001, 0.0), lambda x: x),
    "sums of choices": _chain(
        lambda x, i: snp.where(x > 0.1, snp.sin(x), x * 0.9) + x * 0.01, lambda x: x
    ),
    "moved": _chain(lambda x, i: snp.flip(x) * 1.001, lambda x: snp.where(x > 0, snp.log(x), 0.0)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_long_chains_need_few_frames(name):
    f, x = CHAINS[name], snp.array([0.3, -0.5, 0.0])
    backwards = st.grad(f)(x)
    assert snp.isfinite(backwards).all()
    forwards = [st.jvp(f, (x,), (e,))[1] for e in snp.eye(3)]
    np.testing.assert_allclose(backwards, forwards, rtol=1e-4, atol=1e-30)


X = np.array([4.0, 0.0, -1.0], np.float32)
PARTS_MASK = np.array([True, False, False])
SLOPE = np.array([0.25, 0, 0], np.float32)
SECOND = np.array([-1 / 16, 0, 0], np.float32)


def test_cotangents_are_taken_apart_and_put_together():
    mask, other = as_value(PARTS_MASK), as_value(~PARTS_MASK)
    cts = [chosen(CT, mask, True), None, CT, chosen(chosen(CT, mask, True), other, False)]
    parts = take_apart(cts)
    assert len(parts.values) == 3
    assert parts.rows == [False, False] and [t.shape for t in parts.types] == [(3,), (3,)]
    assert [a is b for a, b in zip(parts.arrays, (mask, other), strict=True)] == [True, True]
    again = put_together(parts.form, parts.values, parts.arrays)
    np.testing.assert_array_equal(again[0].with_zeros(), [1, 0, 0])
    assert again[1] is CT
    np.testing.assert_array_equal(again[2].with_zeros(), [1, 0, 0])


def test_by_row_conditions_have_an_axis_less():
    rows, whole = as_value(np.array([[True, False], [False, True]])), as_value(np.array(False))
    ct = as_value(np.ones((2, 2), np.float32))
    parts = take_apart([chosen(chosen(ct, rows, True), whole, False)], by_row=True)
    assert parts.rows == [True, False]
    assert [t.shape for t in parts.types] == [(2,), ()]
    (again,) = put_together(parts.form, [ct], parts.arrays, parts.rows)
    np.testing.assert_array_equal(again.with_zeros(), [[1, 0], [0, 1]])


def test_conditions_that_are_not_known_outside_are_applied():
    mask, own = as_value(PARTS_MASK), as_value(np.array([True, True, False]))
    value, (has_zeros, places) = with_conditions(chosen(chosen(CT, mask, True), own, True), [mask])
    np.testing.assert_array_equal(value, [1, np.nan, 0])
    assert not has_zeros
    assert places == ((0, True, (0,)),)
    value, form = with_conditions(chosen(CT, own, True), [mask])
    np.testing.assert_array_equal(value, [1, np.nan, 0])
    assert form == (True, ())


def test_conditions_on_everything_that_all_have():
    ok = as_value(np.array(True))
    first, second = chosen(CT, ok, True), chosen(chosen(CT, ok, True), as_value(PARTS_MASK), True)
    assert len(shared_conditions([first, None, second])) == 1
    assert shared_conditions([first, CT]) == ()
    assert shared_conditions([None]) == ()
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
    f = lambda x: snp.sum(snp.where(PARTS_MASK, THROUGH[name](x), 0.0))
    done = st.jit if compiled else lambda f: f
    x = snp.array(X)
    np.testing.assert_allclose(done(st.grad(f))(x), SLOPE)
    np.testing.assert_allclose(done(st.grad(lambda x: st.grad(f)(x).sum()))(x), SECOND)
    np.testing.assert_allclose(
        done(lambda x: st.jvp(st.grad(f), (x,), (snp.ones(3),))[1])(x), SECOND
    )


@pytest.mark.parametrize("wrap", [st.jit, st.checkpoint], ids=["a call", "a checkpoint"])
def test_forward_into_and_out_of(wrap):
    f = lambda x: wrap(log)(wrap(lambda y: y / 2)(snp.where(PARTS_MASK, x, 0.0)))
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


@pytest.mark.parametrize(
    ("array", "dims", "shape", "kept", "values"),
    [
        (np.array([[True], [False]]), (0, 1), (2, 1), (0,), [True, False]),
        (np.array([[True, False]]), (1, 2), (5, 1, 2), (2,), [True, False]),
        (np.array([True]), (0,), (1,), (), True),
        (np.array([True, False]), (0,), (2,), (0,), [True, False]),
        (np.zeros((2, 0), bool), (0, 1), (2, 0), (0, 1), [[], []]),
    ],
)
def test_conditions_have_no_axes_that_they_do_not_vary_along(array, dims, shape, kept, values):
    for holds in (True, False):
        narrow = narrow_condition(Condition(as_value(array), holds, dims), shape)
        assert (narrow.holds, narrow.dims) == (holds, kept)
        assert np.asarray(narrow.known()).tolist() == values


def test_repeated_arrays_are_narrowed_to_what_was_repeated():
    rows = snp.array([True, False])
    narrow = narrow_condition(
        Condition(snp.broadcast_to(rows[:, None], (2, 3)), True, (0, 1)), (2, 3)
    )
    assert narrow.dims == (0,) and narrow.known().tolist() == [True, False]
    found = []

    def f(rows, column):
        repeated = snp.broadcast_to(rows, (3, 2))
        wide = snp.broadcast_to(column, (2, 3))
        for array in (repeated, wide, rows):
            found.append(
                narrow_condition(Condition(array, True, (0, 1)[: array.ndim]), array.shape)
            )
        assert found[0].dims == (1,) and is_same(found[0].array, rows)
        assert found[1].dims == (0,) and found[1].known().shape == (2,)
        assert found[2].array is rows
        again = [narrow_condition(Condition(column, True, (0, 1)), (2, 1)) for _ in range(2)]
        assert again[0].is_at(again[1]) and not again[0].is_at(found[2])
        return rows

    st.make_graph(f)(rows, rows[:, None])


def test_a_mask_and_the_same_repeated_are_one_condition_of_a_sum():
    other = snp.array([[True, True, False]] * 2)

    def f(columns, ct):
        x = under(ct, (Condition(columns, True, (1,)),), False)
        y = under(ct, (Condition(snp.broadcast_to(columns, (2, 3)), True, (0, 1)),), False)
        for total in (add_masked(x, y), add_masked(y, x)):
            assert [c.dims for c in total.conditions] == [(1,)] and not total.has_zeros
        more = add_masked(chosen(x, other, True), y)
        assert [c.dims for c in more.conditions] == [(1,)] and more.has_zeros
        return total.with_zeros(), more.with_zeros()

    total, more = st.jit(f)(snp.array([True, False, True]), snp.ones((2, 3)))
    assert total.tolist() == [[2, 0, 2]] * 2
    assert more.tolist() == [[2, 0, 1]] * 2


def test_sums_add_zeros_that_are_there_and_put_them_in_once_otherwise():
    x, y = chosen(CT, MASK, True), chosen(CT, MASK, True)
    later = add_masked(x, y)
    assert not (later.has_zeros or x.has_zeros)
    np.testing.assert_array_equal(later.with_zeros(), [2, 0, 6])
    assert not (x.has_zeros or y.has_zeros)
    x.with_zeros()
    np.testing.assert_array_equal(add_masked(x, y).with_zeros(), [2, 0, 6])
    assert not y.has_zeros
    zero = as_value(np.zeros(3, np.float32))
    settled = [under(zero + n, chosen(CT, MASK, True).conditions, True) for n in (1, 2)]
    np.testing.assert_array_equal(add_masked(*settled).with_zeros(), [3, 3, 3])


def test_opposite_choices_under_another_condition_stay_under_it():
    finite = as_value(np.array([10.0, 20.0, np.inf], np.float32))
    first, second = chosen(CT, OTHER, True), chosen(finite, OTHER, True)
    total = add_masked(chosen(first, MASK, False), chosen(second, MASK, True))
    (condition,) = total.conditions
    assert condition.is_at(chosen(CT, OTHER, True).conditions[0]) and not total.has_zeros
    np.testing.assert_array_equal(total.raw(), [10, np.nan, np.inf])
    np.testing.assert_array_equal(total.with_zeros(), [10, np.nan, 0])


def test_conditions_that_only_one_has_are_applied_and_the_others_stay():
    both_hold = chosen(chosen(CT, OTHER, True), MASK, True)
    total = add_masked(chosen(CT, OTHER, True), both_hold)
    assert total.conditions == chosen(CT, OTHER, True).conditions and total.has_zeros
    np.testing.assert_array_equal(total.with_zeros(), [2, np.nan, 0])
    flipped = add_masked(both_hold, chosen(CT, OTHER, True))
    np.testing.assert_array_equal(flipped.with_zeros(), [2, np.nan, 0])
    last = as_value(np.array([False, False, True]))
    third = add_masked(both_hold, chosen(chosen(CT, OTHER, True), last, False))
    shared, own = third.conditions
    assert shared == both_hold.conditions[0]
    np.testing.assert_array_equal(own.known(), [True, True, True])


def test_what_waits_for_a_long_chain_is_computed_at_once():
    made = []
    chain = Later(lambda: made.append(0) or MASK)
    for k in range(1, 17):
        waits = (Condition(chain, True, (0,)),)
        chain = Later(lambda k=k, of=chain: made.append(k) or of.value(), None, waits)
        assert chain.depth == (k + 1 if k < 15 else 0 if k == 15 else 1)
    assert sorted(made) == [*range(16)]
    assert chain.value() is chain.value() is MASK and chain.depth == 0
    assert len(made) == 17


def test_arrays_of_conditions_that_the_caller_lacks_are_handed_out_once():
    mask, own = as_value(PARTS_MASK), as_value(np.array([True, True, False]))
    ct = chosen(chosen(CT, mask, True), own, False)
    more = []
    value, form = with_conditions(ct, [mask], more)
    assert value is CT and form == (False, ((0, True, (0,)), (1, False, (0,))))
    assert [array is own for array in more] == [True]
    _, form = with_conditions(chosen(CT, own, True), [mask], more)
    assert form == (False, ((1, True, (0,)),)) and len(more) == 1
    later = Later(lambda: own)
    ct = under(CT, (Condition(later, True, (0,)),), True)
    value, form = with_conditions(ct, [mask], more)
    assert value is CT and form == (True, ((1, True, (0,)),)) and len(more) == 1
    assert with_conditions(None, [mask], more) == (None, (True, ()))
    assert with_conditions(CT, [mask], more) == (CT, (True, ()))


def test_a_cotangent_apart_has_each_array_once():
    mask, other = as_value(PARTS_MASK), as_value(~PARTS_MASK)
    first = chosen(chosen(CT, mask, True), other, False)
    second = under(CT, (Condition(other, True, (0,)), Condition(mask, False, (0,))), True)
    parts = take_apart([first, second])
    assert parts.form == (
        (False, ((0, True, (0,)), (1, False, (0,)))),
        (True, ((1, True, (0,)), (0, False, (0,)))),
    )
    assert len(parts.arrays) == 2 and parts.values[0] is CT is parts.values[1]
    rows = as_value(np.array([True, False]))
    ct = as_value(np.ones((2, 2), np.float32))
    of_rows = under(ct, (Condition(rows, True, (0,)), Condition(rows, False, (1,))), False)
    parts = take_apart([of_rows], by_row=True)
    assert parts.rows == [True, False] and [t.shape for t in parts.types] == [(), (2,)]
    assert parts.form == ((False, ((0, True, ()), (1, False, (0,)))),)
    assert [len(part) for part in parts.apart()] == [1, 1] and parts.apart()[1][0] is rows
    (again,) = put_together(parts.form, [ct], parts.arrays, parts.rows)
    assert again.conditions == of_rows.conditions


def test_conditions_are_shared_where_they_hold_alike():
    ok, other = as_value(np.array(True)), as_value(np.array(True))
    first = chosen(chosen(CT, ok, True), other, False)
    assert len(shared_conditions([first, first])) == 2
    assert shared_conditions([first, chosen(CT, ok, False)]) == ()
    assert shared_conditions([first, chosen(CT, other, False)]) == first.conditions[1:]
    assert shared_conditions([]) == ()


def test_some_of_the_conditions_may_be_applied_alone():
    masked = chosen(chosen(CT, MASK, True), OTHER, False)
    first, second = (masked.without(frozenset([k])) for k in (0, 1))
    np.testing.assert_array_equal(first, [1, 0, 3])
    np.testing.assert_array_equal(second, [0, 0, 3])
    assert masked.without(frozenset([1])) is second
    np.testing.assert_array_equal(masked.without(frozenset([0, 1])), [0, 0, 3])


def test_arrays_that_are_handed_out_are_numbered_behind_those_before():
    known, first, second = (as_value(np.array([True, k, False])) for k in (True, False, True))
    more = []
    ct = chosen(chosen(CT, first, True), second, False)
    assert with_conditions(ct, [known], more)[1] == (False, ((1, True, (0,)), (2, False, (0,))))
    assert [array is c for array, c in zip(more, (first, second), strict=True)] == [True, True]
    assert with_conditions(chosen(CT, second, True), [known], more)[1][1] == ((2, True, (0,)),)


def test_opposite_choices_at_the_end_of_a_chain_are_computed_without_zeros():
    shared = Condition(OTHER, True, (0,))
    own = [Condition(MASK, holds, (0,)) for holds in (True, False)]
    x, y = (Masked((shared, c), CT.type, lambda: CT, None, 16) for c in own)
    total = add_masked(x, y)
    assert (x.depth, y.depth, total.depth) == (0, 0, 1)
    assert not (x.has_zeros or y.has_zeros or total.has_zeros)


MOVED = {
    "cut": lambda y: y[:2],
    "cut and turned": lambda y: y[1::-1],
    "turned": lambda y: y[::-1],
    "put beside": lambda y: snp.concatenate([y[:2], snp.ones(1)]),
    "a column": lambda y: snp.stack([y, y], 1)[:2, 0],
}


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", MOVED)
def test_what_is_chosen_of_moved_elements_counts_there_alone(name, first):
    """Where elements are not chosen, or not moved at all, a slope that is infinite stays out."""
    x = snp.array([2.0, 0.0, 0.0])
    finite = np.isfinite(np.asarray(MOVED[name](snp.log(x))))

    def f(x):
        y = MOVED[name](snp.log(x))
        return snp.sum(snp.where(finite, y, 0.0) if first else snp.where(~finite, 0.0, y))

    for done in (lambda f: f, st.jit):
        np.testing.assert_array_equal(done(st.grad(f))(x), [0.5, 0, 0])


SCALED = {
    "scaled": (lambda x: 2.0 * x, True),
    "negative": (lambda x: -x, True),
    "turned": (lambda x: x[::-1], True),
    "taken": (lambda x: st.lax.dynamic_slice(x, (1,), (2,)), True),
    "divided": (lambda x: x / 4.0, True),
    "by infinity": (lambda x: x * snp.inf, False),
    "by an array": (lambda x: x * snp.arange(1.0, 4.0), False),
}


@pytest.mark.parametrize("name", SCALED)
def test_zeros_that_were_put_in_stay_where_elements_are_moved_or_scaled(name):
    """Otherwise they are put in again, where either of two conditions holds."""
    change, stay = SCALED[name]
    n = 2 if name == "taken" else 3
    masks = np.array([True, False, True])[:n], np.array([True, True, False])[:n]

    def f(x, a, b):
        y = change(x)
        return snp.sum(snp.where(a, snp.sin(y), 0.0) + snp.where(b, snp.cos(y), 0.0))

    found = operations(st.grad(f), snp.ones(3), *masks)
    assert (found["or"], found["select"]) == ((0, 2) if stay else (1, 3))
