"""The user's loss of one member: its value, the metrics beside it, and the buffers it leaves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from stretto._engine.core import tree
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto.ensemble.groups import Group, call_module
from stretto.nn.module import Module
from stretto.nn.updating import updates_of
from stretto.random.streams import keys

COUNT = "number of steps"
"""What sums of metrics call their number."""


def arguments_of(batch: Tree) -> tuple[Any, ...]:
    """What a batch gives to the loss: the parts of a tuple or list one by one, else itself."""
    return tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)


def named_of(f: Callable[..., Any], extra: Mapping[str, Any], arguments: int) -> dict[str, Any]:
    """Those of the members' own values that a metric takes by name, beside so many arguments.

    A loss gets all; a metric may be anybody's function, and gets what its signature names.
    """
    if not extra:
        return {}
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return {}
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    taken = {p.name for p in placed[:arguments]}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return {n: x for n, x in extra.items() if n not in taken}
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return {n: x for n, x in extra.items() if n in named - taken}


def loss_of(
    loss: Callable[..., Any],
    group: Group,
    by_name: Mapping[str, Any],
    batch: Tree,
    extra: Mapping[str, Any],
    key: Key,
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The loss of one member, the metrics beside it, and all its arrays after the call, by name.

    Layers draw from ``key``, and buffers may be updated. Raises ``ValueError`` where the loss is no
    scalar, or a buffer that members share would be updated.
    """
    arrays = [by_name[n] for n in group.names]
    member = group.of(arrays)
    with (
        keys(key),
        updates_of(_modules(member if group.function is call_module else member.params)),
    ):
        out = loss(member, *arguments_of(batch), **extra)
    value, metrics = out, {}
    if isinstance(out, tuple) and len(out) == 2 and isinstance(out[1], dict):
        value, metrics = out
    caller = f"fit: {name_of(loss)}"
    value = scalar(value, caller, "gives", real=True)
    for name in {"loss", COUNT} & metrics.keys():
        raise ValueError(f"{caller} gives a metric called {name!r}, which is a name of our own")
    metrics = {n: scalar(x, caller, f"gives the metric {n!r} as") for n, x in metrics.items()}
    after = dict(zip(group.names, group.leaves_of(member), strict=True))
    for name, shared, before in zip(group.names, group.shared, arrays, strict=True):
        if shared and after[name] is not before:
            raise ValueError(
                f"{caller} updates {name}, which the members share, each in its own way; leave "
                f"it out of shared=, or put that layer in evaluation mode"
            )
    return value, metrics, after


def scalar(x: ArrayLike, caller: str, gives: str, real: bool = False) -> Array:
    """The value, which must be one number for a member."""
    if isinstance(x, (tuple, list, dict)) or x is None:
        raise ValueError(
            f"{caller} {gives} a {type(x).__name__}; expected a scalar for each member, or a "
            f"pair of a scalar and a dictionary of metrics"
        )
    value = as_value(x, caller, "the result")
    if value.ndim:
        raise ValueError(
            f"{caller} {gives} {value.type} for each member, expected a scalar: take the mean over "
            f"the batch"
        )
    if real and kind_of(value.dtype) != "float":
        raise ValueError(f"{caller} {gives} {value.type}, expected a float, which has a gradient")
    return value


def _modules(member: Tree) -> list[Module]:
    """All modules in a member."""
    nodes = tree.leaves(member, lambda x: isinstance(x, Module))
    return [m for node in nodes if isinstance(node, Module) for m in node.modules()]


def in_mode(group: Group, training: bool) -> Tree:
    """The structure of a member with all its modules in train mode, or in evaluation mode."""
    member = tree.unflatten(group.structure, range(group.structure.num_leaves))
    for module in _modules(member):
        module.training = training
    return tree.structure(member)


def trains(group: Group) -> bool:
    """Whether all modules of a member can be in train mode; some that were imported cannot."""
    modules = _modules(tree.unflatten(group.structure, group.names))
    return not [0 for m in modules if getattr(m, "training_program", m) is None]


def modes_of(group: Group) -> list[bool]:
    """Whether each module of a member is in train mode."""
    return [m.training for m in _modules(tree.unflatten(group.structure, group.names))]
