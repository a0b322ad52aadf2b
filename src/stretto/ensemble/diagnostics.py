"""Say whether chains of a sampler agree, and how many independent draws they are worth.

``draws`` of shape (chains, draws, ...) are those of functions, a number of each draw: predictions
at some inputs, say. Weights of a network are no such functions, as a network with its units
exchanged is the same. Each chain is split into halves, without its middle draw if their number is
odd, so that a chain that drifts disagrees with itself.

Source: Vehtari, Gelman, Simpson, Carpenter and Bürkner, "Rank-normalization, folding, and
localization: an improved R̂ for assessing convergence of MCMC", Bayesian Analysis, 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import stretto.numpy as snp
from stretto import fft
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.reducing.cumulative import cummin
from stretto.ensemble.score_arguments import at_least_float32
from stretto.special.errors import ndtri

__all__ = ["ess", "rhat"]

_LEAST = 4  # draws of a chain: two of each half have a variance


def rhat(draws: ArrayLike) -> Array:
    """Return the rank-normalised split R̂, which is near 1 where the chains agree.

    R̂ = √(((n − 1)/n W + B/n) / W), of halves of chains of n draws, with W the mean of their
    variances and B/n the variance of their means; the larger of that of normal scores of the draws'
    ranks, and that of the ranks of their distances from the median, which tells chains of other
    spreads. The paper asks for R̂ < 1.01 of at least four chains.

    Args:
        draws: (chains, draws, ...), one chain at least, and four draws.

    Returns:
        (...); NaN where draws are constant, or not all finite. Where distances from the median
            alone are constant, as of two values, that of the ranks.

    Raises:
        ValueError: there are too few axes, chains or draws.

    >>> import stretto as st
    >>> draws = st.random.normal(st.random.key(0), (4, 1000))
    >>> bool(rhat(draws) < 1.01), bool(rhat(draws + snp.arange(4)[:, None]) > 1.2)
    (True, True)
    """

    def one(x: Array) -> Array:
        halves = _halves(x)
        distances = abs(halves - snp.median(halves))
        return snp.fmax(_plain_rhat(_scores(halves)), _plain_rhat(_scores(distances)))

    return _of_functions("rhat", draws, one)


def ess(draws: ArrayLike, kind: str = "bulk") -> Array:
    """Return the effective sample size: as many independent draws would tell as much.

    S / τ of S draws in all, with τ = −1 + 2 Σ_k P_k, of autocorrelations P_k = ρ_2k + ρ_2k+1 of all
    halves of chains together, up to the first that is not positive, and each no larger than those
    before (Geyer's initial monotone sequence). It is at most S log₁₀ S, where draws alternate.

    Args:
        draws: (chains, draws, ...), one chain at least, and four draws.
        kind: ``"bulk"``, of normal scores of the draws' ranks; ``"tail"``, the smaller of those of
            the indicators of draws up to the 5 % and up to the 95 % quantile; or ``"mean"``, of the
            draws themselves, for the standard error of their mean. The paper asks for 100 a chain.

    Returns:
        (...); NaN where draws, or for ``"tail"`` an indicator, are constant, or draws not all
            finite.

    Raises:
        ValueError: there are too few axes, chains or draws, or ``kind`` is none of these.

    >>> import stretto as st
    >>> draws = st.random.normal(st.random.key(0), (4, 1000, 2))
    >>> ess(draws).shape, bool(snp.all(abs(ess(draws) / 4000 - 1) < 0.2))
    ((2,), True)
    """
    kinds = {"bulk": lambda x: _plain_ess(_scores(_halves(x))), "tail": _tail_ess,
             "mean": lambda x: _plain_ess(_halves(x))}  # fmt: skip
    if kind not in kinds:
        raise ValueError(f"ess: kind must be one of {', '.join(map(repr, kinds))}, got {kind!r}")
    return _of_functions("ess", draws, kinds[kind])


def _of_functions(caller: str, draws: ArrayLike, one: Callable[[Array], Array]) -> Array:
    """Return ``one`` of each function's draws, (chains, draws); NaN where these are not finite."""
    x = at_least_float32(draws, caller, "draws")
    if x.ndim < 2 or not x.shape[0] or x.shape[1] < _LEAST:
        raise ValueError(
            f"{caller}: draws must have the shape (chains, draws, ...), with one chain and "
            f"{_LEAST} draws at least, got {x.type}"
        )
    flat = snp.moveaxis(x.reshape(*x.shape[:2], -1), -1, 0)

    def finite(x: Array) -> Array:
        return snp.where(snp.all(snp.isfinite(x)), one(x), snp.nan)

    return vmap(finite)(flat).reshape(x.shape[2:])


def _halves(x: Array) -> Array:
    """Return each chain as two, without its middle draw where the number is odd."""
    half = x.shape[1] // 2
    return snp.concatenate([x[:, :half], x[:, -half:]], 0)


def _scores(x: Array) -> Array:
    """Return the normal scores of the ranks of all draws; equal draws have their mean rank."""
    flat = x.ravel()
    ordered = snp.sort(flat)
    below, up_to = [snp.searchsorted(ordered, flat, side=side) for side in ("left", "right")]
    rank = (below + up_to + 1).astype(x.dtype) / 2
    return ndtri((rank - 3 / 8) / (x.size + 1 / 4)).reshape(x.shape)


def _spread(x: Array) -> tuple[Array, Array]:
    """Return W, and the variance of all draws that W and the chains' means make."""
    n = x.shape[1]
    within = snp.mean(snp.var(x, axis=1, ddof=1))
    # A constant has W of 0 but for the rounding of its mean: it is told by its equal draws.
    within = snp.where(snp.all(x == x[:1, :1]), 0, within)
    return within, within * ((n - 1) / n) + snp.var(snp.mean(x, axis=1), ddof=1)


def _plain_rhat(x: Array) -> Array:
    within, whole = _spread(x)
    constant = within == 0
    ratio = whole / snp.where(constant, 1, within)
    same = snp.all(x == x[:1, :1])
    return snp.where(same, snp.nan, snp.where(constant, snp.inf, snp.sqrt(ratio)))


def _plain_ess(x: Array) -> Array:
    chains, n = x.shape
    within, whole = _spread(x)
    centred = x - snp.mean(x, axis=1, keepdims=True)
    # Autocovariances by a transform of twice the length, so that ends do not meet.
    spectrum = fft.rfft(centred, 2 * n, axis=1)
    power = snp.real(spectrum) ** 2 + snp.imag(spectrum) ** 2
    covariance = fft.irfft(power, 2 * n, axis=1)[:, :n] / (n - 1)
    same = snp.all(x == x[:1, :1])
    rho = 1 - (within - snp.mean(covariance, axis=0)) / snp.where(same, 1, whole)
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(1)
    positive = snp.cumprod((pairs > 0).astype(x.dtype))
    tau = -1 + 2 * snp.sum(cummin(pairs) * positive)
    total = chains * n
    return snp.where(same, snp.nan, total / snp.maximum(tau, 1 / math.log10(total)))


def _tail_ess(x: Array) -> Array:
    halves = _halves(x)
    sizes = [_plain_ess((halves <= snp.quantile(halves, q)).astype(x.dtype)) for q in (0.05, 0.95)]
    return snp.minimum(*sizes)
