"""R-hat and effective sample sizes, against NumPy written draw by draw, and processes known."""

from statistics import NormalDist

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import ess, rhat


def halves(x):
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, x.shape[1] - half :]])


def scores(x):
    flat = x.ravel()
    ranks = [(np.sum(flat < v) + np.sum(flat <= v) + 1) / 2 for v in flat]
    normal = NormalDist()
    return np.array([normal.inv_cdf((r - 0.375) / (x.size + 0.25)) for r in ranks]).reshape(x.shape)


def variances(x):
    length = x.shape[1]
    within = x.var(1, ddof=1).mean()
    return within, within * (length - 1) / length + x.mean(1).var(ddof=1)


def expected_rhat(x):
    x = halves(x)
    folded = np.abs(x - np.median(x))
    return max(np.sqrt(w[1] / w[0]) for w in map(variances, map(scores, (x, folded))))


def size_of(x):
    chains, length = x.shape
    within, whole = variances(x)
    correlations = []
    for lag in range(length):
        centred = x - x.mean(1, keepdims=True)
        lagged = [np.dot(c[: length - lag], c[lag:]) / length for c in centred]
        correlations.append(1 - (within - length / (length - 1) * np.mean(lagged)) / whole)
    correlations[0] = 1.0
    time, least = -1.0, np.inf
    for k in range(length // 2):
        pair = correlations[2 * k] + correlations[2 * k + 1]
        if pair <= 0:
            break
        least = min(least, pair)
        time += 2 * least
    return chains * length / max(time, 1 / np.log10(chains * length)) if whole else np.nan


def expected_ess(x, kind):
    x = halves(x)
    if kind == "bulk":
        return size_of(scores(x))
    if kind == "mean":
        return size_of(x)
    return np.min([size_of((x <= np.quantile(x, q)).astype(float)) for q in (0.05, 0.95)])


def chains(seed, count=3, length=41, rho=0.4):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, length))
    for t in range(1, length):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * x[:, t]
    return x


@pytest.mark.parametrize("rho", [-0.6, 0.0, 0.8])
def test_draw_by_draw(rho):
    x = np.stack([chains(s, rho=rho) for s in range(3)], -1)
    x[..., 1] = np.round(x[..., 1])  # with equals
    with st.config(enable_x64=True):
        np.testing.assert_allclose(rhat(x), [expected_rhat(x[..., k]) for k in range(3)], 1e-9)
        for kind in ("bulk", "tail", "mean"):
            with np.errstate(invalid="ignore"):  # where the quantile is the greatest of all
                expected = [expected_ess(x[..., k], kind) for k in range(3)]
            np.testing.assert_allclose(ess(x, kind), expected, 1e-9, err_msg=kind)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_autoregressive_chains_have_the_size_that_is_known(rho):
    """S (1 − ρ) / (1 + ρ)."""
    x = chains(1, count=20, length=10_000, rho=rho)
    assert float(ess(x, "mean")) / x.size == pytest.approx((1 - rho) / (1 + rho), rel=0.05)


def test_chains_that_differ_in_place_or_in_scale_alone():
    x = chains(2, count=4, length=200, rho=0.0)
    assert float(rhat(x)) < 1.02
    assert float(rhat(x + np.array([0, 0, 0, 2.0])[:, None])) > 1.2
    assert float(rhat(x * np.array([1, 1, 1, 4.0])[:, None])) > 1.1
    assert float(rhat(x + np.linspace(0, 3, 200))) > 1.2  # that drift, all alike


def test_what_is_undefined():
    x = np.stack([chains(3)] * 4, -1)
    x[..., 1] = 2.0
    x[0, 3, 2] = np.nan
    x[1, 3, 3] = np.inf
    for found in (rhat(x), ess(x), ess(x, "tail"), ess(x, "mean")):
        assert np.isnan(np.asarray(found)).tolist() == [False, True, True, True]


def test_compiled_and_mapped_it_is_the_same():
    x = np.stack([chains(s) for s in range(4)]).astype(np.float32)
    each = [float(rhat(one)) for one in x]
    np.testing.assert_allclose(st.jit(st.vmap(rhat))(x), each, 1e-5)
    np.testing.assert_allclose(rhat(snp.moveaxis(snp.asarray(x), 0, -1)), each, 1e-5)


@pytest.mark.parametrize("f", [rhat, ess])
@pytest.mark.parametrize("shape", [(10,), (2, 3), (0, 10)])
def test_too_few_draws_are_refused(f, shape):
    with pytest.raises(ValueError, match=r"expected draws \(chains, draws, ...\).*got"):
        f(np.zeros(shape))


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind must be 'bulk', 'tail' or 'mean', got 'sd'"):
        ess(np.zeros((2, 10)), "sd")
