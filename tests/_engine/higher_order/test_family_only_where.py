"""Loops that end for their own examples only, where all examples are computed together."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.higher_order.family import has_open_loop, only_where

# Halved until it is small: for another sign each of the loops goes on for ever.


def above(x):
    return st.lax.while_loop(lambda v: v > 1e-3, lambda v: 0.1 * v, x)


def below(x):
    return st.lax.while_loop(
        lambda v: (v < -1e-3) | (v > 0), lambda v: snp.where(v > 0, v, 0.1 * v), x
    )


def endless_unless_even(n):
    """The steps from an even number down to 0 by twos; never ends for an odd one."""
    return st.lax.while_loop(lambda s: s[0] != 0, lambda s: (s[0] - 2, s[1] + 1), (n, 0))[1]


def parity(n):
    return st.lax.cond(
        n % 2 == 0, endless_unless_even, lambda n: endless_unless_even(n + 1) + 100, n
    )


def expected(n):
    return n // 2 if n % 2 == 0 else (n + 1) // 2 + 100


NUMBERS = np.array([4, 7, 0, 10, 1, 3], np.int32)
EXPECTED = np.array([expected(n) for n in NUMBERS])
ways = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])


def run(f, compiled):
    return st.jit(f) if compiled else f


@ways
def test_branches_with_loops_end_for_their_examples(compiled):
    f = st.vmap(lambda x: st.lax.cond(x >= 0, above, below, x))
    x = np.array([5.0, -5.0, 0.5, 0.0, -0.25], np.float32)
    wanted = [5e-4, -5e-4, 5e-4, 0.0, -2.5e-4]
    np.testing.assert_allclose(run(f, compiled)(x), wanted, rtol=1e-5)
    np.testing.assert_array_equal(run(st.vmap(parity), compiled)(NUMBERS), EXPECTED)


@ways
def test_many_branches(compiled):
    def branch(k):  # ends for numbers that leave k when divided by 3
        return lambda n: st.lax.while_loop(lambda v: v != k, lambda v: v - 3, n) + 10 * k

    f = st.vmap(lambda n: st.lax.switch(n % 3, [branch(0), branch(1), branch(2)], n))
    np.testing.assert_array_equal(run(f, compiled)(np.arange(9, dtype=np.int32)), [0, 11, 22] * 3)


@ways
def test_a_branch_inside_a_branch_in_a_scan(compiled):
    def step(carry, n):
        new = st.lax.cond(n > 5, lambda n: parity(n) + 1000, parity, n)
        return carry + new, new

    f = st.vmap(lambda ns: st.lax.scan(step, 0, ns)[1])
    rows = NUMBERS.reshape(2, 3)
    wanted = np.where(rows > 5, EXPECTED.reshape(2, 3) + 1000, EXPECTED.reshape(2, 3))
    np.testing.assert_array_equal(run(f, compiled)(rows), wanted)


@ways
def test_a_scan_a_call_and_a_checkpoint_in_a_branch(compiled):
    def twice(n):
        return st.lax.scan(lambda c, _: (c + endless_unless_even(n), None), 0, None, length=2)[0]

    for inner in (twice, st.jit(endless_unless_even), st.checkpoint(endless_unless_even)):
        f = st.vmap(lambda n, g=inner: st.lax.cond(n % 2 == 0, g, lambda n: -n, n))
        times = 2 if inner is twice else 1
        wanted = np.where(NUMBERS % 2 == 0, times * (NUMBERS // 2), -NUMBERS)
        np.testing.assert_array_equal(run(f, compiled)(NUMBERS), wanted)


@ways
def test_an_example_that_has_stopped_keeps_nobody_waiting(compiled):
    """The inner loop never ends where the outer one has stopped: at an odd number."""

    def f(n):
        def body(s):
            n, total = s
            return n // 2, total + endless_unless_even(n)

        return st.lax.while_loop(lambda s: (s[0] % 2 == 0) & (s[0] > 0), body, (n, 0))[1]

    wanted = []
    for n in (7, 4, 0, 12, 20):
        total = 0
        while n % 2 == 0 and n > 0:
            total, n = total + n // 2, n // 2
        wanted.append(total)
    numbers = np.array([7, 4, 0, 12, 20], np.int32)
    np.testing.assert_array_equal(run(st.vmap(f), compiled)(numbers), wanted)


@ways
def test_a_loop_around_branches_with_loops(compiled):
    def f(n):
        return st.lax.while_loop(
            lambda s: s[1] < 2, lambda s: (parity(s[0]) % 64, s[1] + 1), (n, 0)
        )[0]

    def once(n):
        return expected(n) % 64

    wanted = [once(once(int(n))) for n in NUMBERS]
    np.testing.assert_array_equal(run(st.vmap(f), compiled)(NUMBERS), wanted)


@ways
def test_twice_mapped(compiled):
    f = st.vmap(st.vmap(parity))
    np.testing.assert_array_equal(run(f, compiled)(NUMBERS.reshape(2, 3)), EXPECTED.reshape(2, 3))
    outer = st.vmap(
        st.vmap(
            lambda a, b: st.lax.cond(a > 5, lambda: parity(a) + b, lambda: b - a), in_axes=(None, 0)
        ),
        in_axes=(0, None),
    )
    a, b = NUMBERS, np.arange(3, dtype=np.int32)
    wanted = np.where(a > 5, EXPECTED, -a)[:, None] + b
    np.testing.assert_array_equal(run(outer, compiled)(a, b), wanted)


@ways
def test_forward_derivatives(compiled):
    f = st.vmap(
        lambda x: st.jvp(
            lambda x: st.lax.cond(x > 0, lambda x: above(x) * 2, lambda x: 3 * x, x), (x,), (1.0,)
        )[1]
    )
    x = np.array([5.0, -5.0, 0.05], np.float32)
    np.testing.assert_allclose(run(f, compiled)(x), [2e-4, 3.0, 2e-2], rtol=1e-5)


@ways
def test_reverse_derivatives_by_a_rule(compiled):
    @st.custom_vjp
    def root(x):  # by Newton's method, which does not end below 0
        return st.lax.while_loop(
            lambda r: snp.abs(r * r - x) > 1e-4 * snp.abs(x), lambda r: (r + x / r) / 2, x
        )

    root.defvjp(lambda x: (root(x), root(x)), lambda r, ct: (ct / (2 * r),))
    f = lambda x: st.lax.cond(x > 0, root, lambda x: x, x)
    x = np.array([4.0, -1.0, 9.0], np.float32)
    slopes = run(st.vmap(st.grad(f)), compiled)(x)
    np.testing.assert_allclose(slopes, [0.25, 1.0, 1 / 6], rtol=1e-3)
    total = run(st.grad(lambda x: st.vmap(f)(x).sum()), compiled)(x)
    np.testing.assert_allclose(total, [0.25, 1.0, 1 / 6], rtol=1e-3)


@ways
def test_rules_inside_a_loop_that_is_mapped(compiled):
    """The forward rule of what the loop calls is its derivative, mapped or not."""

    @st.custom_jvp
    def steps(x):
        return snp.asarray(endless_unless_even(x.astype(int)), x.dtype)

    steps.defjvp(lambda primals, tangents: (steps(*primals), 7 * tangents[0]))

    def f(x):
        return st.lax.while_loop(lambda v: v % 2 == 0, steps, x)

    numbers = np.array([4.0, 3.0, 12.0], np.float32)
    out, slope = run(lambda x: st.jvp(st.vmap(f), (x,), (snp.ones(3),)), compiled)(numbers)
    np.testing.assert_array_equal(out, [1, 3, 3])
    np.testing.assert_array_equal(slope, [49, 1, 49])


def test_an_ensemble():
    ensemble = st.Ensemble(lambda w, n: parity(n + w), snp.arange(4))
    np.testing.assert_array_equal(ensemble(snp.asarray(3)), [expected(3 + w) for w in range(4)])


def test_a_branch_that_sums_over_the_examples():
    def f(n):
        return st.lax.cond(
            n % 2 == 0, lambda n: st.lax.psum(endless_unless_even(n) * 0 + 1, "i"), lambda n: -n, n
        )

    got = st.jit(st.vmap(f, axis_name="i"))(NUMBERS)
    np.testing.assert_array_equal(got, np.where(NUMBERS % 2 == 0, 6, -NUMBERS))


@ways
def test_a_loop_that_sums_over_the_examples_around_one_that_ends_for_its_own(compiled):
    """For an example that has stopped the inner loop would never end."""

    def body(state):
        n, total = state
        steps = endless_unless_even(2 * n + (n == 0))
        return n - 1, total + steps + 0 * st.lax.psum(n, "i")

    f = lambda n: st.lax.while_loop(lambda s: s[0] > 0, body, (n, 0 * n))[1]
    got = run(st.vmap(f, axis_name="i"), compiled)(NUMBERS)
    np.testing.assert_array_equal(got, NUMBERS * (NUMBERS + 1) // 2)


@ways
def test_rules_in_a_loop_that_sums_over_the_examples(compiled):
    """The forward derivative of what it calls is that of the rule, once a turn."""

    @st.custom_jvp
    def rest(x):
        return st.lax.while_loop(lambda v: v >= 3, lambda v: v - 3, x)

    rest.defjvp(lambda primals, tangents: (rest(*primals), 7 * tangents[0]))

    def f(x):
        turn = lambda s: (s[0] - 1, rest(s[1] + 2) + 0 * st.lax.psum(s[1], "i"))
        return st.lax.while_loop(lambda s: s[0] > 0, turn, (x % 3, x))[1]

    numbers = np.array([4.0, 5.0, 12.0], np.float32)
    every = st.vmap(f, axis_name="i")
    out, slope = run(lambda x: st.jvp(every, (x,), (snp.ones(3),)), compiled)(numbers)
    np.testing.assert_array_equal(out, [0, 0, 12])
    np.testing.assert_array_equal(slope, [7, 49, 1])


@ways
def test_rules_in_a_branch_that_sums_over_the_examples(compiled):
    """The derivative of all examples at once is still that of the rule."""

    @st.custom_jvp
    def rest(x):  # it ends for all: loops of what has rules do not ask whose they are
        return st.lax.while_loop(lambda v: v >= 3, lambda v: v - 3, x)

    rest.defjvp(lambda primals, tangents: (rest(*primals), 7 * tangents[0]))

    def f(x):
        summed = lambda x: 0 * st.lax.psum(x, "i") + rest(x)
        return st.lax.cond(x % 2 == 0, summed, lambda x: -x, x)

    numbers = np.array([4.0, 3.0, 12.0], np.float32)
    every = st.vmap(f, axis_name="i")
    out, slope = run(lambda x: st.jvp(every, (x,), (snp.ones(3),)), compiled)(numbers)
    np.testing.assert_array_equal(out, [1, -3, 0])
    np.testing.assert_array_equal(slope, [7, -1, 7])


def test_routed_examples(monkeypatch):
    """A part of the examples of one branch may hold some of the next one's."""
    monkeypatch.setattr("stretto._engine.higher_order.cond.worth_routing", lambda *_: True)
    numbers = np.random.default_rng(0).integers(0, 50, 37).astype(np.int32)
    got = st.jit(st.vmap(parity))(numbers)
    np.testing.assert_array_equal(got, [expected(n) for n in numbers])


@ways
def test_routed_examples_of_what_has_a_rule(compiled, monkeypatch):
    """Where it is run no derivative is taken any more, so its loop ends for its own examples."""
    monkeypatch.setattr("stretto._engine.higher_order.cond.worth_routing", lambda *_: True)

    @st.custom_jvp
    def steps(n):
        return endless_unless_even(n)

    steps.defjvp(lambda primals, tangents: (steps(*primals), tangents[0]))
    numbers = np.arange(9, dtype=np.int32)
    # The last part of the five that are even, in front, has one that is odd.
    f = lambda n: st.lax.cond(n % 2 == 1, lambda n: n + 100, steps, n)
    np.testing.assert_array_equal(
        run(st.vmap(f), compiled)(numbers), [n // 2 if n % 2 == 0 else n + 100 for n in numbers]
    )


@ways
def test_a_solver_in_a_branch(compiled):
    """Newton's method for the square root, which goes to and fro at -3."""

    def newton(f, x):
        return st.lax.while_loop(
            lambda r: snp.abs(f(r)) > 1e-4, lambda r: r - f(r) / (2 * r), snp.ones_like(x)
        )

    def root(x):
        return st.lax.custom_root(lambda r: r * r - x, x, newton, lambda g, y: y / g(1.0))

    f = st.vmap(lambda x: st.lax.cond(x > 0, root, lambda x: x, x))
    x = np.array([4.0, -3.0, 9.0], np.float32)
    np.testing.assert_allclose(run(f, compiled)(x), [2, -3, 3], rtol=1e-3)


def test_what_has_no_such_loop_is_as_it_was():
    plain = st.make_graph(lambda x: st.lax.fori_loop(0, 3, lambda i, c: c + i, x))(1)
    assert not has_open_loop(plain)
    assert only_where(plain).equations == plain.equations
    assert has_open_loop(st.make_graph(st.jit(above))(1.0))


def test_a_program_is_changed_once():
    program = st.make_graph(above)(1.0)
    assert only_where(program) is only_where(program)
    assert only_where(program, True) is only_where(program, True) is not only_where(program)
