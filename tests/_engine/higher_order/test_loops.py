"""``fori_loop`` and ``map``: plain loops, batches, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.higher_order import loops, scan

fori_loop = st.lax.fori_loop


def test_fori_loop():
    f = lambda x, n: fori_loop(0, n, lambda i, x: x * 2 + i, x)
    assert int(f(1, 5)) == int(st.jit(f)(1, 5)) == int(st.jit(f, static_argnums=1)(1, 5)) == 58
    np.testing.assert_array_equal(st.vmap(f, (None, 0))(1, snp.array([0, 5, 1])), [1, 58, 2])
    assert int(fori_loop(3, 1, lambda i, x: x + 1, 7)) == 7
    assert int(fori_loop(-2, 2, lambda i, x: x + i, 0)) == -2
    assert int(fori_loop(0, 5, lambda i, x: x + i, 0, unroll=2)) == 10
    tree = fori_loop(0, 3, lambda i, s: {"a": s["a"] + s["b"], "b": s["b"] * 1.5}, {"a": 0, "b": 2})
    assert (float(tree["a"]), float(tree["b"])) == (9.5, 6.75)


def test_the_counter_holds_both_bounds():
    count = lambda low, high: fori_loop(low, high, lambda i, x: x + 1, 0)
    for f in (count, st.jit(count)):
        assert int(f(np.uint8(0), np.int32(300))) == 300
    kinds = []
    fori_loop(np.int16(0), np.int32(2), lambda i, x: kinds.append(i.dtype) or x, 0)
    assert set(kinds) == {np.dtype(np.int32)}


@pytest.mark.parametrize("high", [3.0, 3.5, 0.0, -1.0])
def test_both_bounds_are_floats(high):
    run = lambda low, high: fori_loop(low, high, lambda i, s: (s[0] + i, s[1] + 1), (0.0, 0))
    expected = np.arange(0.5, high)
    for f in (run, st.jit(run)):
        total, count = f(0.5, high)
        assert (float(total), int(count)) == (expected.sum(), len(expected))
    power = lambda x: fori_loop(0.0, 3.0, lambda i, y: y * x, 1.0)
    assert float(st.grad(power)(2.0)) == 12
    assert int(fori_loop(0.0, -np.inf, lambda i, x: x + 1, 0)) == 0


def test_derivatives_of_fori_loop():
    f = lambda x, n: fori_loop(0, n, lambda i, y: y * x, x)
    np.testing.assert_allclose(st.grad(f)(2.0, 3), 32)
    np.testing.assert_allclose(st.jit(st.grad(f), static_argnums=1)(2.0, 3), 32)
    np.testing.assert_allclose(st.jit(st.jacfwd(f))(2.0, 3), 32)
    with pytest.raises(st.errors.MissingRuleError, match="static bounds"):
        st.jit(st.grad(f))(2.0, 3)


def test_map():
    xs = {"a": snp.arange(3.0), "b": snp.arange(6).reshape(3, 2)}
    out = st.lax.map(lambda x: (x["a"] * 2, x["b"].sum()), xs)
    np.testing.assert_array_equal(out[0], [0, 2, 4])
    np.testing.assert_array_equal(out[1], [1, 5, 9])
    slope = st.grad(lambda a: st.lax.map(lambda x: x**3, a).sum())
    np.testing.assert_allclose(slope(snp.arange(3.0)), [0, 3, 12])


@pytest.mark.parametrize("size, batch", [(6, 2), (7, 3), (2, 5), (1, 1), (0, 2), (4, 4)])
def test_map_in_batches(size, batch):
    seen = set()

    def f(x):
        seen.add(x["a"].shape)
        return {"s": x["a"].sum() * x["b"], "c": 3.0}

    xs = {"a": snp.arange(2.0 * size).reshape(size, 2), "b": snp.arange(1.0 * size)}
    want = st.vmap(f)(xs)
    batched = lambda xs: st.lax.map(f, xs, batch_size=batch)
    for g in (batched, st.jit(batched)):
        got = g(xs)
        assert st.tree.structure(got) == st.tree.structure(want)
        np.testing.assert_allclose(got["s"], want["s"], rtol=1e-6)
        np.testing.assert_array_equal(got["c"], want["c"])
    assert seen == {(2,)}
    slope = st.grad(lambda b: st.lax.map(lambda x: x**3, b, batch_size=batch).sum())
    np.testing.assert_allclose(slope(xs["b"]), 3 * np.arange(size) ** 2.0)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: fori_loop(0, 3, lambda i, s: {"w": s["w"].sum()}, {"w": snp.ones(2)}),
            TypeError,
            r"fori_loop: the carry must keep its type; init_val\['w'\] is float32\[2\]",
        ),
        (
            lambda: st.jit(lambda n: fori_loop(0, n, lambda i, s: [s[0] > 1], [1.0]))(3),
            TypeError,
            r"fori_loop: .*init_val\[0\]",
        ),
        (
            lambda: fori_loop(0, 2.5, lambda i, x: x, 0),
            TypeError,
            r"bounds must be integer scalars, or both floats; got int32\[\] and float32\[\]",
        ),
        (
            lambda: fori_loop(False, True, lambda i, x: x, 0),
            TypeError,
            r"got bool\[\] and bool\[\]",
        ),
        (lambda: fori_loop(0, snp.arange(2), lambda i, x: x, 0), TypeError, "bounds must be integ"),
        (lambda: st.lax.map(lambda x: x, snp.ones(2), batch_size=0), ValueError, "batch_size must"),
        (
            lambda: st.lax.map(lambda x: x, {"a": snp.ones(2), "b": 1.0}, batch_size=2),
            ValueError,
            r"map: in_axes maps axis 0 of xs\['b'\], which has type float32",
        ),
        (
            lambda: st.lax.map(lambda x: x, (snp.ones(2), snp.ones(3))),
            ValueError,
            r"map: mapped sizes must agree; xs\[0\] has 2 along axis 0, xs\[1\] has 3 along",
        ),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_steps_are_written_out_only_where_their_number_is_known():
    def total(n, unroll):
        return st.lax.fori_loop(0, n, lambda i, x: x + i, 0, unroll=unroll)

    assert [int(total(5, u)) for u in (None, 1, 2, True)] == [10] * 4
    assert int(st.jit(lambda n: total(n, None))(5)) == 10
    with pytest.raises(ValueError, match="unroll must be None where a bound is traced"):
        st.jit(lambda n: total(n, 2))(5)


def test_what_other_layers_leave_out():
    """Elements lie along the first axis, results too; steps go forwards, one at a time."""
    x = snp.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(loops.map_(lambda row: row * 2, x), x * 2)
    last = scan.scan(lambda last, row: (row, last), x[0], x)
    np.testing.assert_array_equal(last[0], x[1])
    program = st.make_graph(lambda x: scan.scan(lambda c, row: (c + row, None), x[0], x)[0])(x)
    (loop,) = [e.primitive for e in program.equations if e.primitive.holds_programs]
    assert (loop.unroll, loop.reverse) == (1, False)
