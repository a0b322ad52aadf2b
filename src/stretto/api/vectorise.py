"""``vmap``: a function of one example becomes a function of many.

Layer 7 (api).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto.api.arguments import (
    argument_names,
    as_values,
    leaf_names,
    name_of,
    values_of_tree,
    without_float0,
    wraps,
)
from stretto.core import tree
from stretto.transforms.vmap import to_axis, vmap_flat

__all__ = ["vmap"]


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
) -> Callable[..., Any]:
    """Map ``fun`` over an axis of its arguments, all examples at once.

    Parameters: ``in_axes`` says along which axis the examples lie: an int (negative counts from the
    end), ``None`` for what all examples share, or a tree of these that is a prefix of the tuple of
    positional arguments (a list will do for the tuple). ``out_axes`` likewise says where the axis
    goes in the results; ``None`` demands a result that is the same for all. Keyword arguments are
    mapped along axis 0. ``axis_size`` is needed only where nothing is mapped.

    Raises ``ValueError`` where the mapped sizes differ, with an example of each, or an axis is
    out of bounds.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(snp.dot, in_axes=(0, None))(snp.ones((2, 3)), snp.arange(3.0))
    Array([3., 3.], dtype=float32)
    """
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, (int, tuple))):
        raise TypeError(
            f"vmap: in_axes must be an int, None, or a tuple with an entry for each positional "
            f"argument; got {type(in_axes).__name__}"
        )

    name = name_of(fun)

    @wraps(fun, "vmap")
    def vmap_fun(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                f"vmap: in_axes has {len(in_axes)} entries, but {name} was called with "
                f"{len(args)} positional arguments"
            )
        leaves, structure = tree.flatten((args, kwargs))
        values = as_values(leaves, f"vmap of {name}", lambda: leaf_names(fun, args, kwargs))
        axes = tree.prefix_leaves(in_axes, args, "vmap", "in_axes")
        axes += [0] * (len(values) - len(axes))
        paths = leaf_names(fun, args, kwargs)
        axes = [_in_axis(a, v, p) for a, v, p in zip(axes, values, paths, strict=True)]
        size = _common_size(values, axes, paths, axis_size)
        if size is None:
            raise ValueError(_different_sizes(values, axes, paths, axis_size, fun, args))
        result: Any = None
        out_structure: Any = None

        def flat(*examples: Any) -> list[Any]:
            nonlocal result, out_structure
            positional, named = tree.unflatten(structure, examples)
            result = without_float0(fun(*positional, **named), (size,))
            outs, out_structure = values_of_tree(result, name, "the result")
            return outs

        outs, found = vmap_flat(flat, size, values, axes)
        wanted = tree.prefix_leaves(out_axes, result, "vmap", "out_axes")
        placed = [
            to_axis(o, size, a, _out_axis(w, o, a))
            for o, a, w in zip(outs, found, wanted, strict=True)
        ]
        return tree.unflatten(out_structure, placed)

    return vmap_fun


def _in_axis(axis: Any, value: Any, path: str) -> int | None:
    if axis is None:
        return None
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(
            f"vmap: an entry of in_axes must be an int or None, got {axis!r} for {path}"
        )
    if not -value.ndim <= axis < value.ndim:
        raise ValueError(
            f"vmap: in_axes maps axis {axis} of {path}, which has type {value.type}: it has "
            f"{value.ndim} axes"
        )
    return axis % value.ndim


def _out_axis(axis: Any, out: Any, mapped: int | None) -> int | None:
    if axis is None:
        if mapped is not None:
            raise ValueError(
                f"vmap: out_axes is None for a result that differs between examples ({out.type} in "
                f"all); give it an axis"
            )
        return None
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(f"vmap: an entry of out_axes must be an int or None, got {axis!r}")
    ndim = out.ndim + (mapped is None)
    if not -ndim <= axis < ndim:
        raise ValueError(f"vmap: out_axes places axis {axis} in a result of {ndim} axes")
    return axis % ndim


def _common_size(
    values: Sequence[Any], axes: Sequence[int | None], paths: Sequence[str], given: int | None
) -> int | None:
    """The one size of all mapped axes; ``None`` where they differ."""
    sizes = {v.shape[a] for v, a in zip(values, axes, strict=True) if a is not None}
    if given is not None:
        sizes.add(given)
    if not sizes:
        raise ValueError("vmap: nothing is mapped: give in_axes an axis, or pass axis_size")
    return sizes.pop() if len(sizes) == 1 else None


def _different_sizes(
    values: Sequence[Any],
    axes: Sequence[int | None],
    paths: Sequence[str],
    given: int | None,
    fun: Callable[..., Any],
    args: Sequence[Any],
) -> str:
    """What to say: an example of each size, and to stack what is a list of trees."""
    by_size: dict[int, list[str]] = {}
    for v, a, p in zip(values, axes, paths, strict=True):
        if a is not None:
            by_size.setdefault(v.shape[a], []).append(f"{p}, of type {v.type}, along axis {a}")
    lines = ["vmap got inconsistent sizes for array axes to be mapped:"]
    for size, examples in by_size.items():
        count = len(examples)
        leaves = "1 leaf has" if count == 1 else f"{count} leaves have"
        lines.append(f"  * {leaves} size {size}, for example {examples[0]}")
    if given is not None:
        lines.append(f"  * axis_size is {given}")
    for name, arg in zip(argument_names(fun, len(args)), args, strict=True):
        if isinstance(arg, (list, tuple)) and len(arg) > 1:
            first = tree.structure(arg[0])
            if first.num_leaves and all(tree.structure(x) == first for x in arg[1:]):
                lines.append(
                    f"The argument {name} is a {type(arg).__name__} of {len(arg)} trees of one "
                    f"structure: to map over them, stack them first: stretto.stack({name})"
                )
    return "\n".join(lines)
