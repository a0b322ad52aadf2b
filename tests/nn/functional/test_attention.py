"""Attention of one head and of many: PyTorch's values, masks, chance, messages."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F
from tests.nn.figures import digests, made, names, same

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
    with st.config(kernels=False):
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


def arrays(embed=6, kdim=6, vdim=6):
    shapes = {
        "query": (4, 2, embed),
        "key": (5, 2, kdim),
        "value": (5, 2, vdim),
        "in_proj": (3 * embed, embed),
        "in_bias": (3 * embed,),
        "bias_k": (1, 1, embed),
        "bias_v": (1, 1, embed),
        "out_proj": (embed, embed),
        "out_bias": (embed,),
        "q": (embed, embed),
        "k": (embed, kdim),
        "v": (embed, vdim),
    }
    return {n: snp.array(v) for n, v in made(shapes).items()}


def run(a, heads=2, zero=False, kv=False, separate=False, p=0.0, **settings):
    names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
    if separate:
        settings |= dict(zip(names, (a["q"], a["k"], a["v"])), use_separate_proj_weight=True)
    return F.multi_head_attention_forward(
        a["query"],
        a["key"],
        a["value"],
        a["query"].shape[-1],
        heads,
        None if separate else a["in_proj"],
        a["in_bias"],
        a["bias_k"] if kv else None,
        a["bias_v"] if kv else None,
        zero,
        p,
        a["out_proj"],
        a["out_bias"],
        **settings,
    )


def test_one_head_by_hand():
    a = {n: np.asarray(v, np.float64) for n, v in arrays().items()}
    q, k, v = (
        a[n][:, 0] @ w.T + b
        for n, w, b in zip(
            ("query", "key", "value"), np.split(a["in_proj"], 3), np.split(a["in_bias"], 3)
        )
    )
    scores = np.exp(q @ k.T / np.sqrt(6))
    weights = scores / scores.sum(1, keepdims=True)
    out, got = run(arrays(), heads=1)
    np.testing.assert_allclose(got[0], weights, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        out[:, 0], weights @ v @ a["out_proj"].T + a["out_bias"], rtol=1e-4, atol=1e-4
    )


def test_ways_to_say_the_same():
    a = arrays()
    out, weights = run(a)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
    assert run(a, need_weights=False)[1] is None
    each = run(a, average_attn_weights=False)[1]
    assert each.shape == (2, 2, 4, 5)
    np.testing.assert_allclose(each.mean(1), weights, rtol=1e-5)
    turned = {n: v.swapaxes(0, 1) if n in ("query", "key", "value") else v for n, v in a.items()}
    first = run(turned, batch_first=True)
    np.testing.assert_allclose(first[0].swapaxes(0, 1), out, rtol=1e-5, atol=1e-5)
    alone = {n: v[:, 1] if n in ("query", "key", "value") else v for n, v in a.items()}
    single = run(alone)
    np.testing.assert_allclose(single[0], out[:, 1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(single[1], weights[1], rtol=1e-5)
    w = snp.split(a["in_proj"], 3)
    apart = run({**a, "q": w[0], "k": w[1], "v": w[2]}, separate=True)
    np.testing.assert_allclose(apart[0], out, rtol=1e-5, atol=1e-5)
    # One array for keys and values, or for all three, is one product.
    shared = {**a, "value": a["key"]}
    np.testing.assert_allclose(
        run(shared)[0], run({**shared, "value": a["key"] + 0})[0], rtol=1e-5, atol=1e-5
    )
    own = {**a, "key": a["query"], "value": a["query"]}
    np.testing.assert_allclose(
        run(own)[0], run({**own, "key": a["query"] + 0})[0], rtol=1e-5, atol=1e-5
    )


def test_masks():
    a = arrays()
    later = np.triu(np.ones((4, 5), bool), 1)
    padding = np.zeros((2, 5), bool)
    padding[1, 3:] = True
    causal = run(a, is_causal=True)[1]
    assert (np.asarray(causal)[:, later] == 0).all() and (np.asarray(causal)[:, ~later] > 0).all()
    both = {"attn_mask": snp.array(later), "key_padding_mask": snp.array(padding)}
    weights = np.asarray(run(a, **both)[1])
    assert ((weights == 0) == (later | padding[:, None])).all()
    added = {n: snp.where(m, -np.inf, 0.0) for n, m in both.items()}
    for mixed in (added, {**added, "attn_mask": both["attn_mask"]}):
        np.testing.assert_allclose(run(a, **mixed)[1], weights, rtol=1e-6)
    heads = snp.array(np.repeat(later[None], 4, 0))
    np.testing.assert_allclose(
        run(a, attn_mask=heads, key_padding_mask=both["key_padding_mask"])[1], weights, rtol=1e-6
    )
    # Keys that were added are always attended to.
    more = np.asarray(run(a, kv=True, zero=True, **both)[1])
    assert more.shape == (2, 4, 7) and (more[..., 5:] > 0).all()
    assert ((more[..., :5] == 0) == (weights == 0)).all()


@pytest.mark.parametrize("dtype", [snp.bfloat16, snp.float16])
@pytest.mark.parametrize("average", [True, False])
def test_weights_have_the_dtype_of_the_outputs(dtype, average):
    a = {n: x.astype(dtype) for n, x in arrays().items()}
    out, weights = run(a, average_attn_weights=average)
    assert out.dtype == weights.dtype == dtype
    exact = run(arrays(), average_attn_weights=average)[1]
    np.testing.assert_allclose(weights.astype(snp.float32), exact, atol=0.02)


def test_nothing_to_attend_to():
    a = arrays()
    mask = snp.ones((4, 5), bool)
    loss = lambda a: run(a, attn_mask=mask)[0].sum()
    out, weights = run(a, attn_mask=mask)
    np.testing.assert_allclose(out, np.broadcast_to(a["out_bias"], out.shape), atol=1e-6)
    assert (weights == 0).all()
    assert all(np.isfinite(g).all() for g in st.grad(loss)(a).values())


def test_dropout_of_heads():
    a, key = arrays(), st.random.PRNGKey(0)
    plain = run(a)[1]
    weights = run(a, p=0.5, dropout_key=key, average_attn_weights=False)[1]
    full = run(a, average_attn_weights=False)[1]
    kept = np.asarray(weights) != 0
    assert 0.2 < kept.mean() < 0.8
    np.testing.assert_allclose(np.asarray(weights)[kept], 2 * np.asarray(full)[kept], rtol=1e-5)
    np.testing.assert_array_equal(run(a, p=0.5, training=False)[1], plain)
    with pytest.raises(RuntimeError, match="multi_head_attention_forward draws random numbers"):
        st.jit(lambda a: run(a, p=0.5))(a)


def test_products():
    x = arrays()["query"]
    f = lambda x: run({**arrays(), "query": x, "key": x, "value": x}, need_weights=False)[0]
    # One for queries, keys and values; scores; means; the output.
    assert st.jit(f).lower(x).as_text().count("stablehlo.dot_general") == 4


def test_messages_of_heads():
    a, caller = arrays(), "^multi_head_attention_forward: "
    with pytest.raises(ValueError, match=caller + "embed_dim 6 is not a multiple of num_heads 4"):
        run(a, heads=4)
    with pytest.raises(
        ValueError, match=caller + r"expected query, key and value all of rank 3 or 2"
    ):
        run({**a, "query": snp.ones((4, 6))})
    with pytest.raises(
        ValueError, match=caller + r"expected sizes .* embed_dim=6, kdim=6.*\[5,2,3\]"
    ):
        run({**a, "key": snp.ones((5, 2, 3))})
    with pytest.raises(ValueError, match=caller + "expected key and value of one length"):
        run({**a, "key": snp.ones((4, 2, 6))})
    with pytest.raises(
        ValueError, match=caller + "expected key and value of one length, and one bat"
    ):
        run({**a, "query": snp.ones((4, 3, 6))})
    with pytest.raises(
        ValueError, match=caller + r"expected attn_mask of shape \(4, 5\) or \(4, 4, 5"
    ):
        run(a, attn_mask=snp.ones((5, 4)))
    with pytest.raises(ValueError, match=caller + r"expected key_padding_mask of shape \(2, 5\)"):
        run(a, key_padding_mask=snp.ones((5, 2), bool))
    with pytest.raises(TypeError, match=caller + "attn_mask must be boolean"):
        run(a, attn_mask=snp.ones((4, 5), int))
    with pytest.raises(ValueError, match=caller + "dropout_p must be from 0 to 1, got 2"):
        run(a, p=2)


@pytest.mark.parametrize("missing", ["bias_k", "bias_v"])
def test_biases_of_key_and_value_go_together(missing):
    a = arrays()
    both = {"bias_k": a["bias_k"], "bias_v": a["bias_v"], missing: None}
    with pytest.raises(ValueError, match=f"go together, and {missing} is None"):
        F.multi_head_attention_forward(
            a["query"], a["key"], a["value"], 6, 2, a["in_proj"], a["in_bias"], both["bias_k"],
            both["bias_v"], False, 0.0, a["out_proj"], a["out_bias"],
        )  # fmt: skip
