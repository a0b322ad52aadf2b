"""Multi-head attention: PyTorch's figures, one head by hand, masks, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F
from tests.nn.figures import made


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


def test_dropout():
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


def test_messages():
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
