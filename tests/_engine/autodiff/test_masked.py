"""Cotangents that a choice has made zero in places: what they are, and what they cost."""

from collections import Counter

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.masked import Masked, added, chosen, is_same, settled, under
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
    np.testing.assert_array_equal(masked.settled(), [1, 0, 3])
    assert masked.settled() is masked.settled()


def test_what_is_chosen_by_the_same_array_twice_is_chosen_once():
    masked = chosen(CT, MASK, True)
    assert chosen(masked, MASK, True) is masked
    assert chosen(masked, MASK, False) is None


def test_both_conditions_must_hold():
    masked = chosen(chosen(CT, MASK, True), OTHER, False)
    np.testing.assert_array_equal(masked.settled(), [0, 0, 3])


def test_many_conditions_are_joined():
    masked = CT
    arrays = [as_value(np.array([i != k for k in range(3)])) for i in (0, 5, 6, 7, 8, 9, 10, 11)]
    for array in (*arrays, MASK):
        masked = chosen(masked, array, True)
    assert len(masked.conditions) < len(arrays)
    np.testing.assert_array_equal(masked.settled(), [0, 0, 3])


def test_uses_under_one_condition_are_under_it_together():
    total = added(chosen(CT, MASK, True), chosen(CT, MASK, True))
    assert len(total.conditions) == 1
    np.testing.assert_array_equal(total.settled(), [2, 0, 6])


def test_opposite_choices_are_one_choice():
    finite = as_value(np.array([10.0, 20.0, np.inf], np.float32))
    total = added(chosen(CT, MASK, True), chosen(finite, MASK, False))
    assert total.__class__ is not Masked
    np.testing.assert_array_equal(total, [1, 20, 3])


def test_uses_under_several_conditions_count_where_any_does():
    finite = as_value(np.array([10.0, 20.0, 30.0], np.float32))
    total = added(chosen(CT, MASK, True), chosen(finite, OTHER, True))
    assert total.is_settled
    np.testing.assert_array_equal(total.settled(), [11, 20, 3])
    nowhere = as_value(np.array([False, False, True]))
    some = added(chosen(CT, nowhere, True), chosen(finite, as_value(np.arange(3) == 0), True))
    (condition,) = some.conditions
    np.testing.assert_array_equal(condition.mask((3,)), [True, False, True])


def test_one_that_counts_everywhere_makes_the_sum_count_everywhere():
    total = added(chosen(CT, MASK, True), as_value(np.ones(3, np.float32)))
    assert total.__class__ is not Masked
    np.testing.assert_array_equal(total, [2, 1, 4])


def test_values_may_be_put_under_conditions():
    (condition,) = chosen(CT, MASK, True).conditions
    np.testing.assert_array_equal(under(CT, (condition,), False).settled(), [1, 0, 3])
    np.testing.assert_array_equal(settled(under(CT, (condition,), True)), CT)
    assert settled(None) is None


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
        weights = st.nn.softmax(snp.where(mask, q @ k.T, -snp.inf), axis=-1)
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
