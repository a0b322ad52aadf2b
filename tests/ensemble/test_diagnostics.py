"""R̂ and effective sample sizes against loops in NumPy, and where the answer is known."""

import numpy as np
import pytest
from scipy.stats import norm, rankdata

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import ess, rhat

RNG = np.random.default_rng(0)


def halves(x):
    half = x.shape[1] // 2
    return np.array([part for chain in x for part in (chain[:half], chain[len(chain) - half :])])


def scores(x):
    return norm.ppf((rankdata(x) - 0.375) / (x.size + 0.25)).reshape(x.shape)


def plain_rhat(x):
    n = x.shape[1]
    w, b = x.var(1, ddof=1).mean(), n * x.mean(1).var(ddof=1)
    return np.sqrt(((n - 1) / n * w + b / n) / w)


def plain_ess(x):
    m, n = x.shape
    w = x.var(1, ddof=1).mean()
    whole = (n - 1) / n * w + x.mean(1).var(ddof=1)

    def rho(t):
        c = x - x.mean(1, keepdims=True)
        return 1 - (w - np.mean([(c[j, : n - t] * c[j, t:]).sum() / (n - 1) for j in range(m)])) / (
            whole
        )

    tau, smallest = -1.0, np.inf
    for k in range(n // 2):
        pair = rho(2 * k) + rho(2 * k + 1)
        if pair <= 0:
            break
        smallest = min(smallest, pair)
        tau += 2 * smallest
    return m * n / max(tau, 1 / np.log10(m * n))


def expected_rhat(x):
    x = halves(x)
    return max(plain_rhat(scores(x)), plain_rhat(scores(abs(x - np.median(x)))))


def expected_ess(x, kind):
    x = halves(x)
    if kind == "tail":
        return min(plain_ess((x <= np.quantile(x, q)) * 1.0) for q in (0.05, 0.95))
    return plain_ess(scores(x) if kind == "bulk" else x)


def autoregression(rho, chains, n, rng=RNG):
    x = np.empty((chains, n))
    x[:, 0] = rng.normal(size=chains)
    for t in range(1, n):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * rng.normal(size=chains)
    return x


CASES = {
    "independent": RNG.normal(size=(4, 60)),
    "odd": RNG.normal(size=(3, 41)),
    "one chain": RNG.normal(size=(1, 50)),
    "slow": autoregression(0.9, 4, 80),
    "alternating": autoregression(-0.7, 2, 80),
    "apart": RNG.normal(size=(4, 50)) + np.arange(4)[:, None],
    "spreads": RNG.normal(size=(4, 50)) * np.array([1, 1, 1, 4])[:, None],
    "heavy": RNG.standard_cauchy(size=(4, 50)),
    "ties": RNG.integers(0, 4, size=(4, 50)) * 1.0,
    "least": RNG.normal(size=(2, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    x = CASES[name]
    with st.enable_x64():
        np.testing.assert_allclose(rhat(x), expected_rhat(x), rtol=1e-11)
        for kind in ("bulk", "mean", "tail"):
            if kind == "tail" and name == "ties":
                continue  # the indicator of the largest is constant: NaN, below
            np.testing.assert_allclose(ess(x, kind), expected_ess(x, kind), rtol=1e-10)


def test_independent_draws_are_worth_themselves_and_a_chain_its_known_part():
    rho, chains, n = 0.6, 8, 4000
    with st.enable_x64():
        iid = RNG.normal(size=(chains, n))
        # The estimate's standard error is some √(2·window/(chains·n)) of it; here within 6 %.
        np.testing.assert_allclose(ess(iid, "mean"), chains * n, rtol=0.06)
        assert abs(float(rhat(iid)) - 1) < 1e-3
        slow = autoregression(rho, chains, n)
        np.testing.assert_allclose(ess(slow, "mean"), chains * n * (1 - rho) / (1 + rho), rtol=0.06)


def test_ranks_do_not_change_with_the_scale():
    x = CASES["slow"]
    with st.enable_x64():
        for f in (rhat, lambda x: ess(x, "bulk"), lambda x: ess(x, "tail")):
            one, other = f(x), f(3 * x - 1)
            np.testing.assert_allclose(one, other, rtol=1e-10)
        np.testing.assert_allclose(ess(x, "bulk"), ess(np.exp(x), "bulk"), rtol=1e-10)


def test_alternating_chains_are_bounded():
    x = np.tile([1.0, -1.0], (2, 50)) * (1 + 1e-3 * RNG.normal(size=(2, 100)))
    with st.enable_x64():
        np.testing.assert_allclose(ess(x, "mean"), 200 * np.log10(200), rtol=1e-12)


def test_functions_of_draws_are_one_program():
    x = RNG.normal(size=(4, 30, 2, 3)).astype(np.float32)
    for f in (rhat, ess, lambda x: ess(x, "tail")):
        whole = f(x)
        assert whole.shape == (2, 3) and whole.dtype == np.float32
        each = [[float(f(x[..., i, j])) for j in range(3)] for i in range(2)]
        np.testing.assert_allclose(whole, each, rtol=1e-5)
        np.testing.assert_allclose(st.jit(f)(x), whole, rtol=1e-5)
        apart = st.vmap(f, in_axes=2)(snp.asarray(x))
        np.testing.assert_allclose(apart, whole, rtol=1e-5)
    assert rhat(x[..., :0]).shape == (2, 0)


def test_what_is_undefined_is_nan():
    constant = np.full((4, 20), 0.1)
    broken = CASES["independent"].copy()
    broken[1, 3] = np.inf
    for x in (constant, broken):
        assert np.isnan(rhat(x)) and np.isnan([ess(x, k) for k in ("bulk", "tail", "mean")]).all()
    two = RNG.integers(0, 2, size=(4, 50)) * 1.0
    assert np.isfinite(rhat(two)) and np.isfinite(ess(two)) and np.isnan(ess(two, "tail"))
    stuck = np.repeat(np.arange(4.0)[:, None], 20, 1)  # each chain at a place of its own
    assert np.isinf(rhat(stuck)) and 0 < float(ess(stuck)) < 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rhat(snp.ones(5)), r"rhat: draws must have the shape \(chains, draws, ...\)"),
        (lambda: ess(snp.ones((2, 3))), r"4 draws at least, got float32\[2,3\]"),
        (lambda: ess(snp.ones((0, 8))), r"one chain"),
        (lambda: ess(snp.ones((2, 8)), "median"), r"'bulk', 'tail', 'mean', got 'median'"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
