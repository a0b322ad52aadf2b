"""Score predicted numbers: points, Gaussians, samples, intervals and quantiles.

Every score takes ``targets`` of the shape (examples, ...): several numbers an example will do.
Predictions have that shape after any leading axes, such as one of members, which remain in the
result; the axes of the targets are averaged over. Results are float32, or float64 where predictions
are, and NaN where a prediction is. All work under ``jit`` and ``vmap``, and, but for shares of
targets, under ``grad``.
"""

from __future__ import annotations

import math

import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.exponential import root_of_squares
from stretto.ensemble.score_arguments import concrete, of_members, with_targets

__all__ = ["crps_ensemble", "crps_gaussian", "energy_score_ensemble", "gaussian_nll",
           "interval_coverage", "interval_score", "mae", "pinball_loss", "pit_ensemble",
           "pit_gaussian", "r2", "rmse"]  # fmt: skip


def rmse(predictions: ArrayLike, targets: ArrayLike) -> Array:
    """Return the root of the mean squared error.

    Args:
        predictions: (..., examples, ...).
        targets: (examples, ...).

    Returns:
        (...), in the unit of the targets.

    Raises:
        ValueError: shapes do not match.

    >>> round(float(rmse(snp.array([1.0, 4.0]), snp.array([1.0, 2.0]))), 4)
    1.4142
    """
    p, t, axes = with_targets("rmse", predictions, targets)
    return root_of_squares(snp.mean(snp.square(p - t), axis=axes))


@described_like(rmse)
def mae(predictions: ArrayLike, targets: ArrayLike) -> Array:
    """Return the mean absolute error.

    >>> float(mae(snp.array([1.0, 4.0]), snp.array([1.0, 2.0])))
    1.0
    """
    p, t, axes = with_targets("mae", predictions, targets)
    return snp.mean(snp.abs(p - t), axis=axes)


@described_like(rmse)
def r2(predictions: ArrayLike, targets: ArrayLike) -> Array:
    """Return the coefficient of determination: the predicted share of the targets' variance.

    1 − Σ (y − p)² / Σ (y − mean y)² over examples, and the mean of it over several numbers an
    example, as in ``sklearn.metrics.r2_score``.

    Returns:
        (...), at most 1; −inf or NaN where the targets are constant.

    >>> float(r2(snp.array([1.0, 2.0, 4.0]), snp.array([1.0, 2.0, 3.0])))
    0.5
    """
    p, t, axes = with_targets("r2", predictions, targets)
    error = snp.sum(snp.square(p - t), axis=axes[0])
    mean = snp.mean(t, axis=axes[0], keepdims=True)
    spread = snp.sum(snp.square(t - mean), axis=axes[0])
    return snp.mean(1 - error / spread, axis=axes[1:]) if axes[1:] else 1 - error / spread


def gaussian_nll(means: ArrayLike, variances: ArrayLike, targets: ArrayLike) -> Array:
    """Return the mean negative log-likelihood of the targets under Gaussians, in nats.

    ½ mean of log(2πσ²) + (y − μ)² / σ² (Nix and Weigend, 1994).

    Args:
        means: (..., examples, ...).
        variances: of the shape of means, or one that broadcasts to it; positive.
        targets: (examples, ...).

    Returns:
        (...).

    Raises:
        ValueError: shapes do not match, or a variance that is not traced is not positive.

    >>> zero, one = snp.zeros(2), snp.ones(2)
    >>> round(float(gaussian_nll(zero, one, zero)), 4)  # ½ log 2π
    0.9189
    """
    m, v, t, axes = _gaussian("gaussian_nll", means, variances, targets)
    return snp.mean(snp.log(2 * math.pi * v) + snp.square(t - m) / v, axis=axes) / 2


@described_like(gaussian_nll)
def crps_gaussian(means: ArrayLike, variances: ArrayLike, targets: ArrayLike) -> Array:
    """Return Gaussians' continuous ranked probability score (Gneiting and Raftery, 2007, eq. 5).

    The mean of σ (z (2Φ(z) − 1) + 2φ(z) − 1/√π) with z = (y − μ) / σ. Like an absolute error, which
    it is in the limit of no variance, it is in the unit of the targets.

    Returns:
        (...), at least 0.

    >>> zero, one = snp.zeros(2), snp.ones(2)
    >>> round(float(crps_gaussian(zero, one, zero)), 4)
    0.2337
    """
    m, v, t, axes = _gaussian("crps_gaussian", means, variances, targets)
    deviation = snp.sqrt(v)
    z = (t - m) / deviation
    density = snp.exp(-snp.square(z) / 2) / math.sqrt(2 * math.pi)
    # 2Φ(z) − 1 = erf(z / √2)
    score = z * lax.erf(z * math.sqrt(0.5)) + 2 * density - 1 / math.sqrt(math.pi)
    return snp.mean(deviation * score, axis=axes)


def crps_ensemble(predictions: ArrayLike, targets: ArrayLike, *, fair: bool = False) -> Array:
    """Return the continuous ranked probability score of members taken as a sample.

    mean |x_i − y| − ½ mean |x_i − x_j| (Gneiting and Raftery, 2007, eq. 21), in the unit of the
    targets.

    Args:
        predictions: (members, ..., examples, ...).
        targets: (examples, ...).
        fair: take the second mean over pairs of different members: an estimate, without bias, of
            the score of the distribution that members are drawn from (Ferro, 2014).

    Returns:
        (...), the axes between members and those of the targets.

    Raises:
        ValueError: shapes do not match, or ``fair`` with one member.

    >>> members = snp.array([[0.0], [2.0]])
    >>> float(crps_ensemble(members, snp.array([1.0])))
    0.5
    """
    p, t, axes = _members_and_targets("crps_ensemble", predictions, targets)
    members = p.shape[0]
    if fair and members < 2:
        raise ValueError("crps_ensemble: fair=True needs at least 2 members, got 1")
    error = snp.mean(snp.abs(p - t), axis=0)
    # Σ over i, j of |x_i − x_j| = 2 Σ_k (2k − M + 1) x_(k) over sorted members, k from 0.
    factors = snp.arange(1 - members, members, 2, dtype=p.dtype)
    spread = 2 * snp.tensordot(factors, snp.sort(p, axis=0), 1)
    pairs = members * (members - 1 if fair else members)
    return snp.mean(error - spread / (2 * pairs), axis=axes)


def energy_score_ensemble(
    predictions: ArrayLike, targets: ArrayLike, *, fair: bool = False
) -> Array:
    """Return the energy score of members taken as a sample of vectors: CRPS in several dimensions.

    mean ‖x_i − y‖ − ½ mean ‖x_i − x_j‖ with the Euclidean norm over the last axis (Gneiting and
    Raftery, 2007, eq. 22 with β = 1), in the unit of the targets. It judges how outputs vary
    together, which means of ``crps_ensemble`` over outputs do not. The free energy of logits is
    ``energy_score``.

    Args:
        predictions: (members, ..., examples, ..., outputs).
        targets: (examples, ..., outputs).
        fair: take the second mean over pairs of different members: an estimate, without bias, of
            the score of the distribution that members are drawn from (Ferro, 2014).

    Returns:
        (...), the axes between members and those of the targets.

    Raises:
        ValueError: shapes do not match, targets have no axis of outputs, or ``fair`` with one
            member.

    >>> members = snp.array([[[0.0, 0.0]], [[6.0, 8.0]]])
    >>> float(energy_score_ensemble(members, snp.array([[3.0, 4.0]])))  # 5 − 10 / 4
    2.5
    """
    caller = "energy_score_ensemble"
    p, t, axes = _members_and_targets(caller, predictions, targets)
    if len(axes) < 2:
        raise ValueError(
            f"{caller}: expected targets of shape (examples, ..., outputs), got {t.shape[-1:]}; of "
            f"one number an example it is crps_ensemble"
        )
    members = p.shape[0]
    if fair and members < 2:
        raise ValueError(f"{caller}: fair=True needs at least 2 members, got 1")
    length = lambda x: root_of_squares(snp.sum(snp.square(x), axis=-1))
    score = snp.mean(length(p - t), axis=0)
    if members > 1:
        # Each member with the one k places on: all pairs of different members, one k at a time to
        # bound the memory.
        places = snp.arange(members)
        apart = lambda k: snp.sum(length(p[(places + k) % members] - p), axis=0)
        total = snp.sum(lax.map(apart, snp.arange(1, members)), axis=0)
        score = score - total / (2 * members * (members - 1 if fair else members))
    return snp.mean(score, axis=axes[1:])


def interval_coverage(lower: ArrayLike, upper: ArrayLike, targets: ArrayLike) -> Array:
    """Return the share of targets inside their interval, ends included.

    Intervals from an ensemble's quantiles: ``snp.quantile(predictions, snp.array([0.05, 0.95]),
    axis=0)``.

    Args:
        lower: (..., examples, ...).
        upper: of the same shape.
        targets: (examples, ...).

    Returns:
        (...), between 0 and 1; NaN where a bound or a target is.

    Raises:
        ValueError: shapes do not match.

    >>> lower, upper = snp.zeros(2), snp.ones(2)
    >>> float(interval_coverage(lower, upper, snp.array([0.5, 2.0])))
    0.5
    """
    low, t, axes = with_targets("interval_coverage", lower, targets, "lower")
    high, _, _ = with_targets("interval_coverage", upper, targets, "upper")
    inside = ((low <= t) & (t <= high)).astype(low.dtype)
    missing = snp.isnan(low) | snp.isnan(high) | snp.isnan(t)
    return snp.mean(snp.where(missing, snp.nan, inside), axis=axes)


@described_like(interval_coverage)
def interval_score(
    lower: ArrayLike, upper: ArrayLike, targets: ArrayLike, coverage: float = 0.9
) -> Array:
    """Return the intervals' mean width, with penalties for targets outside (Winkler, 1972).

    (u − l) + 2/α (l − y)₊ + 2/α (y − u)₊ with α = 1 − ``coverage`` (Gneiting and Raftery, 2007,
    eq. 43), in the unit of the targets: least in expectation for the quantiles α/2 and 1 − α/2.

    Args:
        coverage: the probability with which intervals are meant to hold the target, in (0, 1).

    Returns:
        (...), lower is better; infinite where an interval is.

    Raises:
        ValueError: shapes do not match, or ``coverage`` is out of range.

    >>> lower, upper = snp.zeros(2), snp.ones(2)
    >>> round(float(interval_score(lower, upper, snp.array([0.5, 2.0]), coverage=0.8)), 4)
    6.0
    """
    if not 0 < coverage < 1:
        raise ValueError(f"interval_score: coverage must be in (0, 1), got {coverage}")
    low, t, axes = with_targets("interval_score", lower, targets, "lower")
    high, _, _ = with_targets("interval_score", upper, targets, "upper")
    outside = snp.maximum(low - t, 0) + snp.maximum(t - high, 0)
    return snp.mean(high - low + outside * (2 / (1 - coverage)), axis=axes)


def pinball_loss(predictions: ArrayLike, targets: ArrayLike, quantiles: ArrayLike = 0.5) -> Array:
    """Return the quantile loss: least in expectation where predictions are the targets' quantiles.

    The mean of τ (y − q)₊ + (1 − τ) (q − y)₊ (Koenker and Bassett, 1978), in the unit of the
    targets; with τ = ½ half the absolute error.

    Args:
        predictions: (..., examples, ...); of several quantiles (quantiles, ..., examples, ...), as
            ``snp.quantile(members, quantiles, axis=0)`` has them.
        targets: (examples, ...).
        quantiles: τ in (0, 1), a number, or an array (quantiles,).

    Returns:
        (...), or (quantiles, ...), at least 0; its mean over many quantiles nears half the CRPS.

    Raises:
        ValueError: shapes do not match, or a quantile that is not traced is out of range.

    >>> predictions = snp.array([[0.0, 0.0], [2.0, 2.0]])
    >>> pinball_loss(predictions, snp.array([1.0, 3.0]), snp.array([0.25, 0.75])).tolist()
    [0.5, 0.5]
    """
    p, t, axes = with_targets("pinball_loss", predictions, targets)
    tau = snp.asarray(quantiles).astype(p.dtype)
    if tau.ndim > 1 or (tau.ndim and (p.ndim == len(axes) or p.shape[0] != tau.shape[0])):
        raise ValueError(
            f"pinball_loss: expected quantiles that are a number, or of shape (quantiles,) with "
            f"predictions of shape (quantiles, ..., examples, ...) before targets of {t.shape}; "
            f"got {tau.shape} and {p.shape}"
        )
    values = concrete(tau)
    if values is not None and not ((values > 0) & (values < 1)).all():
        raise ValueError(f"pinball_loss: quantiles must be in (0, 1), got {values.tolist()}")
    if tau.ndim:
        tau = tau.reshape(-1, *(1,) * (p.ndim - 1))
    return snp.mean(snp.maximum(t - p, 0) * tau + snp.maximum(p - t, 0) * (1 - tau), axis=axes)


@described_like(gaussian_nll)
def pit_gaussian(means: ArrayLike, variances: ArrayLike, targets: ArrayLike) -> Array:
    """Return the probability integral transform: each target's place in its Gaussian (Dawid, 1984).

    Φ((y − μ) / σ): uniform from 0 to 1 if the predictions are calibrated.

    Returns:
        Of the shape of means.

    >>> float(pit_gaussian(snp.zeros(1), snp.ones(1), snp.zeros(1))[0])
    0.5
    """
    m, v, t, _ = _gaussian("pit_gaussian", means, variances, targets)
    return lax.erfc((m - t) / snp.sqrt(2 * v)) / 2


def pit_ensemble(predictions: ArrayLike, targets: ArrayLike) -> Array:
    """Return where each target lies among the members: the share of them that is not above it.

    A histogram of it is the rank histogram of Hamill (2001), flat if the predictions are
    calibrated.

    Args:
        predictions: (members, ..., examples, ...).
        targets: (examples, ...).

    Returns:
        The shape of predictions without the members, from 0 to 1.

    Raises:
        ValueError: shapes do not match.

    >>> members = snp.array([[0.0], [2.0], [4.0], [6.0]])
    >>> pit_ensemble(members, snp.array([3.0])).tolist()
    [0.5]
    """
    p, t, _ = _members_and_targets("pit_ensemble", predictions, targets)
    below = snp.where(snp.isnan(p) | snp.isnan(t), snp.nan, (p <= t).astype(p.dtype))
    return snp.mean(below, axis=0)


def _members_and_targets(
    caller: str, predictions: ArrayLike, targets: ArrayLike
) -> tuple[Array, Array, tuple[int, ...]]:
    p = of_members(caller, predictions, "predictions", "..., examples")
    p, t, axes = with_targets(caller, p, targets)
    if len(axes) == p.ndim:
        raise ValueError(
            f"{caller}: expected predictions of shape (members, ..., examples, ...), an axis of "
            f"members before the shape of the targets, {t.shape}; got {p.shape}"
        )
    return p, t, axes


def _gaussian(
    caller: str, means: ArrayLike, variances: ArrayLike, targets: ArrayLike
) -> tuple[Array, Array, Array, tuple[int, ...]]:
    m, t, axes = with_targets(caller, means, targets, "means")
    v = snp.asarray(variances).astype(m.dtype)
    try:
        v = snp.broadcast_to(v, m.shape)
    except ValueError:
        raise ValueError(
            f"{caller}: expected variances of the shape of means, {m.shape}, or one that "
            "broadcasts "
            f"to it; got {v.shape}"
        ) from None
    values = concrete(v)
    if values is not None and (values <= 0).any():
        raise ValueError(
            f"{caller}: variances must be positive, got {values.min()}; if a head predicts log "
            f"variances, pass their exponentials"
        )
    return m, v, t, axes
