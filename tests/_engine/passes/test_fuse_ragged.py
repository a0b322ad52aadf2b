"""Attention of examples that differ in length: what is found, and that values stay."""

from functools import partial

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.api.graph import make_graph
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.core.rewriting import written_out
from stretto._engine.core.sizes import SizeVariable, size_of
from stretto._engine.higher_order.sized_call import SizedCall
from stretto._engine.kernels import kernels
from stretto._engine.ops.fused_attention import FusedAttention
from stretto._engine.passes.fuse_ragged import _STANDS, _Standing, fuse_ragged
from stretto._engine.passes.prepare import prepare
from stretto._engine.passes.tracked_axes import Unlike

F = nn.functional
HEADS, WIDTH = 3, 8
LENGTHS = (20, 1, 300, 7, 33)

pytestmark = pytest.mark.skipif(kernels is None, reason="needs the kernels")


def drawn(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def words(width=HEADS * WIDTH, lengths=LENGTHS, dtype=np.float32):
    return [drawn(n, width, seed=n).astype(dtype) for n in lengths]


def heads_of(x):
    return x.reshape(x.shape[0], HEADS, WIDTH)


def attend(q, k, v, change=lambda scores: scores):
    scores = snp.einsum("nhd,mhd->hnm", q, k) * 0.3
    return snp.einsum("hnm,mhd->nhd", F.softmax(change(scores), -1), v)


def plain(w, x):
    q, k, v = [heads_of(x @ w[i]) for i in range(3)]
    return attend(q, k, v).reshape(x.shape) @ w[3]


def causal(w, x):
    q, k, v = [heads_of(x @ w[i]) for i in range(3)]
    place = snp.arange(x.shape[0])
    hide = lambda s: snp.where(place[:, None] >= place, s, -snp.inf)
    return attend(q, k, v, hide).reshape(x.shape)


def far_apart(w, x):
    """With an array that is added, of the scores' shape."""
    q, k, v = [heads_of(x @ w[i]) for i in range(3)]
    place = snp.arange(x.shape[0]) * 1.0
    return attend(q, k, v, lambda s: s + -0.1 * snp.abs(place[:, None] - place)).reshape(x.shape)


def grouped(w, x):
    """With one head of keys and values for all of queries."""
    q, (k, v) = heads_of(x @ w[0]), [x @ w[i][:, :WIDTH] for i in (1, 2)]
    weights = F.softmax(snp.einsum("nhd,md->hnm", q, k), -1)
    return snp.einsum("hnm,md->nhd", weights, v).reshape(x.shape)


def one_head(w, x):
    return F.softmax((x @ w[0]) @ (x @ w[1]).T, -1) @ (x @ w[2])


def pooled(w, x):
    """Queries that all examples share."""
    q = heads_of(w[0])
    return attend(q, heads_of(x @ w[1]), heads_of(x @ w[2])).reshape(w[0].shape)


def looked_up(w, x):
    """Keys and values that all examples share."""
    return attend(heads_of(x @ w[0]), heads_of(w[1]), heads_of(w[2])).reshape(x.shape)


def library(w, x):
    q, k, v = [heads_of(x @ w[i]).swapaxes(0, 1) for i in range(3)]
    return F.scaled_dot_product_attention(q, k, v).swapaxes(0, 1).reshape(x.shape)


def twice(w, x):
    return plain(w, x + plain(w, x))


FUNCTIONS = {
    "plain": (plain, 1),
    "causal": (causal, 1),
    "far apart": (far_apart, 1),
    "grouped": (grouped, 1),
    "one head": (one_head, 1),
    "pooled": (pooled, 1),
    "looked up": (looked_up, 1),
    "library": (library, 1),
    "twice": (twice, 2),
}
"""Each with the calls of the kernel that it makes."""


def weights(dtype=np.float32):
    return (drawn(4, HEADS * WIDTH, HEADS * WIDTH) * 0.3).astype(dtype)


def calls_of(program):
    return [e.primitive for e in program.equations if isinstance(e.primitive, SizedCall)]


def fused(program):
    inner = [e.primitive for call in calls_of(program) for e in call.program.equations]
    return sum(isinstance(primitive, FusedAttention) for primitive in inner)


def over_all(f):
    return st.vmap(f, in_axes=(None, 0))


def loss_of(f):
    return lambda w, words: over_all(lambda w, x: (f(w, x) ** 2).sum())(w, words).sum()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_found(name):
    f, count = FUNCTIONS[name]
    args = weights(), st.ragged(words())
    for function, calls in ((over_all(f), 1), (st.grad(loss_of(f), (0, 1)), 2)):
        program = fuse_ragged(make_graph(function)(*args))
        check(program)
        assert (fused(program), len(calls_of(program))) == (calls * count, 1)
        text = st.jit(function).lower(*args).as_text()
        assert text.count('"stretto_attention') == calls * count
        with st.config(kernels=False):
            assert "stretto_" not in st.jit(function).lower(*args).as_text()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_example_is_as_by_itself(name, dtype):
    f, _ = FUNCTIONS[name]
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    with st.enable_x64(dtype == np.float64):
        w, xs = weights(dtype), words(dtype=dtype)
        outs = st.jit(over_all(f))(w, st.ragged(xs))
        alone = lambda w, x: (f(w, x) ** 2).sum()
        d_w, slope = st.jit(st.grad(loss_of(f), (0, 1)))(w, st.ragged(xs))
        d_x = slope.like(st.ragged(xs))
        total = np.zeros_like(w)
        with st.config(kernels=False):
            for i, x in enumerate(xs):
                for got, expected in ((outs[i], f(w, x)), (d_x[i], st.grad(alone, 1)(w, x))):
                    most = np.abs(np.asarray(expected)).max()
                    np.testing.assert_allclose(got, expected, atol=tolerance * most)
                total += np.asarray(st.grad(alone)(w, x))
        np.testing.assert_allclose(d_w, total, atol=tolerance * np.abs(total).max())


def held(e):
    return e.primitive.program if isinstance(e.primitive, FusedAttention) else None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_a_kernel_the_operations_are_written(name):
    f, _ = FUNCTIONS[name]
    args = weights(), st.ragged(words())
    for function in (over_all(f), st.grad(loss_of(f), (0, 1))):
        program = prepare(make_graph(function)(*args))
        found = [e.primitive for e in program.equations if isinstance(e.primitive, FusedAttention)]
        assert found
        for primitive in found:
            check(primitive.program)
            assert primitive.geometry.examples.room >= sum(LENGTHS)
        leaves = [snp.asarray(x) for x in st.tree.leaves(args)]
        expected = st.jit(partial(evaluate, program))(leaves)
        with st.config(kernels=False):  # as on other devices
            outs = st.jit(partial(evaluate, written_out(program, held)))(leaves)
        for got, e in zip(outs, expected, strict=True):
            np.testing.assert_allclose(got, e, atol=2e-5 * np.abs(np.asarray(e)).max())


def test_a_loss_between_calls():
    """What the gradient's call is given depends on what the other one gave."""

    def loss(w, words):
        outs = over_all(plain)(w, words)
        return snp.log(1 + st.vmap(lambda y: (y**2).sum())(outs).sum())

    w, xs = weights(), words()
    with st.config(kernels=False):
        expected = st.jit(st.grad(loss))(w, st.ragged(xs))
    program = fuse_ragged(make_graph(st.grad(loss))(w, st.ragged(xs)))
    check(program)
    assert (fused(program), len(calls_of(program))) == (2, 4)
    got = st.jit(st.grad(loss))(w, st.ragged(xs))
    np.testing.assert_allclose(got, expected, atol=2e-5 * np.abs(np.asarray(expected)).max())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_example(bad):
    w, xs = weights(), words()
    clean = st.jit(over_all(plain))(w, st.ragged(xs))
    xs[2][-1, 3] = bad
    outs = st.jit(over_all(plain))(w, st.ragged(xs))
    assert np.isnan(outs[2]).any()
    for i in (0, 1, 3, 4):
        np.testing.assert_array_equal(outs[i], clean[i])


def test_lengths_that_are_wrong_read_nothing():
    """A kernel stays within what it is given, whatever the lengths are."""
    w, words_ = weights(), st.ragged(words())
    leaves, structure = st.tree.flatten(words_)
    (place,) = [i for i, x in enumerate(leaves) if x.dtype == np.int32]
    for lengths in ([10**9] * 5, [-5, 3, 3, 3, 3], [400, 400, 400, 400, 2**30]):
        wrong = [*leaves]
        wrong[place] = snp.asarray(lengths, np.int32)
        wrong = st.tree.unflatten(structure, wrong)
        st.block_until_ready(st.jit(over_all(plain))(w, wrong))
        st.block_until_ready(st.jit(st.grad(loss_of(plain)))(w, wrong))


def test_an_example_is_the_same_beside_any_others():
    """Each has rows and keys of its own, wherever it begins."""
    w, xs = weights(), words()
    both = st.jit(over_all(plain))(w, st.ragged(xs))
    for i, x in enumerate(xs):
        alone = st.jit(over_all(plain))(w, st.ragged([x, x[:1]]))
        np.testing.assert_allclose(both[i], alone[0], atol=1e-6)


def weights_read(w, x):
    weights = F.softmax((x @ w[0]) @ (x @ w[1]).T, -1)
    return weights @ x + weights.sum()


def of_lengths(w, x):
    """With keys that are as many as twice the elements."""
    k = snp.concatenate([x @ w[1], x @ w[2]])
    return F.softmax((x @ w[0]) @ k.T, -1) @ k


def over_elements(w, x):
    """Attention within each element, over its heads."""
    q, k, v = [heads_of(x @ w[i]) for i in range(3)]
    return F.softmax(q @ k.swapaxes(1, 2), -1) @ v


def narrow(w, x):
    return F.softmax((x[:, :4] @ w[0][:4]) @ (x @ w[1]).T, -1) @ x[:, :4]


@pytest.mark.parametrize("f", [weights_read, of_lengths, over_elements, narrow])
def test_what_is_not_found_is_left(f):
    args = weights(), st.ragged(words(lengths=(20, 30, 40)))
    for function in (over_all(f), st.grad(loss_of(f))):
        program = fuse_ragged(make_graph(function)(*args))
        check(program)
        assert (fused(program), len(calls_of(program))) == (0, 1)


@pytest.mark.parametrize(("most", "found"), [(8, 0), (30, 1)])
def test_what_is_small_is_left(most, found):
    args = weights(), st.ragged(words(lengths=(3, 4, most)))
    assert fused(fuse_ragged(make_graph(over_all(plain))(*args))) == found


def test_members_are_left():
    """Members of an ensemble over ragged examples have calls with two axes."""
    w, xs = np.stack([weights(), weights() * 2]), st.ragged(words(lengths=(20, 30, 40)))
    function = st.vmap(over_all(plain), in_axes=(0, None))
    graph = make_graph(function)(w, xs)
    assert fuse_ragged(graph) is graph


def of_both(join):
    return lambda w, one, other: join(loss_of(plain)(w, one), loss_of(plain)(w, other))


@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        (of_both(lambda a, b: a + b), 4, 2),
        # The gradient for one reads the loss of the other, whose own reads that of the first.
        (of_both(lambda a, b: a * b), 4, 3),
        (of_both(lambda a, b: a * 2 + 0 * b), 4, 2),
    ],
)
def test_calls_are_one_where_nothing_is_between(function, before, after):
    args = weights(), st.ragged(words()), st.ragged(words(lengths=(4, 5, 60, 7, 8)))
    graph = make_graph(st.grad(function))(*args)
    program = fuse_ragged(graph)
    check(program)
    assert (len(calls_of(graph)), len(calls_of(program)), fused(program)) == (before, after, 4)
    got = st.jit(st.grad(function))(*args)
    with st.config(kernels=False):
        expected = st.jit(st.grad(function))(*args)
    most = float(np.abs(np.asarray(expected)).max())
    np.testing.assert_allclose(got, expected, atol=2e-5 * most)


def test_calls_that_wait_for_each_other_stay_apart():
    """The second reads what is made outside of the first, and a third both."""

    def f(w, words):
        a = over_all(plain)(w, words)
        total = st.vmap(lambda y: y.sum())(a).sum()
        b = st.vmap(lambda y: y * total)(a)
        more = st.vmap(lambda y: y.sum())(b).sum()
        return st.vmap(lambda x, y: x * y * more)(a, b)

    args = weights(), st.ragged(words())
    graph = make_graph(f)(*args)
    program = fuse_ragged(graph)
    check(program)
    assert len(calls_of(program)) == len(calls_of(graph)) == 5
    got = st.jit(f)(*args)
    with st.config(kernels=False):
        expected = st.jit(f)(*args)
    for g, e in zip(st.tree.leaves(got), st.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(g, e, rtol=2e-3, atol=2e-4 * float(np.abs(np.asarray(e)).max()))


# Loops


def lstm(w, x):
    """The last state of a layer, whose products and sums wait for no turn."""
    inputs = x @ w[0] + w[3][0]

    def step(state, row):
        h, c = state
        gates = row + h @ w[1][:, : HEADS * WIDTH]
        c = F.sigmoid(gates) * c + F.sigmoid(-gates) * snp.tanh(gates)
        return (snp.tanh(c) * F.sigmoid(gates + 1), c), None

    zeros = snp.zeros(HEADS * WIDTH)
    return st.lax.scan(step, (zeros, zeros), inputs)[0][0]


def backwards(w, x):
    step = lambda h, row: ((h := snp.tanh(row + h @ w[1])), h * 2)
    return st.lax.scan(step, snp.zeros(HEADS * WIDTH), x @ w[0], reverse=True)[1]


def layers(w, x):
    """Attention in the body of a loop over layers, whose values are as long as the example."""
    return st.lax.scan(lambda x, layer: (x + plain(w * layer, x), None), x, snp.arange(1.0, 3.0))[0]


def layers_of_loops(w, x):
    """A loop over elements within one over layers."""
    return st.lax.scan(lambda x, layer: (x + backwards(w * layer, x), None), x, snp.arange(3.0))[0]


LOOPS = {"lstm": lstm, "backwards": backwards, "layers": layers, "layers of loops": layers_of_loops}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_loops_over_examples(name, dtype):
    f = LOOPS[name]
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    with st.enable_x64(dtype == np.float64):
        w, xs = weights(dtype) * dtype(0.3), words(dtype=dtype, lengths=(20, 1, 40, 7, 33))
        alone = lambda w, x: (f(w, x) ** 2).sum()
        loss = lambda w, r: st.vmap(alone, in_axes=(None, 0))(w, r).sum()
        program = fuse_ragged(make_graph(st.grad(loss, (0, 1)))(w, st.ragged(xs)))
        check(program)
        outs = st.jit(over_all(f))(w, st.ragged(xs))
        d_w, slope = st.jit(st.grad(loss, (0, 1)))(w, st.ragged(xs))
        d_x = slope.like(st.ragged(xs))
        total = np.zeros_like(w)
        with st.config(kernels=False):
            for i, x in enumerate(xs):
                own, own_x = st.grad(alone, (0, 1))(w, x)
                for got, expected in ((outs[i], f(w, x)), (d_x[i], own_x)):
                    most = np.abs(np.asarray(expected)).max()
                    np.testing.assert_allclose(got, expected, atol=tolerance * most)
                total += np.asarray(own)
        np.testing.assert_allclose(d_w, total, atol=tolerance * np.abs(total).max())


def test_recurrent_layers_are_run_by_a_kernel_both_ways():
    """Masks are inputs of the steps, and sums over elements are products of all rows at once."""
    args = weights(), st.ragged(words(lengths=LENGTHS * 2))
    loss = lambda w, r: st.vmap(lambda w, x: (lstm(w, x) ** 2).sum(), in_axes=(None, 0))(w, r).sum()
    text = st.jit(st.grad(loss)).lower(*args).as_text()
    assert text.count('"stretto_loop"') == 2
    assert "stablehlo.while" not in text


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_example_in_loops(bad):
    w, xs = weights() * np.float32(0.3), words()
    loss = lambda w, r: st.vmap(lambda w, x: (lstm(w, x) ** 2).sum(), in_axes=(None, 0))(w, r).sum()
    clean = st.jit(st.grad(loss, 1))(w, st.ragged(xs)).like(st.ragged(xs))
    xs[2][-1, 3] = bad
    slope = st.jit(st.grad(loss, 1))(w, st.ragged(xs)).like(st.ragged(xs))
    assert not np.array_equal(slope[2], clean[2])
    for i in (0, 1, 3, 4):
        np.testing.assert_array_equal(slope[i], clean[i])


def test_sizes_are_known_again_from_numbers():
    variable = SizeVariable("n", least=1, most=100)
    size, stands = size_of(variable), _Standing(variable)
    for n in (size, size * 4, size * 4 - 1, size + 7, size - 300, 5, 0, -3):
        number = stands.bounds.bound(n) if not isinstance(n, int) else n
        assert stands.number(number) == n
    assert stands.number(((_STANDS, 3), [2 * _STANDS], "x", True)) == (
        (size, 3),
        [2 * size],
        "x",
        True,
    )
    with pytest.raises(Unlike):
        stands.number(_STANDS * _STANDS)


def test_other_examples_inside_are_left():
    """A program that has a call for ragged arrays of its own is not looked at."""
    inner = st.ragged([drawn(n, 3) for n in (2, 5)])

    def f(w, x):
        return plain(w, x) + st.vmap(lambda y: y.sum())(inner).sum()

    graph = make_graph(st.grad(loss_of(f)))(weights(), st.ragged(words()))
    program = fuse_ragged(graph)
    check(program)


def test_what_is_done_to_results_of_all_examples_is_another_operation():
    """The axes of all examples' arrays are not those of one's."""

    def of_one(w, x):
        table = x.T @ plain(w, x)
        return table, table.max(1)

    def f(w, words):
        table, most = st.vmap(of_one, in_axes=(None, 0))(w, words)
        other = table.max(1)  # over the first axis of each table
        return st.vmap(lambda x, a, b: (x * 2, a - b))(words, other, most)[1]

    args = weights(), st.ragged(words())
    got = st.jit(f)(*args)
    for i, x in enumerate(words()):
        table, most = of_one(args[0], x)
        np.testing.assert_allclose(got[i], np.asarray(table).max(0) - most, rtol=1e-4, atol=1e-4)
