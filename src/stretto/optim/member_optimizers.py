"""``per_member``: each member of a stacked ensemble transformed as if it were alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.errors import refuse_unknown
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.typing import Array, Tree
from stretto.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    as_transformation,
    transformation,
)
from stretto.optim.hyperparameters import inject_hyperparams

__all__ = ["per_member"]


@transformation
def per_member(
    inner: GradientTransformation | Callable[..., GradientTransformation], **hyperparams: Any
) -> GradientTransformationExtraArgs:
    """Transform each member of a stacked ensemble alone, with its own norms, ratios and counts.

    All leaves of parameters, updates and state have an axis of members first, as ``stretto.stack``
    makes. What looks at more than one element, such as ``clip_by_global_norm``, ``lamb`` or
    ``adafactor``, looks at one member; so do masks and labels that are functions of parameters.
    What goes element by element is the same operation as before on larger arrays.
    Keyword arguments of ``update`` have one entry a member, too.

    Args:
        inner: a transformation; or, with ``hyperparams``, a function that makes one, such as
            ``adamw``.
        hyperparams: the arguments of that function. An array, or a list or tuple of numbers, has
            one entry per member along its first axis, and becomes an array of the state, as by
            ``inject_hyperparams``: ``state.hyperparams["learning_rate"]`` has shape (members,).
            Anything else is shared by all.

    Raises:
        ValueError: leaves, or hyperparameters, differ in the number of members; the message names
            them.
        TypeError: ``inner`` is not a transformation, or, with ``hyperparams``, not a function.

    >>> import stretto as st, stretto.numpy as snp
    >>> params = {"w": snp.zeros((2, 1))}  # two members
    >>> grads = {"w": snp.array([[3.0], [0.5]])}
    >>> tx = per_member(st.optim.clip_by_global_norm(1.0))
    >>> tx.update(grads, tx.init(params), params)[0]
    {'w': Array([[1. ],
           [0.5]], dtype=float32)}
    >>> tx = per_member(st.optim.sgd, learning_rate=[0.1, 1.0])
    >>> state = tx.init(params)
    >>> state.hyperparams
    {'learning_rate': Array([0.1, 1. ], dtype=float32)}
    >>> tx.update(grads, state, params)[0]
    {'w': Array([[-0.3],
           [-0.5]], dtype=float32)}
    """
    if not isinstance(inner, GradientTransformation) and callable(inner):
        return _made_per_member(inner, hyperparams)
    if hyperparams:
        raise TypeError(
            f"per_member: hyperparameters ({', '.join(hyperparams)}) go with a function that makes "
            f"a transformation, as in per_member(adam, learning_rate=...); got a transformation"
        )
    within = as_transformation(inner, "per_member")

    def init(params: Tree) -> Tree:
        _members({"params": params})
        return vmap(within.init)(params)

    return GradientTransformationExtraArgs(init, _update_of(within))


def _update_of(within: GradientTransformationExtraArgs) -> Callable[..., tuple[Tree, Tree]]:
    """The update of all members."""

    def update(updates: Tree, state: Tree, params: Tree = None, **extra: Tree) -> tuple[Tree, Tree]:
        trees = {"updates": updates, "state": state, "params": params} | extra
        size = _members(trees)

        def of_one(updates: Tree, state: Tree, params: Tree, extra: Tree) -> tuple[Tree, Tree]:
            return within.update(updates, state, params, **extra)

        return vmap(of_one, axis_size=size)(updates, state, params, extra)

    return update


def _made_per_member(
    factory: Callable[..., GradientTransformation], hyperparams: Mapping[str, Any]
) -> GradientTransformationExtraArgs:
    """``per_member`` of a function, with hyperparameters in the state."""
    caller = f"per_member({name_of(factory)})"
    refuse_unknown(caller, "hyperparameter", hyperparams, factory, name_of(factory))
    own: dict[str, Array] = {}
    for name, x in hyperparams.items():
        if isinstance(x, (list, tuple)) and all(isinstance(n, (int, float)) for n in x):
            own[name] = as_value(np.asarray(x, np.float64), caller, name)
        elif isinstance(x, (Value, np.ndarray)) and x.ndim:
            own[name] = as_value(x, caller, name)
    shared = {name: x for name, x in hyperparams.items() if name not in own}
    names = set(inspect.signature(factory).parameters)
    make = inject_hyperparams(factory, static_args=names - set(own))

    def init(params: Tree) -> Tree:
        _members({"params": params} | own)
        return vmap(lambda params, own: make(**shared, **own).init(params))(params, own)

    # An update takes its values from the state; those of member 0 only stand in for a number.
    stand_ins = {name: x[0] for name, x in own.items()}
    of_one = make(**shared, **stand_ins)
    for name, x in hyperparams.items():
        if name in own and not isinstance(x, Value) and own[name].ndim == 1:
            for number in np.asarray(x).tolist():  # so that one out of range is refused at once
                factory(**shared, **stand_ins | {name: number})
    return GradientTransformationExtraArgs(init, _update_of(of_one))


def _members(trees: Mapping[str, Tree]) -> int:
    """How many members all leaves have along axis 0; ``ValueError`` where they do not agree."""
    sizes: dict[int, str] = {}
    for root, x in trees.items():
        for path, leaf in zip(tree.paths(x, root), tree.leaves(x), strict=True):
            shape = np.shape(leaf)
            if not shape:
                raise ValueError(
                    f"per_member: every leaf must have an axis of members first, but {path} is one "
                    f"number; stack the members with stretto.stack, and make the state of the "
                    f"stacked parameters"
                )
            sizes.setdefault(shape[0], f"{path} of shape {shape}")
    if len(sizes) > 1:
        listing = ", ".join(f"{size} in {example}" for size, example in sizes.items())
        raise ValueError(f"per_member: leaves differ in their number of members: {listing}")
    if not sizes:
        raise ValueError("per_member: expected parameters with leaves, got none")
    (size,) = sizes
    return size
