"""Say whether chains have converged, and what their draws are worth: R-hat and ESS of functions.

``draws`` of shape (chains, draws, ...) are values along Markov chains: of a weight, or better of
what is asked of the network, such as a prediction. Weights of a network can be exchanged without a
change of what it computes, so that those of two good chains need not agree. Chains of an ensemble
trained by a sampler are its members, and their snapshots the draws.

Results are float32, or float64 where the draws are; NaN where a draw is not finite, or where all
are equal, so that there is nothing to compare. All work under ``jit`` and ``vmap``.

Source: Vehtari, Gelman, Simpson, Carpenter and Bürkner, "Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC", 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import stretto.numpy as snp
from stretto import fft
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto.ensemble.score_arguments import at_least_float32
from stretto.scipy.special import ndtri

__all__ = ["ess", "rhat"]

_LEAST = 4
"""Draws of a chain: each half has a variance."""


def rhat(draws: ArrayLike) -> Array:
    """Compare chains with each other, and their halves: R-hat, near 1 where they agree.

    The greater of two figures, of ranks as normal scores and of the distances from the median as
    such: of chains that differ in place, and in scale. Above 1.01 they have not converged.

    Args:
        draws: (chains, draws, ...), at least 4 draws; of an odd number the middle one is left out.

    Returns:
        (...).

    Raises:
        ValueError: there are too few draws, or no axis of chains.

    >>> import stretto as st
    >>> draws = st.random.normal(st.random.key(0), (4, 500))
    >>> bool(rhat(draws) < 1.01), bool(rhat(draws.at[0].add(1.0)) > 1.05)
    (True, True)
    """
    return _of_each(_rhat, draws, "rhat")


@described_like(rhat)
def ess(draws: ArrayLike, kind: Literal["bulk", "tail", "mean"] = "bulk") -> Array:
    """Return how many independent draws would be worth as much: the effective sample size.

    S / τ with τ = 1 + 2 Σ ρ_t, the autocorrelations of all chains up to where pairs of them are no
    longer positive (Geyer, 1992), at most S log₁₀ S for S draws in all.

    Args:
        kind: ``"bulk"``, of ranks as normal scores, for what is in the middle of the distribution;
            ``"tail"``, the less of those for the quantiles of 5 and 95 %, NaN where no draw is
            above one; or ``"mean"``, of the draws as they are, for their mean.

    Raises:
        ValueError: there are too few draws, no axis of chains, or ``kind`` is unknown.

    >>> import stretto as st
    >>> draws = st.random.normal(st.random.key(0), (4, 500))
    >>> 1500 < float(ess(draws)) < 2500
    True
    """
    if kind not in _KINDS:
        raise ValueError(f"ess: kind must be 'bulk', 'tail' or 'mean', got {kind!r}")
    return _of_each(_KINDS[kind], draws, "ess")


def _of_each(f: Callable[[Array], Array], draws: ArrayLike, caller: str) -> Array:
    """Return f of each (chains, draws), and NaN where it is undefined."""
    x = at_least_float32(draws, caller, "draws")
    if x.ndim < 2 or not x.shape[0] or x.shape[1] < _LEAST:
        raise ValueError(
            f"{caller}: expected draws (chains, draws, ...), at least one chain of {_LEAST}; got "
            f"{x.shape}"
        )
    flat = x.reshape(*x.shape[:2], -1)
    found = vmap(lambda one: f(_halves(one)), in_axes=-1)(flat)
    known = snp.all(snp.isfinite(flat), axis=(0, 1)) & (flat.max((0, 1)) > flat.min((0, 1)))
    return snp.where(known, found, snp.nan).reshape(x.shape[2:])


def _halves(x: Array) -> Array:
    """Return twice as many chains of half the length."""
    half = x.shape[1] // 2
    return snp.concatenate([x[:, :half], x[:, x.shape[1] - half :]], 0)


def _normal_scores(x: Array) -> Array:
    """Return Φ⁻¹ of ranks, of equals the mean rank (equation 14)."""
    ordered = snp.sort(x.reshape(-1))
    # The ranks of equals are first + 1, ..., last: their mean is (first + 1 + last) / 2.
    first, last = [snp.searchsorted(ordered, x, side=side) for side in ("left", "right")]
    rank = (first + last + 1).astype(x.dtype) / 2
    return ndtri((rank - 0.375) / (x.size + 0.25))


def _variances(x: Array) -> tuple[Array, Array]:
    """Return the mean variance within chains, and the estimate of that of the distribution."""
    within = snp.mean(snp.var(x, axis=1, ddof=1))
    between = snp.var(snp.mean(x, axis=1), ddof=1)
    return within, within * (x.shape[1] - 1) / x.shape[1] + between


def _rhat(x: Array) -> Array:
    figures = []
    for scores in (_normal_scores(x), _normal_scores(snp.abs(x - snp.median(x)))):
        within, whole = _variances(scores)
        figures.append(snp.sqrt(whole / within))
    return snp.maximum(*figures)


def _size(x: Array) -> Array:
    """Return the effective sample size for the mean of these draws."""
    length, total = x.shape[1], x.size
    centred = x - snp.mean(x, axis=1, keepdims=True)
    padded = 2 ** math.ceil(math.log2(2 * length))  # or the ends would meet
    spectrum = fft.rfft(centred, padded)
    products = fft.irfft(snp.abs(spectrum) ** 2, padded)[:, :length]
    covariances = snp.mean(products, axis=0) / length
    within, whole = _variances(x)
    # ρ_t = 1 − (W − mean of s² ρ_t of each chain) / var⁺, and s² ρ_0 = W (equation 10).
    scale = length / (length - 1)
    correlations = (1 - (within - scale * covariances) / whole).at[0].set(1.0)
    pairs = correlations[: length // 2 * 2].reshape(-1, 2).sum(1)
    positive = snp.cumprod(pairs > 0)
    falling = snp.minimum.accumulate(pairs)
    time = -1 + 2 * snp.sum(snp.where(positive, falling, 0))
    size = total / snp.maximum(time, 1 / math.log10(total))
    return snp.where(whole > 0, size, snp.nan)


def _tail(x: Array) -> Array:
    ends = [snp.quantile(x, q) for q in (0.05, 0.95)]
    return snp.minimum(*[_size((x <= end).astype(x.dtype)) for end in ends])


_KINDS: dict[str, Callable[[Array], Array]] = {
    "bulk": lambda x: _size(_normal_scores(x)),
    "tail": _tail,
    "mean": _size,
}
