"""``apply_if_finite``: skips steps whose gradients are infinite or NaN."""

from __future__ import annotations

from typing import Any, NamedTuple

import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.lazy import brief
from stretto._engine.core.typing import Array, Tree
from stretto.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    as_transformation,
    transformation,
)
from stretto.optim.leaves import all_finite, check, chosen, first_count, safe_increment

__all__ = ["ApplyIfFiniteState", "apply_if_finite"]


@brief
class ApplyIfFiniteState(NamedTuple):
    """How many updates were not finite, and the state of the transformation within.

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
            ApplyIfFiniteState(in_a_row, finite, total, chosen(accepted, after, state.inner_state)),
        )

    return GradientTransformationExtraArgs(init, update)
