"""Kernels in loops read elements of arrays where they lie, and write them where they belong."""

import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.kernels import WITHOUT

pytestmark = pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")

N, ROWS, SIZE = 5, 32, 64


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


@pytest.fixture(params=["float32", "float64", "bfloat16"])
def dtype(request):
    with st.config(enable_x64=request.param == "float64"):
        yield request.param


def loss(w, x):
    return (snp.tanh(x @ w) ** 2).sum()


def compiled(fun, *args, donated=()):
    return st.jit(fun, donate_argnums=donated).lower(*args).compile().as_text()


def copies(text, shape):
    """Return the operations of a compiled program that move arrays of this shape."""
    kind = rf"b?f(?:16|32|64)\[{','.join(map(str, shape))}\]"
    moving = r"(?:copy|dynamic-slice|dynamic-update-slice|fusion|broadcast)\("
    return re.findall(rf"= {kind}\S* {moving}.*", text)


def test_products_copy_no_weights_and_no_gradients(dtype):
    w, x = (snp.asarray(drawn(k, N, n, SIZE)).astype(dtype) for k, n in ((0, SIZE), (1, ROWS)))
    gradients = lambda w, x: st.lax.map(lambda both: st.grad(loss)(*both), (w, x))
    text = compiled(gradients, w, x)
    assert "steps = array<i64: 2, " in text
    for shape in ((SIZE, SIZE), (1, SIZE, SIZE), (ROWS, SIZE, SIZE)):
        assert not copies(text, shape)
    want = [st.jit(st.grad(loss))(w[i], x[i]) for i in range(N)]
    np.testing.assert_array_equal(st.jit(gradients)(w, x), want)


def test_convolutions_read_and_write_elements(dtype):
    image, kernel = drawn(0, N, 2, 8, 12, 12), drawn(1, N, 16, 8, 3, 3)
    image, kernel = (snp.asarray(v).astype(dtype) for v in (image, kernel))
    convolve = lambda k, x: st.lax.conv(x, k, (1, 1), "SAME")
    both = lambda k, x: (convolve(k, x), st.grad(lambda k: (convolve(k, x) ** 2).sum())(k))
    fun = lambda k, x: st.lax.map(lambda pair: both(*pair), (k, x))
    text = compiled(fun, kernel, image)
    assert text.count("steps = array<i64: 2, ") == 2  # the convolution and its gradient
    for got, want in zip(
        st.jit(fun)(kernel, image),
        zip(*[st.jit(both)(kernel[i], image[i]) for i in range(N)], strict=True),
        strict=True,
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 5])
def test_steps_in_any_order_read_their_own_elements(reverse, unroll):
    w, x = drawn(0, N, SIZE, SIZE) / 8, drawn(1, ROWS, SIZE)

    def run(w, x):
        step = lambda h, w: (snp.tanh(h @ w), h @ (w + w.T))
        return st.lax.scan(step, x, w, reverse=reverse, unroll=unroll)

    last, stack = st.jit(run)(w, x)
    h, outs = x.astype(float), [None] * N
    for i in reversed(range(N)) if reverse else range(N):
        outs[i] = h @ (w[i].astype(float) + w[i].T)
        h = np.tanh(h @ w[i])
    np.testing.assert_allclose(last, h, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(stack, outs, rtol=1e-5, atol=1e-5)


def test_elements_of_arrays_at_two_indices_are_copied():
    """A loop within a loop: a kernel is told one index."""
    w, x = drawn(0, 3, SIZE, SIZE), drawn(1, 4, ROWS, SIZE)

    def run(w, x):
        inner = lambda w: st.lax.map(lambda x: x @ w, x)
        return st.lax.map(inner, w)

    got = st.jit(run)(w, x)
    np.testing.assert_allclose(got, np.einsum("krs,nst->nkrt", x, w), rtol=1e-4, atol=1e-4)


def test_what_is_put_somewhere_may_be_read_as_well():
    """The sum, and another output that is the same, are read from where the product was put."""
    w, x = drawn(0, N, SIZE, SIZE), drawn(1, N, ROWS, SIZE)

    def one(pair):
        y = pair[0] @ pair[1]
        return y, y.sum(), y, 2 * y

    got = st.jit(lambda x, w: st.lax.map(one, (x, w)))(x, w)
    y = np.stack([x[i].astype(float) @ w[i] for i in range(N)])
    for have, want in zip(got, (y, y.sum((1, 2)), y, 2 * y), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-3)


def step(state, x):
    w, m, v, b, count = state
    dw, db = st.grad(lambda w, b: loss(w, x) + ((x @ w + b) ** 2).mean() + (w**2).sum(), (0, 1))(
        w, b
    )
    dw = dw * snp.minimum(1.0, 10.0 / snp.sqrt((dw * dw).sum()))
    m, v, count = 0.9 * m + 0.1 * dw, 0.99 * v + 0.01 * dw * dw, count + 1
    return (w - 0.1 * m / (snp.sqrt(v) + 1e-3 * count), m, v, b - 0.1 * db, count), (w * w).sum()


def state():
    w = drawn(0, N, SIZE, SIZE) / 8
    return (w, 0 * w, 0 * w + 1, drawn(2, N, SIZE), np.arange(N, dtype="int32"))


@pytest.mark.parametrize("donated", [(), (0,)])
def test_members_in_turn_update_their_own_weights(donated):
    """With a gradient that is clipped, weights in the loss, and what is not a float."""
    x = drawn(1, N, ROWS, SIZE)
    want = [st.jit(step)(tuple(s[i] for s in state()), x[i]) for i in range(N)]
    with st.config(plan="in turn"):
        run = st.jit(st.vmap(step), donate_argnums=donated)
        given = tuple(map(snp.asarray, state()))
        got, norms = run(given, x)
        again, _ = run(got, x)  # from what was updated in place
    for k, values in enumerate(got if not donated else again):
        assert values.shape == state()[k].shape
    if not donated:
        for k, values in enumerate(got):
            wanted = np.stack([w[0][k] for w in want])
            np.testing.assert_allclose(values, wanted, rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(given[k], state()[k])
    np.testing.assert_allclose(norms, [w[1] for w in want], rtol=1e-5)


def test_two_steps_in_place_are_those_of_each_member():
    x = drawn(1, N, ROWS, SIZE)
    with st.config(plan="in turn"):
        run = st.jit(st.vmap(step), donate_argnums=0)
        got, _ = run(run(tuple(map(snp.asarray, state())), x)[0], x)
    for i in range(N):
        want = tuple(s[i] for s in state())
        for _ in range(2):
            want, _ = st.jit(step)(want, x[i])
        for have, wanted in zip(got, want, strict=True):
            np.testing.assert_allclose(have[i], wanted, rtol=1e-5, atol=1e-6)


def test_donated_weights_are_updated_where_they_lie():
    """No array of all weights is copied, and of gradients there is one member's."""

    def plain(state, x):
        w, m = state
        m = 0.9 * m + st.grad(loss)(w, x)
        return w - 0.1 * m, m

    args = (drawn(0, N, SIZE, SIZE), drawn(2, N, SIZE, SIZE)), drawn(1, N, ROWS, SIZE)
    with st.config(plan="in turn"):
        text = compiled(st.vmap(plain), *args, donated=0)
        program = st.jit(st.vmap(plain), donate_argnums=0).lower(*args).compile()
    assert not copies(text, (N, SIZE, SIZE)) and not copies(text, (SIZE, SIZE))
    sizes = program.memory_analysis()
    assert sizes.temp_size_in_bytes < 3 * 4 * SIZE * SIZE


def test_a_loop_with_a_carry_and_constants_updates_in_place():
    """Layers that learn one after the other, each from what the ones before gave."""

    def run(w, x, rate):
        def layer(h, w):
            y = snp.tanh(h @ w)
            return y, w - rate * 0.1 * (h.T @ y)

        return st.lax.scan(layer, x, w)

    w, x = drawn(0, N, SIZE, SIZE) / 8, drawn(1, ROWS, SIZE)
    text = compiled(run, w, x, np.float32(0.5), donated=0)
    assert not copies(text, (N, SIZE, SIZE))
    h, new = st.jit(run, donate_argnums=0)(snp.asarray(w), x, np.float32(0.5))
    wanted, want = x.astype(float), []
    for i in range(N):
        before, wanted = wanted, np.tanh(wanted @ w[i])
        want.append(w[i] - 0.05 * before.T @ wanted)
    np.testing.assert_allclose(h, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(new, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("members", [1, 2, N])
def test_results_do_not_depend_on_what_is_given_up(members):
    given, x = tuple(s[:members] for s in state()), drawn(1, members, ROWS, SIZE)
    with st.config(plan="in turn"):
        kept = st.jit(st.vmap(step))(given, x)
        put = st.jit(st.vmap(step), donate_argnums=0)(tuple(map(snp.asarray, given)), x)
    for one, other in zip(st.tree.leaves(kept), st.tree.leaves(put), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("size", "called"), [(63, False), (64, True)])
def test_updates_in_loops_are_kernels_where_arrays_are_large(size, called):
    """From 4,096 elements on: a call takes some microseconds."""
    update = lambda pair: pair[0] - 0.1 * pair[1]
    text = compiled(lambda w, g: st.lax.map(update, (w, g)), *[drawn(0, N, size, size)] * 2)
    assert ("stretto_update" in text) is called
