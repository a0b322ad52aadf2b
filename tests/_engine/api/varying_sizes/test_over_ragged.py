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
    return snp.tanh(st.lax.segment_sum(x @ w, ids, 3)).sum(0)


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


EMPTIES = [[3, 0, 5], [0, 0], [0], [0, 1, 0, 9]]
OF_EMPTY = {
    "sum": lambda x: x.sum(0),
    "prod": lambda x: x.prod(0),
    "mean": lambda x: x.mean(0),
    "var": lambda x: x.var(0),
    "cov": lambda x: snp.cov(x.T),
    "any": lambda x: (x > 0).any(0),
    "all": lambda x: (x > 0).all(0),
    "max": lambda x: x.max(0, initial=-9.0),
    "cumsum": lambda x: snp.cumsum(x, 0),
    "sort": lambda x: snp.sort(x, 0),
    "flip": lambda x: snp.flip(x, 0),
    "roll": lambda x: snp.roll(x, 1, 0),
    "join": lambda x: snp.concatenate([x, x[:1]]),
    "rest": lambda x: x[1:],
    "matmul": lambda x: x @ W,
    "gram": lambda x: x.T @ x,
    "softmax": lambda x: nn.functional.softmax(x, 0),
    "logsumexp": lambda x: st.scipy.special.logsumexp(x, 0),
    "attention": lambda x: attention(W, x),
    "update": lambda x: x.at[-1].add(1.0).at[0].set(2.0),
    "unique": lambda x: snp.unique(x[:, 0], size=2, fill_value=7.0),
    "searchsorted": lambda x: snp.searchsorted(x[:, 0], 0.5),
    "histogram": lambda x: snp.histogram(x[:, 0], 3)[0],
    "split": lambda x: snp.split(x, [1], 0),
    "det": lambda x: snp.linalg.det(x @ x.T + snp.eye(x.shape[0])),
    "qr": lambda x: snp.linalg.qr(x)[1],
    "unwrap": lambda x: snp.unwrap(x[:, 0]),
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c * y), snp.zeros(4), x),
    "associative": lambda x: lax.associative_scan(snp.add, x),
    "segments": lambda x: segments(W, x),
}


@pytest.mark.parametrize("name", OF_EMPTY)
@pytest.mark.parametrize("lengths", EMPTIES, ids=str)
def test_arrays_without_elements(name, lengths):
    f = OF_EMPTY[name]
    parts = [np.sin(np.arange(4.0 * n, dtype=np.float32)).reshape(n, 4) for n in lengths]
    r = st.ragged(parts)
    wanted = [st.tree.leaves(f(snp.asarray(x))) for x in parts]
    for run in (st.vmap(f), st.jit(st.vmap(f))):
        outs = st.tree.leaves(run(r), is_leaf=lambda x: isinstance(x, type(r)))
        for i, own in enumerate(wanted):
            for out, value in zip(outs, own, strict=True):
                close(out[i], value)


@pytest.mark.parametrize(
    "name", ["prod", "mean", "cumsum", "sort", "softmax", "logsumexp", "attention", "det", "rest"]
)
def test_slopes_of_arrays_without_elements(name):
    f = OF_EMPTY[name]
    parts = [np.sin(np.arange(4.0 * n, dtype=np.float32)).reshape(n, 4) for n in (3, 0, 5)]
    r = st.ragged(parts)

    def loss(x):
        y = f(x)
        return snp.where(snp.isfinite(y), snp.sin(y), 0.0).sum()

    total = lambda r: st.vmap(loss)(r).sum()
    for run in (st.grad(total), st.jit(st.grad(total))):
        slope = run(r).like(r)
        for x, own in zip(parts, slope, strict=True):
            close(own, st.grad(loss)(snp.asarray(x)))


def test_without_elements_there_is_no_greatest():
    r = st.ragged([snp.ones((3, 4)), snp.ones((0, 4))])
    for f, name in (
        (lambda x: x.max(0), "max"),
        (lambda x: snp.argmin(x, 0), "argmin"),
        (lambda x: snp.median(x, 0), "median"),
        (lambda x: snp.nanmax(x, 0), "nanmax"),
        (lambda x: snp.maximum.reduce(x, 0), "maximum.reduce"),
        (lambda x: x[0], "indexing"),
        (lambda x: x[snp.array([0])], "indexing"),
    ):
        with pytest.raises(st.errors.SizeError, match=f"^{name}: .* is 0 for some of the examples"):
            st.vmap(f)(r)
        with pytest.raises(st.errors.SizeError, match=f"^{name}: .* known only while the program"):
            st.jit(st.vmap(f))(r)
    with pytest.raises(ValueError, match="max of an empty array is undefined"):
        st.vmap(lambda x: x.max(0))(r[1:])
    close(st.jit(st.vmap(lambda x: x.max(0)))(r[:1]), np.ones((1, 4)))  # it is known to have some


def test_results_of_jit_are_looked_at_between_calls():
    """Lengths that could be 0 while traced are known afterwards."""
    rest = st.jit(st.vmap(lambda x: x[1:]))(st.ragged([snp.arange(3.0), snp.arange(2.0)]))
    close(st.jit(st.vmap(snp.max))(rest), [2, 1])


@pytest.mark.parametrize("lengths", [[2, 7, 1], [0, 3], [1, 2]], ids=str)
def test_convolutions_of_arrays_that_are_too_short_are_empty(lengths):
    parts = [np.sin(np.arange(4.0 * n, dtype=np.float32)).reshape(n, 4) for n in lengths]
    r, kernel = st.ragged(parts), np.stack([W[:2], -W[1:3], W[2:]], -1)  # (2, 4, 3)
    f = lambda k, x: nn.functional.conv1d(x.T, k).T
    one = lambda k, x: f(k, x) if x.shape[0] >= 3 else snp.zeros((0, 2)) * x.sum()
    for run in (st.vmap(f, (None, 0)), st.jit(st.vmap(f, (None, 0)))):
        out = run(kernel, r)
        np.testing.assert_array_equal(out.lengths, [max(n - 2, 0) for n in lengths])
        for own, x in zip(out, parts, strict=True):
            close(own, one(kernel, snp.asarray(x)))
    total = lambda k, r: st.vmap(lambda x: (f(k, x) ** 2).sum())(r).sum()
    by_kernel, by_x = st.jit(st.grad(total, (0, 1)))(kernel, r)
    alone = [st.grad(lambda k, x: (one(k, x) ** 2).sum(), (0, 1))(kernel, x) for x in parts]
    close(by_kernel, sum(k for k, _ in alone), 1e-3)
    for own, (_, x) in zip(by_x.like(r), alone, strict=True):
        close(own, x, 1e-3)
    pooled = st.vmap(lambda x: nn.functional.max_pool1d(x.T, 2).T)(r)
    np.testing.assert_array_equal(pooled.lengths, [n // 2 for n in lengths])
    with pytest.raises(ValueError, match="conv1d: a kernel that spans 3 does not fit an axis"):
        st.jit(f, dynamic_axes=(None, {0: "n"}))(kernel, snp.ones((2, 4)))  # an array by itself


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


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (
            st.vmap(lambda x: {"a": x, "b": "no"}),
            TypeError,
            "^function: the result must be an array or a number; got builtins.str",
        ),
        (
            lambda r: lax.map(lambda x: (x, "no"), r),
            TypeError,
            "^function: the result must be an array or a number; got builtins.str",
        ),
        (
            lambda r: lax.scan(lambda c, x: (c, {"b": "no"}), 0.0, r),
            TypeError,
            r"^scan: the result\[1\]\['b'\] must be an array or a number",
        ),
        (
            lambda r: lax.scan(lambda c, x: (x.sum(0), c), 0.0, r),
            TypeError,
            r"init is float32\[\], but float32\[4\] is returned for it",
        ),
        (
            lambda r: lax.scan(lambda c, x: ((c[0], x), c), (0.0, 1.0), r),
            TypeError,
            r"^scan: the carry keeps its type .* carry\[1\] is float32\[n,4\], whose size",
        ),
        (lambda r: lax.scan(lambda c, x: c, 0.0, r), TypeError, r"pair \(carry, y\), got "),
        (
            lambda r: lax.scan(lambda c, x: (c, c), 0.0, r, length=4),
            ValueError,
            r"^scan: the numbers of examples differ: \[4, 5\]",
        ),
        (
            lambda r: lax.scan(lambda c, x: (c, c), 0.0, (r, np.ones(6))),
            ValueError,
            r"^scan: the numbers of examples differ: \[5, 6\]",
        ),
        (
            st.vmap(lambda x: x, out_axes=1),
            NotImplementedError,
            r"^vmap: a result of type float32\[n,4\] varies along axes \[0\]",
        ),
        (
            lambda r: lax.map(lambda x: x.T, r),
            NotImplementedError,
            r"^map: a result of type float32\[4,n\] varies along axes \[1\]",
        ),
    ],
)
def test_what_an_example_may_return(call, kind, match):
    with pytest.raises(kind, match=match):
        call(st.ragged(PARTS))


def test_where_the_examples_lie_in_results_of_one_size():
    r = st.ragged(PARTS)
    f = lambda x: snp.stack([x.sum(0), x.max(0), x.min(0)])
    wanted = np.stack([f(snp.asarray(x)) for x in PARTS])
    for axis in (0, 1, 2, -1, -2, -3):
        close(st.vmap(f, out_axes=axis)(r), np.moveaxis(wanted, 0, axis))
    shared, own = st.vmap(lambda x: (snp.ones(3), x.sum()), out_axes=(None, 0))(r)
    close(shared, np.ones(3)), close(own, [x.sum() for x in PARTS])
    first = np.stack([np.arange(3.0 * i, 3 * i + 3, dtype=np.float32) for i in range(5)], -1)
    for axis in (1, -1):
        close(st.vmap(lambda x, y: x.sum() * y, (0, axis))(r, first),
              [x.sum() * y for x, y in zip(PARTS, first.T, strict=True)])  # fmt: skip


def test_many_arguments_of_different_lengths():
    """Each has a size of its own, which has a name: letters first, and then numbers."""
    several = [st.ragged([np.full(n + k, k + 1.0, np.float32) for n in (1, 3)]) for k in range(9)]
    f = st.vmap(lambda *xs: (sum(x.sum() for x in xs), snp.concatenate(xs)))
    sums, joined = f(*several)
    wanted = [sum((n + k) * (k + 1) for k in range(9)) for n in (1, 3)]
    close(sums, wanted), close([x.sum() for x in joined], wanted)
    np.testing.assert_array_equal(joined.lengths, [sum(n + k for k in range(9)) for n in (1, 3)])
    text = str(st.make_graph(st.vmap(lambda *xs: sum(x.sum() for x in xs)))(*several))
    names = ["n", "m", "k", "l", "p", "q", "n6", "n7", "n8"]
    assert all(f"f32[{name}]" in text for name in names)


@pytest.mark.parametrize("wide", [False, True], ids=["in rows", "in a rectangle"])
def test_arguments_of_equal_lengths_and_another_room(wide):
    """What is behind the elements counts for nothing, however much it is."""
    lengths = [3, 1, 2]
    parts = [np.arange(1.0, n + 1, dtype=np.float32) for n in lengths]
    r = st.ragged(parts)
    junk = np.full(40, np.nan, np.float32)
    junk[:6] = np.concatenate(parts)
    roomy = type(r)._of(snp.asarray(junk), r.lengths, r._most, False, 1)
    first = r._spread() if wide else r
    for one, other in ((first, roomy), (roomy, first)):
        out = st.vmap(lambda x, y: x * y)(one, other)
        np.testing.assert_array_equal(out.lengths, lengths)
        np.testing.assert_array_equal(out.values, np.concatenate(parts) ** 2)
        slopes = st.grad(lambda a, b: st.vmap(snp.dot)(a, b).sum(), (0, 1))(one, other)
        for slope in slopes:
            np.testing.assert_array_equal(slope.like(r).values, np.concatenate(parts))


def test_batches_of_a_loop():
    r = st.ragged(PARTS)
    scale = np.arange(5.0, dtype=np.float32)
    for size in (None, 1, 2, 5, 7):
        sums, doubled = lax.map(
            lambda a: (a[0].sum(0) * a[1], a[0] * 2), (r, scale), batch_size=size
        )
        close(sums, [x.sum(0) * s for x, s in zip(PARTS, scale, strict=True)])
        for x, part in zip(doubled, PARTS, strict=True):
            close(x, 2 * part)
    carry, joined = lax.scan(
        lambda c, x: (c + x.sum(), snp.concatenate([x, x[:1] + c])), 0.0, r, reverse=True
    )
    close(carry, sum(x.sum() for x in PARTS), 1e-3)
    np.testing.assert_array_equal(joined.lengths, np.array(LENGTHS) + 1)
    close(joined[-1][-1], PARTS[-1][0]), close(joined[3][-1], PARTS[3][0] + PARTS[4].sum())


def test_a_step_of_a_scan_is_for_all_sizes_that_there_may_be():
    """It is traced for examples that are not known, other than what is mapped over them."""
    r = st.ragged([snp.ones(9), snp.ones(10), snp.ones(1)])
    table = snp.arange(10.0)
    placed = lambda x: (x + table[: x.shape[0]]).sum()
    step = lambda c, x: (c + placed(x), x)
    with pytest.raises(st.errors.SizeError, match="whether n <= 10 depends on sizes"):
        lax.scan(step, 0.0, r)
    total, same = lax.scan(step, snp.float32(0), r.at_most(10))
    assert float(total) == 101 and same.lengths.tolist() == [9, 10, 1]
    for several in (st.vmap(placed)(r), lax.map(placed, r)):
        np.testing.assert_array_equal(several, [45, 55, 1])


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit])
def test_results_that_are_all_empty(wrap):
    x = st.ragged([np.ones((1, 3), np.float32), np.ones((0, 3), np.float32)]).at_most(1)
    rest = wrap(st.vmap(lambda x: x[1:] + 1))(x)
    assert [row.shape for row in rest] == [(0, 3), (0, 3)]
    np.testing.assert_array_equal(wrap(st.vmap(lambda x: x.sum(0)))(rest), np.zeros((2, 3)))
