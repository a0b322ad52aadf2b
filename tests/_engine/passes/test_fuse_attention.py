"""Attention in one call: what is found, and that values and derivatives stay."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.api.graph import make_graph
from stretto._engine.core.program import check
from stretto._engine.kernels import kernels
from stretto._engine.ops.fused_attention import FusedAttention
from stretto._engine.passes.barriers import run_on_xla_thread
from stretto._engine.passes.fuse_attention import fuse_attention
from stretto._engine.passes.prepare import prepare

F = nn.functional
BATCH, HEADS, ROWS, KEYS, FEATURES = 2, 4, 40, 140, 16


def drawn(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def heads(q, k, v, mask=None, **settings):
    return F.scaled_dot_product_attention(q, k, v, mask, **settings)


def by_hand(q, k, v, hidden=-1e9, offset=0):
    scores = snp.einsum("bhtd,bhsd->bhts", q, k) / np.float32(np.sqrt(FEATURES))
    seen = snp.arange(ROWS)[:, None] + offset >= snp.arange(KEYS)
    return snp.einsum("bhts,bhsd->bhtd", F.softmax(snp.where(seen, scores, hidden), -1), v)


def inverted(q, k, v):
    """With a mask that says what is hidden, and positions in the order of the axes' names."""
    scores = snp.einsum("bhtd,bhsd->bhts", q * 0.25, k)
    hidden = snp.arange(KEYS) > snp.arange(ROWS)[:, None] + 9
    weights = F.softmax(snp.where(hidden, -snp.inf, scores), dim=-1)
    return snp.einsum("bhts,bhsd->bthd", weights, v)


def windowed(q, k, v):
    """With two masks, of which one has every row for itself, and an array added."""
    scores = snp.einsum("bhtd,bhsd->bhts", q, k) * 0.3 + snp.asarray(drawn(HEADS, ROWS, KEYS))
    seen = snp.asarray(drawn(BATCH, 1, ROWS, KEYS) > -1)
    near = snp.abs(snp.arange(ROWS)[:, None] - snp.arange(KEYS)) < 30
    scores = snp.where(near, snp.where(seen, scores, -1e4), -1e5)
    return snp.einsum("bhts,bhsd->bhtd", F.softmax(scores, dim=-1), v)


def grouped(q, k, v):
    return heads(q, k[:, :2], v[:, :2], enable_gqa=True)


def repeated(q, k, v):
    return heads(q, snp.repeat(k[:, :2], 2, axis=1), snp.repeat(v[:, :2], 2, axis=1))


def from_one(q, k, v):
    """With heads that lie beside each other, as one product for all leaves them."""
    x = snp.concatenate([q, k[:, :, :ROWS], v[:, :, :ROWS]], axis=-1)
    q, k, v = snp.moveaxis(x.reshape(BATCH, HEADS, ROWS, 3, FEATURES), 3, 0)
    turned = heads(q, k, v, is_causal=True).swapaxes(1, 2)
    return turned.reshape(BATCH, ROWS, HEADS * FEATURES)


def weights_read(q, k, v):
    weights = F.softmax(q @ k.swapaxes(-1, -2), dim=-1)
    return weights @ v + weights.sum() * 1e-4


def dropped(q, k, v):
    weights = F.softmax(q @ k.swapaxes(-1, -2), dim=-1)
    kept = snp.asarray(drawn(ROWS, KEYS) > 0)
    return snp.where(kept, weights, 0) @ v


def of_greatest(q, k, v):
    scores = q @ k.swapaxes(-1, -2)
    return F.softmax(scores, dim=-1) @ v + scores.max(-1, keepdims=True)


def scores_read(q, k, v):
    scores = q @ k.swapaxes(-1, -2)
    return F.softmax(scores, dim=-1) @ v + scores.mean(-1, keepdims=True)


def sums_read(q, k, v):
    scores = q @ k.swapaxes(-1, -2)
    e = snp.exp(scores - st.lax.stop_gradient(scores.max(-1, keepdims=True)))
    total = e.sum(-1, keepdims=True)
    return (e @ v) / total + snp.log(total)


def values_of_sums(q, k, v):
    """With values that depend on the sums: one call cannot read what it makes."""
    scores = q @ k.swapaxes(-1, -2)
    e = snp.exp(scores - st.lax.stop_gradient(scores.max(-1, keepdims=True)))
    total = e.sum(-1, keepdims=True)
    return (e / total) @ (v + total[:, :, :1])


FUNCTIONS = {
    "plain": (heads, 1, 2),
    "causal": (lambda q, k, v: heads(q, k, v, is_causal=True), 1, 2),
    "boolean": (lambda q, k, v: heads(q, k, v, snp.asarray(drawn(BATCH, 1, 1, KEYS) > -1)), 1, 2),
    "all hidden": (lambda q, k, v: heads(q, k, v, snp.asarray(drawn(ROWS, KEYS) > 9)), 1, 2),
    "added": (lambda q, k, v: heads(q, k, v, snp.asarray(drawn(ROWS, KEYS))), 1, 2),
    "by hand": (by_hand, 1, 2),
    "by hand, infinite": (lambda q, k, v: by_hand(q, k, v, -np.inf), 1, 2),
    "few are seen": (lambda q, k, v: by_hand(q, k, v, -1e4, offset=-20), 1, 2),
    "nearly hidden": (lambda q, k, v: by_hand(q, k, v, -2.0), 1, 2),
    "inverted": (inverted, 1, 2),
    "windowed": (windowed, 1, 2),
    "scaled keys and values": (lambda q, k, v: heads(q * 0.5, k * 0.25, v * 2.0), 1, 2),
    "a scaled array is added": (
        lambda q, k, v: heads(q, k, v, snp.asarray(drawn(ROWS, KEYS)) * q[0, 0, 0, 0] * 3.0),
        1,
        None,
    ),
    "grouped": (grouped, 1, 2),
    "repeated": (repeated, 1, 2),
    "from one": (from_one, 1, 2),
    "one query": (lambda q, k, v: heads(q[:, :, :1], k, v), 1, 0),
    "no queries' axis": (lambda q, k, v: heads(q[:, :, :1] * 1, k, v)[:, :, 0], 1, 0),
    "sums are read": (sums_read, 1, None),
    "values of sums": (values_of_sums, 0, 0),
    "weights are read": (weights_read, 0, 0),
    "dropped": (dropped, 0, 0),
    "scores are read": (scores_read, 0, 0),
    "the greatest scores are read": (of_greatest, 1, 0),
    "other axis": (lambda q, k, v: F.softmax(q @ k.swapaxes(-1, -2), dim=0) @ v, 0, 0),
}
"""Each with the calls in its program, and in that of its derivative where they are known."""


@pytest.fixture
def arrays():
    return drawn(BATCH, HEADS, ROWS, FEATURES), *drawn(2, BATCH, HEADS, KEYS, FEATURES)


def calls(program):
    return [e for e in program.equations if isinstance(e.primitive, FusedAttention)]


def gradient_of(f):
    return st.grad(lambda *a: (f(*a) ** 2).sum(), argnums=(0, 1, 2))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_found(name, arrays):
    f, forward, gradient = FUNCTIONS[name]
    for function, count in ((f, forward), (gradient_of(f), gradient)):
        program = fuse_attention(prepare(make_graph(function)(*arrays)))
        check(program)
        assert count is None or len(calls(program)) == count


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_stay(name, arrays):
    f = FUNCTIONS[name][0]
    with st.enable_x64(True):
        wide = [a.astype(np.float64) for a in arrays]
        for function in (lambda *a: (f(*a),), gradient_of(f)):
            program = prepare(make_graph(function)(*wide))
            with st.config(kernels=False):
                expected = [np.asarray(a, np.float64) for a in st.jit(function)(*wide)]
            fused = fuse_attention(program)
            for got, e in zip(st.jit(function)(*wide), expected, strict=True):
                np.testing.assert_allclose(got, e, rtol=1e-10, atol=1e-11 * np.abs(e).max())
            assert len(fused.equations) <= len(program.equations)
    for function in (lambda *a: (f(*a),), gradient_of(f)):
        with st.config(kernels=False):
            expected = [np.asarray(a) for a in st.jit(function)(*arrays)]
        for got, e in zip(st.jit(function)(*arrays), expected, strict=True):
            np.testing.assert_allclose(got, e, atol=2e-5 * np.abs(e).max())


@pytest.mark.parametrize("name", ["plain", "causal", "windowed", "grouped", "by hand"])
def test_references_are_the_operations(name, arrays):
    f = FUNCTIONS[name][0]
    program = fuse_attention(prepare(make_graph(gradient_of(f))(*arrays)))
    for e in calls(program):
        types = [a.type for a in e.inputs]
        assert e.primitive.infer(*types) == tuple([v.type for v in e.outputs])
        values = [drawn(*t.shape) > 0 if t.dtype == bool else drawn(*t.shape) for t in types]
        outs = e.primitive.reference(*values)
        assert [o.shape for o in outs] == [v.type.shape for v in e.outputs]
        with pytest.raises(TypeError, match="fused_attention: expected"):
            e.primitive.infer(types[0].with_shape((3,)), *types[1:])


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
@pytest.mark.parametrize("name", ["plain", "causal", "boolean", "added", "by hand", "grouped"])
@pytest.mark.parametrize("shared", [(), (1, 2), (0,), (1,)])
def test_members(name, shared, arrays):
    f = FUNCTIONS[name][0]
    members = 3
    axes = tuple([None if i in shared else 0 for i in range(3)])
    args = [a if i in shared else np.stack([a * (m + 1) for m in range(members)])
            for i, a in enumerate(arrays)]  # fmt: skip
    for function in (lambda *a: (f(*a),), gradient_of(f)):
        got = st.jit(st.vmap(function, in_axes=axes))(*args)
        for m in range(members):
            own = [a if i in shared else a[m] for i, a in enumerate(args)]
            with st.config(kernels=False):
                expected = st.jit(function)(*own)
            for one, e in zip(got, expected, strict=True):
                np.testing.assert_allclose(one[m], e, atol=3e-5 * np.abs(np.asarray(e)).max())


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["plain", "causal", "by hand", "by hand, infinite", "windowed"])
def test_what_is_not_finite(name, bad, arrays):
    f = FUNCTIONS[name][0]
    for which in range(3):
        args = [a.copy() for a in arrays]
        args[which][0, 1, 30, 3] = bad
        for function in (lambda *a: (f(*a),), gradient_of(f)):
            with st.config(kernels=False):
                expected = [np.asarray(a) for a in st.jit(function)(*args)]
            for got, e in zip(st.jit(function)(*args), expected, strict=True):
                finite = np.abs(e[np.isfinite(e)]).max(initial=1)
                np.testing.assert_allclose(got, e, atol=2e-5 * finite)


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
def test_heads_are_read_where_they_lie():
    x = drawn(BATCH, ROWS, 3 * HEADS * FEATURES)

    def f(x):
        q, k, v = snp.moveaxis(x.reshape(BATCH, ROWS, 3, HEADS, FEATURES), (2, 3), (0, 2))
        return heads(q, k, v).swapaxes(1, 2)

    text = st.jit(f).lower(x).compile().as_text()
    assert len([line for line in text.splitlines() if "custom-call(" in line]) == 1
    assert '"stretto_attention"' in text
    assert "transpose(" not in text


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
def test_who_calls_does_not_wait_for_the_kernel():
    attend = lambda q: F.softmax(q @ q.swapaxes(-1, -2), dim=-1) @ q
    program = prepare(make_graph(attend)(np.ones((4, 1024, 64), np.float32)))
    assert len(run_on_xla_thread(program).equations) > len(program.equations)


def test_programs_without_are_left():
    program = make_graph(lambda x, y: F.softmax(x @ y, dim=-1))(drawn(40, 16), drawn(16, 50))
    assert fuse_attention(program) is program


@pytest.mark.parametrize(
    ("rows", "keys", "features", "columns", "worth"),
    [
        (16, 16, 8, 8, True),
        (16, 15, 8, 8, False),
        (64, 64, 7, 8, False),
        (64, 64, 8, 7, False),
        (64, 64, 256, 256, True),
        (64, 64, 257, 8, False),
        (64, 64, 8, 257, False),
    ],
)
def test_sizes_for_which_a_kernel_is_called(rows, keys, features, columns, worth):
    q, k, v = drawn(1, rows, features), drawn(1, keys, features), drawn(1, keys, columns)
    attend = lambda q, k, v: F.softmax(q @ k.swapaxes(-1, -2), dim=-1) @ v
    assert len(calls(fuse_attention(prepare(make_graph(attend)(q, k, v))))) == worth


@pytest.mark.parametrize(("keys", "count"), [(31, 0), (32, 2), (33, 2)])
def test_scores_from_which_on_gradients_are_called(keys, count):
    q, k, v = drawn(1, 32, 16), *drawn(2, 1, keys, 16)
    attend = lambda q, k, v: F.softmax(q @ k.swapaxes(-1, -2), dim=-1) @ v
    program = prepare(make_graph(gradient_of(attend))(q, k, v))
    assert len(calls(fuse_attention(program))) == count


@pytest.mark.parametrize(("count", "found"), [(1, 1), (4, 1), (5, 0)])
def test_as_many_arrays_are_added_as_the_kernel_has_steps(count, found, arrays):
    added = [drawn(ROWS, KEYS, seed=n) for n in range(count)]

    def attend(q, k, v):
        scores = q @ k.swapaxes(-1, -2)
        for one in added:
            scores = scores + snp.asarray(one)
        return F.softmax(scores, dim=-1) @ v

    assert len(calls(fuse_attention(prepare(make_graph(attend)(*arrays))))) == found


def scores_of(q, k, v):
    return q @ k.swapaxes(-1, -2)


def total_of(e, top):
    return e.sum(-1, keepdims=True)


def written(scores=scores_of, shift=lambda s, top: top, total=total_of,
            out=lambda e, t, v: (e / t) @ v):  # fmt: skip
    """Attention written out, of which some part is another.

    There are reductions of other arrays beside it, or programs without any would not be looked at.
    """

    def attend(q, k, v):
        s = scores(q, k, v)
        top = s.max(-1, keepdims=True)
        e = snp.exp(s - shift(s, top))
        return out(e, total(e, top), v), v.max(0), v.sum(0)

    return attend


def hidden_in_all(
    zero=0.0,
    hides=lambda top: top == -np.inf,
    more=lambda none, top: none,
    turned=False,
    greatest=lambda s, top: top,
    total=total_of,
):
    """The same where rows may be hidden altogether, of which some part is another."""

    def attend(q, k, v):
        s = snp.where(snp.asarray(drawn(ROWS, KEYS) > 0), scores_of(q, k, v), -np.inf)
        top = s.max(-1, keepdims=True)
        none, most = hides(top), greatest(s, top)
        e = snp.exp(s - (snp.where(none, most, zero) if turned else snp.where(none, zero, most)))
        t = total(e, top)
        if more is not None:
            t = t + more(none, top).astype(e.dtype)
        return (e / t) @ v, v.max(0), v.sum(0)

    return attend


def given(*_):
    """One value a row, of no sum."""
    return snp.asarray(drawn(BATCH, HEADS, ROWS, 1))


def masked(other):
    mask = snp.asarray(drawn(ROWS, KEYS) > 0)
    return written(lambda q, k, v: snp.where(mask, scores_of(q, k, v), other))


ALIKE = {
    "attention": written(),
    "where rows may be hidden": hidden_in_all(),
    "a mask": masked(-1e9),
    "divided behind": written(out=lambda e, t, v: (e @ v) / t),
    "times the least normal number": written(
        lambda q, k, v: scores_of(q, k, v) * np.finfo(np.float32).tiny
    ),
    "times the greatest number": written(
        lambda q, k, v: scores_of(q, k, v) * np.finfo(np.float32).max
    ),
}
UNLIKE = {
    "1 for the greatest": hidden_in_all(zero=1.0),
    "another least": hidden_in_all(hides=lambda top: top == -1e30),
    "no more than the least": hidden_in_all(hides=lambda top: top <= -np.inf),
    "rows that are given": hidden_in_all(hides=lambda top: given() > 0),
    "rows of which another value is least": hidden_in_all(hides=lambda top: given() == -np.inf),
    "the greatest of others where rows may be hidden": hidden_in_all(
        greatest=lambda s, top: (s * 2).max(-1, keepdims=True)
    ),
    "what is given where rows may be hidden": hidden_in_all(greatest=given),
    "nothing is added": hidden_in_all(more=None),
    "given sums": hidden_in_all(more=None, total=given),
    "given sums, and 1 for what is hidden": hidden_in_all(total=given),
    "given sums, and a number": hidden_in_all(
        total=given, more=lambda none, top: snp.ones_like(top)
    ),
    "given sums, and another condition": hidden_in_all(
        total=given, more=lambda none, top: top == 0
    ),
    "the greatest for 0": hidden_in_all(turned=True),
    "a number is added": hidden_in_all(more=lambda none, top: snp.ones_like(top)),
    "another condition": hidden_in_all(more=lambda none, top: top == 0),
    "1 where nothing is hidden": written(total=lambda e, top: total_of(e, top) + (top < 0)),
    "two products": written(lambda q, k, v: scores_of(q, k, v) + scores_of(q, v, k)),
    "a difference": written(lambda q, k, v: snp.asarray(drawn(ROWS, KEYS)) - scores_of(q, k, v)),
    "a function": written(lambda q, k, v: snp.sin(scores_of(q, k, v))),
    "a divisor": written(lambda q, k, v: 2.0 / scores_of(q, k, v)),
    "times 0": written(lambda q, k, v: scores_of(q, k, v) * 0.0),
    "times a number that is not normal": written(lambda q, k, v: scores_of(q, k, v) * 1e-40),
    "times infinity": written(lambda q, k, v: scores_of(q, k, v) * np.inf),
    "precise scores": written(
        lambda q, k, v: snp.matmul(q, k.swapaxes(-1, -2), precision="highest")
    ),
    "precise values": written(out=lambda e, t, v: snp.matmul(e / t, v, precision="highest")),
    "a mask of NaN": masked(np.nan),
    "a mask of infinity": masked(np.inf),
    "a mask of an array": masked(drawn(ROWS, KEYS)),
    "scores that are given": written(lambda q, k, v: snp.asarray(drawn(BATCH, HEADS, ROWS, KEYS))),
    "scores plus a number": written(lambda q, k, v: scores_of(q, k, v) + 0.5),
    "a number for the greatest": written(shift=lambda s, top: 1.0),
    "what is given for the greatest": written(shift=given),
    "the least": written(shift=lambda s, top: s.min(-1, keepdims=True)),
    "the greatest of another array": written(
        shift=lambda s, top: snp.asarray(drawn(BATCH, HEADS, ROWS, KEYS)).max(-1, keepdims=True)
    ),
    "the greatest of columns": written(
        lambda q, k, v: q @ q.swapaxes(-1, -2),
        shift=lambda s, top: s.swapaxes(-1, -2).max(-1, keepdims=True),
        out=lambda e, t, v: (e / t) @ v[:, :, :ROWS],
    ),
    "sums that are given": written(total=given),
    "the sum of another array": written(
        total=lambda e, top: snp.asarray(drawn(BATCH, HEADS, ROWS, KEYS)).sum(-1, keepdims=True)
    ),
    "divided at every place": written(
        out=lambda e, t, v: (e / snp.asarray(drawn(BATCH, HEADS, ROWS, KEYS))) @ v
    ),
    "divided at every place behind": written(out=lambda e, t, v: (e @ v) / v[:, :, :ROWS]),
    "one key": written(
        lambda q, k, v: q.reshape(-1, FEATURES) @ k[0, 0, :1].T,
        out=lambda e, t, v: (e / t) @ v[0, 0, :1],
    ),
    "a function of the greatest for sums": written(total=lambda e, top: snp.exp(top)),
    "the greatest for sums": written(total=lambda e, top: top),
    "a function of the greatest where rows may be hidden": hidden_in_all(
        total=lambda e, top: snp.exp(top)
    ),
    "it alone": hidden_in_all(total=lambda e, top: snp.exp(top), more=None),
    "it and a number": hidden_in_all(
        total=lambda e, top: snp.exp(top), more=lambda none, top: snp.ones_like(top)
    ),
    "it and another condition": hidden_in_all(
        total=lambda e, top: snp.exp(top), more=lambda none, top: top == 0
    ),
    "half the greatest where rows may be hidden": hidden_in_all(greatest=lambda s, top: top / 2),
    "rows with a great score": hidden_in_all(hides=lambda top: top > 0),
    "half the greatest": written(shift=lambda s, top: top / 2),
    "the greatest of all": written(shift=lambda s, top: s.max()),
    "the greatest of others": written(shift=lambda s, top: (s * 2).max(-1, keepdims=True)),
    "the sum of others": written(total=lambda e, top: total_of(e * 2, top)),
    "sums over queries": written(total=lambda e, top: e.sum(-2, keepdims=True)),
    "the sum of all": written(total=lambda e, top: e.sum((-1, -2), keepdims=True)),
    "products": written(total=lambda e, top: e.prod(-1, keepdims=True)),
    "sums that are not used": written(out=lambda e, t, v: e @ v),
    "divided by more": written(out=lambda e, t, v: (e @ v) / (t + 1)),
    "sums that are divided": written(out=lambda e, t, v: (t / e) @ v),
    "weights times weights": written(
        lambda q, k, v: q @ q.swapaxes(-1, -2), out=lambda e, t, v: (e / t) @ (e / t)
    ),
    "two values": written(out=lambda e, t, v: (e / t) @ v + (e / t) @ (v * 2)),
    "values of queries": written(
        lambda q, k, v: q @ k[:, :, :ROWS].swapaxes(-1, -2),
        out=lambda e, t, v: (e / t).swapaxes(-1, -2) @ v[:, :, :ROWS],
    ),
}


@pytest.mark.parametrize("name", [*ALIKE, *UNLIKE])
def test_what_is_a_little_unlike_attention_stays(name, arrays):
    f = ALIKE.get(name) or UNLIKE[name]
    program = fuse_attention(prepare(make_graph(f)(*arrays)))
    check(program)
    assert len(calls(program)) == (name in ALIKE)


# Gradients


def turned(x):
    return x.swapaxes(-1, -2)


def product(x, y):
    return x @ turned(y)


def gradients(
    of_weights=product,
    divided=lambda value, t: value / t,
    beside=lambda w, value: (w * -value).sum(-1, keepdims=True),
    total=lambda value, beside: value + beside,
    times=lambda total, e: total * e,
    back=lambda d: d,
    d_q=lambda d, k: d @ k,
    d_k=lambda d, q: turned(d) @ q,
    d_v=lambda w, x: turned(w) @ x,
    scores=scores_of,
    more=lambda d: (),
    read=lambda product_of, value: (),
    late=False,
):
    """Attention and its gradients written out, of which some part is another."""

    def attend(q, k, v, x):
        s = scores(q, k, v)
        e = snp.exp(s - s.max(-1, keepdims=True))
        t = e.sum(-1, keepdims=True)
        if late:
            w, out = e, (e @ v) / t
        else:
            w = e / t
            out = w @ v
        product_of = of_weights(x, v)
        value = divided(product_of, t)
        d = back(times(total(value, beside(w, value)), e))
        return out, d_q(d, k), d_k(d, q), d_v(w, x), *more(d), *read(product_of, value)

    return attend


MASK = drawn(ROWS, KEYS) > 0
OTHER_MASK = drawn(ROWS, KEYS, seed=1) > 0


def below(offset):
    return snp.arange(ROWS)[:, None] + offset >= snp.arange(KEYS)


def undone(seen, again=None, zero=0.0, swapped=False):
    """With a mask, and what its own gradient is made to be."""
    masks = []

    def scores(q, k, v):
        masks[:] = [seen()]
        return snp.where(masks[0], scores_of(q, k, v), -1e9)

    def back(d):
        mask = again() if again else masks[0]
        return snp.where(mask, zero, d) if swapped else snp.where(mask, d, zero)

    return gradients(scores=scores, back=back)


def scaled(by, back):
    return gradients(scores=lambda q, k, v: scores_of(q, k, v) * by, back=lambda d: d * back)


def divided_behind(beside=given, **parts):
    """With exponentials, not weights; what is beside is any number for each row."""
    return gradients(divided=lambda value, t: value, beside=beside, late=True, **parts)


mask, other_mask = lambda: snp.asarray(MASK), lambda: snp.asarray(OTHER_MASK)
GRADIENTS = {
    "gradients": gradients(),
    "divided behind": divided_behind(),
    "a mask": undone(mask),
    "a causal mask": undone(lambda: below(3), lambda: below(3)),
    "a factor": scaled(0.5, 0.5),
    "a factor of keys and queries": gradients(
        scores=lambda q, k, v: (q * 0.25) @ turned(k),
        d_q=lambda d, k: (d @ k) * 0.25,
        d_k=lambda d, q: turned(d) @ (q * 0.25),
    ),
}
OTHERS = {
    "divided behind, and once more": divided_behind(back=lambda d: d / given()),
    "beside of one row": divided_behind(lambda w, value: snp.asarray(drawn(BATCH, HEADS, 1, KEYS))),
    "beside of fewer heads": divided_behind(lambda w, value: snp.asarray(drawn(BATCH, 1, ROWS, 1))),
    "beside in another order": divided_behind(
        lambda w, value: snp.asarray(drawn(HEADS, BATCH, ROWS, 1)).swapaxes(0, 1)
    ),
    "a number beside": divided_behind(lambda w, value: 2.0),
    "another mask": undone(mask, other_mask),
    "the mask the other way": undone(mask, swapped=True),
    "1 where it is hidden": undone(mask, zero=1.0),
    "another offset": undone(lambda: below(3), lambda: below(4)),
    "a causal mask for another": undone(mask, lambda: below(3)),
    "another mask for a causal one": undone(lambda: below(3), mask),
    "no mask": gradients(scores=lambda q, k, v: snp.where(mask(), scores_of(q, k, v), -1e9)),
    "a mask more": gradients(back=lambda d: snp.where(mask(), d, 0.0)),
    "a function of a mask": gradients(
        scores=lambda q, k, v: snp.where(mask(), scores_of(q, k, v), -1e9), back=snp.sin
    ),
    "another factor": scaled(0.5, 0.25),
    "no factor": gradients(scores=lambda q, k, v: scores_of(q, k, v) * 0.5),
    "a factor more": gradients(back=lambda d: d * 0.5),
    "a factor for a mask": gradients(
        scores=lambda q, k, v: snp.where(mask(), scores_of(q, k, v), -1e9), back=lambda d: d * 0.5
    ),
    "a mask for a factor": gradients(
        scores=lambda q, k, v: scores_of(q, k, v) * 0.5, back=lambda d: snp.where(mask(), d, 0.0)
    ),
    "precise gradients of weights": gradients(
        of_weights=lambda x, v: snp.matmul(x, turned(v), precision="highest")
    ),
    "gradients of weights that are given": gradients(
        of_weights=lambda x, v: snp.asarray(drawn(BATCH, HEADS, ROWS, KEYS))
    ),
    "a function of them": gradients(of_weights=lambda x, v: snp.sin(product(x, v))),
    "another factor than values": gradients(of_weights=lambda x, v: product(x, v * v)),
    "not divided": gradients(divided=lambda value, t: value),
    "divided by others": gradients(divided=lambda value, t: value / (t + 1)),
    "multiplied": gradients(divided=lambda value, t: value * t),
    "nothing beside": gradients(total=lambda value, beside: value),
    "less what is beside": gradients(total=lambda value, beside: value - beside),
    "beside in every place": gradients(beside=lambda w, value: w * -value),
    "beside is given": gradients(beside=lambda w, value: snp.asarray(drawn(BATCH, HEADS, ROWS, 1))),
    "beside without its sign": gradients(
        beside=lambda w, value: (w * value).sum(-1, keepdims=True)
    ),
    "beside of a quotient": gradients(beside=lambda w, value: (w / -value).sum(-1, keepdims=True)),
    "beside of other weights": gradients(
        beside=lambda w, value: (snp.sin(w) * -value).sum(-1, keepdims=True)
    ),
    "beside of other weights, which come last": gradients(
        beside=lambda w, value: (-value * snp.sin(w)).sum(-1, keepdims=True)
    ),
    "the gradient of weights is read": gradients(read=lambda product_of, value: (value,)),
    "what it is divided from is read": gradients(read=lambda product_of, value: (product_of,)),
    "the product is read": divided_behind(read=lambda product_of, value: (product_of,)),
    "a function of the product": divided_behind(
        read=lambda product_of, value: (snp.sin(product_of),)
    ),
    "beside of another gradient": gradients(
        beside=lambda w, value: (w * -snp.sin(value)).sum(-1, keepdims=True)
    ),
    "beside of squares": gradients(beside=lambda w, value: (w * w).sum(-1, keepdims=True)),
    "the greatest beside": gradients(beside=lambda w, value: (w * -value).max(-1, keepdims=True)),
    "sums over queries beside": gradients(
        beside=lambda w, value: (w * -value).sum(-2, keepdims=True)
    ),
    "a quotient of exponentials": gradients(times=lambda total, e: total / e),
    "exponentials twice": gradients(times=lambda total, e: total * e * e),
    "another product of exponentials": gradients(times=lambda total, e: total * e + e * 2.0),
    "precise queries": gradients(d_q=lambda d, k: snp.matmul(d, k, precision="highest")),
    "precise keys": gradients(d_k=lambda d, q: snp.matmul(turned(d), q, precision="highest")),
    "precise values": gradients(d_v=lambda w, x: snp.matmul(turned(w), x, precision="highest")),
    "queries of other keys": gradients(d_q=lambda d, k: d @ (k + 1)),
    "keys of other queries": gradients(d_k=lambda d, q: turned(d) @ (q + 1)),
    "values of another gradient": gradients(d_v=lambda w, x: turned(w) @ (x + 1)),
    "queries of scaled keys": gradients(d_q=lambda d, k: d @ (k * 0.5)),
    "keys of scaled queries": gradients(d_k=lambda d, q: turned(d) @ (q * 0.5)),
    "no queries": gradients(d_q=lambda d, k: k),
    "no keys": gradients(d_k=lambda d, q: q),
    "no values": gradients(d_v=lambda w, x: x),
    "a function for keys": gradients(d_k=lambda d, q: turned(snp.sin(d)) @ q),
    "sums for queries": gradients(d_q=lambda d, k: d.sum(-1)),
    "queries twice": gradients(more=lambda d: (d @ snp.asarray(drawn(KEYS, FEATURES)),)),
    "keys twice": gradients(more=lambda d: (turned(d) @ snp.asarray(drawn(ROWS, FEATURES)),)),
    "gradients of scores": gradients(more=lambda d: (d,)),
    "a function of gradients of scores": gradients(more=lambda d: (snp.sin(d),)),
    "keys of all heads": gradients(d_k=lambda d, q: snp.einsum("bhts,bhtd->bsd", d, q)),
    "keys and values of all heads": gradients(
        d_k=lambda d, q: snp.einsum("bhts,bhtd->bsd", d, q),
        d_v=lambda w, x: snp.einsum("bhts,bhtd->bsd", w, x),
    ),
    "values of all examples": gradients(d_v=lambda w, x: snp.einsum("bhts,bhtd->hsd", w, x)),
    "queries of all heads": gradients(d_q=lambda d, k: snp.einsum("bhts,bhsd->btd", d, k)),
}


@pytest.mark.parametrize("name", [*GRADIENTS, *OTHERS])
def test_what_is_a_little_unlike_gradients_stays(name, arrays):
    f = GRADIENTS.get(name) or OTHERS[name]
    program = fuse_attention(prepare(make_graph(f)(*arrays, drawn(*arrays[0].shape, seed=2))))
    check(program)
    assert len(calls(program)) == 2 * (name in GRADIENTS)


MANY, MORE = 260, 270
"""So many rows and keys that numbers which were added to their places are not folded."""

SCORES = {
    "a factor": (lambda s: s * 0.5, [("multiply", 0.5, 0)]),
    "a divisor": (lambda s: s / 4, [("multiply", 0.25, 0)]),
    "a mask": (
        lambda s: snp.where(snp.asarray(drawn(MANY, MORE) > 0), s, -1e9),
        [("select", -1e9, 0)],
    ),
    "a mask of what is hidden": (
        lambda s: snp.where(snp.asarray(drawn(MANY, MORE) > 0), -7.0, s),
        [("select", -7.0, 1)],
    ),
    "an array": (lambda s: s + snp.asarray(drawn(MANY, MORE)), [("add", 0.0, 0)]),
    "causal": (
        lambda s: snp.where(snp.arange(MANY)[:, None] + 3 >= snp.arange(MORE), s, -1e9),
        [("causal", -1e9, 3)],
    ),
    "causal, without its own": (
        lambda s: snp.where(snp.arange(MANY)[:, None] > snp.arange(MORE), s, -1e9),
        [("causal", -1e9, -1)],
    ),
    "causal, of what is hidden": (
        lambda s: snp.where(snp.arange(MORE) > snp.arange(MANY)[:, None] + 9, -np.inf, s),
        [("causal", -np.inf, 9)],
    ),
    "causal along another axis": (
        lambda s: snp.where(snp.arange(HEADS)[:, None, None] + 3 >= snp.arange(MORE), s, -1e9),
        [("select", -1e9, 0)],
    ),
    "several": (
        lambda s: snp.where(
            snp.arange(MANY)[:, None] >= snp.arange(MORE),
            s * 0.5 + snp.asarray(drawn(MANY, MORE)),
            -1e9,
        ),
        [("multiply", 0.5, 0), ("add", 0.0, 0), ("causal", -1e9, 0)],
    ),
}


@pytest.mark.parametrize("name", SCORES)
def test_what_is_done_to_scores_is_told_in_order(name):
    q, k = drawn(1, HEADS, MANY, FEATURES), drawn(1, HEADS, MORE, FEATURES)
    change, steps = SCORES[name]
    f = written(lambda q, k, v: change(scores_of(q, k, v)))
    program = fuse_attention(prepare(make_graph(f)(q, k, k)))
    geometry = calls(program)[0].primitive.geometry
    close = lambda x: float(np.float32(x))
    assert [(s.kind, close(s.constant), s.offset) for s in geometry.steps] == [
        (kind, close(constant), offset) for kind, constant, offset in steps
    ]
    sizes = ((HEADS,), MANY, MORE, FEATURES, FEATURES, 1.0)
    assert geometry[:6] == sizes
    assert not (geometry.guarded or geometry.gradient or geometry.kept)


def test_the_scale_of_queries_is_told(arrays):
    f = lambda q, k, v: heads(q, k, v, scale=0.125)
    (call,) = calls(fuse_attention(prepare(make_graph(f)(*arrays))))
    geometry = call.primitive.geometry
    assert geometry.scale * np.prod([s.constant for s in geometry.steps]) == 0.125


@pytest.mark.parametrize("name", ["gradients", "divided behind"])
def test_what_gradients_are_told(name, arrays):
    f = GRADIENTS[name]
    program = fuse_attention(prepare(make_graph(f)(*arrays, drawn(*arrays[0].shape, seed=2))))
    forward, back = [call.primitive.geometry for call in calls(program)]
    assert (forward.kept, forward.gradient, back.gradient) == (True, False, True)
    assert back.kept == (name == "divided behind")
    assert back.places[:4] == forward.places
    _, *sizes, _ = zip(*[place.split for place in back.places[4:]], strict=True)
    assert sizes == [((HEADS,),) * 4, ((ROWS,), (ROWS,), (KEYS,), (KEYS,))]


def seen(offset, family=snp.greater_equal):
    return lambda: family(snp.arange(MANY)[:, None] + offset, snp.arange(MORE))


@pytest.mark.parametrize(
    ("mask", "again", "count"),
    [
        (seen(3), seen(3), 2),
        (seen(4, snp.greater), seen(3), 2),  # which says the same
        (seen(3), seen(2), 0),
        (seen(3), seen(4), 0),
        (seen(3), lambda: snp.arange(HEADS)[:, None, None] + 3 >= snp.arange(MORE), 0),
        (seen(3), lambda: snp.arange(MANY)[:, None] + 3 <= snp.arange(MORE), 0),
    ],
    ids=["same", "written otherwise", "less", "more", "another axis", "the other way"],
)
def test_gradients_have_the_causal_mask_of_scores(mask, again, count):
    q, k = drawn(1, HEADS, MANY, FEATURES), drawn(1, HEADS, MORE, FEATURES)
    program = fuse_attention(prepare(make_graph(undone(mask, again))(q, k, k, q)))
    check(program)
    assert len(calls(program)) == count
