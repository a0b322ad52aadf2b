"""Loops that write references, beside the same loops written with carries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as strategy

import stretto as st
import stretto.numpy as snp
from stretto import lax


def sums_by_reference(xs, y):
    total, last = st.new_ref(snp.zeros(())), st.new_ref(snp.zeros(3))

    def step(c, x):
        last[1] = x
        total[...] += snp.sin(x * y) + c
        lax.cond(x > 0, lambda: total.addupdate(last[1]), lambda: last.set(-1.0))
        return c + x, total[...]

    c, ys = lax.scan(step, y, xs)
    return c + ys.sum() + total[...] + last[...].sum()


def sums_by_carry(xs, y):
    def step(carry, x):
        c, total, last = carry
        last = last.at[1].set(x)
        total = total + snp.sin(x * y) + c
        total, last = lax.cond(
            x > 0, lambda: (total + last[1], last), lambda: (total, snp.full(3, -1.0))
        )
        return (c + x, total, last), total

    (c, total, last), ys = lax.scan(step, (y, snp.zeros(()), snp.zeros(3)), xs)
    return c + ys.sum() + total + last.sum()


WAYS = {
    "plain": lambda f: f,
    "jit": st.jit,
    "grad": lambda f: st.grad(f, (0, 1)),
    "jit(grad)": lambda f: st.jit(st.grad(f, (0, 1))),
    "grad(jit)": lambda f: st.grad(st.jit(f), (0, 1)),
    "jacfwd": lambda f: st.jacfwd(f, 1),
    "hvp": lambda f: lambda xs, y: st.hvp(lambda y: f(xs, y), (y,), (1.0,)),
    "vmap": lambda f: lambda xs, y: st.vmap(f, (None, 0))(xs, snp.stack([y, -y])),
    "vmap(grad)": lambda f: (
        lambda xs, y: st.vmap(st.grad(f, 1), (0, None))(snp.stack([xs, -xs]), y)
    ),
    "grad(checkpoint)": lambda f: st.grad(st.checkpoint(f), (0, 1)),
    "disable_jit": lambda f: lambda xs, y: at_once(f, xs, y),
}


def at_once(f, *args):
    with st.disable_jit():
        return f(*args)


@pytest.mark.parametrize("way", WAYS)
def test_as_with_carries(way):
    xs, y = snp.array([0.5, -1.0, 2.0]), snp.array(0.7)
    got, expected = (WAYS[way](f)(xs, y) for f in (sums_by_reference, sums_by_carry))
    for a, b in zip(st.tree.leaves(got), st.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@settings(max_examples=15)
@given(strategy.lists(strategy.tuples(strategy.integers(0, 3), strategy.integers(-3, 3))))
def test_any_sequence_of_writes(actions):
    """Loops of random writes to two references, as NumPy does them in place."""
    refs = [st.new_ref(snp.arange(3.0)), st.new_ref(snp.ones(3))]
    arrays = [np.arange(3.0, dtype=np.float32), np.ones(3, np.float32)]

    def act(things, kind, n, i):
        one, other = things
        if kind == 0:
            one[...] += n
        elif kind == 1:
            other[...] = one[...] * 0.5
        elif kind == 2:
            one[1] = other[0] + i
        else:
            other[2] += n

    @st.jit
    def run():
        def body(i, _):
            for kind, n in actions:
                act(refs, kind, float(n), i.astype(float))
            return 0

        lax.fori_loop(0, 3, body, 0)

    run()
    for i in range(3):
        for kind, n in actions:
            act(arrays, kind, float(n), float(i))
    for ref, array in zip(refs, arrays, strict=True):
        np.testing.assert_allclose(ref[...], array, rtol=1e-5)


def test_while_loops_read_and_write():
    ref = st.new_ref(0)

    def count(n):
        lax.while_loop(
            lambda i: (i < n) & (ref[...] < 100), lambda i: (ref.addupdate(i), i + 1)[1], 0
        )
        return ref[...]

    assert int(count(5)) == 10
    ref[...] = 0
    assert int(st.jit(count)(50)) == 105
    assert int(ref[...]) == 105
    ref[...] = 0
    lax.fori_loop(0, snp.array(4), lambda i, c: (ref.addupdate(i), c)[1], 0)
    assert int(ref[...]) == 6


def test_loops_that_write_none_are_traced_once():
    ref, traced = st.new_ref(2.0), []

    def step(c, x):
        traced.append(1)
        return c, x * ref[...]

    np.testing.assert_array_equal(lax.scan(step, 0.0, snp.ones(3))[1], [2, 2, 2])
    assert len(traced) == 1


def test_loops_over_references():
    xs, read = st.new_ref(snp.arange(4.0)), st.new_ref(snp.ones(4))

    def step(c, parts):
        x, r, y = parts
        assert (x.shape, r.shape) == ((), ())
        x[...] = x[...] + c + r[...]
        return c + 1, x[...] * y

    for wrap in (lambda f: f, st.jit):
        xs[...] = snp.arange(4.0)
        c, ys = wrap(lambda: lax.scan(step, 0.0, (xs, read, 2 * snp.ones(4))))()
        assert float(c) == 4.0
        np.testing.assert_array_equal(xs[...], [1, 3, 5, 7])
        np.testing.assert_array_equal(ys, [2, 6, 10, 14])
    lax.scan(lambda c, x: (x.set(c), (c + 1, None))[1], 0.0, xs, reverse=True)
    np.testing.assert_array_equal(xs[...], [3, 2, 1, 0])
    with pytest.raises(st.errors.RefError, match=r"passed as xs\[0\] and as xs\[1\]"):
        lax.scan(lambda c, x: (c, None), 0.0, (xs, xs))


def test_map_reads_references():
    ref = st.new_ref(3.0)
    np.testing.assert_array_equal(lax.map(lambda x: x * ref[...], snp.ones(3)), [3, 3, 3])


def test_map_and_chunks_do_not_write():
    ref = st.new_ref(0)
    count = lambda x: (ref.addupdate(1), x)[1]
    for call in (
        lambda: lax.map(count, snp.ones(3)),
        lambda: lax.map(count, snp.ones(4), batch_size=2),
        lambda: st.vmap(count, chunk_size=2)(snp.ones(4)),
    ):
        with pytest.raises(st.errors.RefError, match=r"step over the examples with lax\.scan"):
            call()
    with st.disable_jit():
        lax.map(count, snp.ones(3))
    assert int(ref[...]) == 3
