"""``func.vmap``: ``vmap`` with torch.func's arguments, and a choice for random draws inside it.

The mapping itself is ``api/vectorize``; here a stream of keys is opened for each example
(``random/streams``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

import numpy as np

from stretto._engine.api import vectorize
from stretto._engine.api.argument_leaves import leaf_names, wraps
from stretto._engine.core import tree
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Tracer, as_value, state
from stretto._engine.core.typing import Array, Key, Tree
from stretto._engine.higher_order.chunks import inner_axes, positive
from stretto._engine.ops.iota import iota
from stretto.random import streams
from stretto.random.keys import fold_in

__all__ = ["vmap"]

P = ParamSpec("P")
R = TypeVar("R")

_CHOICES = ("error", "different", "same")
_CHOOSE = (
    "func.vmap was not told whether examples share them: pass randomness='different' (numbers of "
    "its own for each example) or randomness='same' (the same for all)"
)


class _Shared:
    """A node without leaves: what is handed to every example as it is."""

    __slots__ = ("value",)

    def __init__(self, value: Tree) -> None:
        self.value = value


tree.register_pytree_node(_Shared, lambda x: ((), x.value), lambda value, _: value)


def vmap(
    func: Callable[P, R],
    in_dims: Tree = 0,
    out_dims: Tree = 0,
    randomness: str = "error",
    *,
    chunk_size: int | str | None = None,
) -> Callable[P, R]:
    """Map ``func`` over an axis of its positional arguments, all examples at once.

    Keyword arguments are handed on as they are.

    Args:
        func: a function of one example.
        in_dims: an axis for all arguments, or a tuple with an entry for each: an axis (negative
            counts from the end), ``None`` for what all examples get as it is, whatever it is, or a
            tree of these.
        out_dims: likewise, where the axis goes in the results.
        randomness: what draws from the ambient stream do inside: ``"error"`` refuses them; with
            ``"different"`` and ``"same"`` one key is drawn from the stream in force at the call,
            and each example has a stream of its own from it, or all have the same. Draws from keys
            that ``func`` is handed are not concerned.
        chunk_size: examples at a time, with the same results, to save memory; or ``"auto"``, as for
            ``st.vmap``.

    Returns:
        The mapped function.

    Raises:
        ValueError: sizes differ, an axis is not there, entries of ``in_dims`` are not as many as
            arguments, or ``randomness`` is none of these.
        TypeError: something is not an axis.
        RuntimeError: there are draws under ``"error"``.

    As ``torch.func.vmap``.

    >>> import stretto as st, stretto.numpy as snp
    >>> from stretto import nn
    >>> drop = nn.Dropout(0.5)
    >>> st.random.manual_seed(0)
    >>> same = st.func.vmap(drop, randomness="same")(snp.ones((2, 5)))
    >>> bool((same[0] == same[1]).all())
    True
    """
    if isinstance(in_dims, bool) or not isinstance(in_dims, (int, tuple)):
        raise TypeError(
            f"func.vmap: in_dims must be an int, or a tuple with an entry for each positional "
            f"argument; got {in_dims!r}"
        )
    if randomness not in _CHOICES:
        raise ValueError(f"func.vmap: randomness must be one of {_CHOICES}, got {randomness!r}")
    if chunk_size not in (None, "auto"):
        chunk_size = positive(chunk_size, "func.vmap: chunk_size")
    one_out = isinstance(out_dims, tuple) and len(out_dims) == 1

    @wraps(func, "vmap")
    def vmap_func(*args: Any, **kwargs: Any) -> Tree:
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        if len(dims) != len(args):
            raise ValueError(
                f"func.vmap: in_dims has {len(dims)} entries, but {name_of(func)} was called with "
                f"{len(args)} positional arguments"
            )
        examples, sizes = _examples(func, dims, args)
        why = streams.refusal() if randomness != "error" else _CHOOSE
        key = None if why else streams.next_key("func.vmap")
        # Where sizes differ, `vmap` says so of the user's own arguments.
        differs = randomness == "different" and len(sizes) == 1
        index = iota(np.uint32, sizes.pop()) if differs else None
        is_single = False

        def one(*examples: Any) -> Tree:
            nonlocal is_single
            with _stream(key, examples[-1], why):
                out = func(*examples[:-1], **kwargs)
            is_single = one_out and not isinstance(out, (tuple, list))
            out = (out,) if is_single else out
            _check_out_dims(out_dims, out)
            return out

        one.__name__ = name_of(func)
        one.__wrapped__ = func  # type: ignore[attr-defined]
        mapped = vectorize.vmap(one, (*dims, 0), out_dims, chunk_size=chunk_size)
        out = mapped(*examples, index)
        return out[0] if is_single else out

    return vmap_func


def _stream(key: Key | None, index: Array | None, why: str) -> AbstractContextManager[None]:
    """Return the stream that an example draws from."""
    if why or key is None:
        return streams.refusing(why)
    return streams.keys(key if index is None else fold_in(key, index))


def _examples(func: Callable[..., Any], dims: Tree, args: Sequence[Any]) -> tuple[Any, set[int]]:
    """Return the arguments, with what is not mapped set apart; and the sizes of mapped axes."""
    leaves, structure = tree.flatten(tuple(args))
    axes = tree.prefix_leaves(dims, tuple(args), "func.vmap", "in_dims")
    out: list[Any] = []
    sizes: set[int] = set()
    inner = inner_axes(structure, leaves)
    for i, (x, axis, n) in enumerate(zip(leaves, axes, inner, strict=True)):
        if axis is None:
            out.append(_Shared(as_value(x) if isinstance(x, np.ndarray) else x))
            continue
        path = leaf_names(func, args)[i] if _suspect(x, axis, n) else ""
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise TypeError(
                f"func.vmap: an entry of in_dims must be an int or None, got {axis!r} for {path}"
            )
        value = as_value(x, "func.vmap", path)
        ndim = value.ndim - n
        if not -ndim <= axis < ndim:
            raise ValueError(
                f"func.vmap: in_dims maps axis {axis} of {path}, which has type {value.type}; for "
                f"what all examples share the entry is None"
            )
        out.append(value)
        sizes.add(value.shape[axis % ndim])
    if not sizes:
        raise ValueError("func.vmap: nothing is mapped: in_dims gives no array an axis")
    return tree.unflatten(structure, out), sizes


def _suspect(x: Tree, axis: int | None, inner: int) -> bool:
    """Say whether there may be something to say about this leaf, so that its name is needed."""
    ndim = getattr(x, "ndim", 0) - inner
    return type(axis) is not int or not -ndim <= axis < ndim


def _check_out_dims(out_dims: Tree, out: Tree) -> None:
    """Raise for what is not an axis of a result, seen as one example."""
    dims = tree.prefix_leaves(out_dims, out, "func.vmap", "out_dims")
    leaves, structure = tree.flatten(out)
    for x, axis, n in zip(leaves, dims, inner_axes(structure, leaves), strict=True):
        x = as_value(x, "func.vmap", "the result")
        ndim = x.ndim - n
        if axis is None:
            is_mapped_here = isinstance(x, Tracer) and x.interpreter is state.interpreter
            if is_mapped_here and x.concrete() is None:
                raise ValueError(
                    f"func.vmap: out_dims is None for a result that differs between examples (one "
                    f"is {x.type}); give it an axis"
                )
        elif isinstance(axis, bool) or not isinstance(axis, int):
            raise TypeError(f"func.vmap: an entry of out_dims must be an int or None, got {axis!r}")
        elif not -ndim - 1 <= axis <= ndim:
            raise ValueError(
                f"func.vmap: out_dims places axis {axis} in a result of {ndim + 1} axes"
            )
