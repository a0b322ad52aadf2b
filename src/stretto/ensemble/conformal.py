"""Predict sets of classes, and intervals of numbers, that hold with a probability asked for.

As in ``calibration``, ``fit_conformal(probs, labels)``, on held-out examples, gives a tree that,
called with probabilities, gives sets. The guarantee needs nothing of the model: only that held-out
and new examples are exchangeable.

With ``groups=`` the guarantee holds within each group of examples (Mondrian conformal prediction:
Vovk, Gammerman and Shafer, "Algorithmic learning in a random world", 2005, section 4.5), from the
group's own held-out examples alone: only those of one group need be exchangeable.

Intervals of predicted numbers: conformal ones, and variances made true.

As in ``calibration``, ``fit_…``, on held-out examples, gives a calibrator. Predictions and targets
have one shape, (examples, ...); what follows the examples, such as several outputs, is calibrated
apart. For classes, read ``conformal``.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import of_rank
from stretto.ensemble.score_arguments import (
    Groups,
    at_least,
    at_least_float32,
    check_labels,
    concrete,
    few,
    group_ids,
    one_hot_like,
    with_targets,
)

__all__ = ["ConformalIntervals", "ConformalSets", "VarianceScaling", "fit_conformal",
           "fit_conformal_intervals", "fit_variance_scaling"]  # fmt: skip


@register_dataclass
@dataclass(frozen=True)
class ConformalSets:
    """The classes whose score is at most a threshold."""

    threshold: Array
    """(...), one for each of the leading axes of the probabilities; by group (..., groups)."""
    method: Literal["lac", "aps"] = field(metadata={"static": True})
    """The name of the score; see ``fit_conformal``."""
    groups: Groups | None = field(default=None, metadata={"static": True})
    """The names of the groups, in order, where each has a threshold of its own."""

    def __call__(self, probs: ArrayLike, groups: ArrayLike | None = None) -> Array:
        """Say which classes are in the set: booleans shaped as probs (..., examples, classes).

        ``groups`` are those of the examples, where it was fitted with groups.
        """
        p = at_least_float32(probs, "ConformalSets", "probs")
        t = self.threshold
        if self.groups is None and groups is None:
            return _scores(p, self.method) <= (t[..., None, None] if t.ndim else t)
        ids = _new_groups("ConformalSets", groups, self.groups, p.shape[-2])
        own = snp.take(t, ids, axis=-1, mode="fill", fill_value=np.inf)
        return _scores(p, self.method) <= of_rank(own[..., None], p.ndim)


def fit_conformal(
    probs: ArrayLike,
    labels: ArrayLike,
    coverage: float = 0.9,
    method: Literal["lac", "aps"] = "lac",
    *,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> ConformalSets:
    """Fit the threshold with which sets hold the label with probability ``coverage``, or more.

    Split conformal prediction (Vovk et al., 2005): of n held-out examples' scores of their labels
    the threshold is the ⌈(n + 1) coverage⌉-th least, and infinite, so that sets hold all classes,
    where n is too small for the coverage. With ``"lac"`` (Sadinle et al., 2019) the score of a
    class is 1 − p: small sets, empty for some examples. With ``"aps"`` (Romano et al., 2020,
    without their randomisation, which makes sets larger) it is the sum of all probabilities that
    are not less than the class's own, itself included: sets that are larger for harder examples.

    Args:
        probs: (..., examples, classes), of examples that the model was not trained on.
        labels: (examples,), integers.
        coverage: in (0, 1).
        method: ``"lac"`` or ``"aps"``.
        groups: (examples,), for a threshold from each group's examples alone: integers from 0 on,
            or names (strings, booleans), which are not traced. The sets are called with the groups
            of new examples. A group with too few examples has sets of all classes, with a warning.
        num_groups: how many there are, where groups are integers; by default one more than the
            greatest.

    Returns:
        ``ConformalSets``, whose thresholds are (...) or (..., groups), NaN, and the sets empty,
        where a probability is.

    Raises:
        ValueError: shapes do not match, no examples, a label, a group or ``coverage`` is out of
            range, an unknown method, or ``groups`` are traced and ``num_groups`` is not given.
        TypeError: labels are not integers, or groups neither integers nor names.

    >>> probs = snp.array([[0.8, 0.2], [0.7, 0.3], [0.4, 0.6]])
    >>> sets = fit_conformal(probs, snp.array([0, 0, 1]), coverage=0.75)
    >>> sets(snp.array([[0.9, 0.1], [0.5, 0.5], [0.4, 0.6]])).tolist()
    [[True, False], [False, False], [False, True]]
    """
    if not 0 < coverage < 1:
        raise ValueError(f"fit_conformal: coverage must be in (0, 1), got {coverage}")
    if method not in ("lac", "aps"):
        raise ValueError(f"fit_conformal: method must be 'lac' or 'aps', got {method!r}")
    p, y = check_labels("fit_conformal", probs, labels)
    n = p.shape[-2]
    at_least(1, n, "fit_conformal", "example")
    of_label = snp.sum(_scores(p, method) * one_hot_like(p, y), axis=-1)
    if groups is not None:
        ids, found = group_ids("fit_conformal", groups, n, num_groups)
        sizes = _sizes(ids, len(found))
        _warn_of_few("fit_conformal", "sets hold all classes", sizes, coverage, found)
        ordered = _sort_by_group(snp.moveaxis(of_label, -1, 0), ids)
        threshold = snp.moveaxis(_least(ordered, sizes, coverage), 0, -1)
        return ConformalSets(threshold.astype(p.dtype), method, found)
    if num_groups is not None:
        raise ValueError("fit_conformal: num_groups is of groups, which are not given")
    rank = int(_rank(n, coverage))
    threshold = snp.sort(of_label, axis=-1)[..., rank - 1] if rank <= n else np.inf
    missing = snp.any(snp.isnan(p), axis=(-2, -1))
    return ConformalSets(snp.where(missing, np.nan, threshold).astype(p.dtype), method)


def _rank(examples: int | np.ndarray, coverage: float) -> np.ndarray:
    """Return which least score of so many is the threshold; beyond them it is infinite."""
    # 0.9 × 10 is 9, whatever its rounding
    return np.ceil((np.asarray(examples) + 1) * coverage * (1 - 1e-12)).astype(np.int32)


def _sizes(ids: Array, groups: int) -> Array:
    return lax.segment_sum(snp.ones_like(ids), ids, num_segments=groups)


def _sort_by_group(scores: Array, ids: Array) -> Array:
    """Sort scores (examples, ...) along axis 0: group by group, ascending in each, NaN last."""
    ids = snp.broadcast_to(ids.reshape(-1, *(1,) * (scores.ndim - 1)), scores.shape)
    return lax.sort((ids, scores), dimension=0, num_keys=2)[1]


def _least(ordered: Array, sizes: Array, coverage: float) -> Array:
    """Return the threshold of each group, (groups, ...), of scores sorted by group.

    It is infinite where the group has too few, and NaN where a score of the group is.
    """
    examples = ordered.shape[0]
    # Sizes may be traced, so their ranks, exact in float64, come from a table.
    rank = snp.asarray(_rank(np.arange(examples + 1), coverage))[sizes]
    starts = snp.cumsum(sizes) - sizes
    at = lambda place: snp.take(ordered, snp.clip(place, 0, examples - 1), axis=0)
    column = lambda x: x.reshape(-1, *(1,) * (ordered.ndim - 1))
    threshold = snp.where(column(rank <= sizes), at(starts + rank - 1), np.inf)
    missing = snp.isnan(at(starts + sizes - 1)) & column(sizes > 0)
    return snp.where(missing, np.nan, threshold)


def _warn_of_few(caller: str, what: str, sizes: Array, coverage: float, names: Groups) -> None:
    """Warn of groups whose examples are too few for the coverage, unless they are traced."""
    counts = concrete(sizes)
    if counts is None:
        return
    wanting = counts < _rank(counts, coverage)
    if wanting.any():
        least = math.ceil(coverage / (1 - coverage) * (1 - 1e-12))
        have = ", ".join(f"{names[i]!r} has {counts[i]}" for i in np.flatnonzero(wanting)[:5])
        more = ", …" if wanting.sum() > 5 else ""
        warnings.warn(
            f"{caller}: coverage {coverage} takes {least} held-out examples of a group; {have}"
            f"{more}: there {what}",
            stacklevel=user_stack_level(),
        )


def _new_groups(
    caller: str, groups: ArrayLike | None, names: Groups | None, examples: int
) -> Array:
    """Return the places of new examples' groups; refuse what does not go with the fit."""
    if names is None:
        raise ValueError(f"{caller}: it was fitted without groups=, and so takes none")
    if groups is None:
        raise ValueError(
            f"{caller}: it was fitted by group, {few(names)}: give groups=, of shape "
            f"({examples},), of these examples"
        )
    return group_ids(caller, groups, examples, None, names)[0]


def _scores(p: Array, method: str) -> Array:
    """Say how badly each class fits."""
    if method == "lac":
        return 1 - p
    falling = snp.argsort(-p, axis=-1)
    sums = snp.cumsum(snp.take_along_axis(p, falling, axis=-1), axis=-1)
    return snp.take_along_axis(sums, snp.argsort(falling, axis=-1), axis=-1)


@register_dataclass
@dataclass(frozen=True)
class ConformalIntervals:
    """Predictions give or take so many deviations as held-out errors ask for.

    >>> intervals = ConformalIntervals(snp.array([0.5, 1.0, 2.0]))
    >>> lower, upper = intervals(snp.array([10.0]), snp.array([1.0]), coverage=0.75)
    >>> lower.tolist(), upper.tolist()
    ([8.0], [12.0])
    """

    scores: Array
    """(examples, ...): |y − μ| / σ of held-out examples, ascending along axis 0; by group group
    after group, ascending in each."""
    sizes: Array | None = None
    """(groups,): how many of them are each group's."""
    groups: Groups | None = field(default=None, metadata={"static": True})
    """The names of the groups, in order, where each has scores of its own."""

    def __call__(
        self,
        means: ArrayLike,
        deviations: ArrayLike,
        coverage: float = 0.9,
        groups: ArrayLike | None = None,
    ) -> tuple[Array, Array]:
        """Return the lower and upper ends, of the shape of means: (examples, ...).

        ``groups`` are those of the examples, where it was fitted with groups.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"ConformalIntervals: coverage must be in (0, 1), got {coverage}")
        m = at_least_float32(means, "ConformalIntervals", "means")
        d = at_least_float32(deviations, "ConformalIntervals", "deviations")
        if self.groups is not None or groups is not None:
            ids = _new_groups("ConformalIntervals", groups, self.groups, m.shape[0])
            assert self.sizes is not None and self.groups is not None
            what = "intervals are infinite"
            _warn_of_few("ConformalIntervals", what, self.sizes, coverage, self.groups)
            reach = _least(self.scores, self.sizes, coverage)
            width = d * snp.take(reach, ids, axis=0, mode="fill", fill_value=np.inf)
            return m - width, m + width
        n = self.scores.shape[0]
        rank = int(_rank(n, coverage))
        width = d * self.scores[rank - 1] if rank <= n else snp.full_like(m, np.inf)
        return m - width, m + width


def fit_conformal_intervals(
    means: ArrayLike,
    deviations: ArrayLike,
    targets: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> ConformalIntervals:
    """Fit intervals that hold the target with the probability asked for, or more.

    Split conformal prediction with normalized residuals (Lei et al., "Distribution-free predictive
    inference for regression", 2018, section 5.2): of n held-out scores |y − μ| / σ the
    ⌈(n + 1) coverage⌉-th least is how many deviations an interval reaches to each side. It is
    infinite where n is too small for the coverage. This needs nothing of the model: only that
    held-out and new examples are exchangeable. Where deviations follow the noise, intervals do.

    Args:
        means: (examples, ...), of examples that the model was not trained on.
        deviations: of the same shape, positive; ones for intervals of equal width.
        targets: (examples, ...).
        groups: (examples,), for intervals from each group's examples alone: integers from 0 on, or
            names (strings, booleans), which are not traced. The intervals are called with the
            groups of new examples; those of a group with too few examples for the coverage are
            infinite, with a warning.
        num_groups: how many there are, where groups are integers; by default one more than the
            greatest.

    Returns:
        ``ConformalIntervals``, to be called with means, deviations, a coverage, and groups.

    Raises:
        ValueError: shapes do not match, there are no examples, a deviation that is not traced is
            not positive, a group is out of range, or ``groups`` are traced and ``num_groups`` is
            not given.
        TypeError: groups are neither integers nor names.

    >>> held_out = snp.array([1.0, 2.0, 3.0, 4.0])
    >>> intervals = fit_conformal_intervals(snp.zeros(4), snp.ones(4), held_out)
    >>> lower, upper = intervals(snp.array([10.0]), snp.array([2.0]), coverage=0.6)
    >>> lower.tolist(), upper.tolist()  # the third of four scores is 3
    ([4.0], [16.0])
    """
    m, d, t = _match_shapes("fit_conformal_intervals", means, deviations, targets, "deviations")
    scores = snp.abs(t - m) / d
    if groups is not None:
        ids, found = group_ids("fit_conformal_intervals", groups, m.shape[0], num_groups)
        return ConformalIntervals(_sort_by_group(scores, ids), _sizes(ids, len(found)), found)
    if num_groups is not None:
        raise ValueError("fit_conformal_intervals: num_groups is of groups, which are not given")
    return ConformalIntervals(snp.sort(scores, axis=0))


@register_dataclass
@dataclass(frozen=True)
class VarianceScaling:
    """Variances multiplied by a factor.

    >>> VarianceScaling(snp.array(2.0))(snp.array([1.0, 3.0])).tolist()
    [2.0, 6.0]
    """

    factor: Array
    """(...): one for each of the axes after the examples."""

    def __call__(self, variances: ArrayLike) -> Array:
        """Return calibrated variances (examples, ...), of the same shape."""
        return at_least_float32(variances, "VarianceScaling", "variances") * self.factor


def fit_variance_scaling(
    means: ArrayLike, variances: ArrayLike, targets: ArrayLike
) -> VarianceScaling:
    """Fit the factor of the variances with the least Gaussian NLL.

    It is the mean of (y − μ)² / σ² (Laves et al., "Well-calibrated regression uncertainty in
    medical imaging with deep learning", 2020, eq. 8).

    Args:
        means: (examples, ...), of examples that the model was not trained on.
        variances: of the same shape, positive.
        targets: (examples, ...).

    Returns:
        ``VarianceScaling``, to be called with variances.

    Raises:
        ValueError: shapes do not match, there are no examples, or a variance that is not traced is
            not positive.

    >>> scaling = fit_variance_scaling(snp.zeros(2), snp.ones(2), snp.array([1.0, 3.0]))
    >>> scaling(snp.array([2.0])).tolist()
    [10.0]
    """
    m, v, t = _match_shapes("fit_variance_scaling", means, variances, targets, "variances")
    return VarianceScaling(snp.mean(snp.square(t - m) / v, axis=0))


def _match_shapes(
    caller: str, means: ArrayLike, spread: ArrayLike, targets: ArrayLike, argument: str
) -> tuple[Array, Array, Array]:
    """Return means, deviations or variances, and targets, all of the shape of the targets."""
    m, t, _ = with_targets(caller, means, targets, "means")
    s, _, _ = with_targets(caller, spread, targets, argument)
    for name, x in (("means", m), (argument, s)):
        if x.shape != t.shape:
            raise ValueError(
                f"{caller}: expected {name} of the shape of targets, {t.shape}, got {x.shape}"
            )
    at_least(1, t.shape[0], caller, "example")
    values = concrete(s)
    if values is not None and (values <= 0).any():
        raise ValueError(f"{caller}: {argument} must be positive, got {values.min()}")
    return m, s, t
