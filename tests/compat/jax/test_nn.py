"""The functions of ``jax.nn``: values and slopes against definitions, masks, messages."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax import nn

X = np.array([-100.0, -4.0, -3.0, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0, 6.0, 7.0, 100.0], np.float32)
WIDE = X.astype(np.float64)


def same_values(name, meaning):
    f, want = getattr(nn, name), meaning(WIDE)
    for got in (f(snp.array(X)), st.jit(f)(X), st.vmap(f)(snp.array(X))):
        assert got.dtype == snp.float32
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    for dtype in (snp.bfloat16, snp.float16):
        assert f(snp.array([0.5], dtype)).dtype == dtype


def same_slopes(name, meaning):
    f, h = meaning, 1e-4
    x = np.array([-20.0, -4.1, -0.6, 0.3, 0.9, 2.2, 5.0, 30.0])
    numeric = (f(x + h) - f(x - h)) / (2 * h)
    slopes = st.vmap(st.grad(getattr(nn, name)))(snp.array(x))
    np.testing.assert_allclose(slopes, numeric, rtol=1e-3, atol=1e-4)
    seconds = st.vmap(st.grad(st.grad(getattr(nn, name))))(snp.array(x))
    assert np.isfinite(np.asarray(seconds)).all()
    at_extremes = st.vmap(st.grad(getattr(nn, name)))(snp.array([-1e4, 0.0, 1e4]))
    assert np.isfinite(np.asarray(at_extremes)).all()


def normal(x):
    return 0.5 * special.erfc(-x / math.sqrt(2))


def softplus(x):
    return np.logaddexp(x, 0)


MEANINGS = {
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x * special.expit(x),
    "swish": lambda x: x * special.expit(x),
    "sigmoid": special.expit,
    "log_sigmoid": special.log_expit,
    "tanh": np.tanh,
    "softplus": softplus,
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "identity": lambda x: x,
}


@pytest.mark.parametrize("name", MEANINGS)
def test_activations(name):
    same_values(name, MEANINGS[name])


@pytest.mark.parametrize("name", MEANINGS)
def test_derivatives_of_activations(name):
    same_slopes(name, MEANINGS[name])


def test_exact_gelu():
    np.testing.assert_allclose(
        nn.gelu(X, approximate=False), WIDE * normal(WIDE), atol=1e-6, rtol=1e-5
    )


def test_settings():
    assert nn.sigmoid(snp.array([0])).dtype == snp.float32
    np.testing.assert_allclose(nn.glu(snp.array([[1.0, 2.0, 0.0, 0.0]])), [[0.5, 1.0]])
    assert nn.glu(snp.ones((4, 3)), axis=0).shape == (2, 3)
    with pytest.raises(ValueError, match="odd size"):
        nn.glu(snp.ones(3))


LOGITS = np.array([[1.0, -2.0, 0.5], [1000.0, 999.0, -1000.0]], np.float32)


@pytest.mark.parametrize("axis", [-1, 0, (0, 1), None])
def test_softmax_and_relatives(axis):
    x = snp.array(LOGITS)
    for jit in (lambda f: f, st.jit):
        np.testing.assert_allclose(
            jit(lambda x: nn.softmax(x, axis))(x), special.softmax(LOGITS, axis), rtol=1e-5
        )
        np.testing.assert_allclose(
            jit(lambda x: nn.log_softmax(x, axis))(x), special.log_softmax(LOGITS, axis), rtol=1e-5
        )
        for keepdims in (False, True):
            np.testing.assert_allclose(
                jit(lambda x, keepdims=keepdims: nn.logsumexp(x, axis, keepdims=keepdims))(x),
                special.logsumexp(LOGITS, axis, keepdims=keepdims),
                rtol=1e-6,
            )


def test_softmax_of_some():
    x, mask = snp.array([1.0, 2.0, np.inf]), snp.array([True, True, False])
    np.testing.assert_allclose(
        nn.softmax(x, where=mask), [*special.softmax([1.0, 2.0]), 0], rtol=1e-6
    )
    np.testing.assert_allclose(
        nn.log_softmax(x, where=mask), [*special.log_softmax([1.0, 2.0]), -np.inf], rtol=1e-6
    )
    assert nn.logsumexp(x, where=mask).item() == pytest.approx(special.logsumexp([1.0, 2.0]))


def test_softmax_derivatives():
    x = snp.array(LOGITS[0])
    s = special.softmax(LOGITS[0].astype(np.float64))
    np.testing.assert_allclose(st.jacrev(nn.softmax)(x), np.diag(s) - np.outer(s, s), atol=1e-6)
    np.testing.assert_allclose(st.jacfwd(nn.softmax)(x), np.diag(s) - np.outer(s, s), atol=1e-6)
    np.testing.assert_allclose(st.grad(nn.logsumexp)(x), s, rtol=1e-5)
    np.testing.assert_allclose(st.hessian(nn.logsumexp)(x), np.diag(s) - np.outer(s, s), atol=1e-6)
    assert nn.softmax(snp.ones(4096, snp.bfloat16))[0].item() == 2**-12


BAD = [1e4, 3e38, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("bad", BAD)
def test_what_a_mask_leaves_out_has_no_part_in_derivatives(bad):
    mask, x = np.array([True, True, False]), np.array([1.0, 2.5, 0.5], np.float32)
    other = x.copy()
    other[2] = bad
    weights = np.array([1.0, -2.0, 3.0], np.float32)
    held = lambda out: snp.sum(snp.where(mask, weights * out, 0))
    for f in (
        lambda x: held(nn.softmax(x, where=mask)),
        lambda x: held(nn.log_softmax(x, where=mask)),
        lambda x: nn.logsumexp(x, where=mask),
        lambda x: nn.logsumexp(x, b=weights, where=mask, return_sign=True)[0],
        lambda x: nn.logsumexp(x, b=snp.array([1.0, 2.0, 0.0])),
        lambda x: nn.logmeanexp(x, where=mask),
        lambda x: held(nn.standardize(x, where=mask)),
        lambda x: held(nn.standardize(x, where=mask, algorithm="fast")),
        lambda x: held(nn.standardize(x, where=mask, mean=0.5)),
    ):
        for g in (st.grad(f), st.jit(st.grad(f)), st.jacfwd(f)):
            np.testing.assert_allclose(g(other), g(x), rtol=1e-5, atol=1e-6)
            assert g(other)[2] == 0
        np.testing.assert_allclose(st.hessian(f)(other), st.hessian(f)(x), rtol=1e-4, atol=1e-5)


def test_a_mask_without_elements_has_derivatives_of_zero():
    mask = np.array([[False, False], [True, True]])
    x = snp.array([[1.0, np.nan], [1.0, 2.0]])
    for f, nothing in ((nn.softmax, 0), (nn.log_softmax, -np.inf)):
        masked = lambda x, f=f: f(x, where=mask)
        np.testing.assert_array_equal(masked(x)[0], nothing)
        first = lambda x, f=f: snp.sum(snp.where(mask, f(x, where=mask), 0)[:, 0])
        want = np.stack([np.zeros(2), st.grad(lambda x, f=f: f(x)[0])(x[1])])
        np.testing.assert_allclose(st.grad(first)(x), want, rtol=1e-6)


def test_logsumexp_has_a_derivative_by_a_weight_of_zero():
    a, b = snp.array([1.0, 2.0, 3.0]), snp.array([1.0, 2.0, 0.0])
    f = lambda b: nn.logsumexp(a, b=b)
    total = np.exp(1) + 2 * np.exp(2)
    want = np.exp([1.0, 2.0, 3.0]) / total
    for g in (st.grad(f), st.jit(st.grad(f)), st.jacfwd(f)):
        np.testing.assert_allclose(g(b), want, rtol=1e-5)
    np.testing.assert_allclose(st.hessian(f)(b), -np.outer(want, want), rtol=1e-5)
    by_both = st.jacfwd(st.grad(lambda a, b: nn.logsumexp(a, b=b)), argnums=1)(a, b)
    np.testing.assert_allclose(by_both[2, 2], want[2], rtol=1e-5)  # d/db (b exp(a) / total)
    assert np.isfinite(st.grad(lambda b: nn.logsumexp(snp.array([1.0, np.inf]), b=b))(b[::2])[0])


def test_logsumexp_of_infinities():
    low = snp.array([-np.inf, -np.inf])
    for f in (nn.logsumexp, st.jit(nn.logsumexp)):
        assert f(low).item() == -np.inf
        assert f(snp.array([1.0, np.inf])).item() == np.inf
        assert np.isnan(f(snp.array([1.0, np.nan])).item())
    assert st.grad(nn.logsumexp)(low).tolist() == [0, 0]
    assert nn.logsumexp(snp.zeros(0)).item() == -np.inf


def test_logsumexp_with_factors():
    a, b = np.array([1.0, 2.0, 500.0], np.float32), np.array([2.0, -1.0, 0.0], np.float32)
    value, sign = nn.logsumexp(a, b=b, return_sign=True)
    want, want_sign = special.logsumexp(a, b=b, return_sign=True)
    assert value.item() == pytest.approx(want, rel=1e-6)
    assert sign.item() == want_sign == -1
    assert nn.logsumexp(a, b=snp.abs(b)).item() == pytest.approx(special.logsumexp(a, b=abs(b)))
    assert nn.logsumexp(snp.array([1, 2])).dtype == snp.float32


def test_standardize():
    x = np.array([[1.0, 2.0, 4.0], [0.0, 5.0, -1.0]], np.float32)
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.standardize(snp.array(x)), want, rtol=1e-5)
    np.testing.assert_allclose(
        nn.standardize(snp.array(x), mean=0.0, variance=4.0), x / 2, rtol=1e-5
    )
    assert nn.standardize(snp.array(x), axis=(0, 1)).mean().item() == pytest.approx(0, abs=1e-6)
    # of a mean that is given, the two algorithms have different variances, as JAX has them
    for algorithm, moment in (("fast", (x**2).mean(-1) - 1), ("stable", ((x - 1) ** 2).mean(-1))):
        about = (x - 1) / np.sqrt(moment[:, None] + 1e-5)
        outs = st.jit(
            lambda x, a=algorithm: [nn.standardize(x, mean=m, algorithm=a) for m in (None, 1.0)]
        )(x)
        for out, wanted in zip(outs, (want, about)):
            np.testing.assert_allclose(out, wanted, rtol=1e-5)
    far = x + 4096  # whose squares float32 holds to 2
    np.testing.assert_allclose(nn.standardize(far), want, rtol=1e-3)
    fast = nn.standardize(np.full((1, 3), 4096.1, np.float32), algorithm="fast")
    assert np.isfinite(np.asarray(fast)).all()
    with pytest.raises(ValueError, match="algorithm must be 'fast' or 'stable', got 'two'"):
        nn.standardize(x, algorithm="two")


def test_one_hot():
    at = np.array([[0, 2], [1, 5]])
    want = np.eye(6, 3)[at]
    for f in (nn.one_hot, st.jit(nn.one_hot, static_argnums=1)):
        np.testing.assert_array_equal(f(snp.array(at), 3), want)
    np.testing.assert_array_equal(nn.one_hot(at, 3, axis=0), np.moveaxis(want, -1, 0))
    np.testing.assert_array_equal(nn.one_hot(at, 3, axis=1), np.moveaxis(want, -1, 1))
    assert nn.one_hot(1, 3, dtype=bool).tolist() == [False, True, False]
    assert nn.one_hot(snp.array([-1]), 3).tolist() == [[0, 0, 0]]
    np.testing.assert_array_equal(st.vmap(lambda i: nn.one_hot(i, 3))(snp.arange(3)), np.eye(3))


def test_logarithms_of_sums():
    x = snp.array([-3.0, -1.5, -0.99, 0.0, 0.5, 1.0, 2.0])
    away = snp.array([0.0, 1e-3, 0.5, 1.0, 5.0, -1.0])
    wanted = [-np.inf, -6.908255, -0.9327521, -0.4586751, -0.0067607495, np.nan]
    np.testing.assert_allclose(nn.log1mexp(away), wanted, rtol=1e-6)
    rise = st.vmap(st.grad(nn.log1mexp))(away[1:5])
    np.testing.assert_allclose(rise, [999.5, 1.541494, 0.58197671, 0.0067836549], rtol=1e-5)
    assert float(nn.logmeanexp(x)) == pytest.approx(0.6493858)
    part = nn.logmeanexp(x.reshape(1, 7), axis=1, keepdims=True, where=x > 0)
    assert part.shape == (1, 1) and float(part[0, 0]) == pytest.approx(1.3657566)
    assert bool(snp.isnan(nn.logmeanexp(snp.zeros(0))))


def test_one_hot_takes_lists():
    assert nn.one_hot([[0], [2]], 3).tolist() == [[[1, 0, 0]], [[0, 0, 1]]]
    assert nn.one_hot([], 3).shape == (0, 3)


def test_softplus_has_all_derivatives_at_zero():
    # log(1 + e^x) = log 2 + x / 2 + x^2 / 8 - x^4 / 192 + ...
    for f, signs in ((nn.softplus, 1), (nn.log_sigmoid, -1)):
        g = lambda x, f=f, s=signs: s * f(s * x)
        for want in (np.log(2), 1 / 2, 1 / 4, 0, -1 / 8):
            np.testing.assert_allclose(g(0.0), want, atol=1e-6)
            np.testing.assert_allclose(st.jit(g)(0.0), want, atol=1e-6)
            g = st.grad(g)
    slope = st.grad(nn.softplus)
    assert [float(slope(x)) for x in (-np.inf, -200.0, 200.0, np.inf)] == [0, 0, 1, 1]
    got = [float(f(np.nan)) for f in (nn.softplus, st.jit(nn.softplus))]
    assert np.isnan(got).all()


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax])
def test_what_the_greatest_element_counts_as_at_least_changes_nothing(function):
    x, mask = snp.array([[1.0, 2.0], [-3.0, 5.0]]), snp.array([True, False])
    for initial in (None, -np.inf, 0.0, 7.0):
        for where in (None, mask):
            got = function(x, where=where, initial=initial)
            # The logarithm is of a sum that was rounded near exp(-7): sums of some 7s.
            np.testing.assert_allclose(got, function(x, where=where), rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("function", [nn.logmeanexp, nn.standardize])
def test_a_message_names_the_function_that_was_called(function):
    x, name = snp.ones((2, 3)), function.__name__
    with pytest.raises(ValueError, match=f"^{name}: axis 5 is out of bounds"):
        function(x, 5)
    with pytest.raises(TypeError, match=f"^{name}: where must be boolean"):
        function(x, where=x)


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_a_row_without_elements_has_a_gradient_of_zero(wrap):
    mask, x = snp.array([[True, False, True], [False] * 3]), snp.ones((2, 3))
    weights = snp.array([1.0, 2.0, 4.0])
    for f in (nn.softmax, nn.log_softmax):
        one = lambda x, m, f=f: snp.where(m, weights * f(x, where=m), 0).sum()
        both = lambda x, f=f: snp.where(mask, weights * f(x, axis=-1, where=mask), 0).sum()
        slopes = wrap(st.vmap(st.grad(one)))(x, mask)
        np.testing.assert_allclose(slopes, wrap(st.grad(both))(x), rtol=1e-6)
        np.testing.assert_array_equal(slopes[1], 0)
        assert np.isfinite(slopes).all() and (slopes[0, ::2] != 0).all()
        assert (wrap(st.hessian(both))(x)[1] == 0).all()
    total = lambda x: nn.logsumexp(x, axis=-1, where=mask).sum()
    np.testing.assert_allclose(wrap(st.grad(total))(x), [[0.5, 0, 0.5], [0, 0, 0]], rtol=1e-6)


@pytest.mark.parametrize("value", [0.1, 1e10, 1e30])
def test_standardized_constants_are_zero(value):
    x = snp.full((2, 7), value)
    with st.config(interpret_small=False):
        compiled = st.jit(nn.standardize)(x)
    for out in (nn.standardize(x), compiled):
        np.testing.assert_array_equal(out, 0)


PIECEWISE = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: (
        1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))
    ),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
}


@pytest.mark.parametrize("name", PIECEWISE)
def test_piecewise_activations(name):
    same_values(name, PIECEWISE[name])


@pytest.mark.parametrize("name", PIECEWISE)
def test_derivatives_of_piecewise_activations(name):
    same_slopes(name, PIECEWISE[name])


def test_relu_is_cheap_and_flat_at_zero():
    assert st.grad(nn.relu)(0.0).item() == 0
    assert st.grad(nn.relu6)(0.0).item() == 0
    assert st.grad(nn.relu6)(6.0).item() == 0
    graph = st.make_graph(nn.relu)(snp.ones(3))
    assert len(str(graph).splitlines()) <= 5
    assert np.isnan(nn.relu(snp.array(np.nan)).item())
    assert nn.relu(snp.array([-1, 2])).dtype == snp.int32


def test_settings_of_piecewise_activations():
    assert nn.leaky_relu(snp.array([-1.0]), 0.5).item() == -0.5
    assert nn.elu(snp.array([-100.0]), 2.0).item() == -2
    assert nn.celu(snp.array([-100.0]), 2.0).item() == -2
    with pytest.raises(TypeError, match="array"):
        nn.relu([1.0])


def test_sparse_functions():
    x = snp.array([-3.0, -1.5, -0.99, 0.0, 0.5, 1.0, 2.0])
    plus = nn.sparse_plus(x)
    np.testing.assert_allclose(plus, [0, 0, 2.5e-5, 0.25, 0.5625, 1, 2], rtol=1e-5)
    slope = st.vmap(st.grad(nn.sparse_plus))(x)
    np.testing.assert_allclose(slope, nn.sparse_sigmoid(x), rtol=1e-5)


def test_selu_is_named_in_its_message():
    with pytest.raises(TypeError, match=r"^selu: x must be an array"):
        nn.selu([1.0])


RNG = np.random.default_rng(0)
Q, K, V = (
    RNG.normal(size=s).astype(np.float32) for s in ((2, 3, 4, 5), (2, 6, 2, 5), (2, 6, 2, 5))
)
BIAS = RNG.normal(size=(2, 4, 3, 6)).astype(np.float32)
MASK = RNG.random((2, 1, 3, 6)) < 0.6
MASK[..., 0] = True
ROW, COLUMN = np.arange(3)[:, None], np.arange(6)


def attention(bias=0.0, allowed=True, scale=5**-0.5):
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
        ({}, attention()),
        ({"bias": BIAS, "mask": MASK}, attention(BIAS, MASK)),
        ({"is_causal": True}, attention(allowed=ROW >= COLUMN)),
        ({"scale": 0.3}, attention(scale=0.3)),
        (
            {"local_window_size": (1, 2)},
            attention(allowed=(ROW - COLUMN <= 1) & (COLUMN - ROW <= 2)),
        ),
        ({"local_window_size": 1}, attention(allowed=abs(ROW - COLUMN) <= 1)),
    ],
    ids=["plain", "masked", "causal", "scaled", "window", "narrow"],
)
def test_attention(settings, wanted):
    out, residual = nn.dot_product_attention(Q, K, V, return_residual=True, **settings)
    np.testing.assert_allclose(out, wanted[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(residual, wanted[1], rtol=1e-5, atol=1e-5)


def test_lengths_single_examples_and_derivatives():
    out = nn.dot_product_attention(Q, K, V, **LENGTHS)
    short = attention(allowed=COLUMN < 4)[0][0]
    np.testing.assert_allclose(out[0], short, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out[1, :2], attention()[0][1, :2], rtol=1e-5, atol=1e-5)
    assert bool((out[1, 2] == 0).all())
    one = nn.dot_product_attention(Q[0], K[0], V[0])
    np.testing.assert_allclose(one, attention()[0][0], rtol=1e-5, atol=1e-5)
    loss = lambda q: (nn.dot_product_attention(q, K, V, is_causal=True) ** 2).sum()
    slope = st.jit(st.grad(loss))(Q)
    direction = RNG.normal(size=Q.shape).astype(np.float32)
    step = 1e-2
    quotient = (loss(Q + step * direction) - loss(Q - step * direction)) / (2 * step)
    assert float((slope * direction).sum()) == pytest.approx(float(quotient), rel=2e-3)


def test_messages_of_attention():
    cases = [
        (lambda: nn.dot_product_attention(Q, K[:, :, :1], V), ValueError, "where K divides N"),
        (lambda: nn.dot_product_attention(Q, K, V, mask=BIAS), TypeError, "floats go into bias"),
        (
            lambda: nn.dot_product_attention(Q, K, V, implementation="cudnn"),
            ValueError,
            "implementation must be None or 'xla'",
        ),
        (
            lambda: nn.dot_product_attention(Q, K, V, query_seq_lengths=snp.ones((2, 1))),
            ValueError,
            r"expected query_seq_lengths \(B,\), a length for each example",
        ),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()
