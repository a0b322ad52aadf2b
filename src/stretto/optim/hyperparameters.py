"""``inject_hyperparams``: the numbers of a transformation become arrays in its state."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

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
    Schedule,
    as_transformation,
)
from stretto.optim.leaves import first_count, safe_increment

__all__ = ["InjectStatefulHyperparamsState", "ScheduleState", "inject_hyperparams"]


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
    """A hyperparameter as an array that is not weak: Python numbers in ``dtype``."""
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
