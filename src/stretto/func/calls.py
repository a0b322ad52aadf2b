"""``functional_call`` and ``stack_module_state``: a module as a function of its arrays, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.migration import class_of
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto.nn.module import Module
from stretto.nn.updating import named_arrays, updates_of
from stretto.tree import stack

__all__ = ["functional_call", "stack_module_state"]

R = TypeVar("R")


@overload
def functional_call(
    module: Callable[..., R],
    parameter_and_buffer_dicts: Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]],
    args: Tree = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
    return_buffers: Literal[False] = False,
) -> R: ...
@overload
def functional_call(
    module: Callable[..., R],
    parameter_and_buffer_dicts: Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]],
    args: Tree = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
    return_buffers: Literal[True],
) -> tuple[R, dict[str, Array]]: ...
def functional_call(
    module: Callable[..., Any],
    parameter_and_buffer_dicts: Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]],
    args: Tree = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
    return_buffers: bool = False,
) -> Tree:
    """Call a module with other arrays in place of its own; the module stays as it is.

    Args:
        module: the module.
        parameter_and_buffer_dicts: a dictionary of arrays by dotted name, or several that share no
            name. What they do not name is the module's own; shapes are the module's, dtypes may
            differ.
        args: a tuple of arguments, or the only one.
        kwargs: keyword arguments.
        tie_weights: let an array that the module holds in two places follow in both when one of
            them is named.
        strict: require every name.
        return_buffers: return the buffers too; without it a module that would update one is
            refused.

    Returns:
        The output; with ``return_buffers``, the output and the buffers, by name, as the call leaves
            them.

    Raises:
        TypeError: ``module`` is not a module.
        ValueError: a name is unknown, missing or given twice, or a shape differs.
        RuntimeError: updates of buffers would be lost.

    As ``torch.func.functional_call``, which ignores unknown names.

    >>> import stretto as st
    >>> from stretto import nn
    >>> from stretto.func import functional_call
    >>> layer = nn.Linear(2, 1)
    >>> arrays = {"weight": st.numpy.array([[1.0, 2.0]]), "bias": st.numpy.zeros(1)}
    >>> functional_call(layer, arrays, st.numpy.array([3.0, 4.0]))
    Array([11.], dtype=float32)
    """
    if not isinstance(module, Module):
        raise TypeError(f"functional_call: expected a module, got {class_of(module)}")
    by_name = _merge(parameter_and_buffer_dicts)
    copy = module.clone()
    here = named_arrays(copy)
    _check_names(type(module).__name__, here, by_name)
    shared: dict[Any, list[str]] = {}
    for name, (owner, attribute, array) in here.items():
        key = id(array) if tie_weights else (id(owner), attribute)
        shared.setdefault(key, []).append(name)
    missing = [
        names[0] for names in shared.values() if strict and not any(n in by_name for n in names)
    ]
    if missing:
        raise ValueError(
            f"functional_call: strict=True, and these names of {type(module).__name__} are not "
            f"given: {', '.join(missing)}"
        )
    for names in shared.values():
        named = [n for n in names if n in by_name]
        if any(by_name[n] is not by_name[named[0]] for n in named):
            raise ValueError(
                f"functional_call: {' and '.join(named)} are one array of the module, but were "
                f"given two; give one of them"
                + (", or pass tie_weights=False" if tie_weights else "")
            )
        for n in names if named else ():
            owner, attribute, old = here[n]
            owner.__dict__[attribute] = _check_shape(by_name[named[0]], old, named[0])
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with updates_of(copy.modules(), kept=return_buffers):
        out = copy(*positional, **(kwargs or {}))
    if not return_buffers:
        return out
    buffers = [here[name][:2] + (name,) for name, _ in module.named_buffers()]
    return out, {name: owner.__dict__[attribute] for owner, attribute, name in buffers}


def _merge(
    dictionaries: Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]],
) -> dict[str, Any]:
    """Return one dictionary from one or several."""
    parts = (dictionaries,) if isinstance(dictionaries, Mapping) else dictionaries
    if not isinstance(parts, (tuple, list)) or not all(isinstance(x, Mapping) for x in parts):
        raise TypeError(
            f"functional_call: expected a dictionary of arrays by name, or a tuple of such; got "
            f"{type(dictionaries).__name__}"
        )
    merged: dict[str, Any] = {}
    for one in parts:
        twice = [name for name in one if name in merged]
        if twice:
            raise ValueError(
                f"functional_call: {', '.join(twice)} is in two dictionaries; give it in one"
            )
        merged.update(one)
    return merged


def _check_names(kind: str, here: Iterable[str], names: Iterable[str]) -> None:
    unknown = [str(name) for name in names if name not in here]
    if unknown:
        raise ValueError(
            f"functional_call: {kind} has no parameter or buffer {', '.join(unknown)}; it has "
            f"{', '.join(here) or 'none'}"
        )


def _check_shape(array: ArrayLike, old: Array, name: str) -> Array:
    """Return the array, checked to have the shape of the module's own."""
    value = as_value(array, "functional_call", name)
    if value.shape != old.shape:
        stacked = value.shape[1:] == old.shape
        raise ValueError(
            f"functional_call: {name} must have shape {old.shape}, got {value.type}"
            + ("; to run many modules at once, map this call by func.vmap" if stacked else "")
        )
    return value


def stack_module_state(models: Iterable[Module]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Stack the parameters, and the buffers, of modules of one kind.

    An array that a module holds in two places is given once, by its first name.

    Args:
        models: modules of one class, mode and settings.

    Returns:
        The parameters and the buffers: by dotted name, arrays of shape (members, ...).

    Raises:
        TypeError: something is not a module.
        ValueError: there are none; or one differs from the first in class, mode, settings, names or
            shapes, with its number.

    As ``torch.func.stack_module_state``.

    >>> from stretto import nn
    >>> from stretto.func import stack_module_state
    >>> params, buffers = stack_module_state([nn.Linear(3, 2) for _ in range(5)])
    >>> params["weight"].shape, buffers
    ((5, 2, 3), {})
    """
    members = list(models)
    if not members:
        raise ValueError("stack_module_state: expected at least one module, got none")
    for i, member in enumerate(members):
        if not isinstance(member, Module):
            raise TypeError(
                f"stack_module_state: member {i} must be a module, got {class_of(member)}"
            )
    stacked = named_arrays(stack(members))
    names = [[n for n, _ in m.named_parameters()] for m in members]
    buffers = [[n for n, _ in m.named_buffers()] for m in members]
    for i in range(1, len(members)):
        if names[i] != names[0] or buffers[i] != buffers[0]:
            raise ValueError(
                f"stack_module_state: member {i} holds one array at two places where member 0 has "
                f"two, or the other way round"
            )
    return {n: stacked[n][2] for n in names[0]}, {n: stacked[n][2] for n in buffers[0]}
