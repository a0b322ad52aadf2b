"""Transformations made of others: in a row, for some leaves only, for each member alone.

``masked`` transforms some leaves only. The others are replaced by ``MaskedNode()``, a node without
leaves, so that the transformation and its state do not see them. ``inject_hyperparams`` makes
arrays of the numbers of a transformation, in its state; ``per_member`` transforms each member of a
stacked ensemble as if it were alone, with hyperparameters of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.errors import refuse_unknown
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.lazy import brief
from stretto._engine.core.types import default_dtype, is_inexact
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Tree
from stretto._engine.ops.convert import convert
from stretto.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Mask,
    MaskedNode,
    Schedule,
    as_transformation,
    caller_of,
    first_count,
    making,
    safe_increment,
    transformation,
)

__all__ = ["InjectStatefulHyperparamsState", "MaskedState", "PartitionState", "ScheduleState",
           "chain", "inject_hyperparams", "masked", "multi_transform", "named_chain",
           "per_member"]  # fmt: skip


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
    """Say whether each leaf is let through."""
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


@brief
class ScheduleState(NamedTuple):
    """``count``, how often a schedule was asked, int32."""

    count: Array


@brief
class InjectStatefulHyperparamsState(NamedTuple):
    """The hyperparameters, and the state of the transformation that they belong to.

    ``count`` is the updates done, int32. ``hyperparams`` is a dictionary by name: the values of the
    last update where a schedule gives them, and otherwise those of the next. ``hyperparams_states``
    holds the counts of schedules, ``inner_state`` the state of the transformation.
    """

    count: Array
    hyperparams: dict[str, Array]
    hyperparams_states: dict[str, ScheduleState]
    inner_state: Tree


def inject_hyperparams(
    inner_factory: Callable[..., GradientTransformation],
    static_args: str | Iterable[str] = (),
    hyperparam_dtype: DTypeLike | None = None,
) -> Callable[..., GradientTransformationExtraArgs]:
    """Make an optimizer whose hyperparameters are arrays of its state, to read, change and vmap.

    Numbers and arrays among the arguments of ``inner_factory``, defaults too, become arrays of rank
    0; schedules are called at each update. Booleans, types, ``None``, strings, trees, integers
    where the default is one, masks (arguments whose names end in ``mask``), and what
    ``static_args`` names stay static, as they are.

    Args:
        inner_factory: a function that makes a transformation, such as ``adamw``.
        static_args: names of arguments that stay as they are.
        hyperparam_dtype: the dtype of those given as Python numbers; None is the default float.
            Arrays keep their dtypes.

    Returns:
        A function with the arguments of ``inner_factory``, whose transformation has the state
        ``InjectStatefulHyperparamsState``.

    Raises:
        ValueError: ``static_args`` names something that is not an argument.
        TypeError: an argument taken for a schedule does not return one number.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = inject_hyperparams(st.optim.sgd)(learning_rate=0.5)
    >>> state = tx.init({"w": snp.zeros(1)})
    >>> state.hyperparams
    {'learning_rate': Array(0.5, dtype=float32)}
    >>> state.hyperparams["learning_rate"] = snp.float32(0.1)
    >>> tx.update({"w": snp.ones(1)}, state)[0]
    {'w': Array([-0.1], dtype=float32)}
    """
    names = {static_args} if isinstance(static_args, str) else set(static_args)
    signature = inspect.signature(inner_factory)
    caller = f"inject_hyperparams({name_of(inner_factory)})"
    if names - set(signature.parameters):
        raise ValueError(
            f"{caller}: static_args names {sorted(names - set(signature.parameters))}; there are "
            f"{list(signature.parameters)}"
        )

    def is_static(name: str, x: object) -> bool:
        parameter = signature.parameters.get(name)
        default = None if parameter is None else parameter.default
        counts = type(default) is int and type(x) is int
        if name in names or name.endswith("mask") or counts or isinstance(x, (bool, type)):
            return True
        return not (callable(x) or isinstance(x, (int, float, np.number, np.ndarray, Value)))

    def make(*args: Any, **kwargs: Any) -> GradientTransformationExtraArgs:
        refuse_unknown(caller, "hyperparameter", kwargs, inner_factory, name_of(inner_factory))
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments: dict[str, Any] = {}
        for name, x in bound.arguments.items():
            kind = signature.parameters[name].kind
            arguments |= x if kind is inspect.Parameter.VAR_KEYWORD else {name: x}
        static = {name: x for name, x in arguments.items() if is_static(name, x)}
        schedules: dict[str, Schedule] = {
            n: x for n, x in arguments.items() if n not in static and callable(x)
        }
        numbers = {n: x for n, x in arguments.items() if n not in static and n not in schedules}

        def scheduled(states: dict[str, ScheduleState]) -> dict[str, Array]:
            return {
                name: _scalar(f(states[name].count), caller, name, hyperparam_dtype, f)
                for name, f in schedules.items()
            }

        def inner(hyperparams: Mapping[str, ArrayLike]) -> GradientTransformationExtraArgs:
            return as_transformation(inner_factory(**static, **hyperparams), caller)

        first = {name: ScheduleState(first_count()) for name in schedules}
        inner(numbers | scheduled(first))  # so that bad arguments are refused at once

        def init(params: Tree) -> InjectStatefulHyperparamsState:
            states = {name: ScheduleState(first_count()) for name in schedules}
            own = {n: _scalar(x, caller, n, hyperparam_dtype) for n, x in numbers.items()}
            hyperparams = own | scheduled(states)
            inner_state = inner(hyperparams).init(params)
            return InjectStatefulHyperparamsState(first_count(), hyperparams, states, inner_state)

        def update(
            updates: Tree, state: InjectStatefulHyperparamsState, params: Tree = None, **extra: Any
        ) -> tuple[Tree, InjectStatefulHyperparamsState]:
            own = {n: _scalar(state.hyperparams[n], caller, n, hyperparam_dtype) for n in numbers}
            hyperparams = own | scheduled(state.hyperparams_states)
            updates, inner_state = inner(hyperparams).update(
                updates, state.inner_state, params, **extra
            )
            return updates, InjectStatefulHyperparamsState(
                safe_increment(state.count),
                hyperparams,
                {
                    n: ScheduleState(safe_increment(s.count))
                    for n, s in state.hyperparams_states.items()
                },
                inner_state,
            )

        return GradientTransformationExtraArgs(init, update)

    return make


def _scalar(
    x: ArrayLike, caller: str, name: str, dtype: DTypeLike | None, schedule: Schedule | None = None
) -> Array:
    """Return a hyperparameter as an array that is not weak: Python numbers in ``dtype``."""
    try:
        value = as_value(x, caller, name)
    except TypeError:
        value = None
    if value is None or (schedule is not None and value.ndim):
        raise TypeError(
            f"{caller}: {name} was taken for a schedule, but {name}(count) gave "
            f"{x if value is None else value.type}, not one number; if it is not a schedule, name "
            f"it in static_args"
        )
    if not value.weak_type and not isinstance(x, (int, float)):
        return value
    target = default_dtype("float") if dtype is None else np.dtype(dtype)
    return convert(value, target if is_inexact(target) else value.dtype)


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
    """Return the update of all members."""

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
    """Make ``per_member`` of a function, with hyperparameters in the state."""
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
    """Count the members along axis 0 of all leaves; raise ``ValueError`` where they disagree."""
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
