"""Soups: one model whose weights are an average of members'.

Next, read ``merging``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

from stretto import tree
from stretto._engine.core.lazy import brief
from stretto._engine.core.tree import leaves, unflatten
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Tree
from stretto._engine.ops.convert import convert
from stretto.ensemble.averaging import begun, moved
from stretto.ensemble.ensemble import Ensemble
from stretto.tree.members import Alike, size_of

__all__ = ["Soup", "greedy_soup", "uniform_soup"]

T = TypeVar("T")


@overload
def uniform_soup(
    members: Ensemble[T] | list[T] | tuple[T, ...] | Iterator[T],
    *,
    stacked: Literal[False] | None = None,
) -> T: ...
@overload
def uniform_soup(members: T, *, stacked: bool | None = None) -> T: ...
def uniform_soup(members: Tree, *, stacked: bool | None = None) -> Tree:
    """Average all members' weights, leaf by leaf; integers and booleans are those of the first.

    A model with batch normalisation needs ``update_batch_norm`` afterwards.

    Args:
        members: a list of trees, an ``Ensemble`` of one architecture, a stacked tree, or a
            generator, of which one member is held at a time.
        stacked: whether ``members`` is a stacked tree, where a list leaves that open.

    Returns:
        A tree of arrays, in the members' dtypes.

    Raises:
        ValueError: members differ, with the member and the path.

    Source: Wortsman et al., "Model soups: averaging weights of multiple fine-tuned models improves
    accuracy without increasing inference time", 2022.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.ensemble.uniform_soup([{"w": snp.zeros(2), "n": 3}, {"w": snp.ones(2), "n": 4}])
    {'w': Array([0.5, 0.5], dtype=float32), 'n': 3}
    """
    if isinstance(members, Ensemble):
        members, stacked = iter(members), False
    kept: list[Any] = []
    if isinstance(members, (list, tuple, Iterator)) and not stacked:
        mean = tree.mean(_noting(iter(members), kept), stacked=False)
    else:
        mean = tree.mean(members, stacked=True)
        _note(tree.take(members, 0), kept)
    others = iter(kept)
    means, structure = tree.flatten(mean)
    return unflatten(structure, [x if (other := next(others)) is None else other for x in means])


def _noting(members: Iterator[Any], kept: list[Any]) -> Iterator[Any]:
    """The members; of the first, what is not a weight goes into ``kept``."""
    is_first = True
    for member in members:
        if is_first:
            _note(member, kept)
        is_first = False
        yield member
        del member  # before the next is made


def _note(member: Tree, kept: list[Any]) -> None:
    for leaf, x in zip(leaves(member), Alike("uniform_soup").row(member, 0), strict=True):
        kept.append(None if is_inexact(x.dtype) else leaf)


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
        A ``Soup``: the averaged tree, the members in it, its score, and the score of each member.

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
    places, best = order[:1], own_scores[order[0]]
    for i in order[1:]:
        member = chosen[i]
        candidate = moved(average, member, 1 / (len(places) + 1), "greedy_soup", i)
        del member
        value = float(score(finish(candidate)))
        if value >= best:
            average, best = candidate, value
            places.append(i)
    return Soup(finish(average), tuple(places), best, tuple(own_scores))


def _begun(first: Tree) -> tuple[Callable[[Any], Any], Any]:
    """An average of one member, and what gives such an average as a tree like the member.

    It has the member's dtypes, and what is not a weight from it; the member itself is not held.
    """
    flat, alike = begun(first, "greedy_soup")
    kept: list[Any] = []
    _note(first, kept)
    dtypes = [type.dtype for type in alike.types]

    def finish(average: Tree) -> Tree:
        columns = zip(leaves(average), dtypes, kept, strict=True)
        arrays = [convert(x, dtype) if other is None else other for x, dtype, other in columns]
        return unflatten(alike.structure, arrays)

    return finish, unflatten(alike.structure, flat)


class _Members:
    """The members of a stacked tree, one at a time."""

    def __init__(self, stacked: Tree) -> None:
        self.stacked = stacked
        self.size = size_of(stacked, 0, "greedy_soup")[2]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> Tree:
        return tree.take(self.stacked, i)


def _sequence(members: Tree, stacked: bool | None) -> Tree:
    """Something with ``len`` and ``[i]`` that gives the members."""
    if isinstance(members, Iterator):
        raise TypeError(
            "greedy_soup: goes through the members twice, and a generator allows it only once; "
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
