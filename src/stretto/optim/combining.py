"""Transformations in a row, for groups of parameters, and for some leaves only.

``masked``: a transformation for some leaves only.

The other leaves are replaced by ``MaskedNode()``, a node without leaves, so that the transformation
and its state do not see them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
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
    caller_of,
    making,
    transformation,
)

__all__ = ["MaskedState", "PartitionState", "chain", "masked", "multi_transform", "named_chain"]


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


@brief
class PartitionState(NamedTuple):
    """``inner_states``, the state of each group's transformation, by its label."""

    inner_states: dict[Hashable, Tree]


@transformation
def chain(*args: GradientTransformation) -> GradientTransformationExtraArgs:
    """Apply transformations one after the other; the state is the tuple of theirs.

    Args:
        *args: transformations.

    Raises:
        TypeError: something is not a transformation.
        ValueError: in ``update``, the state has another number of parts.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = chain(st.optim.clip(1.0), st.optim.scale(-0.1))
    >>> tx.update({"w": snp.array([5.0])}, tx.init({"w": snp.zeros(1)}))[0]
    {'w': Array([-0.1], dtype=float32)}
    """
    caller = caller_of("chain")
    parts = [as_transformation(tx, caller) for tx in args]

    def init(params: Tree) -> tuple[Tree, ...]:
        return tuple([tx.init(params) for tx in parts])

    def update(
        updates: Tree, state: Tree, params: Tree = None, **extra: Any
    ) -> tuple[Tree, tuple[Tree, ...]]:
        if len(state) != len(parts):
            raise ValueError(
                f"{caller}: the state has {len(state)} parts, but there are {len(parts)} "
                f"transformations; give the state that its own init made"
            )
        after = []
        for tx, own in zip(parts, state, strict=True):
            updates, own = tx.update(updates, own, params, **extra)
            after.append(own)
        return updates, tuple(after)

    return GradientTransformationExtraArgs(init, update)


@transformation
def named_chain(*args: tuple[str, GradientTransformation]) -> GradientTransformationExtraArgs:
    """Apply transformations one after the other; the state is a dictionary of theirs, by name.

    Args:
        *args: pairs of a name and a transformation.

    Raises:
        TypeError: something is not a transformation.
        ValueError: a name comes twice.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = named_chain(("momentum", st.optim.trace(0.9)), ("rate", st.optim.scale(-0.1)))
    >>> tx.init({"w": snp.zeros(1)})["momentum"]
    TraceState(trace={'w': Array([0.], dtype=float32)})
    """
    names = [name for name, _ in args]
    if len(set(names)) < len(names):
        raise ValueError(f"named_chain: names must differ, got {names}")
    whole = chain(*[as_transformation(tx, "named_chain") for _, tx in args])

    def init(params: Tree) -> dict[str, Tree]:
        return dict(zip(names, whole.init(params), strict=True))

    def update(
        updates: Tree, state: Tree, params: Tree = None, **extra: Any
    ) -> tuple[Tree, dict[str, Tree]]:
        updates, after = whole.update(updates, [state[n] for n in names], params, **extra)
        return updates, dict(zip(names, after, strict=True))

    return GradientTransformationExtraArgs(init, update)


@transformation
def multi_transform(
    transforms: Mapping[Any, GradientTransformation], param_labels: Tree
) -> GradientTransformationExtraArgs:
    """Transform each leaf by the transformation that its label names.

    Args:
        transforms: from label to transformation.
        param_labels: a tree of labels of the structure of the parameters or of a prefix of it, or
            a function that makes such a tree of the parameters.

    Raises:
        ValueError: a leaf has a label without a transformation, or the labels are not a prefix of
            the parameters.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = multi_transform(
    ...     {"train": st.optim.sgd(0.1), "freeze": st.optim.set_to_zero()},
    ...     {"body": "freeze", "head": "train"},
    ... )
    >>> params = {"body": {"w": snp.ones(1)}, "head": {"w": snp.ones(1)}}
    >>> tx.update(params, tx.init(params), params)[0]
    {'body': {'w': Array([0.], dtype=float32)}, 'head': {'w': Array([-0.1], dtype=float32)}}
    """

    def labels_of(params: Tree) -> list[Hashable]:
        labels = param_labels(params) if callable(param_labels) else param_labels
        flat = tree.prefix_leaves(labels, params, "multi_transform", "param_labels")
        for path, label in zip(tree.paths(params, "param_labels"), flat, strict=True):
            if label not in transforms:
                raise ValueError(
                    f"multi_transform: {path} is {label!r}, but there are transformations for "
                    f"{sorted(map(repr, transforms))} only"
                )
        return flat

    def group(label: Hashable, tx: GradientTransformation) -> GradientTransformationExtraArgs:
        def mask(params: Tree) -> Tree:
            chosen = [own == label for own in labels_of(params)]
            return tree.unflatten(tree.structure(params), chosen)

        inner = as_transformation(tx, "multi_transform")
        return making("multi_transform", lambda: masked(inner, mask))

    groups = {label: group(label, tx) for label, tx in transforms.items()}

    def init(params: Tree) -> PartitionState:
        labels_of(params)
        return PartitionState({label: tx.init(params) for label, tx in groups.items()})

    def update(
        updates: Tree, state: PartitionState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, PartitionState]:
        after = {}
        for label, tx in groups.items():
            updates, after[label] = tx.update(updates, state.inner_states[label], params, **extra)
        return updates, PartitionState(after)

    return GradientTransformationExtraArgs(init, update)
