import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import stretto as st
import stretto.numpy as snp
from stretto.curvature.uses import arranged, reshaped, rows, run, uses_of


def elements(axes, shape):
    """Return which element of the weight each element of a view is, by its strides."""
    total = np.zeros(shape, int)
    for i, pairs in enumerate(axes):
        along = np.zeros(1, int)
        for stride, size in pairs:
            along = (along[:, None] + stride * np.arange(size)).ravel()
        total = total + along.reshape([-1 if k == i else 1 for k in range(len(shape))])
    return total


@given(some.permutations([2, 3, 4]), some.lists(some.sampled_from([2, 3, 4, 6, 1]), max_size=4))
def test_reshapes_follow_elements(shape, sizes):
    axes = rows(shape)
    order = np.argsort(shape)
    axes = [axes[i] for i in order]
    held = np.arange(24).reshape(shape).transpose(order)
    np.testing.assert_array_equal(elements(axes, held.shape), held)
    known = int(np.prod(sizes, dtype=int))
    if 24 % known:
        return
    target = (*sizes, 24 // known)
    result = reshaped(axes, target)
    if result is not None:  # else a pair would be split where it does not divide
        np.testing.assert_array_equal(elements(result, target), held.reshape(target))


def test_a_reshape_that_cuts_across_is_none():
    assert reshaped(rows((4, 3))[::-1], (2, 6)) is None


def used(f, *arrays):
    """Return the uses of the first argument."""
    return uses_of(st.make_graph(f)(*arrays), 1)


def test_layouts_have_the_roles_of_a_weights_axes():
    def layout(f, *arrays):
        (use,) = used(f, *map(snp.ones, arrays)).found[0]
        return use.layout

    assert layout(lambda w, x: x @ w, (3, 4), (5, 3)) == (("in", 3), ("out", 4))
    assert layout(lambda w, x: x @ w.T, (4, 3), (5, 3)) == (("out", 4), ("in", 3))
    assert layout(lambda w, x: w @ x, (4, 3), (3, 5)) == (("out", 4), ("in", 3))
    heads = layout(lambda w, x: x @ w.reshape(3, 8), (3, 2, 4), (5, 3))
    assert heads == (("in", 3), ("out", 8))
    batched = layout(lambda w, x: x @ w, (2, 3, 4), (2, 5, 3))
    assert batched == (("shared", 2), ("in", 3), ("out", 4))
    assert layout(lambda w, x: x + w, (3,), (5, 3)) == (("out", 3),)


def test_repeats_are_positions():
    def f(w, x):
        return x @ snp.broadcast_to(w, (2, 3, 4))

    (use,) = used(f, snp.ones((3, 4)), snp.ones((2, 5, 3))).found[0]
    assert use.layout == (("in", 3), ("out", 4))
    assert use.positions == use.terms == 10


def test_a_column_that_is_added_and_multiplied_has_no_one_layout():
    found = used(lambda w, x: (x @ w.T) + w[:, 0], snp.ones((3, 1)), snp.ones((5, 1)))
    assert "which use its axes differently" in found.unknown[0]


def test_what_is_no_use_is_named():
    def met(f, *arrays):
        return used(f, *map(snp.ones, arrays)).unknown[0]

    assert met(lambda w, x: x * snp.exp(w), (3,), (3,)) == "exp"
    assert met(lambda w, x: w, (3,), (3,)) == "the outputs themselves"
    assert met(lambda w, x: x, (3,), (3,)) == "nothing: the outputs do not depend on it"

    def carried(w, x):
        return st.lax.scan(lambda w, x: (w * x, None), w, x)[0]

    assert met(carried, (), (3,)) == "the state of a loop"


def test_what_comes_backwards_is_put_in_order():
    x = snp.arange(6.0).reshape(2, 3)  # positions, elements that lie backwards
    got = arranged(x, [(), (("in", -1, 3),)], "in")
    np.testing.assert_array_equal(got, np.asarray(x)[None, :, ::-1])


def test_the_parts_of_an_axis_are_ordered_by_rows():
    x = snp.arange(12.0).reshape(2, 6)
    # Six elements: an axis of stride 1 and size 2, then one of stride 2 and size 3.
    got = arranged(x, [(), (("out", 1, 2), ("out", 2, 3))], "out")
    expected = np.arange(12.0).reshape(2, 2, 3).transpose(0, 2, 1).reshape(1, 2, 6)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("reverse", [False, True])
def test_runs_with_taps_are_those_of_the_program(reverse):
    def f(w, x):
        return st.lax.scan(lambda h, x: (snp.tanh(h @ w + x), h), x[0], x, reverse=reverse)

    w, x = snp.ones((3, 3)) / 3, snp.arange(6.0).reshape(2, 3)
    program = st.make_graph(f)(w, x)
    uses = uses_of(program, 1)
    listed = uses.in_order()
    taps = {n: snp.zeros(u.tap_shape, u.type.dtype) for n, u in enumerate(listed)}
    by_path = {u.path: [(n, u)] for n, u in enumerate(listed)}
    outs, seen = run(program, [w, x], by_path, taps)
    last, states = f(w, x)
    np.testing.assert_array_equal(outs[0], last)
    np.testing.assert_array_equal(seen[0], states)  # h is the other factor
