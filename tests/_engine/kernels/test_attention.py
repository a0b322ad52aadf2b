"""The kernels for attention: random geometries against float64, and what bits do not depend on."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.kernels import kernels

pytestmark = pytest.mark.skipif(kernels is None, reason="needs the kernels")

F = nn.functional


def softmax(scores):
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


def expected(q, k, v, scale, seen, added):
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    scores = np.where(seen, q @ k.swapaxes(-1, -2) * scale + added, -1e9)
    return softmax(scores) @ v


def gradients(q, k, v, scale, seen, added, ct):
    q, k, v, ct = (a.astype(np.float64) for a in (q, k, v, ct))
    p = softmax(np.where(seen, q @ k.swapaxes(-1, -2) * scale + added, -1e9))
    d = ct @ v.swapaxes(-1, -2)
    d = np.where(seen, p * (d - (d * p).sum(-1, keepdims=True)), 0) * scale
    return d @ k, d.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ ct


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(12))
def test_values_and_gradients(seed, dtype):
    rng = np.random.default_rng(seed)
    draw = lambda *shape: rng.standard_normal(shape).astype(dtype)
    rows, keys = int(rng.integers(32, 150)), int(rng.integers(32, 600))
    features, columns = (int(n) for n in rng.choice([8, 13, 16, 33, 64, 100, 256], 2))
    batch = rng.integers(1, 4, 2)
    q, k = draw(*batch, rows, features), draw(*batch, keys, features)
    v, ct = draw(*batch, keys, columns), draw(*batch, rows, columns)
    added = draw(rows, keys) if seed % 2 else np.zeros(1, dtype)
    offset = int(rng.integers(-rows, keys))
    seen = np.arange(rows)[:, None] + offset >= np.arange(keys)
    if seed % 3 == 0:
        seen = seen & (rng.random((int(batch[0]), 1, rows, keys)) > 0.2)
    scale = 1 / np.sqrt(features).astype(dtype)

    def attention(q, k, v):
        scores = q @ k.swapaxes(-1, -2) * scale + added
        return F.softmax(snp.where(seen, scores, -1e9), dim=-1) @ v

    def both(q, k, v, ct):
        out, back = st.vjp(attention, q, k, v)
        return out, back(ct * (1 + 0 * out))

    with st.enable_x64(dtype == "float64"):
        out, given = st.jit(both)(q, k, v, ct)
    bound = 1e-5 if dtype == "float32" else 1e-13
    wide = expected(q, k, v, scale, seen, added)
    np.testing.assert_allclose(out, wide, atol=bound * np.abs(wide).max())
    for got, e in zip(given, gradients(q, k, v, scale, seen, added, ct), strict=True):
        np.testing.assert_allclose(got, e, atol=bound * np.abs(e).max())


@pytest.mark.parametrize("causal", [False, True])
def test_one_row_does_not_change_another(causal):
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 300, 40)).astype(np.float32)
    attend = st.jit(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal))
    whole = np.asarray(attend(q, k, v))
    np.testing.assert_array_equal(attend(q[:, :70], k, v), whole[:, :70])
    np.testing.assert_array_equal(attend(q[1:], k[1:], v[1:]), whole[1:])


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_few_queries(rows):
    rng = np.random.default_rng(rows)
    for features in (8, 20, 64):
        q = rng.standard_normal((3, rows, features)).astype(np.float32)
        k, v = rng.standard_normal((2, 3, 517, features)).astype(np.float32)
        seen = np.arange(517) <= 400
        got = st.jit(F.scaled_dot_product_attention)(q, k, v, seen)
        wide = expected(q, k, v, 1 / np.sqrt(features), seen, 0)
        np.testing.assert_allclose(got, wide, atol=2e-6)


def test_hidden_keys_do_not_count():
    q, k, v = np.random.default_rng(1).standard_normal((3, 2, 90, 16)).astype(np.float32)
    attend = st.jit(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    before = np.asarray(attend(q, k, v))
    k[:, 60:] = np.nan  # scores that are hidden
    np.testing.assert_array_equal(attend(q, k, v)[:, :60], before[:, :60])
    v[:, 60:, 3] = np.inf  # zero by infinity
    got = np.asarray(attend(q, k, v))[:, :60]
    assert np.isnan(got[..., 3]).all()
    np.testing.assert_array_equal(np.delete(got, 3, -1), np.delete(before[:, :60], 3, -1))


def test_rows_without_keys():
    q, k, v = np.random.default_rng(2).standard_normal((3, 2, 70, 16)).astype(np.float32)
    seen = np.arange(70)[:, None] != 5
    got = np.asarray(st.jit(F.scaled_dot_product_attention)(q, k, v, snp.asarray(seen)))
    assert not got[:, 5].any()

    def by_hand(q, k, v):
        scores = snp.where(seen, q @ k.swapaxes(-1, -2), -snp.inf)
        return F.softmax(scores, dim=-1) @ v

    got = np.asarray(st.jit(by_hand)(q, k, v))
    assert np.isnan(got[:, 5]).all()
    assert np.isfinite(np.delete(got, 5, 1)).all()
