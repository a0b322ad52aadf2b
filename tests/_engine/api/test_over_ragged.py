"""Programs over ragged data equal their loops, in values and derivatives."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax, nn, random

RNG = np.random.default_rng(0)
LENGTHS = [3, 7, 1, 5, 12]
PARTS = [RNG.normal(size=(n, 4)).astype(np.float32) for n in LENGTHS]
W = (RNG.normal(size=(4, 4)) / 2).astype(np.float32)
KEY = random.key(0)


def attention(w, x):
    scores = nn.functional.softmax((x @ w) @ x.T / 2, -1)
    return scores @ x


def causal(w, x):
    n = x.shape[0]
    seen = snp.arange(n)[:, None] >= snp.arange(n)[None]
    scores = snp.where(seen, (x @ w) @ x.T, -snp.inf)
    return (nn.functional.softmax(scores, -1) @ x).sum(0)


def block(w, x):
    x = x + attention(w, (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-3))
    return x + nn.functional.gelu(x @ w) @ w.T


def lstm(w, x):
    def step(state, row):
        h, c = state
        gate = 1 / (1 + snp.exp(-(row @ w + h)))
        c = gate * c + (1 - gate) * snp.tanh(row + h)
        return (gate * snp.tanh(c), c), h

    return lax.scan(step, (snp.zeros(4), snp.zeros(4)), x)[0][0]


def convolution(w, x):
    kernel = snp.stack([w, w.T, -w])  # (3, 4, 4)
    y = lax.conv_general_dilated(x.T[None], kernel.transpose(1, 2, 0), (1,), "SAME")[0]
    return snp.max(nn.functional.relu(y), -1)


def norm_and_pool(w, x):
    y = (x - x.mean(0)) / snp.sqrt(x.var(0) + 1)
    return (y @ w).mean(0)


def order(w, x):
    y = snp.sort(x @ w, 0)
    return y[-1] - snp.median(y, 0) + snp.quantile(y, 0.25, axis=0)


def running(w, x):
    y = snp.cumsum(x @ w, 0)
    return snp.concatenate([y[:1], snp.diff(y, axis=0) ** 2]).mean(0)


def beam(w, x):
    values, places = lax.top_k((x @ w)[:, 0], 1)
    return values * x[places[0]]


def segments(w, x):
    ids = snp.arange(x.shape[0]) % 3
    return snp.tanh(st.ops.segment_sum(x @ w, ids, 3)).sum(0)


def alignment(w, x):
    """The least cost of a path through a table of rows, row by row."""
    cost = snp.abs((x @ w)[:, :, None] - (x @ w)[:, None, :]).sum(-1)

    def row(before, here):
        moved = snp.minimum(before, snp.concatenate([before[:1] * 0 + 9, before[:-1]]))
        return moved + here, None

    return lax.scan(row, snp.zeros(4), cost)[0]


def own_steps(w, x):
    return lax.fori_loop(0, x.shape[0], lambda i, y: y + 0.1 * snp.tanh(w @ y), x[0])


PROGRAMS = {
    f.__name__: f
    for f in (
        attention, causal, block, lstm, convolution, norm_and_pool, order, running, beam,
        segments, alignment, own_steps,
    )
}  # fmt: skip


def close(a, b, error=1e-4):
    np.testing.assert_allclose(a, b, rtol=error, atol=error)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_equals_its_loop(name):
    f = PROGRAMS[name]
    r = st.ragged(PARTS)
    several = st.vmap(f, (None, 0))
    expected = [f(snp.asarray(W), snp.asarray(x)) for x in PARTS]
    for run in (several, st.jit(several)):
        out = run(W, r)
        for a, b in zip(out, expected, strict=True):
            close(a, b)

    def total(w, r):
        return (st.vmap(lambda x: (f(w, x) ** 2).sum())(r)).sum()

    def loop(w, parts):
        return sum((f(w, x) ** 2).sum() for x in parts)

    parts = [snp.asarray(x) for x in PARTS]
    by_w, by_x = st.grad(loop, (0, 1))(W, parts)
    for run in (st.grad(total, (0, 1)), st.jit(st.grad(total, (0, 1)))):
        slope_w, slope_x = run(W, r)
        close(slope_w, by_w, 5e-4)
        for a, b in zip(slope_x.like(r).to_list(), by_x, strict=True):
            close(a, b, 5e-4)


def test_results_have_their_own_lengths():
    r = st.ragged(PARTS)
    out = st.vmap(lambda x: (snp.concatenate([x, x[:1]]), x[::2], x.sum(0), x * 2))(r)
    np.testing.assert_array_equal(out[0].lengths, np.array(LENGTHS) + 1)
    np.testing.assert_array_equal(out[1].lengths, [(n + 1) // 2 for n in LENGTHS])
    assert out[2].shape == (5, 4) and out[3].lengths is r.lengths
    for a, x in zip(out[1], PARTS, strict=True):
        close(a, x[::2])
    again = st.vmap(lambda x: x.mean(0))(out[0])
    close(again, [np.concatenate([x, x[:1]]).mean(0) for x in PARTS])


def test_results_of_other_lengths_take_no_rectangle():
    """Inside jit their lengths are not known, but no result is longer than so many arguments."""
    lengths = [*[2] * 99, 500]
    r = st.ragged([np.full((n, 4), n, np.float32) for n in lengths])
    for f, times in (
        (lambda x: x[::2], 1),
        (lambda x: snp.concatenate([x, x[:1]]), 2),
        (lambda x: snp.concatenate([x, x, x, x[:1]]), 4),
    ):
        out = st.jit(st.vmap(f))(r)
        assert out.nbytes <= times * r.nbytes
        np.testing.assert_array_equal(out.lengths, [f(np.ones((n, 4))).shape[0] for n in lengths])
        np.testing.assert_array_equal(out[98], f(np.full((2, 4), 2)))
        np.testing.assert_array_equal(out[99], f(np.full((500, 4), 500)))


def test_several_arguments():
    r = st.ragged(PARTS)
    scale, bias = np.arange(5.0, dtype=np.float32), np.ones(4, np.float32)
    out = st.vmap(lambda x, y, s, b: (x * y).sum(0) * s + b, (0, 0, 0, None))(r, r, scale, bias)
    close(out, [(x * x).sum(0) * s + bias for x, s in zip(PARTS, scale)])
    other = st.ragged([x[:1] for x in PARTS])
    crossed = st.vmap(lambda x, y: (x @ y.T).sum())(r, other)
    close(crossed, [(x @ x[:1].T).sum() for x in PARTS])
    data = {"tokens": st.ragged([np.arange(n) for n in LENGTHS]), "label": np.arange(5)}
    close(st.vmap(lambda d: d["tokens"].sum() + d["label"])(data),
          [n * (n - 1) // 2 + i for i, n in enumerate(LENGTHS)])  # fmt: skip


def test_few_programs_for_many_batches():
    traced = []

    @st.jit
    def f(r):
        traced.append(1)
        return st.vmap(lambda x: snp.tanh(x).mean(0))(r)

    for _ in range(40):
        lengths = RNG.integers(1, 30, 8)
        parts = [RNG.normal(size=(n, 4)).astype(np.float32) for n in lengths]
        close(f(st.ragged(parts)), [np.tanh(x).mean(0) for x in parts])
    assert len(traced) <= 20


def test_models_with_weights_of_their_own():
    members = st.Ensemble.init(lambda key: nn.Linear(4, 2, key=key), random.key(0), 3)
    r = st.ragged(PARTS)
    one = lambda model, r: st.vmap(lambda x: model(x).mean(0))(r)
    out = snp.stack([one(members[i], r) for i in range(3)])
    close(out[1][2], np.asarray(members[1](PARTS[2])).mean(0))


def test_what_is_refused():
    r = st.ragged(PARTS)
    with pytest.raises(NotImplementedError, match=r"float32\[n,n\] varies along axes \[0, 1\]"):
        st.vmap(lambda x: x @ x.T)(r)
    with pytest.raises(NotImplementedError, match="no elements for example 2"):
        st.vmap(lambda x: x[1:])(r)
    with pytest.raises(ValueError, match=r"numbers of examples differ: \[3, 5\]"):
        st.vmap(lambda x, y: x.sum() + y)(r, np.ones(3))
    with pytest.raises(ValueError, match="mapped along axis 0, got 1"):
        st.vmap(lambda x: x.sum(), in_axes=1)(r)
    with pytest.raises(NotImplementedError, match="neither chunk_size nor axis_name"):
        st.vmap(lambda x: x.sum(), chunk_size=2)(r)


def test_one_inside_another():
    others = st.ragged([snp.ones(4), snp.arange(3.0), snp.ones(1)])
    x = st.ragged(PARTS)

    def of_one(w, x):
        by_row = lambda y: ((x @ w).sum(1)[:, None] * y[None]).max(1).sum() + x.shape[0]
        return st.vmap(by_row)(others).sum()

    wanted = [of_one(W, part) for part in PARTS]
    np.testing.assert_allclose(st.vmap(of_one, (None, 0))(W, x), wanted, rtol=1e-5)
    both = st.jit(st.grad(lambda w, x: st.vmap(of_one, (None, 0))(w, x).sum()))
    slope = sum(st.grad(of_one)(W, part) for part in PARTS)
    np.testing.assert_allclose(both(W, x), slope, rtol=1e-4)
    for n, part in zip(LENGTHS, PARTS):
        any_size = st.jit(of_one, dynamic_axes=(None, {0: "n"}))
        np.testing.assert_allclose(any_size(W, part), of_one(W, part), rtol=1e-5, err_msg=str(n))


def test_results_of_the_size_outside():
    others = st.ragged([snp.ones(4), snp.arange(3.0)])
    f = lambda x: st.vmap(lambda y: x * y.sum())(others)
    x = snp.arange(3.0)
    np.testing.assert_allclose(st.jit(f, dynamic_axes=({0: "n"},))(x), f(x))


def test_what_all_examples_share():
    x, others = st.ragged(PARTS), st.ragged([snp.ones(4), snp.arange(3.0)])
    f = lambda x, r: x.sum() + st.vmap(snp.sum)(r).sum()
    wanted = [f(part, others) for part in PARTS]
    np.testing.assert_allclose(st.vmap(f, (0, None))(x, others), wanted, rtol=1e-5)
    np.testing.assert_allclose(st.jit(st.vmap(f, (0, None)))(x, others), wanted, rtol=1e-5)
    np.testing.assert_allclose(st.vmap(f, (0, None))(snp.arange(2.0), others), [7.0, 8.0])
