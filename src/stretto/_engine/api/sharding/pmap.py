"""``pmap``: a function of examples, each on a device of its own.

It is ``jit`` of ``shard_map`` over a mesh of as many devices as there are examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stretto._engine.api.argument_leaves import values_of_tree, wraps
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.jit.jitted import Jitted
from stretto._engine.api.jit.signature import argument_set
from stretto._engine.api.sharding.meshes import make_mesh
from stretto._engine.api.sharding.shard_map import along, shard_map
from stretto._engine.core import tree
from stretto._engine.core.errors import RefError
from stretto._engine.core.functions import name_of
from stretto._engine.core.mesh import Mesh
from stretto._engine.higher_order.refs import Ref
from stretto._engine.lowering.text import identifier
from stretto._engine.xla.device import Device, local_devices, process_count


def pmap(
    fun: Callable[..., Any],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Device] | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Any:
    """Map a function over examples, each of which is on a device of its own.

    Args:
        fun: a function of trees of arrays, of one example.
        axis_name: the name of the axis of examples, for collectives.
        in_axes: which axis of each argument the examples are along: an integer, None for arguments
            that all share, or a tree of these that is a prefix of the tuple of arguments.
        out_axes: along which axis the results are put together, likewise; with None they are taken
            to be the same for all.
        static_broadcasted_argnums: positions of arguments that are passed as they are.
        devices: the devices; by default as many of this process as there are examples, in the order
            of their ids.
        axis_size: the number of examples; by default that of the arguments.
        donate_argnums: positions of arguments whose memory a result may take.

    Returns:
        A function of all examples. Arguments given by name have them along their first axis. Its
        ``lower`` does as that of a jitted function.

    Raises:
        TypeError: ``fun`` is not a function.
        ValueError: in a call, there are fewer devices than examples, or arguments differ in their
            number.

    As ``jax.pmap``.

    >>> import stretto as st, stretto.numpy as snp
    >>> pmap(lambda x: x / st.lax.psum(x, "i"), axis_name="i")(snp.ones((1, 2)))
    Array([[1., 1.]], dtype=float32)
    """
    static = argument_set(fun, static_broadcasted_argnums, None, "static_broadcasted", "pmap")
    donated = argument_set(fun, donate_argnums, None, "donate", "pmap")
    name = "pmap axis" if axis_name is None else axis_name
    made: dict[Mesh, Jitted[..., Any]] = {}

    named: dict[int, Callable[..., Any]] = {}

    def by_name(count: int) -> Any:
        """Return the function of a dictionary of named arguments, and so many others."""
        if count not in named:
            axes = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * count
            named[count] = pmap(
                wraps(fun, "pmap")(lambda kwargs, *args: fun(*args, **kwargs)),
                axis_name,
                in_axes=(0, *axes),
                out_axes=out_axes,
                static_broadcasted_argnums=[1 + i for i in static.numbers],
                devices=devices,
                axis_size=axis_size,
                donate_argnums=[1 + i for i in donated.numbers],
            )
        return named[count]

    def over_mesh(args: Sequence[Any]) -> Jitted[..., Any]:
        """Return the jitted function for as many devices as these arguments have examples."""
        size = _examples(args, static.present(args, {}), in_axes, axis_size)
        own = local_devices() if devices is None and process_count() > 1 else devices
        mesh = make_mesh((size,), (name,), devices=None if own is None else own[:size])
        if mesh not in made:
            made[mesh] = _jitted(mesh)
        return made[mesh]

    @wraps(fun, "pmap")
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return by_name(len(args))(kwargs, *args) if kwargs else over_mesh(args)(*args)

    def lowered(*args: Any, **kwargs: Any) -> Any:
        return by_name(len(args)).lower(kwargs, *args) if kwargs else over_mesh(args).lower(*args)

    def _jitted(mesh: Mesh) -> Jitted[..., Any]:
        def over_devices(*args: Any) -> Any:
            fixed = set(static.present(args, {}))
            moving = tuple([a for i, a in enumerate(args) if i not in fixed])
            axes = in_axes
            if isinstance(in_axes, (tuple, list)):
                axes = tuple([a for i, a in enumerate(in_axes) if i not in fixed])
            leaves, structure = tree.flatten(moving)
            if any([isinstance(x, Ref) for x in leaves]):
                raise RefError(
                    "pmap: references are not mapped over devices: pass their values, ref[...], "
                    "and return the new ones, or use shard_map"
                )
            each = tree.prefix_leaves(axes, moving, "pmap", "in_axes")
            specs = [along(a, x.ndim, name) for a, x in zip(each, leaves, strict=True)]

            def of_one(*parts: Any) -> Any:
                found = tree.leaves(parts)
                one = [x if a is None else x.squeeze(a) for x, a in zip(found, each, strict=True)]
                inner = iter(tree.unflatten(structure, one))
                out = fun(*[a if i in fixed else next(inner) for i, a in enumerate(args)])
                leaf_axes = tree.prefix_leaves(out_axes, out, "pmap", "out_axes")
                outs, out_structure = values_of_tree(out, "pmap", "the result")
                raised = [
                    x if a is None else _expanded(x, a)
                    for x, a in zip(outs, leaf_axes, strict=True)
                ]
                return tree.unflatten(out_structure, raised)

            of_one.__name__ = identifier(name_of(fun))
            outs = tree.map(
                lambda a: along(a, 1 + max(a or 0, 0), name), out_axes, is_leaf=lambda a: a is None
            )
            return shard_map(
                of_one,
                mesh=mesh,
                in_specs=tree.unflatten(structure, specs),
                out_specs=outs,
                check_vma=False,
            )(*moving)

        over_devices.__name__ = f"pmap_{identifier(name_of(fun))}"
        return jit(over_devices, static_argnums=static.numbers, donate_argnums=donate_argnums)

    mapped.lower = lowered
    return mapped


def _expanded(x: Any, axis: int) -> Any:
    shape = list(x.shape)
    shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, 1)
    return x.reshape(tuple(shape))


def _examples(
    args: Sequence[Any], fixed: Sequence[Any], in_axes: Any, axis_size: int | None
) -> int:
    """Return the number of examples, the same for all arguments that are mapped."""
    axes = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
    moving = [i for i in range(len(args)) if i not in fixed]
    sizes: dict[int, str] = {} if axis_size is None else {axis_size: "axis_size"}
    for i in moving:
        each = tree.prefix_leaves(axes[i], args[i], "pmap", "in_axes")
        for axis, leaf, path in zip(
            each, tree.leaves(args[i]), tree.paths(args[i], f"args[{i}]"), strict=True
        ):
            if axis is not None:
                shape: tuple[Any, ...] = getattr(leaf, "shape", ())
                if not -len(shape) <= axis < len(shape):
                    raise ValueError(f"pmap: {path} has shape {shape}, and no axis {axis}")
                sizes.setdefault(shape[axis], path)
    if len(sizes) != 1:
        found = ", ".join(f"{path}: {size}" for size, path in sizes.items()) or "none is mapped"
        raise ValueError(f"pmap: arguments must have one number of examples; got {found}")
    return next(iter(sizes))
