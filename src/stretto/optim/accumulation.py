"""``MultiSteps``: one update for several batches; ``apply_if_finite``: none for a bad one.

``apply_if_finite``: skips steps whose gradients are infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.graph import eval_shape
from stretto._engine.core import tree
from stretto._engine.core.lazy import brief
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Tree
from stretto._engine.higher_order.cond import cond
from stretto.numpy.arguments import weakly_inexact
from stretto.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    all_finite,
    as_transformation,
    check,
    check_dtype,
    choose_tree,
    fill_like,
    first_count,
    leafwise,
    safe_increment,
    transformation,
)

__all__ = ["ApplyIfFiniteState", "MultiSteps", "MultiStepsState", "apply_if_finite",
           "skip_not_finite"]  # fmt: skip


@brief
class ApplyIfFiniteState(NamedTuple):
    """The numbers of updates that were not finite, and the state of the transformation within.

    ``notfinite_count`` is how many of the last in a row, ``total_notfinite`` how many in all,
    int32; ``last_finite`` is whether the last one was, and ``inner_state`` the state within.
    """

    notfinite_count: Array
    last_finite: Array
    total_notfinite: Array
    inner_state: Tree


@transformation
def apply_if_finite(
    inner: GradientTransformation, max_consecutive_errors: int
) -> GradientTransformationExtraArgs:
    """Update as ``inner`` where all updates are finite; else give zeros, and keep its state.

    After ``max_consecutive_errors`` in a row that were not finite, they pass, so that training
    which cannot recover shows it. ``per_member(apply_if_finite(...))`` stops only the member
    concerned.

    Args:
        max_consecutive_errors: how many to leave out in a row.

    Raises:
        ValueError: ``max_consecutive_errors`` is negative.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = apply_if_finite(st.optim.sgd(0.5), 3)
    >>> updates, state = tx.update({"w": snp.array([snp.nan])}, tx.init({"w": snp.zeros(1)}))
    >>> updates, state.notfinite_count
    ({'w': Array([0.], dtype=float32)}, Array(1, dtype=int32))
    """
    check("apply_if_finite", least=0, max_consecutive_errors=max_consecutive_errors)
    within = as_transformation(inner, "apply_if_finite")

    def init(params: Tree) -> ApplyIfFiniteState:
        zero = first_count()
        return ApplyIfFiniteState(zero, snp.array(True), zero, within.init(params))

    def update(
        updates: Tree, state: ApplyIfFiniteState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, ApplyIfFiniteState]:
        finite = all_finite(updates)
        in_a_row = snp.where(finite, 0, safe_increment(state.notfinite_count))
        total = snp.where(finite, state.total_notfinite, safe_increment(state.total_notfinite))
        accepted = snp.logical_or(finite, in_a_row > max_consecutive_errors)
        # A skipped step is computed from zeros, so that its NaN reaches no derivative.
        safe = tree.map(lambda g: snp.where(accepted, g, 0), updates)
        new, after = within.update(safe, state.inner_state, params, **extra)
        return (
            tree.map(lambda u: snp.where(accepted, u, 0), new),
            ApplyIfFiniteState(
                in_a_row, finite, total, choose_tree(accepted, after, state.inner_state)
            ),
        )

    return GradientTransformationExtraArgs(init, update)


SkipRule = Callable[[Tree, Array, Tree], tuple[Array, Tree]]
"""A function of updates, number of parameter updates so far, and parameters, to (skip?, state)."""


@brief
class MultiStepsState(NamedTuple):
    """The state of ``MultiSteps``: counts, the state within, and gradients so far.

    ``mini_step`` counts the batches since the last update of the parameters, ``gradient_step``
    those updates, both int32. ``inner_opt_state`` is the state of the optimizer within,
    ``acc_grads`` the mean of the gradients so far, and ``skip_state`` what the rule that skips
    batches returned for the last one.
    """

    mini_step: Array
    gradient_step: Array
    inner_opt_state: Tree
    acc_grads: Tree
    skip_state: Tree = ()


def skip_not_finite(updates: Tree, gradient_step: ArrayLike, params: Tree) -> tuple[Array, Tree]:
    """Leave out batches with gradients that are not finite: a rule for ``MultiSteps``.

    Args:
        updates: a tree of arrays.
        gradient_step: how many updates were done; not used.
        params: a tree of arrays; not used.

    Returns:
        Whether to leave the batch out, a boolean of rank 0; and a tree for ``skip_state``.

    >>> import stretto.numpy as snp
    >>> skip_not_finite({"w": snp.array([snp.inf])}, 0, None)
    (Array(True, dtype=bool), {'should_skip': Array(True, dtype=bool)})
    """
    skip = snp.logical_not(all_finite(updates))
    return skip, {"should_skip": skip}


def _never(updates: Tree, gradient_step: Array, params: Tree) -> tuple[Tree, Tree]:
    return snp.array(False), ()


class MultiSteps:
    """Collect the gradients of k batches, then update as ``opt`` for their mean.

    ``init`` and ``update`` are those of a transformation. The update of ``opt`` runs only every k
    batches; in between, updates are zero and the state of ``opt`` does not change.

    Args:
        opt: the transformation.
        every_k_schedule: k, or a function from the number of updates of the parameters so far to k.
        use_grad_mean: False gives ``opt`` the sum.
        should_skip_update_fn: a function of (updates, updates so far, params) that gives whether to
            leave a batch out, a boolean array, and a tree for ``skip_state``; see
            ``skip_not_finite``.
        accumulator_dtype: the dtype in which gradients are collected.

    Raises:
        ValueError: k is less than 1.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = MultiSteps(st.optim.sgd(1.0), every_k_schedule=2)
    >>> state = tx.init({"w": snp.zeros(1)})
    >>> for g in (1.0, 3.0):
    ...     updates, state = tx.update({"w": snp.array([g])}, state)
    ...     print(updates, bool(tx.has_updated(state)))
    {'w': Array([0.], dtype=float32)} False
    {'w': Array([-2.], dtype=float32)} True
    """

    def __init__(
        self,
        opt: GradientTransformation,
        every_k_schedule: int | Callable[[Any], Any],
        use_grad_mean: bool = True,
        should_skip_update_fn: SkipRule | None = None,
        accumulator_dtype: DTypeLike = np.float32,
    ) -> None:
        check("MultiSteps", least=1, schedules=True, every_k_schedule=every_k_schedule)
        check_dtype("MultiSteps", accumulator_dtype=accumulator_dtype)
        self._inner = as_transformation(opt, "MultiSteps")
        self._every_k = every_k_schedule
        self._mean = use_grad_mean
        self._skips = _never if should_skip_update_fn is None else should_skip_update_fn
        self._dtype = accumulator_dtype

    @property
    def inner_opt(self) -> GradientTransformationExtraArgs:
        """The transformation that updates every k batches."""
        return self._inner

    def init(self, params: Tree) -> MultiStepsState:
        """Return the state before the first batch.

        Args:
            params: a tree of arrays.

        Returns:
            The state.
        """
        zero = first_count()
        _, skip_state = self._skips(fill_like(params), zero, params)
        gathered = fill_like(params, dtype=self._dtype)
        return MultiStepsState(zero, zero, self._inner.init(params), gathered, skip_state)

    def update(
        self, updates: Tree, state: MultiStepsState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, MultiStepsState]:
        """Take in the gradients of one batch.

        Args:
            updates: the gradients, a tree of arrays.
            state: the state before.
            params: a tree of arrays, where the transformation needs it.
            **extra: for the ``update`` of the transformation.

        Returns:
            Zeros, or every k batches the update; and the new state.
        """
        skip, skip_state = self._skips(updates, state.gradient_step, params)
        k = self._every_k(state.gradient_step) if callable(self._every_k) else self._every_k
        gathered = choose_tree(skip, state.acc_grads, self._gathered(updates, state))
        now = snp.logical_and(state.mini_step >= k - 1, snp.logical_not(skip))

        def step() -> tuple[Tree, Tree, Tree]:
            grads = tree.map(lambda g, like: g.astype(like.dtype), gathered, updates)
            new, inner = self._inner.update(grads, state.inner_opt_state, params, **extra)
            return new, inner, tree.map(snp.zeros_like, gathered)

        def wait() -> tuple[Tree, Tree, Tree]:
            zeros = tree.map(lambda x: snp.zeros(x.shape, x.dtype), eval_shape(step)[0])
            return zeros, state.inner_opt_state, gathered

        new, inner, gathered = cond(now, step, wait)
        in_cycle = state.mini_step + snp.logical_not(skip).astype(state.mini_step.dtype)
        return new, MultiStepsState(
            snp.where(now, 0, in_cycle),
            snp.where(now, safe_increment(state.gradient_step), state.gradient_step),
            inner,
            gathered,
            skip_state,
        )

    def _gathered(self, updates: Tree, state: MultiStepsState) -> Tree:
        """Return the mean or sum of gradients with this batch."""
        n = state.mini_step

        def rule(g: Array, before: Array) -> tuple[Array, Array]:
            return g, before + ((g - before) / weakly_inexact(n + 1) if self._mean else g)

        return leafwise("MultiSteps", rule, updates, {"acc_grads": state.acc_grads})[1]

    def has_updated(self, state: MultiStepsState) -> Array:
        """Tell whether the last batch brought an update.

        Args:
            state: what ``update`` gave.

        Returns:
            A boolean array of rank 0.
        """
        return snp.logical_and(state.mini_step == 0, state.gradient_step > 0)

    def gradient_transformation(self) -> GradientTransformationExtraArgs:
        """Return it as a transformation, for ``chain`` and the like.

        Returns:
            The transformation.
        """
        return GradientTransformationExtraArgs(self.init, self.update)
