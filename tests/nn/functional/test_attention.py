"""Attention: PyTorch's figures, masks, shared heads, extremes, dropout, one program, messages."""

import numpy as np
import pytest
from scipy import special

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
CASES = [
    (
        "scaled_dot_product_attention",
        {"query": (4, 6), "key": (5, 6), "value": (5, 3)},
        {},
        [(4, 3), 0.20498, -0.62672, -0.5469, -0.53447],
    ),
    (
        "scaled_dot_product_attention",
        {"query": (2, 3, 4, 6), "key": (2, 3, 5, 6), "value": (2, 3, 5, 3)},
        {"scale": 0.7},
        [(2, 3, 4, 3), 0.38971, 0.93183, -0.87225, -2.60029],
    ),
    (
        "scaled_dot_product_attention",
        {"query": (2, 4, 6), "key": (2, 5, 6), "value": (2, 5, 3)},
        {"is_causal": True},
        [(2, 4, 3), 0.14683, -0.38254, 0.02981, -0.11808],
    ),
    (
        "scaled_dot_product_attention",
        {"query": (2, 2, 4, 6), "key": (2, 2, 5, 6), "value": (2, 2, 5, 3), "attn_mask": (4, 5)},
        {},
        [(2, 2, 4, 3), 0.29133, 0.03624, -0.26131, -0.25798, -2.00676],
    ),
    (
        "scaled_dot_product_attention",
        {
            "query": (2, 4, 6),
            "key": (2, 5, 6),
            "value": (2, 5, 3),
            "attn_mask": [
                [True, False, True, True, False],
                [True, True, True, True, True],
                [False, False, False, False, True],
                [False, True, False, True, False],
            ],
        },
        {},
        [(2, 4, 3), -2.15979, -0.22713, -0.48313, -0.37521],
    ),
    (
        "scaled_dot_product_attention",
        {"query": (2, 4, 3, 6), "key": (2, 1, 5, 6), "value": (2, 1, 5, 6)},
        {"enable_gqa": True, "is_causal": False},
        [(2, 4, 3, 6), -1.3215, 12.90926, -0.12298, -7.03907],
    ),
    (
        "scaled_dot_product_attention",
        {"query": (2, 4, 3, 6), "key": (2, 2, 5, 6), "value": (2, 2, 5, 6)},
        {"enable_gqa": True, "is_causal": True},
        [(2, 4, 3, 6), 0.41296, 5.82713, -0.18182, 33.39847],
    ),
    (
        "scaled_dot_product_attention",
        {"query": (2, 4, 3, 6), "key": (2, 4, 5, 6), "value": (2, 4, 5, 6)},
        {"enable_gqa": True, "is_causal": False},
        [(2, 4, 3, 6), -0.07023, 12.97616, -0.21649, -13.75346],
    ),
]

KEY = st.random.PRNGKey(0)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f")


def test_definition():
    q, k, v = drawn(2, 4, 6), drawn(2, 5, 6, seed=1), drawn(2, 5, 3, seed=2)
    want = special.softmax(q @ k.swapaxes(1, 2) / np.sqrt(6), -1) @ v
    got = F.scaled_dot_product_attention(snp.array(q), snp.array(k), snp.array(v))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_leading_axes_broadcast():
    q, k, v = snp.array(drawn(3, 4, 6)), snp.array(drawn(5, 6)), snp.array(drawn(2, 1, 5, 6))
    out = F.scaled_dot_product_attention(q, k, v)
    assert out.shape == (2, 3, 4, 6)
    np.testing.assert_allclose(
        out[1, 2], F.scaled_dot_product_attention(q[2], k, v[1, 0]), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_a_query_that_may_attend_to_nothing(wrap):
    q, mask = snp.array(drawn(3, 4)), snp.array([[True] * 3, [False] * 3, [True, False, False]])
    for m in (mask, snp.where(mask, 0.0, -np.inf)):
        f = lambda q, m=m: F.scaled_dot_product_attention(q, q, q, m).sum()
        out = F.scaled_dot_product_attention(q, q, q, m)
        assert out[1].tolist() == [0] * 4
        np.testing.assert_allclose(out[2], q[0], rtol=1e-6)
        assert np.isfinite(wrap(st.grad(f))(q)).all()


def test_large_scores():
    q, v = snp.array(drawn(3, 4)) * 1e4, snp.eye(3)
    out, slope = st.value_and_grad(lambda q: F.scaled_dot_product_attention(q, q, v)[0].sum())(q)
    np.testing.assert_allclose(out, 1, rtol=1e-6)
    assert np.isfinite(slope).all()


def test_no_keys():
    out = F.scaled_dot_product_attention(snp.ones((2, 3)), snp.ones((0, 3)), snp.ones((0, 4)))
    assert out.tolist() == [[0] * 4] * 2


def test_narrow_types_add_up_in_float32():
    q, k, v = (snp.array(drawn(2, 64, 8, seed=i)) for i in range(3))
    narrow = F.scaled_dot_product_attention(*(x.astype(snp.bfloat16) for x in (q, k, v)))
    assert narrow.dtype == snp.bfloat16
    wide = F.scaled_dot_product_attention(q, k, v)
    np.testing.assert_allclose(narrow.astype(snp.float32), wide, atol=0.02)


def test_two_products_and_no_repeated_keys():
    q, k = snp.ones((2, 8, 16, 4)), snp.ones((2, 2, 32, 4))
    f = lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True)
    text = st.jit(f).lower(q, k).as_text()
    assert text.count("stablehlo.dot_general") == 2
    assert "2x8x32x4" not in text


def test_every_example_and_member():
    q = snp.array(drawn(3, 2, 4, 6))
    f = lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True)
    loss = lambda q: (f(q) ** 2).sum()
    np.testing.assert_allclose(st.vmap(f)(q), f(q), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        st.jit(st.vmap(st.grad(loss)))(q), st.grad(loss)(q), rtol=1e-4, atol=1e-5
    )
    tangent = st.jvp(st.grad(loss), (q,), (q,))[1]
    h = 1e-2
    numeric = (st.grad(loss)(q * (1 + h)) - st.grad(loss)(q * (1 - h))) / (2 * h)
    np.testing.assert_allclose(tangent, numeric, rtol=0.02, atol=0.02)


def test_dropout():
    q, v = snp.zeros((1, 1)), snp.eye(2000)
    k = snp.zeros((2000, 1))
    f = lambda key: F.scaled_dot_product_attention(q, k, v, dropout_p=0.25, dropout_key=key)
    weights = np.asarray(f(KEY))[0]
    assert abs((weights == 0).mean() - 0.25) < 0.05
    np.testing.assert_allclose(weights[weights != 0], 1 / 2000 / 0.75, rtol=1e-5)
    np.testing.assert_array_equal(st.jit(f)(KEY)[0] == 0, weights == 0)
    with st.nn.keys(KEY):
        one, two = f(None), f(None)
    assert (one != two).any()
    with pytest.raises(RuntimeError, match=r"scaled_dot_product_attention draws random"):
        st.jit(lambda: f(None))()


def test_messages():
    x, caller = snp.ones((2, 3, 4)), "scaled_dot_product_attention: "
    f = F.scaled_dot_product_attention
    with pytest.raises(ValueError, match=caller + "expected query, key and value of rank 2"):
        f(snp.ones(4), x, x)
    with pytest.raises(
        ValueError, match=caller + r"query and key must have one size .* float32\[2,3,5"
    ):
        f(snp.ones((2, 3, 5)), x, x)
    with pytest.raises(ValueError, match=caller + "there must be a value for each key"):
        f(x, x, snp.ones((2, 5, 4)))
    with pytest.raises(ValueError, match=r"shapes .* do not broadcast"):
        f(x, snp.ones((3, 3, 4)), snp.ones((3, 3, 4)))
    with pytest.raises(ValueError, match=caller + "with enable_gqa the heads"):
        f(snp.ones((1, 3, 3, 4)), snp.ones((1, 2, 3, 4)), snp.ones((1, 2, 3, 4)), enable_gqa=True)
    with pytest.raises(ValueError, match=caller + "give attn_mask or is_causal, not both"):
        f(x, x, x, snp.ones((3, 3)), is_causal=True)
    with pytest.raises(TypeError, match=caller + r"attn_mask must be boolean .* got int32\[3,3\]"):
        f(x, x, x, snp.ones((3, 3), int))
    with pytest.raises(ValueError, match="dropout_p must be from 0 to 1, got 2"):
        f(x, x, x, dropout_p=2)
