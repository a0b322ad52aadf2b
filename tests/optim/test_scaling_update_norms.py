"""Clipping: values of optax, bounds kept, derivatives, what is refused."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from tests.optim.running import assert_figures


@pytest.mark.parametrize(
    ("name", "tx"),
    [
        ("clip", optim.clip(0.3)),
        ("clip_by_global_norm", optim.clip_by_global_norm(1.0)),
        ("clip_by_block_rms", optim.clip_by_block_rms(0.4)),
        ("adaptive_grad_clip", optim.adaptive_grad_clip(0.3)),
        ("adaptive_grad_clip rows", optim.adaptive_grad_clip(0.3, axis=-1)),
    ],
)
def test_values_of_optax(name, tx):
    assert_figures(name, tx)


def apply(tx, updates, params=None):
    return tx.update(updates, tx.init(updates), params)[0]


def test_global_norm_is_bounded_and_what_is_within_stays():
    tx = optim.clip_by_global_norm(2.0)
    big, small = {"a": snp.array([30.0]), "b": snp.array([40.0])}, {"a": snp.array([1.25])}
    assert abs(float(optim.global_norm(apply(tx, big))) - 2) < 1e-6
    assert float(apply(tx, small)["a"][0]) == 1.25
    assert float(apply(tx, {"a": snp.array([2.0])})["a"][0]) == 2.0


def test_global_norm_at_its_ends():
    assert apply(optim.clip_by_global_norm(1.0), {}) == {}
    zeros = apply(optim.clip_by_global_norm(0.0), {"a": snp.zeros(2)})
    np.testing.assert_array_equal(zeros["a"], [0, 0])
    nan = apply(optim.clip_by_global_norm(1.0), {"a": snp.array([snp.nan, 1.0])})
    assert np.isnan(np.asarray(nan["a"])).all()


def test_norms_of_bfloat16_are_summed_in_float32():
    # 4,096 ones: in bfloat16 the sum of squares would stop at 256.
    ones = snp.ones(4096, snp.bfloat16)
    clipped = apply(optim.clip_by_global_norm(1.0), ones)
    assert clipped.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(np.asarray(clipped, np.float32), 1 / 64, rtol=2**-8)


def test_derivative_of_the_clipped_norm():
    # d/dx of x / |x| is (I − x xᵀ / |x|²) / |x|; at (3, 4) of the first element (16, −12) / 125.
    def first(x):
        return apply(optim.clip_by_global_norm(1.0), x)[0]

    for f in (first, st.jit(first)):
        np.testing.assert_allclose(st.grad(f)(snp.array([3.0, 4.0])), [0.128, -0.096], rtol=1e-5)
        np.testing.assert_allclose(st.grad(f)(snp.array([0.3, 0.4])), [1, 0])
        np.testing.assert_allclose(st.grad(f)(snp.zeros(2)), [1, 0])


@pytest.mark.parametrize(
    ("shape", "within"),
    [
        ((), ()),
        ((4,), (0,)),
        ((1, 4, 1), (0, 1, 2)),
        ((3, 4), (0,)),
        ((3, 4, 2), (0,)),
        ((3, 3, 2, 4), (0, 1, 2)),
        ((2, 3, 3, 2, 4), (0, 1, 2, 3)),
    ],
)
def test_units_of_adaptive_clipping(shape, within):
    rng = np.random.default_rng(0)
    g, p = rng.normal(size=shape).astype(np.float32), rng.normal(size=shape).astype(np.float32)
    norms = [np.sqrt((x * x).sum(axis=within, keepdims=True)) for x in (g, p)]
    largest = 0.5 * np.maximum(norms[1], 1e-3)
    expected = np.where(norms[0] < largest, g, g * largest / norms[0])
    clipped = apply(optim.adaptive_grad_clip(0.5), snp.asarray(g), snp.asarray(p))
    np.testing.assert_allclose(clipped, expected, rtol=1e-5)


def test_what_is_refused():
    with pytest.raises(ValueError, match="clip: max_delta must be at least 0, got -1"):
        optim.clip(-1.0)
    with pytest.raises(ValueError, match="clip_by_global_norm: max_norm must be at least 0"):
        optim.clip_by_global_norm(-1.0)
    with pytest.raises(ValueError, match="clip_by_block_rms: threshold must be above 0"):
        optim.clip_by_block_rms(0)
    with pytest.raises(ValueError, match="adaptive_grad_clip: its update needs the parameters"):
        apply(optim.adaptive_grad_clip(0.1), {"w": snp.ones(2)})
    six = {"w": snp.ones((1, 2, 1, 1, 1, 2))}
    with pytest.raises(ValueError, match=r"params\['w'\] has shape .* give axis for more than 5"):
        apply(optim.adaptive_grad_clip(0.1), six, six)


def test_a_leaf_that_is_no_array():
    tx = optim.clip_by_global_norm(1.0)
    with pytest.raises(TypeError, match=r"^clip_by_global_norm: updates\['w'\] must be an array"):
        tx.update({"w": "x"}, tx.init(None))


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e19, 1e25, 3e38])
def test_norms_do_not_overflow_between(size):
    tx = optim.clip_by_global_norm(1.0)
    updates = {"a": snp.full((2,), size), "b": snp.full((2, 1), -size)}
    want = min(size, 0.5)
    both = optim.per_member(tx)
    stacked = {"a": snp.stack([updates["a"], snp.ones(2)]), "b": snp.zeros((2, 1))}
    for wrap in (lambda f: f, st.jit):
        out = wrap(lambda u: tx.update(u, tx.init(u))[0])(updates)
        np.testing.assert_allclose(out["a"], [want] * 2, rtol=1e-6)
        np.testing.assert_allclose(out["b"], [[-want]] * 2, rtol=1e-6)
        out = wrap(lambda u: both.update(u, both.init(u))[0])(stacked)["a"]
        np.testing.assert_allclose(out, [[min(size, 0.5**0.5)] * 2, [0.5**0.5] * 2], rtol=1e-6)
    infinite = tx.update({"a": snp.array([np.inf, 1.0])}, tx.init(None))[0]["a"]
    assert np.isnan(infinite[0])
    assert infinite[1] == 0


@pytest.mark.parametrize("size", [1.0, 1e19, 1e25])
def test_norms_of_leaves_do_not_overflow_between(size):
    params = {"w": snp.full((3, 2), size)}
    for tx, want in (
        (optim.clip_by_block_rms(1.0), 1.0),
        (optim.adaptive_grad_clip(0.5), size / 2),
        (optim.scale_by_trust_ratio(), size),
    ):
        for wrap in (lambda f: f, st.jit):
            out = wrap(lambda u, p, tx=tx: tx.update(u, tx.init(p), p)[0])(params, params)["w"]
            np.testing.assert_allclose(out, np.full((3, 2), want), rtol=1e-6)
