"""Merging models into one: soups, task vectors, TIES, DARE, averages weighted by Fisher; and paths.

A *soup* has an average of members' weights; ``barrier`` looks at the path between two of them. A
*task vector* is a tuned model minus the one it began from, as a tree.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import numpy as np

import stretto.numpy as snp
from stretto import tree
from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.lazy import brief
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.tree import leaves, unflatten
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto._engine.ops.convert import convert
from stretto.ensemble.averaging import begin_average, move_average
from stretto.ensemble.ensemble import Ensemble
from stretto.merge.formulas import OfZero, by_precision, drawn, elected, kept_count, large, only
from stretto.nn.linear import Linear
from stretto.nn.module import Module
from stretto.random.distributions import uniform
from stretto.random.keys import split
from stretto.tree.members import Alike, of_members, size_of
from stretto.tree.sums import mean_of, of_column, widened

__all__ = [
    "Barrier", "Soup", "add_task_vectors", "barrier", "dare", "diagonal_fisher", "fisher_average",
    "greedy_soup", "input_grams", "task_vector", "ties", "uniform_soup",
]  # fmt: skip

T = TypeVar("T")


def task_vector(tuned: T, base: Tree) -> T:
    """Subtract a base model from a tuned one, leaf by leaf.

    Args:
        tuned: a tree of arrays.
        base: the tree that it was tuned from.

    Returns:
        ``tuned - base``; leaves of low precision in float32, integers as zeros.

    Raises:
        ValueError: the trees differ, with the path.

    Source: Ilharco et al., "Editing models with task arithmetic", 2023.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.ensemble.task_vector({"w": snp.array([1.0, 5.0])}, {"w": snp.array([1.0, 2.0])})
    {'w': Array([0., 3.], dtype=float32)}
    """
    ours, alike = begin_average(base, "task_vector")
    theirs = [convert(x, y.dtype) for x, y in zip(alike.row(tuned, 1), ours, strict=True)]
    return unflatten(
        alike.structure,
        [y - x if is_inexact(x.dtype) else snp.zeros_like(x) for x, y in zip(ours, theirs)],
    )


def add_task_vectors(
    base: T, vectors: Sequence[Any], scales: ArrayLike | Sequence[ArrayLike] = 1.0
) -> T:
    """Add task vectors to a model: ``base`` plus the sum of ``scales[i] * vectors[i]``.

    A negative scale makes a model forget a task. Differentiable.

    Args:
        base: a tree of arrays; its integers and booleans stay.
        vectors: trees like ``base``.
        scales: one number for all vectors, or one for each.

    Returns:
        A tree in the dtypes of ``base``.

    Raises:
        ValueError: there are not as many scales as vectors, or no vectors; or a vector differs from
            the base, with its number (from 1) and the path.
        TypeError: ``vectors`` is not a list.

    Source: Ilharco et al., 2023.

    >>> import stretto as st, stretto.numpy as snp
    >>> base = {"w": snp.array([1.0, 2.0])}
    >>> st.ensemble.add_task_vectors(base, [{"w": snp.array([0.0, 3.0])}], -0.5)
    {'w': Array([1. , 0.5], dtype=float32)}
    """
    vectors = _listed(vectors, "add_task_vectors")
    each: Any = scales
    if np.ndim(each):
        if len(each) != len(vectors):
            raise ValueError(
                f"add_task_vectors: expected a scale for each vector, got {len(each)} scales and "
                f"{len(vectors)} vectors"
            )
        weights = list(each)
    else:
        weights = [each] * len(vectors)
    alike = Alike("add_task_vectors")
    row = alike.row(base, 0)
    for i, vector in enumerate(vectors, 1):
        alike.row(vector, i)
    total = tree.leaves(tree.weighted_sum([base, *vectors], [1.0, *weights], stacked=False))
    return unflatten(
        alike.structure,
        [convert(y, x.dtype) if is_inexact(x.dtype) else x for x, y in zip(row, total)],
    )


def ties(
    vectors: Sequence[Any],
    density: float = 0.2,
    *,
    scope: Literal["tree", "leaf"] = "tree",
    of_zero: OfZero = "none",
) -> Tree:
    """Merge task vectors: trimmed, with signs elected, and averaged where they agree.

    Of each vector only the elements with the largest magnitudes are kept. Each element's sign is
    that of the sum of what is kept, and its value the mean over the vectors that have this sign
    there. Add the result by ``add_task_vectors``. With ``scope="leaf", of_zero="positive"`` it is
    what the method "ties" of ``st.merge`` does with equal weights.

    Args:
        vectors: trees of real arrays, all alike.
        density: the share of elements to keep, above 0 and at most 1; of a share that is no whole
            number of elements, the next lower number, and at least one.
        scope: of which elements it is a share: of all, "tree", or of each leaf's, "leaf".
        of_zero: what a sum of 0 elects: "none", so that the result is 0 there, or "positive".

    Returns:
        One task vector.

    Raises:
        ValueError: ``density`` is out of range, ``scope`` or ``of_zero`` is another word, there
            are no vectors, or they differ, with the member and the path.
        TypeError: ``vectors`` is not a list.

    Source: Yadav et al., "TIES-Merging: resolving interference when merging models", 2023.

    >>> import stretto as st, stretto.numpy as snp
    >>> vectors = [{"w": snp.array([3.0, -1.0, 0.1])}, {"w": snp.array([1.0, 2.0, 0.1])}]
    >>> st.ensemble.ties(vectors, density=0.67)
    {'w': Array([2., 2., 0.], dtype=float32)}
    """
    if not 0 < density <= 1:
        raise ValueError(f"ties: density must be above 0 and at most 1, got {density}")
    _check_word("ties", "scope", scope, ("tree", "leaf"))
    _check_word("ties", "of_zero", of_zero, ("none", "positive"))
    vectors = _listed(vectors, "ties")
    alike = Alike("ties")
    rows = [_trimmed(alike.row(v, i), density, scope) for i, v in enumerate(vectors)]
    columns = zip(*rows, strict=True)
    return unflatten(alike.structure, [_agreed(column, of_zero) for column in columns])


def _check_word(caller: str, name: str, word: object, words: Sequence[str]) -> None:
    if word not in words:
        raise ValueError(f"{caller}: {name} must be {' or '.join(map(repr, words))}, got {word!r}")


def _trimmed(row: list[Any], density: float, scope: str) -> list[Any]:
    """Return the leaves with all but the largest magnitudes set to 0."""
    floats = [x for x in row if is_inexact(x.dtype) and x.size]
    least = [_least(group, density) for group in ([floats] if scope == "tree" else zip(floats))]
    bounds = iter(least * len(floats) if scope == "tree" else least)
    return [only(x, large(x, next(bounds))) if is_inexact(x.dtype) and x.size else x for x in row]


def _least(group: Sequence[Any], density: float) -> Any:  # noqa: ANN401 (a number, or traced)
    """Return the least magnitude of the share of largest elements of several leaves."""
    sizes = [snp.abs(x).astype(np.float32).reshape(-1) for x in group]
    count = sum(x.size for x in sizes)
    return snp.sort(snp.concatenate(sizes))[count - kept_count(density, count)] if count else 0


def _agreed(column: Sequence[Any], of_zero: OfZero) -> Tree:
    """Return the mean of those with the sign of the sum."""
    if not is_inexact(column[0].dtype):
        return column[0]
    total, count = elected(column, [snp.ones((), column[0].dtype)] * len(column), of_zero)
    return total / snp.maximum(count, 1)


def dare(
    vector: T, key: Key, drop: float = 0.9, *, rescale: Literal["density", "norm", "no"] = "density"
) -> T:
    """Set a random share of a task vector's elements to 0, and scale up the others to compensate.

    Several vectors treated so disturb each other less when they are added. Works under ``jit``, and
    ``vmap`` over keys.

    Args:
        vector: a tree of arrays.
        key: the key.
        drop: the share, at least 0 and below 1.
        rescale: "density" divides what is left by 1 − ``drop``, so that the mean stays, as
            ``st.merge`` does; "norm" gives each leaf the sum of magnitudes that it had, as mergekit
            does; "no" leaves it.

    Returns:
        A task vector in the same dtypes.

    Raises:
        ValueError: ``drop`` is out of range, or ``rescale`` is another word.

    Source: Yu et al., "Language models are super Mario", 2024.

    >>> import stretto as st, stretto.numpy as snp
    >>> thin = st.ensemble.dare({"w": snp.ones(1000)}, st.random.PRNGKey(0), drop=0.75)
    >>> sorted(set(thin["w"].tolist()))
    [0.0, 4.0]
    """
    if not 0 <= drop < 1:
        raise ValueError(f"dare: drop must be at least 0 and below 1, got {drop}")
    _check_word("dare", "rescale", rescale, ("density", "norm", "no"))
    alike = Alike("dare")
    row = alike.row(vector, 0)
    keys = split(key, max(len(row), 1))

    def thinned(x: Array, key: Key) -> Array:
        keep = drawn(uniform(key, x.shape), 1 - drop)
        if rescale == "norm":
            wide = widened(snp.abs(x))
            kept = snp.sum(only(wide, keep))
            scale = snp.where(kept > 0, snp.sum(wide) / snp.where(kept > 0, kept, 1), 1)
        else:
            scale = 1 / (1 - drop) if rescale == "density" else None
        return only(x, keep, scale).astype(x.dtype)

    thin = [thinned(x, keys[i]) if is_inexact(x.dtype) else x for i, x in enumerate(row)]
    return unflatten(alike.structure, thin)


def diagonal_fisher(log_likelihood: Callable[..., Any], params: T, *examples: ArrayLike) -> T:
    """Return the diagonal of the Fisher information: the mean over examples of squared gradients.

    With labels of the data it is the empirical Fisher; with labels drawn from the model, the Fisher
    itself.

    Args:
        log_likelihood: ``log_likelihood(params, *example)`` of one example, a number.
        params: a tree of arrays.
        *examples: arrays with the examples along axis 0.

    Returns:
        A tree like ``params``, at least float32; 0 for integers.

    Source: Matena and Raffel, "Merging models with Fisher-weighted averaging", 2022.

    >>> import stretto as st, stretto.numpy as snp
    >>> log_likelihood = lambda p, x: -0.5 * (x - p["mean"]) ** 2
    >>> st.ensemble.diagonal_fisher(log_likelihood, {"mean": 0.0}, snp.array([1.0, 3.0]))
    {'mean': Array(5., dtype=float32)}
    """
    row, alike = begin_average(params, "diagonal_fisher")
    places = [i for i, x in enumerate(row) if is_inexact(x.dtype)]

    def of_floats(floats: list[Any], *example: Any) -> Tree:
        by_place = dict(zip(places, floats, strict=True))
        full = [by_place.get(i, x) for i, x in enumerate(row)]
        return log_likelihood(unflatten(alike.structure, full), *example)

    slopes = vmap(grad(of_floats), (None, *[0] * len(examples)))(
        [row[i] for i in places], *examples
    )
    fisher = [snp.zeros_like(x) for x in row]
    for i, g in zip(places, slopes, strict=True):
        fisher[i] = snp.mean(snp.real(g * snp.conj(g)), axis=0)
    return unflatten(alike.structure, fisher)


def input_grams(model: Module, data: Iterable[Any]) -> dict[str, Array]:
    """Return the Gram matrices XᵀX of what the linear layers of a model are given.

    ``st.merge`` merges linear layers by them (``regmean``), with their outputs in mind.

    Args:
        model: a module, which is run in evaluation mode; in it each ``Linear`` that is called
            outside of transformations, as those in ``Sequential`` are.
        data: batches; of a batch that is a tuple or list, the first part is the model's input.

    Returns:
        By the name of each layer's weight, (in_features, in_features), float32: the sum over all
        batches, and over all axes of the layer's input but the last.

    Raises:
        TypeError: ``model`` is not a module.
        ValueError: no ``Linear`` was called, or only inside of a transformation.

    Source: Jin et al., "Dataless knowledge fusion by merging weights of language models", 2023.

    >>> import stretto as st, stretto.numpy as snp
    >>> model = st.nn.Sequential(st.nn.Linear(2, 3), st.nn.ReLU())
    >>> st.ensemble.input_grams(model, [snp.array([[1.0, 2.0]]), snp.array([[0.0, 1.0]])])
    {'0.weight': Array([[1., 2.],
           [2., 5.]], dtype=float32)}
    """
    if not isinstance(model, Module):
        raise TypeError(f"input_grams: expected a module, got a {type(model).__name__}")
    running = model.clone().eval()
    sums: dict[str, np.ndarray] = {}
    for path, layer in running.named_modules():
        if type(layer).forward is Linear.forward:
            object.__setattr__(layer, "__class__", _Recorded)  # a copy's, with its own attributes
            layer.__dict__["_record"] = functools.partial(_add_gram, sums, f"{path}.weight")
    for batch in data:
        running(batch[0] if isinstance(batch, (tuple, list)) else batch)
    if not sums:
        raise ValueError(
            "input_grams: no Linear of the model was given inputs outside of a transformation, or "
            "there is no batch"
        )
    return {name.removeprefix("."): snp.asarray(x, np.float32) for name, x in sums.items()}


class _Recorded(Linear):
    """A linear layer that tells what it is given."""

    def forward(self, input: ArrayLike) -> Array:
        self.__dict__["_record"](input)
        return super().forward(input)


def _add_gram(sums: dict[str, np.ndarray], name: str, input: ArrayLike) -> None:
    if isinstance(input, Tracer):
        return
    x = np.asarray(input, np.float64)
    rows = x.reshape(-1, x.shape[-1])
    gram = rows.T @ rows
    sums[name] = sums[name] + gram if name in sums else gram


def fisher_average(
    members: Sequence[Any],
    fishers: Sequence[Any],
    weights: Array | np.ndarray | Sequence[ArrayLike] | None = None,
    *,
    least: float = 1e-6,
) -> Tree:
    """Average models, each weight counting by how sure its model is of it.

    Σ λ_i F_i θ_i / Σ λ_i F_i, element by element.

    Args:
        members: trees of arrays, or an ``Ensemble``.
        fishers: for each the diagonal F_i, a tree like it (see ``diagonal_fisher``).
        weights: for each the λ_i; equal by default.
        least: smaller F_i are raised to it, so that weights that matter to no model are averaged
            evenly.

    Returns:
        A tree in the dtypes of the first member; integers, which have no Fisher information, as in
            ``uniform_soup``.

    Raises:
        ValueError: there are not as many of each, or none; or they differ, with the member and the
            path.
        TypeError: ``members`` or ``fishers`` is not a list.

    Source: Matena and Raffel, 2022, equation 3.

    >>> import stretto as st, stretto.numpy as snp
    >>> members = [{"w": snp.array([0.0, 0.0])}, {"w": snp.array([4.0, 4.0])}]
    >>> fishers = [{"w": snp.array([3.0, 1.0])}, {"w": snp.array([1.0, 1.0])}]
    >>> st.ensemble.fisher_average(members, fishers)
    {'w': Array([1., 2.], dtype=float32)}
    """
    members, fishers = (_listed(x, "fisher_average") for x in (members, fishers))
    each: list[Any] = [1.0] * len(members) if weights is None else list(weights)
    if not len(members) == len(fishers) == len(each):
        raise ValueError(
            f"fisher_average: expected a Fisher and a weight for each member; got {len(members)} "
            f"members, {len(fishers)} Fishers and {len(each)} weights"
        )
    alike = Alike("fisher_average")
    rows = [alike.row(m, i) for i, m in enumerate(members)]
    sure = [alike.row(f, i) for i, f in enumerate(fishers)]
    averages = []
    for column, precisions in zip(zip(*rows, strict=True), zip(*sure, strict=True), strict=True):
        first = column[0]
        if not is_inexact(first.dtype):
            averages.append(of_column(column, None))
            continue
        average = by_precision(column, precisions, each, least)
        averages.append(convert(average, first.dtype))
    return unflatten(alike.structure, averages)


def _listed(trees: Tree, caller: str) -> list[Any]:
    members: Any = of_members(trees, caller)
    if members is not None:
        return list(members)
    if not isinstance(trees, (list, tuple)):
        raise TypeError(f"{caller}: expected a list of trees, got a {type(trees).__name__}")
    if not trees:
        raise ValueError(f"{caller}: expected at least one tree, got none")
    return list(trees)


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
    """Return the loss along the path between two models, and the height of its barrier.

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
    """The result of ``greedy_soup``."""

    params: T
    """The averaged tree."""
    members: tuple[int, ...]
    """The members that it averages, in the order in which they were added."""
    score: float
    """The score of the averaged tree."""
    scores: tuple[float, ...]
    """The score of each member alone."""


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
    """Add members to an average, best first, as long as its score gets no worse.

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
        candidate = move_average(average, member, 1 / (len(places) + 1), "greedy_soup", i)
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
    """Return an average of one member, and what gives such an average as a tree like the member.

    It has the member's dtypes, and the mean of the integers; the member itself is not held.
    """
    flat, alike = begin_average(first, "greedy_soup")
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
    """Return the leaves that are integers or booleans, which are averaged in the end."""
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
