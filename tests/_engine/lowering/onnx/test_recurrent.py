"""Loops that are an LSTM, a GRU or an RNN, however their step is written; NaN stays NaN."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import export, nn
from tests.onnx_graphs import agrees, graphs, operators, run

pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
LENGTH, BATCH, DEEP, SIZE = 5, 2, 8, 6


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


X, H, C = normal(LENGTH, BATCH, DEEP), normal(BATCH, SIZE), normal(BATCH, SIZE)
W, R, B = 0.3 * normal(DEEP, 4 * SIZE), 0.3 * normal(SIZE, 4 * SIZE), normal(4 * SIZE)


LAYERS = [
    (nn.LSTM(DEEP, SIZE), "LSTM", 1),
    (nn.LSTM(DEEP, SIZE, bias=False), "LSTM", 1),
    (nn.LSTM(DEEP, SIZE, 2, batch_first=True), "LSTM", 2),
    (nn.LSTM(DEEP, SIZE, 2, bidirectional=True), "LSTM", 2),
    (nn.LSTM(DEEP, SIZE, bidirectional=True, bias=False), "LSTM", 1),
    (nn.RNN(DEEP, SIZE, bidirectional=True, nonlinearity="relu"), "RNN", 1),
    (nn.GRU(DEEP, SIZE), "GRU", 1),
    (nn.GRU(DEEP, SIZE, 2, bidirectional=True, batch_first=True), "GRU", 2),
    (nn.RNN(DEEP, SIZE), "RNN", 1),
    (nn.RNN(DEEP, SIZE, nonlinearity="relu"), "RNN", 1),
]


@pytest.mark.parametrize(("layer", "operator", "count"), LAYERS)
def test_layers_are_operators(layer, operator, count):
    names = agrees(layer, X, exact=False)
    assert names.count(operator) == count and not {"Scan", "MatMul"} & {*names}
    if not isinstance(layer, nn.RNN):
        names = agrees(layer, X)
        ways = 2 if layer.bidirectional else 1
        assert names.count("If") == count * ways and not {"Scan", operator} & {*names}
    elif layer.nonlinearity == "tanh":
        assert agrees(layer, X).count("RNN") == count
    else:
        assert "RNN" not in agrees(layer, X)


def test_one_layer_has_no_more_than_the_operator_and_its_form():
    layer = nn.LSTM(DEEP, SIZE)
    assert agrees(lambda x: layer(x)[0], X, exact=False) == ["LSTM", "Squeeze"]


def test_both_ways_are_one_operator():
    layer = nn.LSTM(DEEP, SIZE, bidirectional=True)
    assert agrees(layer, X, exact=False) == ["LSTM", "Transpose", "Reshape"]
    # The states backwards are used in another place than those forward.
    f = lambda x: layer(x)[0][..., SIZE:] + 2 * layer(x)[0][..., :SIZE]
    assert agrees(f, X, exact=False).count("LSTM") == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, 40.0, -40.0])
@pytest.mark.parametrize("layer", [nn.LSTM(DEEP, SIZE), nn.GRU(DEEP, SIZE), nn.RNN(DEEP, SIZE)])
def test_nan_and_infinities_are_as_they_are_here(layer, value):
    x = X.copy()
    x[1, 1, 2] = value
    agrees(layer, x)
    if value == np.inf:
        x[2, 0, :2] = [np.inf, -np.inf]
        agrees(layer, x)


@pytest.mark.parametrize("layer", [nn.LSTM(DEEP, SIZE), nn.GRU(DEEP, SIZE)])
def test_both_ways_share_the_weights(layer):
    model = export.onnx(layer, X)
    weights = sum(np.asarray(p).nbytes for p in layer.parameters())
    assert sum(t.ByteSize() for t in model.graph.initializer) < 1.5 * weights
    found = [n.op_type for g in graphs(model.graph) for n in g.node]
    assert found.count("Scan") == 1 and found.count("If") == 1


@pytest.mark.parametrize(
    ("read", "outputs"),
    [
        (lambda out: out[0], 1),
        (lambda out: out[1][0], 1),
        (lambda out: out[1][1], 1),
        (lambda out: (out[0], out[1][1]), 2),
        (lambda out: out, 3),
    ],
)
def test_branches_give_what_is_read(read, outputs):
    layer = nn.LSTM(DEEP, SIZE)
    f = lambda x: read(layer(x))
    model = export.onnx(f, X)
    (branch,) = [n for n in model.graph.node if n.op_type == "If"]
    assert len(branch.output) == outputs
    x = X.copy()
    x[1, 1, 2] = np.nan
    agrees(f, X)
    agrees(f, x)


@pytest.mark.parametrize(("kind", "most"), [("LSTM", 25), ("GRU", 27)])
def test_steps_are_few_operators(kind, most):
    layer = getattr(nn, kind)(DEEP, SIZE)
    model = export.onnx(lambda x: layer(x)[0], X)
    nodes = [n.op_type for g in graphs(model.graph) for n in g.node]
    # One logistic function serves all gates of a step.
    assert nodes.count("Exp") == 1 and len(nodes) <= most


def scanned(step, reverse=False):
    return lambda x, *state: st.lax.scan(
        step, state if len(state) > 1 else state[0], x, reverse=reverse
    )


def joined(state, x):
    """All gates from one product of what goes in and the state, joined."""
    h, c = state
    f, i, g, o = snp.split(snp.concatenate([x, h], -1) @ np.concatenate([W, R]) + B, 4, -1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * snp.tanh(g)
    h = nn.sigmoid(o) * snp.tanh(c)
    return (h, c), h


def apart(state, x):
    """Gates one by one, the state's parts in the other order."""
    c, h = state
    part = lambda k: slice(k * SIZE, (k + 1) * SIZE)
    i, f, g, o = [x @ W[:, part(k)] + h @ R[:, part(k)] + B[part(k)] for k in range(4)]
    c = snp.tanh(g) * nn.sigmoid(i) + c * nn.sigmoid(f)
    return (c, nn.sigmoid(o) * snp.tanh(c)), nn.sigmoid(o) * snp.tanh(c)


def mixed(h, x):
    """A GRU as (1 - z) n + z h."""
    part = lambda k: slice(k * SIZE, (k + 1) * SIZE)
    z = nn.sigmoid(x @ W[:, part(0)] + h @ R[:, part(0)])
    r = nn.sigmoid(x @ W[:, part(1)] + h @ R[:, part(1)] + 1.0)
    n = snp.tanh(x @ W[:, part(2)] + r * (h @ R[:, part(2)] + B[part(2)]))
    h = (1 - z) * n + z * h
    return h, h


def moved(h, x):
    """A GRU as n + z (h - n)."""
    part = lambda k: slice(k * SIZE, (k + 1) * SIZE)
    z = nn.sigmoid(x @ W[:, part(0)] - h @ R[:, part(0)])
    r = nn.sigmoid(x @ W[:, part(1)] + h @ R[:, part(1)])
    n = snp.tanh(r * (h @ R[:, part(2)]) + x @ W[:, part(2)] + B[part(2)])
    h = n + z * (h - n)
    return h, h


def simple(h, x):
    h = snp.tanh(x @ W[:, :SIZE] + h @ R[:, :SIZE])
    return h, h


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("step", "states", "operator"),
    [
        (joined, (H, C), "LSTM"),
        (apart, (C, H), "LSTM"),
        (mixed, (H,), "GRU"),
        (moved, (H,), "GRU"),
        (simple, (H,), "RNN"),
    ],
)
def test_cells_written_by_hand_are_operators(step, states, operator, reverse):
    names = agrees(scanned(step, reverse), X, *states, exact=False)
    assert operator in names and "Scan" not in names
    agrees(scanned(step, reverse), X, *states)


def without_tanh(state, x):
    h, c = state
    f, i, g, o = snp.split(x @ W + h @ R + B, 4, -1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * g
    return (nn.sigmoid(o) * snp.tanh(c), c), c


def reset_before(h, x):
    part = lambda k: slice(k * SIZE, (k + 1) * SIZE)
    z = nn.sigmoid(x @ W[:, part(0)] + h @ R[:, part(0)])
    r = nn.sigmoid(x @ W[:, part(1)] + h @ R[:, part(1)])
    h = z * h + (1 - z) * snp.tanh(x @ W[:, part(2)] + (r * h) @ R[:, part(2)])
    return h, h


def two_inputs(h, x):
    h = snp.tanh(x[..., ::2] @ W[:4, :SIZE] + snp.sin(x) @ W[:, :SIZE] + h @ R[:, :SIZE])
    return h, h


def joined_with_sines(h, x):
    h = snp.tanh(snp.concatenate([snp.sin(x), h], -1) @ snp.concatenate([W, R])[:, :SIZE])
    return h, h


def joined_before_sines(h, x):
    h = snp.tanh(snp.concatenate([h, snp.sin(x)], -1) @ snp.concatenate([R, W])[:, :SIZE])
    return h, h


def shows_cells(state, x):
    new, _ = joined(state, x)
    return new, new[1]


@pytest.mark.parametrize(
    ("step", "states"),
    [
        (without_tanh, (H, C)),
        (reset_before, (H,)),
        (two_inputs, (H,)),
        (joined_with_sines, (H,)),
        (joined_before_sines, (H,)),
        (shows_cells, (H, C)),
    ],
)
def test_what_is_like_a_cell_stays_a_loop(step, states):
    assert "Scan" in agrees(scanned(step), X, *states, exact=False)


def test_sizes_that_vary():
    layer = nn.LSTM(DEEP, SIZE, batch_first=True)
    for exact in (True, False):
        model = export.onnx(layer, X, dynamic_axes={0: "batch", 1: "time"}, exact=exact)
        assert "Scan" not in operators(model)
        for shape in ((1, 3), (4, 7)):
            x = normal(*shape, DEEP)
            got, expected = run(model, x), st.tree.leaves(layer(x))
            for g, e in zip(got, expected, strict=True):
                np.testing.assert_allclose(g, np.asarray(e), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("exact", [True, False])
def test_dtypes_that_the_operators_do_not_take_stay_loops(exact):
    layer = nn.LSTM(DEEP, SIZE, batch_first=True)
    narrow = st.tree.map(lambda p: p.astype(np.float16), layer)
    # A transpose before a cast before a product ends the runtime's process.
    names = agrees(lambda x: narrow(x)[0], X.astype(np.float16), rtol=2e-3, exact=exact)
    assert "Scan" in names
    with st.config(enable_x64=True):
        wide = st.tree.map(lambda p: p.astype(np.float64), layer)
        assert "Scan" in agrees(lambda x: wide(x)[0], X.astype(np.float64), exact=exact)


class TestEnsembles:
    @pytest.mark.parametrize("exact", [True, False])
    @pytest.mark.parametrize(
        ("make", "operator"),
        [
            (lambda: nn.LSTM(DEEP, SIZE), "LSTM"),
            (lambda: nn.GRU(DEEP, SIZE, batch_first=True), "GRU"),
            (lambda: nn.LSTM(DEEP, SIZE, 2), "LSTM"),
            (lambda: nn.RNN(DEEP, SIZE, bidirectional=True), "RNN"),
        ],
    )
    def test_are_an_operator_for_each_member(self, make, operator, exact):
        ensemble = st.Ensemble([make() for _ in range(3)])
        names = agrees(ensemble, X, exact=exact)
        assert "Scan" not in names
        model = export.onnx(ensemble, X, exact=exact)
        found = [n.op_type for g in graphs(model.graph) for n in g.node]
        assert found.count(operator) % 3 == 0 and operator in found
        if not exact:
            assert "Scan" not in found

    @pytest.mark.parametrize("axes", [{0: "batch"}, {1: "time"}, {0: "batch", 1: "time"}])
    def test_of_sizes_that_vary(self, axes):
        ensemble = st.Ensemble([nn.GRU(DEEP, SIZE, batch_first=True) for _ in range(3)])
        for exact in (True, False):
            model = export.onnx(ensemble, X, dynamic_axes=axes, exact=exact)
            assert ("Scan" in operators(model)) == (len(axes) == 2)
            x = normal(3 if 0 in axes else LENGTH, 7 if 1 in axes else BATCH, DEEP)
            for got, value in zip(run(model, x), st.tree.leaves(ensemble(x)), strict=True):
                np.testing.assert_allclose(got, np.asarray(value), rtol=1e-5, atol=1e-6)

    def test_keep_nan(self):
        ensemble = st.Ensemble([nn.GRU(DEEP, SIZE) for _ in range(3)])
        for value in (np.nan, np.inf):
            x = X.copy()
            x[2, 1, 3] = value
            agrees(ensemble, x)

    @pytest.mark.parametrize("exact", [True, False])
    def test_with_rows_of_their_own(self, exact):
        rows, h, c = normal(3, LENGTH, BATCH, DEEP), normal(3, BATCH, SIZE), normal(3, BATCH, SIZE)
        agrees(st.vmap(scanned(simple)), rows, h, exact=exact)
        agrees(st.vmap(scanned(mixed)), rows, h, exact=exact)
        agrees(st.vmap(scanned(joined)), rows, h, c, exact=exact)
        steps = lambda x, h, w: st.lax.scan(lambda h, x: (snp.tanh(x @ w + h),) * 2, h, x)
        agrees(st.vmap(steps, (0, 0, None)), rows, h, W[:, :SIZE], exact=exact)
        turned = scanned(rnn(z=lambda h, x: x + h @ R[:, :SIZE]))
        agrees(st.vmap(turned), rows[..., :SIZE], h, exact=exact)

    @pytest.mark.parametrize("matrices", [1, 3])
    def test_with_products_of_rows_that_they_share(self, matrices):
        w, b, r = 0.3 * normal(DEEP, 3 * SIZE), normal(3 * SIZE), 0.3 * normal(matrices, SIZE, SIZE)

        def f(x, h):
            rows = (x.reshape(-1, DEEP) @ w + b).reshape(LENGTH, BATCH, 3, SIZE)
            step = rnn(z=lambda h, x: x + h @ r)
            return st.lax.scan(step, h, rows.transpose(0, 2, 1, 3))

        assert agrees(f, X, normal(3, BATCH, SIZE), exact=False).count("RNN") == 3

    def test_with_rows_of_one_product_in_another_order(self):
        w, r = 0.3 * normal(DEEP, 3 * SIZE), 0.3 * normal(3, SIZE, SIZE)

        def f(x, h):
            rows = (x.reshape(-1, DEEP) @ w).reshape(3, LENGTH, BATCH, SIZE)
            step = rnn(z=lambda h, x: x + h @ r)
            return st.lax.scan(step, h, rows.transpose(1, 0, 2, 3))

        assert "Scan" in agrees(f, X, normal(3, BATCH, SIZE), exact=False)

    def test_of_one_member(self):
        ensemble = st.Ensemble([nn.GRU(DEEP, SIZE)])
        for exact in (True, False):
            assert "Scan" not in agrees(ensemble, X, dynamic_axes={0: "time"}, exact=exact)

    @pytest.mark.parametrize("count", [2, 3])
    def test_with_states_of_their_own(self, count):
        members = [nn.LSTM(DEEP, SIZE) for _ in range(count)]
        stacked = st.tree.map(lambda *p: snp.stack(p), *members)
        f = lambda x, h, c: st.vmap(lambda m, a, b: m(x, (a, b)))(stacked, h, c)
        for exact in (True, False):
            agrees(f, X, normal(count, 1, BATCH, SIZE), normal(count, 1, BATCH, SIZE), exact=exact)


# Cells in other words, and what is a cell but for one place


def part(k):
    return slice(k * SIZE, (k + 1) * SIZE)


def lstm(gates, states="hc", o=nn.sigmoid, f=nn.sigmoid, i=nn.sigmoid, g=snp.tanh, last=snp.tanh,
         total=lambda kept, added: kept + added, given=lambda h, c: h):  # fmt: skip
    """Return a step with gates i, f, g, o of what ``gates`` gives."""

    def step(state, x):
        h, c = state if states == "hc" else state[::-1]
        zi, zf, zg, zo = gates(h, x)
        c = total(f(zf) * c, i(zi) * g(zg))
        h = o(zo) * last(c)
        return ((h, c) if states == "hc" else (c, h)), given(h, c)

    return step


def four(h, x):
    return snp.split(x @ W + h @ R + B, 4, -1)


def one_by_one(sign=1.0, bias=B, rows=W, states=R):
    def gates(h, x):
        return [
            sign * (x @ rows[:, part(k)] + h @ states[:, part(k)] + bias[part(k)]) for k in range(4)
        ]

    return gates


def some_of(**without):
    """Give gates, of which one has no product of the input or of the state."""

    def gates(h, x):
        out = []
        for k, name in enumerate("ifgo"):
            z = snp.zeros(SIZE) + B[part(k)]
            z = z if without.get(name) == "x" else z + x @ W[:, part(k)]
            out.append(z if without.get(name) == "h" else z + h @ R[:, part(k)])
        return out

    return gates


TURNED = np.ascontiguousarray(R.T)
half = lambda z: nn.sigmoid(2 * z)
minus = lambda z: nn.sigmoid(-z)
by_exp = lambda z: 1 / (1 + snp.exp(-z))
called = st.jit(nn.sigmoid)  # 1 - this stays what it is


class Over:
    """A gate as what a number is divided by."""

    def __init__(self, under):
        self.under = under

    def __mul__(self, y):
        return y / self.under


def over(under):
    return lambda z: Over(under(z))


class OfMore:
    """A gate for the state and one."""

    def __init__(self, gate):
        self.gate = gate

    def __mul__(self, y):
        return self.gate * (y + 1)


CELLS = [
    (lstm(four), 2, "LSTM"),
    (lstm(four, total=lambda kept, added: added + kept), 2, "LSTM"),
    (lstm(four, states="ch"), 2, "LSTM"),
    (lstm(one_by_one()), 2, "LSTM"),
    (lstm(one_by_one(sign=-1.0)), 2, None),
    (lstm(four, i=minus, o=minus), 2, "LSTM"),
    (lstm(four, i=by_exp, f=by_exp, o=by_exp), 2, "LSTM"),
    (lstm(lambda h, x: snp.split(x @ W + B - h @ R, 4, -1)), 2, "LSTM"),
    (lstm(lambda h, x: snp.split(h @ TURNED.T + x @ W, 4, -1)), 2, "LSTM"),
    (lstm(lambda h, x: snp.split((x @ W + 0.5) + (h @ R - B), 4, -1)), 2, "LSTM"),
    (lstm(lambda h, x: snp.split(x @ W + h @ R + x @ (W - B), 4, -1)), 2, "LSTM"),
    (lstm(lambda h, x: snp.split(h @ R + x @ W + h @ (R + B), 4, -1)), 2, "LSTM"),
    (lstm(some_of(f="h")), 2, "LSTM"),
    (lstm(some_of(f="h", g="h")), 2, "LSTM"),
    (lstm(some_of(f="x")), 2, None),
    (lstm(four, given=lambda h, c: (h, h)), 2, "LSTM"),
    (lstm(four, given=lambda h, c: None), 2, "LSTM"),
    (lstm(four, given=lambda h, c: (h, c)), 2, None),
    (lstm(four, given=lambda h, c: h + 1), 2, None),
    (lstm(four, i=half), 2, None),
    (lstm(four, i=lambda z: 1 / (1 + snp.exp(z))), 2, "LSTM"),
    (lstm(four, f=over(lambda z: 1 + snp.exp(-z))), 2, "LSTM"),
    (lstm(four, f=over(lambda z: snp.exp(z) + 1)), 2, "LSTM"),
    (lstm(four, f=over(lambda z: 2 + snp.exp(-z))), 2, None),
    (lstm(four, f=over(lambda z: 1 + snp.sin(-z))), 2, None),
    (lstm(four, f=over(lambda z: 1 - snp.exp(-z))), 2, None),
    (lstm(four, f=snp.tanh), 2, None),
    (lstm(four, f=lambda z: OfMore(nn.sigmoid(z))), 2, None),
    (lstm(four, o=snp.tanh), 2, None),
    (lstm(four, g=nn.relu), 2, None),
    (lstm(four, last=lambda c: c), 2, None),
    (lstm(four, last=lambda c: snp.tanh(c + 1)), 2, None),
    (lstm(four, total=lambda kept, added: kept - added), 2, None),
    (lstm(four, total=lambda kept, added: kept + added + 1), 2, None),
    (lstm(lambda h, x: snp.split(snp.sin(x @ W + h @ R), 4, -1)), 2, None),
    (lstm(lambda h, x: snp.split(snp.sin(x @ W + h @ R), 4, -1), i=minus, o=minus), 2, None),
    (lstm(lambda h, x: snp.split(x @ W + snp.sin(h) @ R, 4, -1)), 2, None),
    (lstm(lambda h, x: snp.split(x @ W + (h @ R) * B, 4, -1)), 2, "LSTM"),
    (lstm(lambda h, x: snp.split(x @ W + h @ R + x[:, :1], 4, -1)), 2, None),
]


def gru(reset=None, mix=None, out=snp.tanh, given=lambda h: h, inner=lambda h: h,
        gate=nn.sigmoid):  # fmt: skip
    def step(h, x):
        first = gate(x @ W[:, part(0)] + h @ R[:, part(0)] + B[part(0)])
        r = nn.sigmoid(x @ W[:, part(1)] + h @ R[:, part(1)])
        y = inner(h) @ R[:, part(2)] + B[part(2)]
        n = out((reset or (lambda x, r, y: x + r * y))(x @ W[:, part(2)], r, y))
        h = (mix or (lambda z, n, h: (1 - z) * n + z * h))(first, n, h)
        return h, given(h)

    return step


CELLS += [
    (gru(), 1, "GRU"),
    (gru(mix=lambda z, n, h: n + z * (h - n)), 1, "GRU"),
    (gru(mix=lambda z, n, h: z * h + (1 - z) * n), 1, "GRU"),
    (gru(mix=lambda z, n, h: z * (h - n) + n), 1, "GRU"),
    (gru(reset=lambda x, r, y: y * r + x), 1, "GRU"),
    (gru(reset=lambda x, r, y: (x + 1) + (r * y)), 1, "GRU"),
    (gru(given=lambda h: None), 1, "GRU"),
    (gru(mix=lambda z, n, h: (1 - z) * h + z * n), 1, "GRU"),
    (gru(mix=lambda z, n, h: (2 - z) * n + z * h), 1, None),
    (gru(mix=lambda z, n, h: n + z * (n - h)), 1, None),
    (gru(mix=lambda z, n, h: n * z + z * h), 1, None),
    (gru(mix=lambda z, n, h: n + z * (h - 2 * n)), 1, None),
    (gru(mix=lambda z, n, h: n), 1, None),
    (gru(reset=lambda x, r, y: x + y), 1, None),
    (gru(reset=lambda x, r, y: x + r * y + y), 1, None),
    (gru(reset=lambda x, r, y: r * x + y), 1, None),
    (gru(reset=lambda x, r, y: x - r * y), 1, None),
    (gru(reset=lambda x, r, y: x + r * y + snp.sin(x)), 1, None),
    (gru(reset=lambda x, r, y: snp.sin(x) + r * y + x), 1, None),
    (gru(out=nn.relu), 1, None),
    (gru(inner=snp.sin), 1, None),
    (gru(given=lambda h: -h), 1, None),
    (gru(gate=by_exp), 1, "GRU"),
    (gru(gate=called), 1, "GRU"),
    (gru(gate=called, mix=lambda z, n, h: z * h + (1 - z) * n), 1, "GRU"),
    (gru(gate=called, mix=lambda z, n, h: z * h + n * (1 - z)), 1, "GRU"),
    (gru(gate=called, mix=lambda z, n, h: (2 - z) * n + z * h), 1, None),
    (gru(gate=called, mix=lambda z, n, h: (1 - called(n)) * n + z * h), 1, None),
    (gru(gate=called, mix=lambda z, n, h: (1 + z) * n + z * h), 1, None),
]


def rnn(out=snp.tanh, z=lambda h, x: x @ W[:, :SIZE] + h @ R[:, :SIZE], given=lambda h: h):
    def step(h, x):
        h = out(z(h, x))
        return h, given(h)

    return step


CELLS += [
    (rnn(), 1, "RNN"),
    (rnn(nn.relu), 1, "RNN"),
    (rnn(z=lambda h, x: x @ W[:, :SIZE] + 0.5), 1, "RNN"),
    (rnn(nn.sigmoid), 1, None),
    (rnn(given=snp.sin), 1, None),
    (rnn(z=lambda h, x: h @ R[:, :SIZE]), 1, None),
    (rnn(z=lambda h, x: h + x @ W[:, :SIZE]), 1, None),
    (rnn(z=lambda h, x: x @ W[:, :SIZE] + h @ (h.T @ h)), 1, None),
    (rnn(z=lambda h, x: x @ W[:, :SIZE] + h @ R[:, :SIZE] + h), 1, None),
    (rnn(z=lambda h, x: 2 * (x @ W[:, :SIZE] + h @ R[:, :SIZE])), 1, None),
    (rnn(z=lambda h, x: x @ W[:, :SIZE] + h @ R[:, :SIZE] + x[:, :1]), 1, None),
]


@pytest.mark.parametrize(("step", "states", "operator"), CELLS)
def test_which_cells_are_operators(step, states, operator):
    given = (H, C)[:states]
    names = agrees(scanned(step), X, *given, exact=False)
    assert (operator is None) == ("Scan" in names)
    assert operator is None or operator in names
    agrees(scanned(step), X, *given)


def rows_before(reuse=None):
    """Take the input's products before the loop, and their columns in the step."""

    def f(x, h, c):
        rows = snp.einsum("tbi,ij->tbj", x, W) + B

        def step(state, row):
            h, c = state
            z = h @ R
            i, f, g, o = [row[:, part(k)] + z[:, part(k)] for k in range(4)]
            if reuse is not None:
                i = reuse(row, z)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * snp.tanh(g)
            h = nn.sigmoid(o) * snp.tanh(c)
            return (h, c), h

        return st.lax.scan(step, (h, c), rows)

    return f


@pytest.mark.parametrize(
    ("reuse", "found"),
    [
        (None, True),
        (lambda row, z: row[:, part(1)] + z[:, part(0)], True),
        (lambda row, z: z[:, part(0)] + row[:, part(0)], True),
        (lambda row, z: row[:, part(0)] + z[:, part(0)] + z[:, part(1)], True),
        (lambda row, z: z[:, part(0)] + row[:, part(0)] + row[:, part(0)], False),
        (lambda row, z: row[:, 3 : 3 + SIZE] + z[:, 5 : 5 + SIZE], True),
        (lambda row, z: row[:, part(0)] + row[:, part(1)] + z[:, part(0)], False),
        (lambda row, z: z[:, part(0)] - row[:, part(0)], False),
        (lambda row, z: row[:, : 2 * SIZE : 2] + z[:, part(0)], False),
        (lambda row, z: row[:, part(0)] + z[:, : 2 * SIZE : 2], False),
    ],
)
def test_products_of_rows_before_the_loop(reuse, found):
    names = agrees(rows_before(reuse), X, H, C, exact=False)
    assert ("LSTM" in names) == found
    agrees(rows_before(reuse), X, H, C)


def test_products_of_rows_with_a_matrix_that_is_given_stay_a_loop():
    f = lambda x, h, c, w: scanned(lstm(lambda h, x: snp.split(x + h @ R, 4, -1)))(x @ w, h, c)
    assert "Scan" in agrees(f, X, H, C, W, exact=False)


@pytest.mark.parametrize(("weight", "found"), [(0.995e15, True), (1.005e15, False)])
def test_weights_with_which_sums_may_overflow_stay_a_loop(weight, found):
    rows = np.zeros_like(W)
    rows[0, 0] = weight
    step = lstm(one_by_one(bias=0 * B, rows=rows, states=0 * R))
    names = agrees(scanned(step), X, H, C)
    assert ("If" in names) == found
    assert "LSTM" in agrees(scanned(step), X, H, C, exact=False)


@pytest.mark.parametrize("starts", [(H, C), (0 * H, C), (H, 0 * C), (0 * H, 0 * C)])
@pytest.mark.parametrize("exact", [True, False])
def test_states_that_begin_with_zeros(starts, exact):
    held = lambda x: scanned(lstm(four))(x, *starts)
    agrees(held, X, exact=exact)
    backwards = lambda x: (held(x)[1], scanned(lstm(one_by_one()), reverse=True)(x, *starts)[1])
    names = agrees(backwards, X, exact=exact)
    if not exact:
        assert names.count("LSTM") == (1 if not any(s.any() for s in starts) else 2)


@pytest.mark.parametrize("exact", [True, False])
def test_ways_of_which_one_begins_elsewhere_are_two_operators(exact):
    forward = lambda x: scanned(lstm(four))(x, H, C)[1]
    f = lambda x: (forward(x), scanned(lstm(one_by_one()), reverse=True)(x, 0 * H, 0 * C)[1])
    names = agrees(f, X, exact=exact)
    assert exact or names.count("LSTM") == 2


@pytest.mark.parametrize("exact", [True, False])
def test_ways_of_other_cells_are_two_operators(exact):
    zero = (0 * H, 0 * C)
    forward = lambda x: scanned(lstm(four))(x, *zero)[1]
    narrow = scanned(rnn(), reverse=True)
    f = lambda x: (forward(x), narrow(x, 0 * H)[1])
    names = agrees(f, X, exact=exact)
    assert exact or {"LSTM", "RNN"} <= {*names}
    g = lambda x: (forward(x), scanned(lstm(one_by_one()), reverse=True)(snp.sin(x), *zero)[1])
    names = agrees(g, X, exact=exact)
    assert exact or names.count("LSTM") == 2


def test_a_loop_that_only_looks_at_the_last_state():
    f = lambda x, h, c: scanned(lstm(four))(x, h, c)[0]
    for exact in (True, False):
        agrees(f, X, H, C, exact=exact)
    f = lambda x, h: scanned(gru())(x, h)[0]
    for exact in (True, False):
        agrees(f, X, H, exact=exact)


@pytest.mark.parametrize("shape", [(), (SIZE,), (2, 3, BATCH, SIZE)])
def test_states_of_other_than_two_axes_stay_a_loop(shape):
    # Rows are as many numbers, or of them, or several networks at once.
    x, h, w = normal(LENGTH, *shape), normal(*shape), np.eye(SIZE, dtype=np.float32)
    inner = lambda h: h @ w if shape else h
    assert "Scan" in agrees(scanned(rnn(z=lambda h, x: x + inner(h))), x, h, exact=False)


def test_a_product_of_rows_before_the_loop_and_another_in_the_step():
    narrow, wide, line = 0.3 * normal(DEEP, 5), normal(5, 4 * SIZE), normal(5)

    def f(x, h, c):
        rows = snp.einsum("tbi,ij->tbj", x, narrow) + line
        return scanned(lstm(lambda h, x: snp.split(x @ wide + h @ R + B, 4, -1)))(rows, h, c)

    assert "LSTM" in agrees(f, X, H, C, exact=False)


def test_a_step_that_reads_what_is_outside_stays_a_loop():
    def f(x, h, w):
        return st.lax.scan(rnn(z=lambda h, x: x @ w + h @ R[:, :SIZE]), h, x)

    assert "Scan" in agrees(f, X, H, W[:, :SIZE], exact=False)


def test_a_step_with_a_branch_stays_a_loop():
    def step(h, x):
        h = snp.tanh(x @ W[:, :SIZE] + h @ R[:, :SIZE])
        return h, st.lax.cond(h[0, 0] > 0, lambda: h, lambda: -h)

    assert "Scan" in agrees(scanned(step), X, H, exact=False)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_states_that_are_not_finite_stay_so(value):
    h, c = H.copy(), C.copy()
    for start in (h, c):
        start[1, 2] = value
        agrees(scanned(lstm(four)), X, h, c)
        start[1, 2] = 0.5
    h[0, 1] = value
    agrees(scanned(gru()), X, h)


def test_what_is_checked_before_the_operator():
    held = lambda x: scanned(lstm(four))(x, 0 * H, 0 * C)[1]
    assert agrees(held, X) == ["ReduceSumSquare", "Sub", "Equal", "If"]
    names = agrees(scanned(lstm(four)), X, H, C)
    assert names.count("ReduceSumSquare") == 3 and names.count("Sum") == 1
