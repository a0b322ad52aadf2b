"""Scores by group: how well each part of the examples is predicted, and the worst of them.

A mean over examples is taken over each group's. Calibration errors put each group's examples into
bins of their own. What else is not a mean over examples, such as R², is refused by name: weights
would not make it that of the group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.exponential import root_of_squares
from stretto.ensemble import regression_scores as numbers
from stretto.ensemble import scores as classes
from stretto.ensemble.score_arguments import concrete, group_ids

__all__ = ["GroupScores", "by_group"]

_OF_CLASSES = (
    classes.accuracy,
    classes.brier,
    classes.nll,
    classes.nll_from_logits,
    classes.top_k_accuracy,
    *classes.OF_BINS,
)
_OF_NUMBERS: dict[Any, int] = {
    numbers.crps_ensemble: 2,
    numbers.crps_gaussian: 3,
    numbers.energy_score_ensemble: 2,
    numbers.gaussian_nll: 3,
    numbers.interval_coverage: 3,
    numbers.interval_score: 3,
    numbers.mae: 2,
    numbers.pinball_loss: 2,
    numbers.rmse: 2,
}
"""Of each score, how many arguments are arrays of examples; the last of them are the targets."""


class GroupScores(NamedTuple):
    """A score of each group, and what is read from it: the best, the worst and their distance.

    >>> of_groups = GroupScores(snp.array([0.75, 0.5, snp.nan]), snp.array([10, 4, 0]))
    >>> float(of_groups.lowest), float(of_groups.highest), float(of_groups.gap)
    (0.5, 0.75, 0.25)
    """

    score: Array
    """(groups, ...); NaN for a group without examples."""
    count: Array
    """(groups,), int32: how many examples it has."""

    @property
    def lowest(self) -> Array:
        """The least score of a group that has examples, (...)."""
        return snp.min(self._or(np.inf), axis=0)

    @property
    def highest(self) -> Array:
        """The greatest score of a group that has examples, (...)."""
        return snp.max(self._or(-np.inf), axis=0)

    @property
    def gap(self) -> Array:
        """How far apart these are, (...)."""
        return self.highest - self.lowest

    def _or(self, other: float) -> Array:
        return snp.where(_beside(self.count, self.score) > 0, self.score, other)


def by_group(
    score: Callable[..., Array],
    *arguments: ArrayLike,
    groups: ArrayLike,
    num_groups: int | None = None,
    **settings: Any,
) -> GroupScores:
    """Return a score of each group of examples, all as one program.

    A score that is a mean over examples is that of the examples of a group, ``rmse`` the root of
    theirs; a calibration error is that of a group's examples in bins. These are ``ece``, ``mce``,
    ``classwise_ece``, ``accuracy``, ``top_k_accuracy``, ``nll``, ``nll_from_logits``, ``brier``,
    ``mae``, ``rmse``, ``gaussian_nll``, ``crps_gaussian``, ``crps_ensemble``,
    ``energy_score_ensemble``, ``interval_coverage``, ``interval_score``, ``pinball_loss``, and
    functions of your own that have examples along axis 0 of every argument: of these the mean of
    single examples' scores is compared with the score of all, unless they are traced.

    Args:
        score: the function.
        *arguments: its arrays, such as probabilities and labels.
        groups: (examples,), integers from 0 on, or names (strings, booleans), which are not traced,
            and whose groups are in ascending order.
        num_groups: how many there are, where groups are integers; by default one more than the
            greatest. A traced group out of range is left out.
        **settings: what else the score takes, such as ``coverage``.

    Returns:
        A ``GroupScores`` of scores (groups, ...) and counts (groups,), with ``lowest``, ``highest``
        and ``gap``.

    Raises:
        ValueError: the score is no mean over examples, shapes do not match, a group is out of
            range, or ``groups`` are traced and ``num_groups`` is not given.
        TypeError: groups are neither integers nor names.

    >>> probs = snp.array([[0.7, 0.3], [0.6, 0.4], [0.2, 0.8], [0.1, 0.9]])
    >>> labels, groups = snp.array([0, 1, 1, 1]), snp.array([0, 0, 2, 2])
    >>> of_groups = by_group(classes.accuracy, probs, labels, groups=groups)
    >>> of_groups.score.tolist(), of_groups.count.tolist(), float(of_groups.lowest)
    ([0.5, nan, 1.0], [2, 0, 2], 0.5)
    """
    name = getattr(score, "__name__", repr(score))
    arrays, axes = _with_axes(score, name, arguments)
    examples = arrays[0].shape[axes[0]]
    for i, (x, axis) in enumerate(zip(arrays, axes, strict=True)):
        if x.shape[axis] != examples:
            raise ValueError(
                f"by_group: expected {examples} examples along axis {axis} of argument {i} of "
                f"{name}, as in argument 0, got shape {x.shape}"
            )
    ids, found = group_ids("by_group", groups, examples, num_groups)
    count = lax.segment_sum(snp.ones(examples, np.int32), ids, num_segments=len(found))
    if score in classes.OF_BINS:
        of_group = lambda g: classes.calibration_error(
            score, arrays[0], arrays[1], of=snp.equal(ids, g), **settings
        )
        scores = lax.map(of_group, snp.arange(len(found)))  # one at a time, to bound the memory
    else:
        scores = _means(score, name, arrays, axes, settings, ids, count)
    return GroupScores(snp.where(_beside(count, scores) > 0, scores, np.nan), count)


def _means(
    score: Callable[..., Array],
    name: str,
    arrays: list[Array],
    axes: list[int],
    settings: dict[str, Any],
    ids: Array,
    count: Array,
) -> Array:
    """Return the means of single examples' scores over each group, of ``rmse`` their roots."""
    if not any(concrete(x) is None for x in arrays):
        whole = score(*arrays, **settings)  # It refuses what is wrong with values, too.
    else:
        whole = None

    def alone(*example: Array) -> Array:
        one = (snp.expand_dims(x, axis) for x, axis in zip(example, axes, strict=True))
        return score(*one, **settings)

    each = vmap(alone)(*(snp.moveaxis(x, axis, 0) for x, axis in zip(arrays, axes, strict=True)))
    if whole is not None and not _known(score):
        _check_mean(name, np.asarray(whole), np.asarray(snp.mean(each, axis=0)))
    rooted = score is numbers.rmse
    each = snp.square(each) if rooted else each
    total = lax.segment_sum(each, ids, num_segments=len(count))
    mean = total / snp.maximum(_beside(count, total), 1).astype(total.dtype)
    return root_of_squares(mean) if rooted else mean


def _beside(count: Array, scores: Array) -> Array:
    """Return the groups' counts with as many axes as their scores."""
    return snp.reshape(count, (-1, *(1,) * (scores.ndim - 1)))


def _known(score: Callable[..., Any]) -> bool:
    return score in _OF_CLASSES or score in _OF_NUMBERS


def _with_axes(
    score: Callable[..., Any], name: str, arguments: tuple[ArrayLike, ...]
) -> tuple[list[Array], list[int]]:
    """Return the arrays, and which axis of each is that of examples."""
    module = getattr(score, "__module__", None) or ""
    if module.startswith("stretto.ensemble.") and not _known(score):
        raise ValueError(
            f"by_group: {name} is no mean over examples, so that of a group is not in the scores "
            f"of its examples; call {name} with the examples of one group at a time"
        )
    expected = 2 if score in _OF_CLASSES else _OF_NUMBERS.get(score, len(arguments))
    if len(arguments) != expected or not arguments:
        raise ValueError(
            f"by_group: expected {expected or 'some'} arrays for {name}, got {len(arguments)}; "
            f"settings are given by name"
        )
    arrays = [as_value(x, "by_group", f"argument {i} of {name}") for i, x in enumerate(arguments)]
    least = 2 if score in _OF_CLASSES else 1
    if arrays[0].ndim < least or arrays[-1].ndim < 1:
        raise ValueError(
            f"by_group: expected arrays with an axis of examples for {name}, got "
            f"{', '.join(str(x.shape) for x in arrays)}"
        )
    if score in _OF_CLASSES:
        return arrays, [-2, -1]
    if score not in _OF_NUMBERS:
        if not all(x.ndim for x in arrays):
            raise ValueError(f"by_group: a number has no axis of examples; bind it to {name}")
        return arrays, [0] * len(arrays)
    axis = -arrays[-1].ndim
    if arrays[0].ndim < -axis:
        raise ValueError(
            f"by_group: expected the shape of the targets, {arrays[-1].shape}, at the end of "
            f"that of argument 0 of {name}, got {arrays[0].shape}"
        )
    if score in (numbers.gaussian_nll, numbers.crps_gaussian):
        arrays[1] = snp.broadcast_to(arrays[1], arrays[0].shape)
    return arrays, [axis] * len(arrays)


def _check_mean(name: str, whole: np.ndarray, mean: np.ndarray) -> None:
    """Refuse a score of all that is not the mean of the examples', to more than rounding."""
    scale = np.max(np.abs(mean), initial=0.0)
    if whole.shape != mean.shape or not np.allclose(
        whole, mean, rtol=1e-3, atol=1e-4 * scale, equal_nan=True
    ):
        raise ValueError(
            f"by_group: {name} is no mean over examples: of all it is {whole}, and the mean of "
            f"single examples' is {mean}; call it with the examples of one group at a time"
        )
