"""Loops over examples of different lengths equal the loop in Python, in values and derivatives.

Loops over arrays are tested with the operations that they are: ``higher_order/test_scan``.
"""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax

RNG = np.random.default_rng(0)
LENGTHS = [3, 7, 1, 5]
PARTS = [RNG.normal(size=(n, 2)).astype(np.float32) for n in LENGTHS]
BIASES = RNG.normal(size=(4, 2)).astype(np.float32)
W = RNG.normal(size=(2, 2)).astype(np.float32)


@pytest.fixture
def r():
    return st.ragged(PARTS)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def step(w, carry, x, bias):
    """A state for the whole batch, which each example changes, and results of each."""
    y = snp.tanh(x @ w + carry + bias)
    return carry + y.mean(0), (y, y[::2], y.max(0), x.shape[0])


def in_python(w, parts, biases, reverse=False):
    carry, ys = snp.zeros(2), []
    order = range(len(parts))
    for i in reversed(order) if reverse else order:
        carry, y = step(w, carry, parts[i], biases[i])
        ys.append(y)
    return carry, ys[::-1] if reverse else ys


def over_ragged(w, r, biases, reverse=False, unroll=1):
    def body(carry, example):
        return step(w, carry, example["x"], example["bias"])

    xs = {"x": r, "bias": biases}
    return lax.scan(body, snp.zeros(2), xs, reverse=reverse, unroll=unroll)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 3])
def test_scan_equals_the_loop(r, reverse, unroll):
    expected, ys = in_python(W, PARTS, BIASES, reverse)
    plain = lambda w, r, biases: over_ragged(w, r, biases, reverse, unroll)
    for run in (plain, st.jit(plain)):
        carry, (y, half, most, lengths) = run(W, r, BIASES)
        close(carry, expected)
        np.testing.assert_array_equal(lengths, LENGTHS)
        np.testing.assert_array_equal(half.lengths, [(n + 1) // 2 for n in LENGTHS])
        for i, (a, b, c, _) in enumerate(ys):
            close(y[i], a)
            close(half[i], b)
            close(most[i], c)


@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives_of_scan_equal_those_of_the_loop(r, reverse):
    def loss(w, r, biases):
        carry, (_, half, most, _) = over_ragged(w, r, biases, reverse)
        return (carry**2).sum() + st.vmap(lambda x: (x**2).sum())(half).sum() + most.sum()

    def in_turn(w, parts, biases):
        carry, ys = in_python(w, parts, biases, reverse)
        return (carry**2).sum() + sum((b**2).sum() + c.sum() for _, b, c, _ in ys)

    parts = [snp.asarray(x) for x in PARTS]
    wanted = st.grad(in_turn, (0, 1, 2))(W, parts, snp.asarray(BIASES))
    for run in (st.grad(loss, (0, 1, 2)), st.jit(st.grad(loss, (0, 1, 2)))):
        by_w, by_r, by_biases = run(W, r, BIASES)
        close(by_w, wanted[0])
        close(by_biases, wanted[2])
        for a, b in zip(by_r.like(r), wanted[1], strict=True):
            close(a, b)
    tangent = st.jvp(lambda w: loss(w, r, BIASES), (W,), (W,))[1]
    close(tangent, (wanted[0] * W).sum())


def test_map_equals_vmap(r):
    def one(pair):
        x, bias = pair
        return {"y": snp.cumsum(x @ W + bias, 0), "n": x.shape[0], "sum": x.sum()}

    wanted = st.vmap(one)((r, BIASES))
    for size in (None, 1, 3, 10):
        for run in (lax.map, st.jit(lax.map, static_argnums=0, static_argnames="batch_size")):
            out = run(one, (r, BIASES), batch_size=size)
            close(out["y"].values, wanted["y"].values)
            np.testing.assert_array_equal(out["n"], LENGTHS)
            close(out["sum"], wanted["sum"])
    slope = st.grad(lambda r: (lax.map(lambda x: (x**2).sum(), r) * snp.arange(4.0)).sum())(r)
    for i, x in enumerate(slope.like(r)):
        close(x, 2 * i * PARTS[i])


def test_axes_of_map(r):
    out = lax.map(
        lambda pair: (pair[0].sum(0) + pair[1], pair[0] * pair[1]),
        (r, snp.ones(2)),
        in_axes=(0, None),
        out_axes=(1, 0),
    )
    close(out[0], np.stack([x.sum(0) + 1 for x in PARTS], 1))
    close(out[1].values, r.values)


def test_ragged_arrays_are_carried_and_closed_over(r):
    def body(carry, x):
        grown = st.tree.map(lambda leaf: leaf * x if leaf.dtype == np.float32 else leaf, carry)
        inner = st.vmap(lambda one, other: (one * other).sum())(carry.like(r), r)
        return grown, inner

    def run(carry, factors):
        return lax.scan(body, carry, factors)

    factors = snp.array([2.0, 3.0])
    squares = np.array([(x**2).sum() for x in PARTS])
    for scanned in (run, st.jit(run)):
        carry, ys = scanned(r, factors)
        close(carry.values, 6 * np.concatenate(PARTS))
        close(ys, [squares, 2 * squares])


def test_few_steps_are_compiled_once_and_sizes_differ(r):
    traced = []

    def body(carry, x):
        traced.append(x.shape)
        return carry + x.sum(), None

    out, ys = lax.scan(body, 0.0, st.ragged([np.ones(n, np.float32) for n in range(1, 40)]))
    assert float(out) == sum(range(1, 40)) and ys is None
    assert len(traced) <= 2


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (
            lambda r: lax.scan(lambda c, x: (c, x), 0.0, (r, np.ones(3))),
            ValueError,
            r"scan: the numbers of examples differ: \[3, 4\]",
        ),
        (
            lambda r: lax.scan(lambda c, x: (c, x), 0.0, r, length=5),
            ValueError,
            r"numbers of examples differ: \[4, 5\]",
        ),
        (
            lambda r: lax.scan(lambda c, x: (x, None), snp.ones((16, 2)), r),
            TypeError,
            r"carry is float32\[n,2\], whose size is that of one example: return it as y",
        ),
        (
            lambda r: lax.scan(lambda c, x: (c, x @ x.T), 0.0, r),
            NotImplementedError,
            r"scan: a result of type float32\[n,n\] varies along axes \[0, 1\]",
        ),
        (lambda r: lax.scan(lambda c, x: c, 0.0, r), TypeError, "must return a pair"),
        (lambda r: lax.scan(lambda c, x: (c, x), 0.0, (r, 1.0)), ValueError, "axis 0 is out of"),
        (lambda r: lax.scan(lambda c, x: (c, x), 0.0, r, unroll=-1), ValueError, "unroll must not"),
        (
            lambda r: lax.map(lambda p: p[0].sum(), (r, np.ones(3))),
            ValueError,
            r"map: the numbers of examples differ: \[3, 4\]",
        ),
        (
            lambda r: lax.map(lambda x: x, r, in_axes=1),
            ValueError,
            "map: a ragged array is mapped along axis 0, got 1",
        ),
        (lambda r: lax.map(lambda x: x, r, batch_size=0), ValueError, "map: batch_size must be"),
    ],
)
def test_what_is_refused(r, call, kind, match):
    with pytest.raises(kind, match=match):
        call(r)
