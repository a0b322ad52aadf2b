"""Soups: one model whose weights are an average of members'; and paths between members.

Paths between models in weight space, and the barrier on them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import stretto.numpy as snp
from stretto import tree
from stretto._engine.core.lazy import brief
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.tree import leaves, unflatten
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, Tree
from stretto._engine.ops.convert import convert
from stretto.ensemble.averaging import begun, moved
from stretto.ensemble.ensemble import Ensemble
from stretto.tree.members import Alike, size_of
from stretto.tree.sums import mean_of, of_column

__all__ = ["Barrier", "Soup", "barrier", "greedy_soup", "uniform_soup"]


class Barrier(NamedTuple):
    """Losses along the path between two models."""

    weights: Array
    """(points,): how much of the second model, from 0 to 1."""
    losses: Array
    """(points,): at each point."""
    height: Array
    """(): the most that a loss exceeds the line between the losses of the ends; 0 if none does."""


def barrier(
    loss: Callable[[Any], Any],
    start: Tree,
    end: Tree,
    points: int = 11,
    *,
    path: Callable[[Any, Any, Any], Any] = tree.lerp,
) -> Barrier:
    """The loss along the path between two models, and the height of its barrier.

    height = max over α of loss(path(α)) − (1 − α) loss(start) − α loss(end), at least 0. Without a
    barrier the models are linearly connected, and their average is worth trying. The points are run
    one after the other.

    Args:
        loss: a function from a tree to a number; models with batch normalization should recompute
            their statistics in it (``update_batch_norm``).
        start: a tree of arrays.
        end: a tree of arrays like ``start``.
        points: on the path, both ends included.
        path: ``path(start, end, α)``, such as ``tree.lerp`` or ``tree.slerp``.

    Returns:
        A ``Barrier``: the weights of the points, the losses there, and the height.

    Raises:
        ValueError: there are fewer than 2 points, the loss is not one number, or the trees differ.

    Sources: Frankle et al., "Linear mode connectivity and the lottery ticket hypothesis", 2020;
    Entezari et al., "The role of permutation invariance in linear mode connectivity of neural
    networks", 2022 (the height).

    >>> import stretto as st, stretto.numpy as snp
    >>> loss = lambda p: (p["w"] ** 2 - 1) ** 2  # the least at -1 and 1
    >>> found = st.ensemble.barrier(loss, {"w": snp.float32(-1)}, {"w": snp.float32(1)}, points=3)
    >>> found.losses, found.height
    (Array([0., 1., 0.], dtype=float32), Array(1., dtype=float32))
    """
    if points < 2:
        raise ValueError(f"barrier: expected at least 2 points, got {points}")
    weights = [i / (points - 1) for i in range(points)]
    losses = snp.stack([snp.asarray(loss(path(start, end, w))) for w in weights])
    if losses.ndim != 1:
        raise ValueError(f"barrier: loss must give one number, got {losses.shape[1:]}")
    along = snp.array(weights)
    excess = losses - (1 - along) * losses[0] - along * losses[-1]
    return Barrier(along, losses, snp.maximum(snp.max(excess), 0))


T = TypeVar("T")


@overload
def uniform_soup(
    members: Ensemble[T] | list[T] | tuple[T, ...] | Iterator[T],
    *,
    stacked: Literal[False] | None = None,
    score: Callable[[Any], Any] | None = None,
) -> T: ...
@overload
def uniform_soup(
    members: T, *, stacked: bool | None = None, score: Callable[[Any], Any] | None = None
) -> T: ...
def uniform_soup(
    members: Tree, *, stacked: bool | None = None, score: Callable[[Any], Any] | None = None
) -> Tree:
    """Average all members' weights, leaf by leaf: ``st.tree.mean`` of members.

    A model with batch normalization needs ``update_batch_norm`` afterwards. Members that were
    trained from different first weights have no soup: their average is far worse than each, which
    only data can show.

    Args:
        members: a list of trees, an ``Ensemble`` of one architecture, a stacked tree, or a
            generator, of which one member is held at a time.
        stacked: whether ``members`` is a stacked tree, where a list leaves that open.
        score: of a tree, on held-out data, larger is better: then a soup that is worse than every
            one of its members comes with a warning.

    Returns:
        A tree of arrays, in the members' dtypes: integers, such as counters, are the mean rounded
            to the nearest, half to even.

    Raises:
        ValueError: members differ, with the member and the path.
        TypeError: ``score`` is given, and ``members`` is a generator, which goes by once.

    Source: Wortsman et al., "Model soups: averaging weights of multiple fine-tuned models improves
    accuracy without increasing inference time", 2022.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.ensemble.uniform_soup([{"w": snp.zeros(2), "n": 3}, {"w": snp.ones(2), "n": 5}])
    {'w': Array([0.5, 0.5], dtype=float32), 'n': Array(4, dtype=int32)}
    """
    soup = mean_of(members, stacked, "uniform_soup")
    if score is not None:
        _warn_of_worse(float(score(soup)), [float(score(m)) for m in _all_of(members, stacked)])
    return soup


def _all_of(members: Tree, stacked: bool | None) -> list[Any]:
    found = _sequence(members, stacked, "uniform_soup")
    return [found[i] for i in range(len(found))]


def _warn_of_worse(soup: float, scores: Sequence[float]) -> None:
    """Say so where an average is worse than all that it is of, by the score."""
    if not soup >= min(scores):
        warnings.warn(
            f"{_WORSE} {soup:.4g}, and the worst of its {len(scores)} members {min(scores):.4g}. "
            f"{_WHY}",
            stacklevel=user_stack_level(),
        )


_WORSE = "uniform_soup: the average is worse than each of its members: it scores"
_WHY = (
    "Weights can be averaged where members were trained on from the same weights, as in "
    "fine-tuning; st.ensemble.barrier(loss, a, b) shows whether a path joins two. Otherwise "
    "average predictions: st.ensemble.mean(ensemble(x))"
)


@brief
class Soup(NamedTuple, Generic[T]):
    """What ``greedy_soup`` found."""

    params: T
    """The averaged tree."""
    members: tuple[int, ...]
    """Which members it is of, in the order in which they were added."""
    score: float
    """Of the averaged tree."""
    scores: tuple[float, ...]
    """Of each member alone."""


@overload
def greedy_soup(
    members: Ensemble[T] | list[T] | tuple[T, ...],
    score: Callable[[Any], Any],
    *,
    scores: Sequence[Any] | None = None,
    stacked: Literal[False] | None = None,
) -> Soup[T]: ...
@overload
def greedy_soup(
    members: Tree,
    score: Callable[[Any], Any],
    *,
    scores: Sequence[Any] | None = None,
    stacked: bool | None = None,
) -> Soup[Any]: ...
def greedy_soup(
    members: Tree,
    score: Callable[[Any], Any],
    *,
    scores: Sequence[Any] | None = None,
    stacked: bool | None = None,
) -> Soup[Any]:
    """The average to which members are added, best first, as long as its score gets no worse.

    Args:
        members: a list of trees, a stacked tree, an ``Ensemble`` of one architecture, or anything
            with ``len`` and ``[i]``, such as one that loads a file: then one member is held at a
            time, beside the average and the one that is tried.
        score: of a tree, on held-out data: a number, larger is better. Of equals, the first of the
            members goes first; a member is kept if the score is equal. NaN counts as the worst.
        scores: of each member alone, where they are known already.
        stacked: whether ``members`` is a stacked tree, where a list leaves that open.

    Returns:
        A ``Soup``: the averaged tree, with integers as in ``uniform_soup``; the members in it, its
            score, and the score of each member.

    Raises:
        ValueError: there is no member, none has a score, or there are not as many scores as
            members; or members differ, with the member and the path.
        TypeError: ``members`` is a generator, which can be iterated over only once.

    Source: Wortsman et al., "Model soups", 2022, recipe 1.

    >>> import stretto as st, stretto.numpy as snp
    >>> members = [{"w": snp.float32(w)} for w in (3.0, -1.0, 40.0)]
    >>> soup = st.ensemble.greedy_soup(members, lambda p: -abs(float(p["w"]) - 1.5))
    >>> soup.members, soup.score, soup.params
    ((0, 1), -0.5, {'w': Array(1., dtype=float32)})
    """
    chosen = _sequence(members, stacked)
    if not len(chosen):
        raise ValueError("greedy_soup: expected at least one member, got none")
    if scores is None:
        scores = [score(chosen[i]) for i in range(len(chosen))]
    if len(scores) != len(chosen):
        raise ValueError(
            f"greedy_soup: expected a score for each member, got {len(scores)} for {len(chosen)} "
            f"members"
        )
    own_scores = [float(s) for s in scores]
    order = sorted(
        range(len(own_scores)),
        key=lambda i: (not math.isnan(own_scores[i]), own_scores[i]),
        reverse=True,
    )
    if math.isnan(own_scores[order[0]]):
        raise ValueError("greedy_soup: the score of every member is NaN")
    finish, average = _begun(chosen[order[0]])
    integers = [_integers_of(chosen[order[0]])]
    places, best = order[:1], own_scores[order[0]]
    worse: list[float] = []  # averages that are worse than both that they are of
    for i in order[1:]:
        member = chosen[i]
        candidate = moved(average, member, 1 / (len(places) + 1), "greedy_soup", i)
        integers.append(_integers_of(member))
        del member
        value = float(score(finish(candidate, integers)))
        if value >= best:
            average, best = candidate, value
            places.append(i)
        else:
            integers.pop()
            worse += [value] if len(places) == 1 and value < own_scores[i] else []
    if len(order) > 1 and len(worse) == len(order) - 1:
        warnings.warn(
            f"greedy_soup: the soup is the best member alone: of the average with any other the "
            f"best score is {max(worse):.4g}, and the worst member alone has "
            f"{min(own_scores):.4g}. {_WHY}",
            stacklevel=user_stack_level(),
        )
    return Soup(finish(average, integers), tuple(places), best, tuple(own_scores))


def _begun(first: Tree) -> tuple[Callable[[Any, Any], Any], Any]:
    """An average of one member, and what gives such an average as a tree like the member.

    It has the member's dtypes, and the mean of the integers; the member itself is not held.
    """
    flat, alike = begun(first, "greedy_soup")
    dtypes = [type.dtype for type in alike.types]

    def finish(average: Tree, integers: Sequence[Sequence[Any]]) -> Tree:
        means = iter([of_column(column, None) for column in zip(*integers, strict=True)])
        arrays = [
            convert(x, dtype) if is_inexact(dtype) else next(means)
            for x, dtype in zip(leaves(average), dtypes, strict=True)
        ]
        return unflatten(alike.structure, arrays)

    return finish, unflatten(alike.structure, flat)


def _integers_of(member: Tree) -> list[Any]:
    """The leaves that are integers or booleans, which are averaged in the end."""
    row = Alike("greedy_soup").row(member, 0)
    return [x for x in row if not is_inexact(x.dtype)]


class _Members:
    """The members of a stacked tree, one at a time."""

    def __init__(self, stacked: Tree) -> None:
        self.stacked = stacked
        self.size = size_of(stacked, 0, "greedy_soup")[2]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> Tree:
        return tree.take(self.stacked, i)


def _sequence(members: Tree, stacked: bool | None, caller: str = "greedy_soup") -> Tree:
    """Something with ``len`` and ``[i]`` that gives the members."""
    if isinstance(members, Iterator):
        raise TypeError(
            f"{caller}: goes through the members twice, and a generator allows it only once; "
            "give a list, or an object with len() and [i] that makes member i"
        )
    if stacked:
        return _Members(members)
    if isinstance(members, (list, tuple, Ensemble)):
        return members
    flat = leaves(members)
    is_leaf = len(flat) == 1 and flat[0] is members
    if is_leaf and hasattr(members, "__getitem__") and not hasattr(members, "dtype"):
        return members
    return _Members(members)
