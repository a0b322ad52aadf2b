"""Attention with heads after positions: against the formula, compiled and differentiated."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

RNG = np.random.default_rng(0)
Q, K, V = (
    RNG.normal(size=s).astype(np.float32) for s in ((2, 3, 4, 5), (2, 6, 2, 5), (2, 6, 2, 5))
)
BIAS = RNG.normal(size=(2, 4, 3, 6)).astype(np.float32)
MASK = RNG.random((2, 1, 3, 6)) < 0.6
MASK[..., 0] = True
ROW, COLUMN = np.arange(3)[:, None], np.arange(6)


def formula(bias=0.0, allowed=True, scale=5**-0.5):
    k, v = (np.repeat(x, 2, axis=2) for x in (K, V))
    scores = np.einsum("btnh,bsnh->bnts", Q, k) * scale + bias
    scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores)
    total = weights.sum(-1, keepdims=True)
    out = np.einsum("bnts,bsnh->btnh", weights / total, v)
    return out, np.log(total[..., 0]).swapaxes(1, 2)


LENGTHS = {"query_seq_lengths": np.array([3, 2]), "key_value_seq_lengths": np.array([4, 6])}


@pytest.mark.parametrize(
    "settings, wanted",
    [
        ({}, formula()),
        ({"bias": BIAS, "mask": MASK}, formula(BIAS, MASK)),
        ({"is_causal": True}, formula(allowed=ROW >= COLUMN)),
        ({"scale": 0.3}, formula(scale=0.3)),
        ({"local_window_size": (1, 2)}, formula(allowed=(ROW - COLUMN <= 1) & (COLUMN - ROW <= 2))),
        ({"local_window_size": 1}, formula(allowed=abs(ROW - COLUMN) <= 1)),
    ],
    ids=["plain", "masked", "causal", "scaled", "window", "narrow"],
)
def test_the_formula(settings, wanted):
    out, residual = st.nn.dot_product_attention(Q, K, V, return_residual=True, **settings)
    np.testing.assert_allclose(out, wanted[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(residual, wanted[1], rtol=1e-5, atol=1e-5)


def test_lengths_single_examples_and_derivatives():
    out = st.nn.dot_product_attention(Q, K, V, **LENGTHS)
    short = formula(allowed=COLUMN < 4)[0][0]
    np.testing.assert_allclose(out[0], short, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out[1, :2], formula()[0][1, :2], rtol=1e-5, atol=1e-5)
    assert bool((out[1, 2] == 0).all())
    one = st.nn.dot_product_attention(Q[0], K[0], V[0])
    np.testing.assert_allclose(one, formula()[0][0], rtol=1e-5, atol=1e-5)
    loss = lambda q: (st.nn.dot_product_attention(q, K, V, is_causal=True) ** 2).sum()
    slope = st.jit(st.grad(loss))(Q)
    direction = RNG.normal(size=Q.shape).astype(np.float32)
    step = 1e-2
    quotient = (loss(Q + step * direction) - loss(Q - step * direction)) / (2 * step)
    assert float((slope * direction).sum()) == pytest.approx(float(quotient), rel=2e-3)


def test_messages():
    cases = [
        (lambda: st.nn.dot_product_attention(Q, K[:, :, :1], V), ValueError, "where K divides N"),
        (lambda: st.nn.dot_product_attention(Q, K, V, mask=BIAS), TypeError, "floats go into bias"),
        (
            lambda: st.nn.dot_product_attention(Q, K, V, implementation="cudnn"),
            ValueError,
            "implementation must be None or 'xla'",
        ),
        (
            lambda: st.nn.dot_product_attention(Q, K, V, query_seq_lengths=snp.ones((2, 1))),
            ValueError,
            r"expected query_seq_lengths \(B,\), a length for each example",
        ),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()
