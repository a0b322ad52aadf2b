"""``masked``: a transformation for some leaves only.

The other leaves are replaced by ``MaskedNode()``, a node without leaves, so that the transformation
and its state do not see them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.lazy import brief
from stretto._engine.core.typing import Tree
from stretto.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Mask,
    MaskedNode,
    as_transformation,
    transformation,
)
from stretto.optim.naming import caller_of

__all__ = ["MaskedState", "masked"]


@brief
class MaskedState(NamedTuple):
    """``inner_state``, the inner transformation's, for the leaves that the mask lets pass."""

    inner_state: Tree


@transformation
def masked(inner: GradientTransformation, mask: Mask) -> GradientTransformationExtraArgs:
    """Transform the leaves where the mask is true; let the others pass as they are.

    Args:
        mask: a tree of booleans of the structure of the parameters or of a prefix of it (one
            boolean for all is one), or a function that makes such a tree of the parameters.

    Raises:
        ValueError: the mask is not a prefix of the parameters; the message says where they differ.
        TypeError: a leaf of the mask is not a boolean.

    >>> import stretto as st, stretto.numpy as snp
    >>> matrices = lambda params: st.tree.map(lambda x: x.ndim > 1, params)
    >>> tx = masked(st.optim.add_decayed_weights(0.1), matrices)
    >>> params = {"bias": snp.ones(1), "weight": snp.ones((1, 1))}
    >>> tx.update(st.tree.map(snp.zeros_like, params), tx.init(params), params)[0]
    {'bias': Array([0.], dtype=float32), 'weight': Array([[0.1]], dtype=float32)}
    """
    caller = caller_of("masked")
    within = as_transformation(inner, caller)

    def init(params: Tree) -> MaskedState:
        return MaskedState(within.init(_kept(caller, params, _choices(caller, mask, params))))

    def update(
        updates: Tree, state: MaskedState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, MaskedState]:
        choices = _choices(caller, mask, updates)
        kept_params = None if params is None else _kept(caller, params, choices)
        new, inner_state = within.update(
            _kept(caller, updates, choices), state.inner_state, kept_params, **extra
        )
        changed = iter(tree.leaves(new))
        leaves, spec = tree.flatten(updates)
        merged = [next(changed) if chosen else x for x, chosen in zip(leaves, choices, strict=True)]
        return tree.unflatten(spec, merged), MaskedState(inner_state)

    return GradientTransformationExtraArgs(init, update)


def _choices(caller: str, mask: Mask, params: Tree) -> list[bool]:
    """Whether each leaf is let through."""
    booleans = mask(params) if callable(mask) else mask
    choices = tree.prefix_leaves(booleans, params, caller, "mask")
    for path, chosen in zip(tree.paths(params, "mask"), choices, strict=True):
        if not isinstance(chosen, (bool, np.bool_)):
            raise TypeError(f"{caller}: {path} must be True or False, got {chosen!r}")
    return choices


def _kept(caller: str, x: Tree, choices: list[bool]) -> Tree:
    leaves, spec = tree.flatten(x)
    if len(leaves) != len(choices):
        raise ValueError(
            f"{caller}: updates have {len(choices)} leaves, but params {len(leaves)}; give the "
            f"parameters that the updates are for"
        )
    return tree.unflatten(
        spec, [x if chosen else MaskedNode() for x, chosen in zip(leaves, choices, strict=True)]
    )
