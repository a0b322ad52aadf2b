"""Recurrent loops in one call: which are found, and that values and derivatives stay."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.api.graph import make_graph
from stretto._engine.core.program import check
from stretto._engine.higher_order.fused_scan import FusedScan
from stretto._engine.kernels import kernels
from stretto._engine.lowering import stablehlo
from stretto._engine.passes import fuse_scans as pass_module
from stretto._engine.passes.fuse_scans import fuse_scans
from stretto._engine.passes.prepare import prepare


def sigmoid(x):
    return nn.functional.sigmoid(x) if not isinstance(x, np.ndarray) else 1 / (1 + np.exp(-x))


def lstm(xp, p, state, x):
    h, c = state
    i, f, g, o = xp.split(x @ p["w"] + h @ p["u"] + p["b"], 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * xp.tanh(g)
    h = sigmoid(o) * xp.tanh(c)
    return (h, c), h


def peephole(xp, p, state, x):
    h, c = state
    gates = xp.concatenate([x, h], axis=-1) @ xp.concatenate([p["w"], p["u"]], axis=0)
    n = h.shape[-1]
    i, f = gates[..., :n] + c * p["b"][:n], gates[..., n : 2 * n] + c * p["b"][n : 2 * n]
    c = sigmoid(f) * c + sigmoid(i) * xp.tanh(gates[..., 2 * n : 3 * n])
    return (sigmoid(gates[..., 3 * n :] + c * p["b"][3 * n :]) * xp.tanh(c), c), c


def gru(xp, p, state, x):
    h, _ = state
    n = h.shape[-1]
    own, other = x @ p["w"], h @ p["u"] + p["b"]
    r = sigmoid(own[..., :n] + other[..., :n])
    z = sigmoid(own[..., n : 2 * n] + other[..., n : 2 * n])
    new = xp.tanh(own[..., 2 * n : 3 * n] + r * other[..., 2 * n : 3 * n])
    h = (1 - z) * new + z * h
    return (h, h), (h, z)


def plain(xp, p, state, x):
    h, c = state
    h = xp.tanh((x @ p["w"] + h @ p["u"] + p["b"])[..., : h.shape[-1]])
    return (h, c + h), None


def cut(xp, p, state, x):
    h, c = state
    h = xp.maximum((x @ p["w"] + h @ p["u"])[..., : h.shape[-1]] - 0.1, 0)
    return (c, h * 0.5), h


def masked(xp, p, state, x):
    """Rows whose first feature is negative wait, as do those that grew."""
    (h, c), out = lstm(xp, p, state, x)
    waits = x[..., :1] < 0
    return (xp.where(waits, state[0], h), xp.where(xp.abs(c) > 1, state[1], c)), out


def deep(xp, p, state, x):
    """Two layers in one turn."""
    h, c = state
    n = h.shape[-1]
    h = xp.tanh(x @ p["w"][:, :n] + h @ p["u"][:, :n])
    c = xp.tanh(h @ p["u"][:, n : 2 * n] + c @ p["u"][:, 2 * n : 3 * n]) - h
    return (h, c), c


CELLS = {f.__name__: f for f in (lstm, peephole, gru, plain, cut, masked, deep)}
SIZES = [
    (5, 3, 4, 6),
    (1, 1, 2, 1),
    (4, 16, 16, 64),
    (3, 37, 20, 17),
    (2, 70, 8, 48),
    (6, 8, 3, 33),
]
"""Turns, rows, inputs and hidden features."""


def drawn(sizes, dtype, members=()):
    turns, rows, inputs, hidden = sizes
    rng = np.random.default_rng(turns + rows)
    make = lambda *shape: (rng.standard_normal((*members, *shape)) * 0.5).astype(dtype)
    p = {"w": make(inputs, 4 * hidden), "u": make(hidden, 4 * hidden), "b": make(4 * hidden)}
    return p, (make(rows, hidden), make(rows, hidden)), make(turns, rows, inputs)


def run(cell, reverse=False):
    return lambda p, state, xs: st.lax.scan(
        lambda s, x: cell(snp, p, s, x), state, xs, reverse=reverse
    )


def loss(cell, reverse=False):
    def total(p, state, xs):
        (h, c), ys = run(cell, reverse)(p, state, xs)
        return snp.sum(h * c) + sum([snp.sum(snp.sin(y)) for y in st.tree.leaves(ys)])

    return total


def by_numpy(cell, p, state, xs, reverse=False):
    ys = []
    for x in xs[::-1] if reverse else xs:
        state, y = cell(np, p, state, x)
        ys.append(y)
    ys = ys[::-1] if reverse else ys
    stacked = st.tree.map(lambda *y: np.stack(y), *ys) if ys[0] is not None else None
    return state, stacked


def calls(function, *args):
    """Return how many loops of a program become a call; what it holds is not counted."""
    program = fuse_scans(prepare(make_graph(function)(*args)))
    check(program)
    return sum([isinstance(e.primitive, FusedScan) for e in program.equations])


def close(got, expected, dtype, factor=1.0):
    for a, b in zip(st.tree.leaves(got), st.tree.leaves(expected), strict=True):
        bound = factor * np.finfo(dtype).eps * (1 + np.max(np.abs(b), initial=0))
        np.testing.assert_allclose(np.asarray(a), b, rtol=0, atol=float(bound))


@pytest.fixture(autouse=True)
def _wide(request, monkeypatch):
    """Have float64 where a test is for it, and small loops found."""
    monkeypatch.setattr(pass_module, "_WORTH", 1)
    params = getattr(request.node, "callspec", None)
    with st.enable_x64(params is not None and params.params.get("dtype") == "float64"):
        yield


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", CELLS)
def test_values(name, sizes, dtype):
    cell, args = CELLS[name], drawn(sizes, dtype)
    wide = st.tree.map(lambda a: a.astype(np.float64), args)
    for reverse in (False, True):
        assert calls(run(cell, reverse), *args) == 1
        got = st.jit(run(cell, reverse))(*args)
        close(got, by_numpy(cell, *wide, reverse), dtype, 100)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", CELLS)
def test_derivatives(name, sizes, dtype):
    cell, args = CELLS[name], drawn(sizes, dtype)
    gradient = st.grad(loss(cell), (0, 1, 2))
    assert calls(gradient, *args) == 2
    got = st.jit(gradient)(*args)
    with st.config(kernels=False):
        expected = st.jit(gradient)(*args)
    close(got, expected, dtype, 1000)


OWN = {"all": (0, 0, 0), "batch shared": (0, 0, None), "weights shared": (None, 0, 0)}


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("name", CELLS)
def test_members_are_a_batch_of_the_kernel(name, own):
    cell, axes = CELLS[name], OWN[own]
    one, many = drawn((4, 9, 8, 48), "float32"), drawn((4, 9, 8, 48), "float32", (3,))
    args = [a if axis is None else b for a, b, axis in zip(one, many, axes, strict=True)]
    mapped = st.vmap(st.grad(loss(cell), (0, 1, 2)), axes)
    got = st.jit(mapped)(*args)
    with st.config(kernels=False):
        expected = st.jit(mapped)(*args)
    close(got, expected, "float32", 1000)


def layer(kind, **options):
    return lambda x: getattr(nn, kind)(8, 40, key=st.random.PRNGKey(0), **options)(x)[0]


LAYERS = {
    "LSTM": (layer("LSTM"), 1),
    "GRU": (layer("GRU"), 1),
    "RNN": (layer("RNN"), 1),
    "RNN of relu": (layer("RNN", nonlinearity="relu"), 1),
    "projected": (layer("LSTM", proj_size=16), 1),
    "both ways": (layer("LSTM", bidirectional=True), 2),
    "two layers": (layer("GRU", num_layers=2, batch_first=True), 2),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_found(name):
    function, count = LAYERS[name]
    x = np.random.default_rng(0).standard_normal((6, 5, 8)).astype(np.float32)
    total = lambda x: snp.sum(snp.cos(function(x)))
    assert calls(function, x) == count
    assert calls(st.grad(total), x) == 2 * count
    got = st.jit(st.value_and_grad(total))(x)
    with st.config(kernels=False):
        expected = st.jit(st.value_and_grad(total))(x)
    close(got, expected, "float32", 1000)


w = np.eye(8, dtype=np.float32)
NOT_FOUND = {
    "no product": lambda h, x: (snp.tanh(h * x), h),
    "a sum over features": lambda h, x: (snp.tanh(h @ w) / snp.sum(h, axis=-1, keepdims=True), h),
    "a sum over rows": lambda h, x: (snp.tanh(h @ w) + snp.sum(h, axis=0), h),
    "a matrix that changes": lambda h, x: (snp.tanh(h @ (x.T @ x)), h),
    "columns in another order": lambda h, x: (snp.tanh(h @ w)[:, ::-1], h),
    "another precision": lambda h, x: (snp.matmul(h, w, precision="highest"), h),
    "a function that the kernel has not": lambda h, x: (snp.sin(h @ w), h),
    "integers": lambda h, x: (h @ w, (h > 0).astype(np.int32)),
    "a number that is carried": lambda h, x: (h @ w, snp.sum(x)),
}


@pytest.mark.parametrize("name", NOT_FOUND)
def test_others_stay(name):
    f = lambda h, xs: st.lax.scan(NOT_FOUND[name], h, xs)
    h, xs = np.ones((8, 8), np.float32), np.ones((3, 8, 8), np.float32)
    graph = make_graph(f)(h, xs)
    assert fuse_scans(graph) is graph


def test_one_row_has_no_axis():
    def step(h, x):
        h = snp.tanh(w @ h + x)
        return h, h

    f = lambda h, xs: st.lax.scan(step, h, xs)
    h, xs = np.ones(8, np.float32), np.ones((3, 8), np.float32)
    assert calls(f, h, xs) == 1
    got = st.jit(f)(h, xs)
    with st.config(kernels=False):
        close(got, st.jit(f)(h, xs), "float32", 4)


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
@pytest.mark.parametrize("on", [True, False])
def test_calls_where_kernels_are_on(on):
    args = drawn((4, 9, 8, 48), "float32")
    with st.config(kernels=on):
        text = st.jit(run(lstm)).lower(*args).as_text()
    assert ("stretto_loop" in text) == on


def test_is_written_out_without_kernels(monkeypatch):
    args = drawn((4, 9, 8, 48), "float32")
    monkeypatch.setattr(stablehlo, "kernels", None)
    f = st.jit(lambda *args: run(lstm)(*args))  # noqa: PLW0108 (compiled anew)
    assert "stretto_loop" not in f.lower(*args).as_text()
    wide = st.tree.map(lambda a: a.astype(np.float64), args)
    close(f(*args), by_numpy(lstm, *wide), "float32", 100)


def test_infinities_and_nan_stay_in_their_rows():
    p, state, xs = drawn((4, 9, 8, 48), "float32")
    xs[1, 2, 3], xs[2, 4, 0], xs[0, 7, 1] = np.nan, np.inf, -np.inf
    for cell in (lstm, gru, cut):
        got = st.jit(run(cell))(p, state, xs)
        with st.config(kernels=False):
            expected = st.jit(run(cell))(p, state, xs)
        for a, b in zip(st.tree.leaves(got), st.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_a_loop_of_no_turn_and_rows_of_none():
    for sizes in ((0, 3, 4, 6), (3, 0, 4, 6)):
        args = drawn(sizes, "float32")
        with np.errstate(all="ignore"):
            got = st.jit(run(lstm))(*args)
        shapes = [np.shape(a) for a in st.tree.leaves(got)]
        assert shapes == [(sizes[1], 6), (sizes[1], 6), (sizes[0], sizes[1], 6)]


@pytest.mark.parametrize("length", [0, st.dynamic_size("n")], ids=str)
def test_loops_of_no_turn_and_of_any_number_stay(length):
    xs = st.ShapeDtypeStruct((length, 8, 8), np.float32)
    graph = make_graph(lambda h, xs: st.lax.scan(lambda h, x: (snp.tanh(h @ w + x), h), h, xs))(
        np.ones((8, 8), np.float32), xs
    )
    assert fuse_scans(graph) is graph


def test_loops_that_carry_nothing_stay():
    graph = make_graph(lambda xs: st.lax.scan(lambda _, x: (None, snp.tanh(x @ w)), None, xs))(
        np.ones((3, 8, 8), np.float32)
    )
    assert fuse_scans(graph) is graph


@pytest.mark.parametrize(("size", "count"), [(63, 0), (64, 1), (65, 1)])
def test_multiply_adds_of_a_turn_from_which_on_it_is_a_call(size, count, monkeypatch):
    monkeypatch.undo()
    w = np.eye(size, dtype=np.float32)
    f = lambda h, xs: st.lax.scan(lambda h, x: (snp.tanh(h @ w + x), None), h, xs)[0]
    assert calls(f, np.ones((1, size), np.float32), np.ones((3, 1, size), np.float32)) == count


def test_multiply_adds_are_counted_of_one_member():
    """The axis of members is another one of each operand."""
    dims = (((2,), (1,)), ((1,), (0,)))
    f = lambda x, y: st.lax.dot_general(x, y, dims)
    (e,) = make_graph(f)(np.ones((5, 3, 7), np.float32), np.ones((3, 7, 2), np.float32)).equations
    assert pass_module._multiply_adds(e) == 5 * 7 * 2


def test_small_loops_stay(monkeypatch):
    monkeypatch.undo()
    assert calls(run(lstm), *drawn((4, 1, 8, 8), "float32")) == 0
    assert calls(run(lstm), *drawn((4, 16, 8, 16), "float32")) == 1
