"""Bodies that touch parts of arrays: which operations change, and that values do not."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.higher_order.narrowed import narrow_body

N = 300
X = np.random.default_rng(0).normal(size=N).astype(np.float32)


def both(f, *args):
    """The program of a function, and the narrowed one, which is checked."""
    program = st.make_graph(f)(*args)
    new = narrow_body(program)
    check(new)
    assert new.in_types == program.in_types
    assert new.out_types == program.out_types
    return program, new


def largest(program):
    """The sizes of what its operations give, but for writes."""
    writes = ("scatter", "dynamic_update_slice")
    return max(
        v.type.size
        for e in program.equations
        if not e.primitive.name.startswith(writes)
        for v in e.outputs
    )


CHOICES = {
    "taken": lambda x, i: snp.where(i > 3, x.at[i].set(2.0), x),
    "left": lambda x, i: snp.where(i > 3, x, x.at[i].set(2.0)),
    "a repeated condition": lambda x, i: lax.select(
        snp.broadcast_to(i > 3, (N,)), x.at[i].set(2.0), x
    ),
    "two writes": lambda x, i: snp.where(i > 3, x.at[i].add(2.0).at[i - 1].multiply(x[i]), x),
    "extremum": lambda x, i: snp.where(i > 3, x.at[i].max(2.0), x),
    "slice": lambda x, i: (
        snp.where(i > 3, lax.dynamic_update_slice(x, x[i : i + 1] * 2, (i,)), x)
        if isinstance(i, int)
        else snp.where(i > 3, lax.dynamic_update_slice(x, snp.ones(2), (i,)), x)
    ),
    "branches": lambda x, i: lax.cond(i > 3, lambda x: x.at[i].set(x[i - 1]), lambda x: x, x),
    "writes in both": lambda x, i: lax.cond(
        i > 3, lambda x: x.at[i].add(x[i - 1]), lambda x: x.at[i + 1].add(1.0).at[i].add(2.0), x
    ),
    "beside others": lambda x, i: lax.cond(
        i > 3, lambda x: (x.at[i].set(x[i - 1]), x[0], i), lambda x: (x, x[1] + 1, i - 1), x
    ),
    "called": lambda x, i: st.jit(lambda x: snp.where(i > 3, x.at[i].set(2.0), x))(x),
    "called by what is called": lambda x, i: st.jit(
        lambda i, x: st.jit(lambda x, i: snp.where(i > 3, x.at[i].set(2.0), x))(x, i)
    )(i, x),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_between_an_array_and_its_update_are_choices_of_the_update(name):
    program, new = both(CHOICES[name], X, 2)
    assert largest(program) == N
    assert largest(new) <= 2
    for i in (0, 2, 4, 7, N - 1, N + 5):
        args = [snp.asarray(X), snp.asarray(i)]
        for one, other in zip(evaluate(new, args), evaluate(program, args), strict=True):
            np.testing.assert_array_equal(one, other)


def read_elsewhere(x, i):
    y = x.at[i].set(2.0)
    return snp.where(i > 3, y, x), y[0]


KEPT = {
    "a write behind which another branch must leave what is there": lambda x, i: lax.cond(
        i > 3, lambda x: x.at[i].set(x[i - 1]), lambda x: x.at[i].multiply(3.0), x
    ),
    "the update is read elsewhere": read_elsewhere,
    "a condition for each element": lambda x, i: snp.where(x > 0, x.at[i].set(2.0), x),
    "another array": lambda x, i: snp.where(i > 3, x.at[i].set(2.0), x * 2),
    "half of the array": lambda x, i: snp.where(
        i > 3, lax.dynamic_update_slice(x, snp.ones(N // 2), (i,)), x
    ),
    "an earlier write decides what a later one leaves": lambda x, i: lax.switch(
        i % 3,
        [
            lambda x: x.at[i].add(1.0),
            lambda x: x.at[i].set(1.0),
            lambda x: x.at[i].add(1.0).at[0].add(1.0),
        ],
        x,
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_other_choices_stay(name):
    program, new = both(KEPT[name], X, 2)
    assert largest(new) == largest(program) == N
    for i in range(8):
        args = [snp.asarray(X), snp.asarray(i)]
        for got, want in zip(evaluate(new, args), evaluate(program, args), strict=True):
            np.testing.assert_array_equal(got, want)


def test_a_small_slice_at_a_fixed_place_is_one_that_might_move():
    program, new = both(lambda x: (x[3], x[:200], x[::100]), X)
    assert [e.primitive.name for e in program.equations].count("dynamic_slice") == 0
    assert [e.primitive.name for e in new.equations].count("dynamic_slice") == 1
    np.testing.assert_array_equal(evaluate(new, [snp.asarray(X)])[0], X[3])


def test_small_arrays_are_left_alone():
    program, new = both(CHOICES["taken"], X[:9], 2)
    assert new is program


def test_only_the_choice_taken_gives_a_slope():
    """As before: what is not taken gives none, though it is infinite."""

    def run(x):
        step = lambda i, x: snp.where(x[i] > 0, x.at[i].set(snp.log(x[i])), x)
        return snp.sum(lax.fori_loop(0, N, step, x))

    x = np.abs(X)
    x[::3] = 0
    want = np.where(x > 0, 1 / np.where(x > 0, x, 1), 1)
    for g in (st.grad(run), st.jit(st.grad(run))):
        got = np.asarray(g(x))
        assert np.isfinite(got[1::3]).all()
        np.testing.assert_allclose(got[1::3], want[1::3], rtol=1e-6)
