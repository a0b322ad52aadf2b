"""Transformations made of others: in a row, for some leaves only, for each member alone.

``masked`` transforms some leaves only. The others are replaced by ``MaskedNode()``, a node without
leaves, so that the transformation and its state do not see them. ``inject_hyperparams`` makes
arrays of the numbers of a transformation, in its state; ``per_member`` transforms each member of a
stacked ensemble as if it were alone, with hyperparameters of its own. ``MultiSteps`` makes one
update of several batches; ``apply_if_finite`` skips steps whose gradients are infinite or NaN.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.graph import eval_shape
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.errors import refuse_unknown
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.lazy import brief
from stretto._engine.core.types import default_dtype, is_inexact
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, Tree
from stretto._engine.higher_order.cond import cond
from stretto._engine.ops.convert import convert
from stretto.numpy.arguments import weakly_inexact
from stretto.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Mask,
    MaskedNode,
    Schedule,
    VariationalTransformation,
    all_finite,
    as_transformation,
    caller_of,
    check,
    check_dtype,
    choose_tree,
    fill_like,
    first_count,
    for_member,
    leafwise,
    making,
    numbers_of_members,
    safe_increment,
    transformation,
)
from stretto.random.key_arrays import KeyArray
from stretto.random.keys import key_data


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
        made = inner(numbers | scheduled(first))  # so that bad arguments are refused at once

        def init(params: Tree) -> InjectStatefulHyperparamsState:
            states = {name: ScheduleState(first_count()) for name in schedules}
            own = {n: _scalar(x, caller, n, hyperparam_dtype) for n, x in numbers.items()}
            hyperparams = own | scheduled(states)
            inner_state = inner(hyperparams).init(params)
            return InjectStatefulHyperparamsState(first_count(), hyperparams, states, inner_state)

        def of_state(state: InjectStatefulHyperparamsState) -> dict[str, Array]:
            own = {n: _scalar(state.hyperparams[n], caller, n, hyperparam_dtype) for n in numbers}
            return own | scheduled(state.hyperparams_states)

        def update(
            updates: Tree, state: InjectStatefulHyperparamsState, params: Tree = None, **extra: Any
        ) -> tuple[Tree, InjectStatefulHyperparamsState]:
            hyperparams = of_state(state)
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

        def sample(state: InjectStatefulHyperparamsState, params: Tree, key: Key) -> Tree:
            tx: Any = inner(of_state(state))
            return tx.sample(state.inner_state, params, key)

        if isinstance(made, VariationalTransformation):
            return VariationalTransformation(init, update, sample)
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
    Keyword arguments of ``update`` have one entry a member, too. Where ``inner`` draws random
    numbers from a key, member ``i`` draws from ``fold_in(key, i)``; with ``key=keys`` from its own.

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
        size = _members({"params": params})
        return vmap(lambda number, params: for_member(number, within.init, params))(
            numbers_of_members(size), params
        )

    return _with_sample(within, init)


def _with_sample(
    within: GradientTransformationExtraArgs, init: Callable[[Tree], Tree]
) -> GradientTransformationExtraArgs:
    """Return the transformation of all members; it draws weights if that of one does."""
    if not isinstance(within, VariationalTransformation):
        return GradientTransformationExtraArgs(init, _update_of(within))
    return VariationalTransformation(init, _update_of(within), vmap(within.sample))


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
        elif isinstance(x, KeyArray) and x.ndim:
            own[name] = key_data(cast("Key", x))
        elif isinstance(x, (Value, np.ndarray)) and x.ndim:
            own[name] = as_value(x, caller, name)
    shared = {name: x for name, x in hyperparams.items() if name not in own}
    names = set(inspect.signature(factory).parameters)
    make = inject_hyperparams(factory, static_args=names - set(own))

    def init(params: Tree) -> Tree:
        size = _members({"params": params} | own)

        def of_one(number: Array | None, params: Tree, own: Tree) -> Tree:
            return for_member(number, make(**shared, **own).init, params)

        numbers: Any = None if "key" in own else numbers_of_members(size)
        return vmap(of_one)(numbers, params, own)

    # An update takes its values from the state; those of member 0 only stand in for a number.
    stand_ins = {name: x[0] for name, x in own.items()}
    of_one = make(**shared, **stand_ins)
    for name, x in hyperparams.items():
        if name in own and not isinstance(x, (Value, KeyArray)) and own[name].ndim == 1:
            for number in np.asarray(x).tolist():  # so that one out of range is refused at once
                factory(**shared, **stand_ins | {name: number})
    return _with_sample(of_one, init)


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


_SkipRule = Callable[[Tree, Array, Tree], tuple[Array, Tree]]
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
        should_skip_update_fn: _SkipRule | None = None,
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
