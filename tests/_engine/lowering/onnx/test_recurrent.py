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


def shows_cells(state, x):
    new, _ = joined(state, x)
    return new, new[1]


@pytest.mark.parametrize(
    ("step", "states"),
    [(without_tanh, (H, C)), (reset_before, (H,)), (two_inputs, (H,)), (shows_cells, (H, C))],
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

    def test_with_states_of_their_own(self):
        members = [nn.LSTM(DEEP, SIZE) for _ in range(3)]
        stacked = st.tree.map(lambda *p: snp.stack(p), *members)
        f = lambda x, h, c: st.vmap(lambda m, a, b: m(x, (a, b)))(stacked, h, c)
        for exact in (True, False):
            agrees(f, X, normal(3, 1, BATCH, SIZE), normal(3, 1, BATCH, SIZE), exact=exact)
