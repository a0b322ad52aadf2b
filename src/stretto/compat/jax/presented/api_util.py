"""``jax.api_util``: functions of flat arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from stretto.compat.jax import trees
from stretto.compat.jax.linear_util import DebugInfo, transformation_with_aux2
from stretto.compat.jax.presented.util import safe_map, safe_zip

__all__ = [
    "argnums_partial",
    "debug_info",
    "donation_vector",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "infer_argnums_and_argnames",
    "safe_map",
    "safe_zip",
    "shaped_abstractify",
]


def _flatten_fun(call: Callable[..., Any], store: Any, in_tree: Any, *args: Any) -> list[Any]:
    positional, named = in_tree.unflatten(args)
    flat, definition = trees.flatten(call(*positional, **named))
    store.store(definition)
    return flat


def _flatten_fun_nokwargs(
    call: Callable[..., Any], store: Any, in_tree: Any, *args: Any
) -> list[Any]:
    flat, definition = trees.flatten(call(*in_tree.unflatten(args)))
    store.store(definition)
    return flat


flatten_fun = transformation_with_aux2(_flatten_fun)
flatten_fun_nokwargs = transformation_with_aux2(_flatten_fun_nokwargs)


def debug_info(
    traced_for: str, fun: Callable[..., Any], args: Any = (), kwargs: Any = None, **more: Any
) -> DebugInfo:
    """What a function is called in messages."""
    del args, kwargs, more
    return DebugInfo(traced_for, getattr(fun, "__name__", "<unnamed function>"))


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: Any, argnames: Any
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and the names of arguments, where one of the two is given."""
    if argnums is None and argnames is None:
        return (), ()
    numbers = () if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = (
        () if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    )
    if argnums is not None and argnames is not None:
        return numbers, names
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = list(sig.parameters.values())
    if argnums is None:
        found = [i for i, p in enumerate(parameters) if p.kind is kinds and p.name in names]
        return tuple(found), names
    count = len(parameters)
    chosen = [i % count for i in numbers if -count <= i < count]
    return numbers, tuple([parameters[i].name for i in chosen if parameters[i].kind is kinds])


def shaped_abstractify(x: Any) -> Any:
    """The abstract value."""
    from stretto.compat.jax.avals import get_aval  # noqa: PLC0415

    return get_aval(x)


def flatten_axes(name: str, treedef: Any, axis_tree: Any, **options: Any) -> list[Any]:
    """The axis for each leaf of a structure, of a prefix of it."""
    del options
    whole = treedef.unflatten([object()] * treedef.num_leaves)
    out: list[Any] = []
    flat, prefix = trees.flatten(axis_tree, lambda x: x is None)
    try:
        parts = prefix.flatten_up_to(whole)
    except ValueError as error:
        raise ValueError(f"{name}: must be a prefix of {treedef}: {error}") from None
    for axis, part in zip(flat, parts):
        out.extend([axis] * len(trees.leaves(part)))
    return out


def argnums_partial(f: Any, dyn_argnums: Any, args: Any, **options: Any) -> Any:
    """A function of some of its arguments, with the others fixed; and these arguments."""
    del options
    places = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    places = tuple([i % len(args) for i in places])

    def partial(call: Callable[..., Any], *given: Any, **kwargs: Any) -> Any:
        whole = list(args)
        for place, x in zip(places, given):
            whole[place] = x
        return call(*whole, **kwargs)

    from stretto.compat.jax.linear_util import transformation2  # noqa: PLC0415

    return transformation2(partial)(f), [args[i] for i in places]


def donation_vector(donate_argnums: Any, donate_argnames: Any, in_tree: Any) -> tuple[bool, ...]:
    """Whether each leaf is donated."""
    del donate_argnames
    args, _ = in_tree.unflatten([0] * in_tree.num_leaves)
    return tuple([i in donate_argnums for i, arg in enumerate(args) for _ in trees.leaves(arg)])


def fun_signature(fun: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function, if it has one."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None
