"""References by themselves: reading, writing, what they take, and what they refuse."""

import copy
import pickle
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as strategy

import stretto as st
import stretto.numpy as snp
from stretto import lax


def test_reading_and_writing():
    ref = st.new_ref(snp.arange(6.0).reshape(2, 3))
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref)) == ((2, 3), np.float32, 2, 6, 2)
    before = ref[...]
    ref[0] = 7.0
    ref[1, ::2] += snp.array([10.0, 20.0])
    np.testing.assert_array_equal(ref[...], [[7, 7, 7], [13, 4, 25]])
    np.testing.assert_array_equal(before, snp.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(ref[1, 1:], [4, 25])
    ref.set(1)
    assert ref.get((0, 0)) == 1.0
    np.testing.assert_array_equal(ref.swap(2.0, 0), [1, 1, 1])
    ref.addupdate(snp.ones(2), (snp.array([0, 0]), 0))
    assert float(ref[0, 0]) == 4.0
    ref.addupdate(1.0)
    assert float(ref[0, 0]) == 5.0


def test_views():
    ref = st.new_ref(snp.zeros((2, 2)))
    row = ref.at[1]
    row[...] += 1.0
    row[0] = 3.0
    row.at[1][...] = 4.0
    np.testing.assert_array_equal(ref[...], [[0, 0], [3, 4]])
    assert (row.shape, row.dtype, row.ndim, float(row[1])) == ((2,), np.float32, 1, 4.0)


def test_the_type_stays():
    ref = st.new_ref(1)
    assert not ref[...].weak_type and not ref.weak_type
    ref[...] = 3
    with pytest.raises(st.errors.RefError, match=r"dtype of the reference, int32; got float32\[\]"):
        ref[...] = 1.5
    with pytest.raises(TypeError, match=r"\.astype\('int32'\)"):
        ref[...] = snp.float32(1)
    with pytest.raises(ValueError, match=r"Ref\.set"):
        ref[...] = snp.zeros(3, int)
    half = st.new_ref(snp.zeros(2, snp.float16))
    half[...] = 1.0
    half[...] = [2, 3]
    assert half[...].tolist() == [2, 3]


def test_keys():
    ref = st.new_ref(st.random.split(st.random.key(0)))
    assert (ref.shape, ref.size, str(ref.dtype)) == ((2,), 2, "key<fry>")
    first = ref[0]
    ref[...] = ref[::-1]
    assert bool((ref[1] == first).all())
    ref[0] = first
    assert bool((ref[0] == ref[1]).all())
    other = st.random.key(5)
    ref[1] = other
    assert bool((ref[0] == first).all()) and bool((ref[1] == other).all())
    ref[..., 0] = other
    assert bool((ref[0] == other).all()) and bool((ref[1] == other).all())
    with pytest.raises(st.errors.RefError, match="holds key<fry>, so the value must be such keys"):
        ref[...] = 1.0

    one = st.new_ref(st.random.key(1))

    @st.jit
    def draw():
        one[...], key = st.random.split(one[...])
        return st.random.normal(key)

    key, expected = st.random.key(1), []
    for _ in range(3):
        key, sub = st.random.split(key)
        expected.append(float(st.random.normal(sub)))
    assert [float(draw()) for _ in range(3)] == expected
    restored = pickle.loads(pickle.dumps(one))
    assert bool((restored[...] == one[...]).all())


def test_freeze():
    ref = st.new_ref(snp.ones(2))
    ref[0] = 3.0
    np.testing.assert_array_equal(st.freeze(ref), [3, 1])
    for use in (lambda: ref[...], lambda: ref.set(1.0), lambda: st.freeze(ref)):
        with pytest.raises(st.errors.RefError, match=r"used after stretto\.freeze"):
            use()
    assert repr(ref) == "<Ref of float32[2]>"
    inside = st.jit(lambda x: st.freeze(st.new_ref(x)) + 1)
    assert float(inside(1.0)) == 2.0
    with pytest.raises(TypeError, match="expected a reference, got int"):
        st.freeze(3)


def test_copies_are_others():
    ref = st.new_ref(1.0)
    for other in (copy.copy(ref), copy.deepcopy(ref), pickle.loads(pickle.dumps(ref))):
        other[...] = 2.0
        assert float(ref[...]) == 1.0


def test_repr():
    assert repr(st.new_ref(snp.arange(2))) == "Ref([0, 1], dtype=int32)"
    shown = []
    st.jit(lambda x: shown.append(repr(st.new_ref(x))))(1.0)
    assert shown == ["Ref(<traced float32[]>)"]


def test_a_reference_is_no_array():
    ref = st.new_ref(snp.ones(3))
    uses = {
        r"sin: x must be an array or a number; got a reference of type float32\[3\]": snp.sin,
        "iterate over its value": list,
        "an array is needed": np.asarray,
        "unsupported operand": lambda r: r + 1,
        "grad: r must be an array": st.grad(lambda r: r[0]),
        "the result must be an array": lambda r: st.jit(lambda: r)(),
        "scan: a leaf of the argument": lambda r: st.lax.scan(lambda c, x: (c, x), r, None, 2),
        "init must be an array, got a reference": st.new_ref,
        "init must be an array": lambda r: st.new_ref([1.0, 2.0]),
    }
    for message, use in uses.items():
        with pytest.raises(TypeError, match=message):
            use(ref)
    with pytest.raises(TypeError, match="rank 0"):
        len(st.new_ref(1.0))


def test_branches_and_checkpoints_take_references_as_arguments():
    ref, other = st.new_ref(1.0), st.new_ref(10.0)

    @st.jit
    def f(p, x):
        st.lax.cond(p, lambda r, y: r.addupdate(y), lambda r, y: other.set(y), ref, x)

    f(True, 2.0)
    f(False, 5.0)
    assert (float(ref[...]), float(other[...])) == (3.0, 5.0)
    st.lax.switch(2, [lambda r: r.set(0.0), lambda r: None, lambda r: r.set(4.0)], ref)
    assert float(ref[...]) == 4.0

    count = st.checkpoint(lambda r, x: (r.addupdate(1.0), snp.sin(x))[1])
    np.testing.assert_allclose(st.grad(count, 1)(ref, 2.0), np.cos(2.0), rtol=1e-6)
    assert float(ref[...]) == 5.0


def test_a_backward_rule_may_write():
    stash = st.custom_vjp(lambda ref, x: x)
    stash.defvjp(lambda ref, x: (x, ref), lambda ref, ct: (ref.set(ct), (None, ct))[1])

    def f(x, ref):
        return snp.sin(stash(ref, snp.sin(x)))

    for wrap in (lambda f: f, st.jit):
        ref = st.new_ref(0.0)
        slope = wrap(st.grad(f))(1.0, ref)
        np.testing.assert_allclose(slope, np.cos(np.sin(1.0)) * np.cos(1.0), rtol=1e-6)
        np.testing.assert_allclose(ref[...], np.cos(np.sin(1.0)), rtol=1e-6)


def in_threads(work, times=100):
    """How many of the calls in four threads were refused."""
    refused, before = [], sys.getswitchinterval()

    def each():
        for _ in range(times):
            try:
                work()
            except st.errors.RefError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=each) for _ in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return refused


@pytest.mark.parametrize("small", [True, False], ids=["interpreted", "compiled"])
def test_jitted_updates_by_threads_are_none_lost(small):
    with st.config(interpret_small=small):
        ref, other = st.new_ref(0.0), st.new_ref(snp.zeros(3))

        @st.jit
        def outside():
            ref[...] += 1.0
            other[1] += ref[...] * 0 + 1

        @st.jit
        def passed(ref, other):
            ref[...] += 1.0
            other[2] += 1.0

        outside(), passed(ref, other)
        assert in_threads(outside) == [] and in_threads(lambda: passed(ref, other)) == []
    assert float(ref[...]) == 802
    np.testing.assert_array_equal(other[...], [0, 401, 401])


def test_updates_by_methods_are_none_lost():
    ref = st.new_ref(snp.zeros(2))
    assert in_threads(lambda: (ref.addupdate(1.0), ref.addupdate(1.0, 1))) == []
    np.testing.assert_array_equal(ref[...], [400, 800])
    taken, ref = [], st.new_ref(-1.0)
    counts = iter(range(400))
    assert in_threads(lambda: taken.append(float(ref.swap(float(next(counts)))))) == []
    assert len(set(taken)) == 400  # each value was taken once


@pytest.mark.parametrize("index", [..., 1])
def test_what_would_be_lost_is_refused(index):
    ref = st.new_ref(snp.zeros(3))

    def add():
        ref[index] += 1.0

    refused = in_threads(add)
    assert float(ref[1]) + len(refused) == 400
    assert all("another thread has written" in message for message in refused)


def test_a_write_between_reading_and_writing():
    ref = st.new_ref(1.0)
    value = ref[...] + 1
    thread = threading.Thread(target=lambda: ref.set(5.0))
    thread.start(), thread.join()
    with pytest.raises(st.errors.RefError, match=r"addupdate.*write again"):
        ref[...] = value
    assert float(ref[...]) == 5
    thread = threading.Thread(target=lambda: ref.addupdate(5.0))
    thread.start(), thread.join()
    with pytest.raises(st.errors.RefError):
        ref[...] = value
    ref[...] = value  # knowingly
    assert float(ref[...]) == 2


def test_writes_without_reading_are_not_refused():
    ref = st.new_ref(0.0)
    assert in_threads(lambda: ref.set(3.0)) == []
    assert float(ref[...]) == 3


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


def test_a_reference_is_of_no_weak_type():
    ref = st.new_ref(1.0)
    assert ref.weak_type is False and ref[...].weak_type is False
