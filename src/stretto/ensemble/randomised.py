"""Randomised MAP: members whose anchors and targets are drawn, so that they are posterior samples.

A member is the minimum of an energy of its own: the negative logarithm of the likelihood of targets
with noise added, and of a prior about a draw of the prior. For a linear model with normal noise the
minimum is an exact draw from the posterior. Anchors alone, and members that start from different
weights alone, vary far too little where there are data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stretto.numpy as snp
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.functions import name_of
from stretto._engine.core.integers import count
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto.ensemble.groups import Member
from stretto.nn.module import Module
from stretto.optim.base import Scalar, check, wide
from stretto.random.distributions import normal
from stretto.random.keys import as_key, fold_in, key_data, split

__all__ = ["randomised_map"]

_ANCHORS, _TARGETS = 0, 1  # the streams of a member's key
_KEYS = "randomised_map_keys"


def randomised_map(
    loss_of: Callable[..., Any],
    prior_scale: Scalar,
    noise: Scalar,
    key: Key,
    size: int,
    *,
    data_size: int,
) -> tuple[Callable[..., Any], dict[str, Array]]:
    """Make the loss of members whose minima are samples of a posterior, and what is each one's own.

    Member m minimises, as the mean over its examples,

        loss_of(member, x, y + noise · ε_m) + ‖θ − a_m‖² / (2 · prior_scale² · data_size)

    with a_m drawn from the prior, normal about 0 of standard deviation ``prior_scale``, and ε_m
    standard normal, one for each number of a target and the same in all epochs. Both are drawn
    again in each step, from the member's key and the number of the example, and take no memory.
    The data of ``fit`` have this number last: ``(x, y, snp.arange(len(x)))``. An example of a
    negative number keeps its target, as those of a validation should.

    Args:
        loss_of: ``loss_of(member, x, y)``: the **mean** over a batch of −log p(y | x) in nats: with
            normal noise ``((member(x) - y) ** 2).mean() / (2 * noise ** 2)``. With several
            arguments before the targets it gets them all.
        prior_scale: the standard deviation of the prior of each weight.
        noise: the standard deviation of the likelihood; 0 leaves targets as they are, as classes
            must be, and members are anchored alone.
        key: where all draws come from.
        size: the number of members.
        data_size: the number of training examples.

    Returns:
        The loss, of a member and a batch ``(x, y, number)``, and ``per_member`` for ``fit``: keys
            of shape (size, words). Members that share trained parts get the mean of their anchors.

    Raises:
        ValueError: ``prior_scale`` is not positive, or ``noise`` negative; or, in the loss, targets
            are not floating.
        TypeError: ``loss_of`` is not a function, or numbers of examples are not integers.

    Source: Pearce, Leibfried, Brintrup, Zaki and Neely, "Uncertainty in neural networks:
    approximately Bayesian ensembling", 2020 (arXiv 1810.05546), with its targets perturbed as in
    the exact case of its section 3 and in Lu and Van Roy, "Ensemble sampling", 2017.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, y = snp.linspace(-1, 1, 20), snp.linspace(-2, 2, 20)
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 0.0}] * 10)
    >>> loss, per_member = st.ensemble.randomised_map(
    ...     lambda member, x, y: ((member(x) - y) ** 2).mean() / (2 * 0.5**2),
    ...     prior_scale=1.0,
    ...     noise=0.5,
    ...     key=st.random.key(0),
    ...     size=10,
    ...     data_size=20,
    ... )
    >>> fitted = ensemble.fit(
    ...     loss, (x, y, snp.arange(20)), st.optim.sgd(0.3), epochs=100, per_member=per_member
    ... )
    >>> deviation = (1 / (1 + float((x**2).sum()) / 0.5**2)) ** 0.5  # of the exact posterior
    >>> bool(abs(ensemble(1.0).std() / deviation - 1) < 0.5)
    True
    """
    caller = "randomised_map"
    if not callable(loss_of):
        raise TypeError(
            f"{caller}: loss_of must be a function of a member, x and y, got "
            f"{type(loss_of).__name__}"
        )
    check(caller, above=0, prior_scale=prior_scale)
    check(caller, least=0, noise=noise)
    size, data_size = count(size, caller, "size", 1), count(data_size, caller, "data_size", 1)
    perturbs = not isinstance(noise, (int, float)) or noise > 0

    def loss(member: Tree, *batch: Tree, **options: Any) -> Tree:
        own = options.pop(_KEYS)
        if len(batch) < 3:
            raise ValueError(
                f"{caller}: expected batches (x, y, number), of {len(batch)} parts here: give the "
                f"data as (x, y, snp.arange(len(x))), so that each example keeps its noise"
            )
        *inputs, targets, numbers = batch
        if perturbs:
            targets = perturbed(targets, numbers, own, noise)
        value = loss_of(member, *inputs, targets, **options)
        terms = [snp.sum((wide(p) - a) ** 2) for p, a in anchored(member, own, prior_scale)]
        prior = sum(terms) / (2 * prior_scale**2 * data_size)
        return (value[0] + prior, value[1]) if isinstance(value, tuple) else value + prior

    loss.__name__ = f"randomised_map({name_of(loss_of)})"
    keys = split(as_key(key, caller), size)
    return loss, {_KEYS: key_data(keys)}


def perturbed(targets: ArrayLike, numbers: ArrayLike, key: Key, noise: Scalar) -> Array:
    """Return targets with the noise of their examples' numbers; those of negative ones as they are.

    Args:
        targets: (examples, ...), floating.
        numbers: (examples,), integers.
        key: a member's key.
        noise: the standard deviation.
    """
    y = as_value(targets, "randomised_map", "y")
    i = as_value(numbers, "randomised_map", "the number of examples")
    if kind_of(y.dtype) != "float":
        raise ValueError(
            f"randomised_map: y must be floating to have noise added, got {y.type}; for classes "
            f"give noise=0, which anchors members alone"
        )
    if kind_of(i.dtype) not in ("int", "uint") or i.shape != y.shape[:1]:
        raise TypeError(
            f"randomised_map: the last part of a batch must be the numbers of its examples, "
            f"integers of shape {y.shape[:1]}, got {i.type}: data are (x, y, snp.arange(len(x)))"
        )
    stream = fold_in(key, _TARGETS)
    drawn = vmap(lambda i: normal(fold_in(stream, i), y.shape[1:], wide(y).dtype))(i)
    known = (i >= 0).reshape(-1, *[1] * (y.ndim - 1))
    return snp.where(known, y + noise * drawn, y)


def anchored(member: Tree, key: Key, prior_scale: Scalar) -> list[tuple[Array, Array]]:
    """Return the parameters of a member, each with its anchor, a draw from the prior."""
    if isinstance(member, Module):
        leaves = [value for _, value in member.named_parameters()]
    else:
        leaves = tree.leaves(member.params if isinstance(member, Member) else member)
    leaves = [snp.asarray(x) for x in leaves]
    leaves = [x for x in leaves if kind_of(x.dtype) == "float"]
    stream = fold_in(key, _ANCHORS)
    return [
        (x, prior_scale * normal(fold_in(stream, i), x.shape, wide(x).dtype))
        for i, x in enumerate(leaves)
    ]
