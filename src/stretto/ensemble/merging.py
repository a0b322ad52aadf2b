"""Merging models fine-tuned from one: task vectors, TIES, DARE, and averages weighted by Fisher.

A *task vector* is a tuned model minus the one it began from, as a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto import tree
from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.tree import unflatten
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto._engine.ops.convert import convert
from stretto.ensemble.averaging import begun
from stretto.random.discrete_draws import bernoulli
from stretto.random.keys import split
from stretto.tree.members import Alike, of_members
from stretto.tree.sums import of_column

__all__ = ["add_task_vectors", "dare", "diagonal_fisher", "fisher_average", "task_vector", "ties"]

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
    ours, alike = begun(base, "task_vector")
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


def ties(vectors: Sequence[Any], density: float = 0.2) -> Tree:
    """Merge task vectors: trimmed, with signs elected, and averaged where they agree.

    Of each vector only the elements with the largest magnitudes are kept, over all leaves. Each
    element's sign is that of the sum of what is kept, and its value the mean over the vectors that
    have this sign there, or 0. Add the result by ``add_task_vectors``.

    Args:
        vectors: trees of arrays, all alike.
        density: the share of elements to keep, above 0 and at most 1.

    Returns:
        One task vector.

    Raises:
        ValueError: ``density`` is out of range, there are no vectors, or they differ, with the
            member and the path.
        TypeError: ``vectors`` is not a list.

    Source: Yadav et al., "TIES-Merging: resolving interference when merging models", 2023.

    >>> import stretto as st, stretto.numpy as snp
    >>> vectors = [{"w": snp.array([3.0, -1.0, 0.1])}, {"w": snp.array([1.0, 2.0, 0.1])}]
    >>> st.ensemble.ties(vectors, density=0.67)
    {'w': Array([2., 2., 0.], dtype=float32)}
    """
    if not 0 < density <= 1:
        raise ValueError(f"ties: density must be above 0 and at most 1, got {density}")
    vectors = _listed(vectors, "ties")
    alike = Alike("ties")
    rows = [_trimmed(alike.row(v, i), density) for i, v in enumerate(vectors)]
    return unflatten(alike.structure, [_agreed(column) for column in zip(*rows, strict=True)])


def _trimmed(row: list[Any], density: float) -> list[Any]:
    """The leaves with all but the largest magnitudes set to 0."""
    sizes = [snp.abs(x).astype(np.float32).reshape(-1) for x in row if is_inexact(x.dtype)]
    count = sum(x.size for x in sizes)
    if not count:
        return row
    kept = max(1, round(density * count))
    least = snp.sort(snp.concatenate(sizes))[count - kept]
    return [snp.where(snp.abs(x) >= least, x, 0) if is_inexact(x.dtype) else x for x in row]


def _agreed(column: Sequence[Any]) -> Tree:
    """The mean of those with the sign of the sum."""
    if not is_inexact(column[0].dtype):
        return column[0]
    sign = snp.sign(sum(column[1:], column[0]))
    agree = [snp.sign(x) == sign for x in column]
    total = sum([snp.where(a, x, 0) for a, x in zip(agree, column, strict=True)])
    count = sum([(a & (sign != 0)).astype(np.int32) for a in agree])
    return total / snp.maximum(count, 1).astype(column[0].dtype)


def dare(vector: T, key: Key, drop: float = 0.9) -> T:
    """Set a random share of a task vector's elements to 0, and scale up the others to compensate.

    What is left is divided by 1 − ``drop``, so that the mean stays. Several vectors treated so
    disturb each other less when they are added. Works under ``jit``, and ``vmap`` over keys.

    Args:
        vector: a tree of arrays.
        key: the key.
        drop: the share, at least 0 and below 1.

    Returns:
        A task vector in the same dtypes.

    Raises:
        ValueError: ``drop`` is out of range.

    Source: Yu et al., "Language models are super Mario", 2024.

    >>> import stretto as st, stretto.numpy as snp
    >>> thin = st.ensemble.dare({"w": snp.ones(1000)}, st.random.PRNGKey(0), drop=0.75)
    >>> sorted(set(thin["w"].tolist()))
    [0.0, 4.0]
    """
    if not 0 <= drop < 1:
        raise ValueError(f"dare: drop must be at least 0 and below 1, got {drop}")
    alike = Alike("dare")
    row = alike.row(vector, 0)
    keys = split(key, max(len(row), 1))
    thinned = [
        snp.where(bernoulli(keys[i], 1 - drop, x.shape), x / (1 - drop), 0).astype(x.dtype)
        if is_inexact(x.dtype)
        else x
        for i, x in enumerate(row)
    ]
    return unflatten(alike.structure, thinned)


def diagonal_fisher(log_likelihood: Callable[..., Any], params: T, *examples: ArrayLike) -> T:
    """The diagonal of the Fisher information: the mean over examples of squared gradients.

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
    row, alike = begun(params, "diagonal_fisher")
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
        shares = [w * snp.maximum(f, least) for w, f in zip(each, precisions, strict=True)]
        top = sum([s * x for s, x in zip(shares, column, strict=True)])
        averages.append(convert(top / sum(shares), first.dtype))
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
