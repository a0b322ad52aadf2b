"""Functions of one example over many: ``vmap``, and the loops ``scan`` and ``map``.

Here the axes of trees of arguments and results are worked out and checked.
``passes/formulations/mapped`` decides how ``vmap`` maps the function: at once by ``autodiff/vmap``,
in chunks by ``higher_order/loops``, or planned when it is lowered.

The loops go over arrays (``higher_order/scan`` and ``higher_order/loops``) or over arrays of
different lengths (``over_ragged``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from stretto._engine.api import argument_leaves, varying_sizes
from stretto._engine.api.varying_sizes.sizes import holds_ragged
from stretto._engine.autodiff.vmap import AxisSize, to_axis
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary, bounded
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Value, is_array_like
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import is_float0
from stretto._engine.higher_order import loops
from stretto._engine.higher_order import scan as loop
from stretto._engine.higher_order.loops import in_axis, inner_axes, out_axis, positive
from stretto._engine.higher_order.refs import Parts, Ref, read_refs
from stretto._engine.passes.formulations.mapped import map_members

P = ParamSpec("P")
R = TypeVar("R")


@bounded
def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    *,
    chunk_size: int | str | None = None,
) -> Callable[P, R]:
    """Map ``fun`` over an axis of its arguments, all examples at once.

    Inside ``jit`` the formulation of products and convolutions is planned (``config.plan``).

    Args:
        fun: a function of one example: of trees of arrays without the axis.
        in_axes: along which axis the examples lie: an int (negative counts from the end), None for
            what all examples share, which need not be arrays (Python's numbers stay what they are),
            or a tree of these that is a prefix of the tuple of positional arguments (a list will do
            for the tuple). Keyword arguments are mapped along axis 0.
        out_axes: likewise where the axis goes in the results; None demands a result that is the
            same for all.
        axis_name: the name, any hashable value, under which collectives such as ``lax.psum`` in
            ``fun`` know the axis; of two vmaps with one name the inner counts.
        axis_size: the number of examples, needed only where nothing is mapped.
        spmd_axis_name: a name or a tuple of them; no effect until arrays are spread over devices.
        chunk_size: how many examples at a time, to bound memory, with the same results;
            derivatives keep the arguments and compute a chunk again when its turn comes.
            ``"auto"`` takes as many as fit in ``config.memory_budget``, by an estimate from the
            program of one example.

    Returns:
        A function of the same arguments, each with the axis, that returns the results of all
        examples along an axis.

    Raises:
        NotImplementedError: over ragged arrays: ``axis_name``, ``chunk_size``, or a result whose
            size varies along another axis than the first.
        TypeError: ``fun`` is not a function, an axis or a size is not an integer, or a name is not
            hashable.
        ValueError: ``axis_size`` is negative, or ``chunk_size`` is not positive or comes with an
            ``axis_name``; or, in a call, the mapped sizes differ, nothing is mapped, an axis is
            out of bounds, or ``in_axes`` has another number of entries.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(snp.dot, in_axes=(0, None))(snp.ones((2, 3)), snp.arange(3.0))
    Array([3., 3.], dtype=float32)
    >>> centred = lambda x: x - st.lax.pmean(x, "batch")
    >>> st.vmap(centred, axis_name="batch")(snp.array([1.0, 2.0, 6.0]))
    Array([-2., -1.,  3.], dtype=float32)
    """
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, (int, tuple))):
        raise TypeError(
            f"vmap: in_axes must be an int, None, or a tuple with an entry for each positional "
            f"argument; got {type(in_axes).__name__}"
        )
    if chunk_size is not None:
        chunk_size = (
            chunk_size if chunk_size == "auto" else positive(chunk_size, "vmap: chunk_size")
        )
        if axis_name is not None:
            raise ValueError(
                f"vmap: chunk_size keeps examples apart, while axis_name={axis_name!r} is for "
                f"combining them; give only one of the two"
            )
    _check_name(axis_name, "axis_name")
    _check_name(spmd_axis_name, "spmd_axis_name")
    if axis_size is not None:
        axis_size = _natural(axis_size)
    name = name_of(fun)
    of_one: Callable[..., Any] = fun

    @argument_leaves.wraps(fun, "vmap")
    def vmap_fun(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                f"vmap: in_axes has {len(in_axes)} entries, but {name} was called with "
                f"{len(args)} positional arguments"
            )
        if holds_ragged((args, kwargs)):
            if chunk_size is not None or axis_name is not None:
                raise NotImplementedError(
                    "vmap: over ragged arrays there are neither chunk_size nor axis_name"
                )
            return varying_sizes.over_ragged.vmap_ragged(
                of_one, name, in_axes, out_axes, args, kwargs
            )
        leaves, structure = tree.flatten((args, kwargs))
        refs: dict[int, Ref] = {}
        if not all([isinstance(x, Value) or _is_array_alone(x) for x in leaves]):
            args, kwargs = tree.unflatten(structure, _hidden(leaves, in_axes, args))
            leaves, structure = tree.flatten((args, kwargs))
            leaves, refs = read_refs(
                leaves, name, lambda: argument_leaves.LeafNames(fun, args, kwargs)
            )
        paths = argument_leaves.LeafNames(fun, args, kwargs)
        values = argument_leaves.as_values(leaves, f"vmap of {name}", lambda: paths)
        axes = _for_leaves(in_axes, args, "in_axes", None if kwargs else len(values))
        axes = _checked(axes, values, inner_axes(structure, values), paths)
        size = _common_size(values, axes, axis_size)
        if size is None:
            raise ValueError(_different_sizes(values, axes, paths, axis_size, fun, args))
        result: Any = None
        out_structure: Any = None

        def flat(*examples: Any) -> list[Any]:
            nonlocal result, out_structure
            result, given = parts(*examples)
            outs, out_structure = tree.flatten(result)
            if argument_leaves.holds_float0(outs):
                result = argument_leaves.without_float0(result, (size,))
                outs, out_structure = tree.flatten(result)
            return [
                *argument_leaves.as_values(outs, name, lambda: tree.paths(result, "the result")),
                *given,
            ]

        parts = Parts(_of_leaves(of_one, structure), dict(argument_leaves.kinds_of(refs)))
        flat.__name__ = name
        named_size = size if axis_name is None else AxisSize(size, axis_name)
        outs, mapped = map_members(flat, named_size, chunk_size or size, values, axes, paths)
        outs, mapped = _without_given(outs, mapped, parts.changed, refs, axes, size)
        wanted = _for_leaves(out_axes, result, "out_axes", len(outs))
        placed = [
            to_axis(o, size, a, out_axis(w, o, a, "vmap", n))
            for o, a, w, n in zip(
                outs, mapped, wanted, inner_axes(out_structure, outs), strict=True
            )
        ]
        return tree.unflatten(out_structure, placed)

    return vmap_fun


def _checked(
    axes: list[Any], values: Sequence[Any], inner: Sequence[int], paths: Sequence[str]
) -> list[int | None]:
    """Return the axes of all leaves, those of keyword arguments too, counted from the front."""
    axes = axes + [0] * (len(values) - len(axes))
    return [
        a
        if a is None or (a.__class__ is int and 0 <= a < v.type.ndim - n)
        else in_axis(a, v, "vmap", paths[i], n)
        for i, (a, v, n) in enumerate(zip(axes, values, inner, strict=True))
    ]


def _of_leaves(fun: Callable[..., Any], structure: Any) -> Callable[..., Any]:
    """Return the function of the leaves of its arguments."""

    def call(*leaves: Any) -> Any:
        positional, named = tree.unflatten(structure, leaves)
        return fun(*positional, **named)

    return call


def _without_given(
    outs: Sequence[Any],
    mapped: Sequence[int | None],
    positions: Sequence[int],
    refs: dict[int, Ref],
    axes: Sequence[int | None],
    size: int,
) -> tuple[Sequence[Any], Sequence[int | None]]:
    """Return the outputs without the new values of references, which are last and written here."""
    count = len(outs) - len(positions)
    for i, o, a in zip(positions, outs[count:], mapped[count:], strict=True):
        refs[i].write(to_axis(o, size, a, axes[i]))
    return outs[:count], mapped[:count]


def _for_leaves(axes: Any, of: Any, argument: str, count: int | None) -> list[Any]:
    """Return the entry of in_axes or out_axes for each leaf; ``count``: how many, if known."""
    if count is not None and isinstance(axes, int):
        return [axes] * count
    return tree.prefix_leaves(axes, of, "vmap", argument)


class _Other:
    """A node without leaves that becomes what it holds, such as a function, when it is built."""

    def __init__(self, value: Any) -> None:
        self.value = value


tree.register_pytree_node(_Other, lambda other: ((), other), lambda other, _: other.value)


_PASSED_ON = frozenset({bool, int, float, complex, Ref})
"""Classes of numbers, and of references, that are handed on as they are if they are not mapped."""


def _is_array_alone(x: Any) -> bool:
    return is_array_like(x) and x.__class__ not in _PASSED_ON and not is_float0(x)


def _hidden(leaves: Sequence[Any], in_axes: Any, args: Any) -> list[Any]:
    """Give the leaves, with nodes without leaves for float0 zeros and for what need not be arrays.

    The former become those of one example; the latter, numbers among them, arrive as they are.
    """
    axes = tree.prefix_leaves(in_axes, args, "vmap", "in_axes")
    axes += [0] * (len(leaves) - len(axes))
    hidden = []
    for x, a in zip(leaves, axes, strict=True):
        if is_float0(x):
            x = argument_leaves.Nothing(x.shape if a is None else tuple(np.delete(x.shape, a)))
        elif a is None and (x.__class__ in _PASSED_ON or not is_array_like(x)):
            x = _Other(x)
        hidden.append(x)
    return hidden


def _check_name(name: Any, argument: str) -> None:
    try:
        hash(name)
    except TypeError:
        raise TypeError(
            f"vmap: {argument} must be hashable, such as a string; got {type(name).__name__}"
        ) from None


def _natural(size: Any) -> int:
    if is_size(size):
        return size
    try:
        n = operator.index(size)
    except TypeError:
        raise TypeError(f"vmap: axis_size must be an integer, got {size!r}") from None
    if n < 0:
        raise ValueError(f"vmap: axis_size must not be negative, got {n}")
    return n


def _common_size(
    values: Sequence[Any], axes: Sequence[int | None], axis_size: int | None
) -> int | None:
    """Return the size of all mapped axes; ``None`` if they differ."""
    sizes = {v.type.shape[a] for v, a in zip(values, axes, strict=True) if a is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if not sizes:
        raise ValueError("vmap: nothing is mapped: give in_axes an axis, or pass axis_size")
    return sizes.pop() if len(sizes) == 1 else None


def _different_sizes(
    values: Sequence[Any],
    axes: Sequence[int | None],
    paths: Sequence[str],
    axis_size: int | None,
    fun: Callable[..., Any],
    args: Sequence[Any],
) -> str:
    """Return the message: an example of each size, and the advice to stack lists of trees."""
    by_size: dict[int, list[str]] = {}
    for v, a, p in zip(values, axes, paths, strict=True):
        if a is not None:
            by_size.setdefault(v.shape[a], []).append(f"{p}, of type {v.type}, along axis {a}")
    lines = ["vmap got inconsistent sizes for array axes to be mapped:"]
    for size, examples in by_size.items():
        count = len(examples)
        leaves = "1 leaf has" if count == 1 else f"{count} leaves have"
        lines.append(f"  * {leaves} size {size}, for example {examples[0]}")
    if axis_size is not None:
        lines.append(f"  * axis_size is {axis_size}")
    for name, arg in zip(argument_leaves.argument_names(fun, len(args)), args, strict=True):
        if isinstance(arg, (list, tuple)) and len(arg) > 1:
            first = tree.structure(arg[0])
            if first.num_leaves and all(tree.structure(x) == first for x in arg[1:]):
                lines.append(
                    f"The argument {name} is a {type(arg).__name__} of {len(arg)} trees of one "
                    f"structure: to map over them, stack them first: stretto.stack({name})"
                )
    return "\n".join(lines)


C = TypeVar("C")
Y = TypeVar("Y")


def scan(
    f: Callable[[Any, Any], tuple[C, Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[C, Y]:
    """Step a function over the leading axis of ``xs``, carrying a state.

    Args:
        f: a function from ``(carry, x)`` to ``(carry, y)``; the carry keeps its structure and
            types.
        init: the first carry, a tree of arrays.
        xs: a tree of arrays that share their leading size; None, the default, needs ``length``. Of
            a ragged array each step gets one array, of its own size.
        length: the number of steps; by default the leading size of ``xs``.
        reverse: whether to step from the last element to the first.
        unroll: how many steps to write out for each turn of the compiled loop; True for all.
        _split_transpose: has no effect; in JAX, another way to the same derivative.

    Returns:
        The last carry, and the tree of ``y``, stacked along a new leading axis; ragged where its
        size is that of one array of a ragged one.

    Raises:
        NotImplementedError: over ragged arrays: the size of a ``y`` varies along another axis than
            the first.
        TypeError: the carry changes its structure or a type, or ``f`` does not return a pair.
        ValueError: leading sizes differ, an array has no leading axis, or a number is negative.

    >>> import stretto as st, stretto.numpy as snp
    >>> total, running = st.lax.scan(lambda c, x: (c + x, c + x), 0, snp.array([1, 2, 3]))
    >>> running
    Array([1, 3, 6], dtype=int32)
    """
    with boundary:
        if holds_ragged(xs):
            return varying_sizes.over_ragged.scan_ragged(f, init, xs, length, reverse, unroll)
        return loop.scan(f, init, xs, length, reverse, unroll)


def map_(
    f: Callable[[Any], R],
    xs: Any,
    *,
    batch_size: int | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
) -> R:
    """Apply a function to each element along an axis, one after another, and stack the results.

    For all elements at once, use ``vmap``.

    Args:
        f: a function of one element of ``xs``.
        xs: a tree of arrays, ragged ones among them.
        batch_size: how many elements to compute at a time; by default one. Derivatives keep what
            one batch needs and compute the rest again.
        in_axes: the axis of the elements: an integer, None for what all of them share, or a tree of
            these that is a prefix of ``xs``.
        out_axes: where that axis goes in the results, likewise; None for what is the same for all.

    Returns:
        The results, a tree of arrays; as with ``vmap``, ragged where sizes are those of examples.

    Raises:
        NotImplementedError: over ragged arrays: the size of a result varies along another axis than
            the first.
        TypeError: an entry of ``in_axes`` or ``out_axes`` is neither an integer nor None.
        ValueError: mapped sizes differ, an axis is out of bounds, or ``batch_size`` is not
            positive.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.lax.map(lambda x: x * 2, snp.array([1, 2]))
    Array([2, 4], dtype=int32)
    """
    with boundary:
        if holds_ragged(xs):
            return varying_sizes.over_ragged.map_ragged(f, xs, batch_size, in_axes, out_axes)
        return loops.map_(f, xs, batch_size=batch_size, in_axes=in_axes, out_axes=out_axes)
