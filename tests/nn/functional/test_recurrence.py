"""Recurrent networks: PyTorch's figures, steps, products, messages."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same
from tests.nn.functional.recurrent_weights import GATES, weights

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``. Weights are in
# the order of the arrays, and results one after another in one vector.
CASES = [
    (
        "rnn_tanh",
        {
            "input": (4, 3, 2),
            "h": (1, 3, 3),
            "w000": (3, 2),
            "w001": (3, 3),
            "w002": (3,),
            "w003": (3,),
        },
        {},
        [(45,), 1.24434, -0.70696, 2.15244, -0.5214, -1.89388, 1.19934, 1.19934],
    ),
    (
        "rnn_relu",
        {
            "input": (4, 3, 2),
            "h": (4, 3, 3),
            "w000": (3, 2),
            "w001": (3, 3),
            "w010": (3, 2),
            "w011": (3, 3),
            "w100": (3, 6),
            "w101": (3, 3),
            "w110": (3, 6),
            "w111": (3, 3),
        },
        {"has_biases": False, "num_layers": 2, "bidirectional": True},
        [
            (108,),
            1.13894,
            -0.95477,
            11.89732,
            -11.48524,
            -7.99277,
            -0.15241,
            -1.12773,
            -3.97878,
            7.21497,
            0.24212,
            2.05599,
        ],
    ),
    (
        "lstm",
        {
            "input": (4, 3, 2),
            "h": (1, 3, 3),
            "c": (1, 3, 3),
            "w000": (12, 2),
            "w001": (12, 3),
            "w002": (12,),
            "w003": (12,),
        },
        {},
        [(54,), 0.14333, -0.77435, 0.19604, 0.3541, -1.37702, -0.18995, 0.54228, 0.54228],
    ),
    (
        "lstm",
        {
            "input": (3, 4, 2),
            "h": (4, 3, 2),
            "c": (4, 3, 3),
            "w000": (12, 2),
            "w001": (12, 2),
            "w002": (12,),
            "w003": (12,),
            "w004": (2, 3),
            "w010": (12, 2),
            "w011": (12, 2),
            "w012": (12,),
            "w013": (12,),
            "w014": (2, 3),
            "w100": (12, 4),
            "w101": (12, 2),
            "w102": (12,),
            "w103": (12,),
            "w104": (2, 3),
            "w110": (12, 4),
            "w111": (12, 2),
            "w112": (12,),
            "w113": (12,),
            "w114": (2, 3),
        },
        {"num_layers": 2, "bidirectional": True, "batch_first": True},
        [
            (108,),
            -1.60991,
            0.18486,
            -0.05002,
            -4.08203,
            0.11204,
            0.01791,
            -0.37307,
            -0.37307,
            -0.18069,
            -0.85958,
            0.29933,
            -0.98633,
            -0.98633,
            -0.1975,
            -0.30615,
            0.02538,
            0.69725,
            0.69725,
            0.27043,
            0.47783,
            0.84562,
            -0.11529,
            -0.11529,
            0.33869,
        ],
    ),
    (
        "lstm",
        {
            "input": (4, 3, 2),
            "h": (2, 3, 3),
            "c": (2, 3, 3),
            "w000": (12, 2),
            "w001": (12, 3),
            "w010": (12, 2),
            "w011": (12, 3),
        },
        {"has_biases": False, "bidirectional": True},
        [(108,), 1.04501, -0.85486, 0.52114, 0.03133, -0.10207, -0.53715, -0.52329, -0.98593],
    ),
    (
        "gru",
        {
            "input": (4, 3, 2),
            "h": (1, 3, 3),
            "w000": (9, 2),
            "w001": (9, 3),
            "w002": (9,),
            "w003": (9,),
        },
        {},
        [(45,), 2.21027, 0.24937, 1.13902, -0.59812, 0.02608, 0.62335, 0.45977],
    ),
    (
        "gru",
        {
            "input": (3, 4, 2),
            "h": (4, 3, 3),
            "w000": (9, 2),
            "w001": (9, 3),
            "w002": (9,),
            "w003": (9,),
            "w010": (9, 2),
            "w011": (9, 3),
            "w012": (9,),
            "w013": (9,),
            "w100": (9, 6),
            "w101": (9, 3),
            "w102": (9,),
            "w103": (9,),
            "w110": (9, 6),
            "w111": (9, 3),
            "w112": (9,),
            "w113": (9,),
        },
        {"num_layers": 2, "bidirectional": True, "batch_first": True},
        [
            (108,),
            -8.82756,
            -0.02369,
            1.82116,
            -0.83994,
            0.32851,
            1.03114,
            0.54572,
            -2.28831,
            -0.63302,
            0.74025,
            0.16945,
            1.36838,
            1.52454,
            2.67133,
            2.78733,
            -4.25497,
            -3.77409,
            -0.18718,
            -0.25052,
        ],
    ),
    (
        "rnn_tanh_cell",
        {"input": (2, 3), "h": (2, 4), "w_ih": (4, 3), "w_hh": (4, 4), "b_ih": (4,), "b_hh": (4,)},
        {},
        [(2, 4), 0.19842, -0.1623, 0.00031, 0.18164, 0.0297, -0.00191, -0.00191],
    ),
    (
        "rnn_relu_cell",
        {"input": (2, 3), "h": (2, 4), "w_ih": (4, 3), "w_hh": (4, 4)},
        {},
        [(2, 4), 2.39577, -1.46554, -1.09499, -0.00586, -2.95928],
    ),
    (
        "lstm_cell",
        {
            "input": (2, 3),
            "h": (2, 4),
            "c": (2, 4),
            "w_ih": (16, 3),
            "w_hh": (16, 4),
            "b_ih": (16,),
            "b_hh": (16,),
        },
        {},
        [(16,), 2.18605, 0.81613, -0.10361, 0.55029, 0.07736, 0.19813, 0.46072, 0.46072],
    ),
    (
        "gru_cell",
        {
            "input": (2, 3),
            "h": (2, 4),
            "w_ih": (12, 3),
            "w_hh": (12, 4),
            "b_ih": (12,),
            "b_hh": (12,),
        },
        {},
        [(2, 4), 1.04122, 1.24754, 2.79938, 0.28799, -0.57171, -1.06844, -0.7601],
    ),
]


def flat(name):
    """The function of arrays by name, its results in one vector."""

    def run(input, h, c=None, **others):
        settings = {n: v for n, v in others.items() if not hasattr(v, "shape")}
        weights = [v for n, v in others.items() if n not in settings]
        hx, f = h if c is None else (h, c), getattr(F, name)
        if name.endswith("_cell"):
            outs = f(input, hx, *weights)
        else:
            outs = f(input, hx, weights, **settings)
        outs = outs if isinstance(outs, tuple) else (outs,)
        if len(outs) == 1:
            return outs[0]
        return snp.concatenate([o.ravel() for o in outs])

    return run


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    same(digests(flat(name), arrays, settings, st.jit), want)


@pytest.mark.parametrize("kind", GATES)
def test_a_network_is_its_cell_step_by_step(kind):
    x, params = (
        snp.array(np.random.default_rng(1).normal(size=(5, 4, 2)).astype("f")),
        weights(kind),
    )
    out, *last = getattr(F, kind)(x, None, params)
    state = None
    for t in range(5):
        state = getattr(F, f"{kind}_cell")(x[t], state, *params)
        h = state[0] if kind == "lstm" else state
        np.testing.assert_allclose(out[t], h, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last[0][0], h, rtol=1e-5, atol=1e-6)
    back = getattr(F, kind)(x, None, params * 2, bidirectional=True)[0][..., 3:]
    turned = getattr(F, kind)(x[::-1], None, params)[0][::-1]
    np.testing.assert_allclose(back, turned, rtol=1e-5, atol=1e-6)
    alone = getattr(F, kind)(x[:, 1], None, params)[0]
    np.testing.assert_allclose(alone, out[:, 1], rtol=1e-5, atol=1e-6)
    first = getattr(F, kind)(x.swapaxes(0, 1), None, params, batch_first=True)[0]
    np.testing.assert_allclose(first, out.swapaxes(0, 1), rtol=1e-5, atol=1e-6)


def test_one_cell_by_hand():
    x, h, c = np.array([0.3, -0.4]), np.array([0.1, 0.2, -0.1]), np.array([0.5, -0.5, 0.2])
    w, u, b, d = (np.asarray(p, np.float64) for p in weights("lstm"))
    sigmoid = lambda z: 1 / (1 + np.exp(-z))
    i, f, g, o = np.split(w @ x + b + u @ h + d, 4)
    after = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    got = F.lstm_cell(snp.array(x), (snp.array(h), snp.array(c)), *weights("lstm"))
    np.testing.assert_allclose(got[0], sigmoid(o) * np.tanh(after), rtol=1e-5)
    np.testing.assert_allclose(got[1], after, rtol=1e-5)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("missing", [2, 3], ids=["b_ih", "b_hh"])
def test_a_cell_with_one_bias(kind, missing):
    # PyTorch takes a missing bias for zeros, whichever it is.
    params, x = weights(kind), snp.array([[0.3, -0.4]])
    one, zero = list(params), list(params)
    one[missing], zero[missing] = None, snp.zeros_like(params[missing])
    f = getattr(F, f"{kind}_cell")
    for got, want in zip(st.tree.leaves(f(x, None, *one)), st.tree.leaves(f(x, None, *zero))):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    with pytest.raises(TypeError, match=f"{kind}_cell: b_hh must be an array or a number"):
        f(x, None, *params[:3], "b")


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_members_and_derivatives(kind):
    x = snp.array(np.random.default_rng(1).normal(size=(5, 4, 2)).astype("f"))
    members = [weights(kind, seed) for seed in range(3)]

    def loss(params, x):
        return (getattr(F, kind)(x, None, params)[0] ** 2).sum()

    got = st.jit(st.vmap(st.grad(loss), in_axes=(0, None)))(st.stack(members), x)
    for i, params in enumerate(members):
        for g, w in zip(got, st.grad(loss)(params, x)):
            np.testing.assert_allclose(g[i], w, rtol=1e-3, atol=1e-4)


def test_the_input_is_one_product_outside_the_loop():
    text = (
        st.jit(lambda x: F.lstm(x, None, weights("lstm"))[0]).lower(snp.ones((7, 4, 2))).as_text()
    )
    assert text.count("stablehlo.dot_general") == 2
    assert "tensor<7x4x12xf32>" in text


def test_dropout_between_layers():
    x, key = snp.ones((6, 50, 2)), st.random.PRNGKey(0)
    params = weights("gru") + weights("gru", 1, 3)
    f = lambda **settings: F.gru(x, None, params, num_layers=2, **settings)[0]
    plain = f()
    np.testing.assert_array_equal(f(dropout=0.5), plain)
    one = f(dropout=0.5, train=True, key=key)
    assert (one != plain).any() and len(np.unique(one[0], axis=0)) > 4
    np.testing.assert_array_equal(f(dropout=0.5, train=True, key=key), one)
    single = F.gru(x, None, params[:4], dropout=0.5, train=True)[0]
    np.testing.assert_array_equal(single, F.gru(x, None, params[:4])[0])
    with pytest.raises(RuntimeError, match="gru draws random numbers"):
        st.jit(lambda: f(dropout=0.5, train=True))()


def test_no_steps_and_types():
    out, h = F.gru(snp.ones((0, 4, 2)), snp.ones((1, 4, 3)), weights("gru"))
    assert out.shape == (0, 4, 3) and (h == 1).all()
    narrow = [w.astype(snp.bfloat16) for w in weights("lstm")]
    assert F.lstm(snp.ones((2, 2), snp.bfloat16), None, narrow)[2].dtype == snp.bfloat16


def test_messages():
    x, params = snp.ones((5, 4, 2)), weights("lstm")
    with pytest.raises(ValueError, match=r"lstm: expected input \(length, batch, features\) or"):
        F.lstm(snp.ones(2), None, params)
    with pytest.raises(
        ValueError, match=r"expected weight_ih of shape \(12, 5\) for input float32"
    ):
        F.lstm(snp.ones((5, 4, 5)), None, params)
    with pytest.raises(ValueError, match="expected 4 weights for each of 2 layers and directions"):
        F.lstm(x, None, params, num_layers=2)
    with pytest.raises(ValueError, match=r"lstm: expected hx to be a pair \(h, c\), got 1 arrays"):
        F.lstm(x, snp.ones((1, 4, 3)), params)
    with pytest.raises(
        ValueError, match=r"gru: expected h of shape \(1, 4, 3\), got float32\[4,3\]"
    ):
        F.gru(x, snp.ones((4, 3)), weights("gru"))
    with pytest.raises(ValueError, match=r"gru_cell: expected input \(batch, features\)"):
        F.gru_cell(x, None, *weights("gru"))
    with pytest.raises(ValueError, match="dropout must be from 0 to 1, got 2"):
        F.lstm(x, None, params * 2, num_layers=2, dropout=2, train=True)
