"""``shard_map``, ``smap`` and ``pmap``: a function that is run on each device with its part.

``higher_order/shard_map`` has the operation for functions of the parts of arrays. ``pmap`` takes a
function of examples, each on a device of its own: it is ``jit`` of ``shard_map`` over a mesh of as
many devices as there are examples.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from stretto._engine.api.argument_leaves import kinds_of, leaf_names, values_of_tree, wraps
from stretto._engine.api.jit.jit import Jitted, jit
from stretto._engine.api.jit.signature import argument_set
from stretto._engine.api.sharding.placement import make_mesh
from stretto._engine.api.varying_sizes.sizes import equal_lengths, refuse_split, share_lengths
from stretto._engine.core import tree
from stretto._engine.core.cells import write_all
from stretto._engine.core.config import config, over_axis
from stretto._engine.core.errors import RefError
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.mesh import UNCONSTRAINED, Mesh, PartitionSpec
from stretto._engine.core.recorder import record
from stretto._engine.core.shardings import NamedSharding, as_spec, check_names, check_split
from stretto._engine.higher_order.refs import Parts, Ref, read_refs
from stretto._engine.higher_order.shard_map import ShardMap, explicit
from stretto._engine.lowering.text import identifier
from stretto._engine.xla.device import Device, local_devices, process_count


def shard_map(
    f: Callable[..., Any] | None = None,
    *,
    in_specs: Any,
    out_specs: Any,
    mesh: Mesh | None = None,
    axis_names: Collection[Any] = (),
    check_vma: bool = True,
) -> Any:
    """Map a function over the parts of its arguments, each on the device that has it.

    It means nested ``vmap`` with named axes: the function sees one part of each argument, as large
    as the array divided by the mesh, and collectives such as ``lax.psum`` work between the parts.
    It can be jitted, differentiated and mapped as any function can; outside of ``jit`` it is
    compiled for the devices as a whole.

    Args:
        f: a function of trees of arrays; without it, what is returned is a decorator.
        in_specs: how each positional argument is split: a ``PartitionSpec``, or a tree of them that
            is a prefix of the tuple of arguments. Along axes of the mesh that it does not name,
            every part is the same.
        out_specs: how the results are put together, likewise; along axes that it does not name,
            the parts must be the same.
        mesh: the mesh; by default the one in use (``set_mesh``).
        axis_names: the axes of the mesh to map over; by default all. Over the others the compiler
            splits what is inside.
        check_vma: whether to refuse results whose parts may differ along axes that their
            ``out_specs`` does not name; if not, they are taken to be the same.

    Returns:
        A function of the whole arrays.

    Raises:
        TypeError: ``f`` is not a function, or a specification is none; or, in a call, a leaf is not
            an array.
        ValueError: there is no mesh, or it has not the axes; or, in a call, an axis cannot be split
            so, parts of a result may differ, or only some parts would run a collective.

    As ``jax.shard_map``.

    >>> import stretto as st, stretto.numpy as snp
    >>> mesh = st.make_mesh((1,), ("i",))
    >>> share = lambda x: x / st.lax.psum(x.sum(), "i")
    >>> st.shard_map(share, mesh=mesh, in_specs=st.P("i"), out_specs=st.P("i"))(snp.ones(4))
    Array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map,
            in_specs=in_specs,
            out_specs=out_specs,
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    caller, function = "shard_map", f

    @wraps(f, caller)
    def mapped(*args: Any) -> Any:
        over = config.mesh if mesh is None else mesh
        if over is None:
            raise ValueError(
                "shard_map: mesh must be given, or one must be in use: "
                "stretto.sharding.set_mesh(mesh)"
            )
        axes = _axes(over, axis_names, caller)
        leaves, structure = tree.flatten(args)
        names = leaf_names(function, args)
        leaves, refs = read_refs(leaves, caller, lambda: names)
        values = [as_value(x, caller, name) for x, name in zip(leaves, names, strict=True)]
        asked = tree.prefix_leaves(in_specs, args, caller, "in_specs")
        ins = [_spec(s, over, axes, caller, "in_specs") for s in asked]
        refuse_split(structure, ins, caller)
        parts = []
        for value, spec, name in zip(values, ins, names, strict=True):
            sharding = NamedSharding(over, spec)
            check_split(sharding, value.shape, f"{caller}: {name}, {value.type},")
            parts.append(value.type.with_shape(sharding.shard_shape(value.shape)))

        pairs = [(i, j) for i, j in equal_lengths(structure, values) if ins[i] == ins[j]]

        mine = Parts(lambda *xs: function(*tree.unflatten(structure, xs)), dict(kinds_of(refs)))

        def flat(*xs: Any) -> Any:
            result, given = mine(*share_lengths(xs, pairs))
            outs, out_structure = values_of_tree(result, caller, "the result")
            return [*outs, *given], out_structure

        recorded: Any = lambda: record(flat, parts, names, name_of(function))
        for axis in reversed(axes):
            recorded = functools.partial(over_axis, axis, over.shape[axis], recorded)
        program, out_structure, captured = recorded()
        count = out_structure.num_leaves
        out_tree = tree.unflatten(out_structure, range(count))
        wanted = tree.prefix_leaves(out_specs, out_tree, caller, "out_specs")
        outs = [_spec(s, over, axes, caller, "out_specs") for s in wanted]
        refuse_split(out_structure, outs, caller)
        paths = tree.paths(out_tree, "the result")
        for i in mine.changed:
            outs.append(ins[i])
            paths.append(names[i])
        for spec, type, path in zip(outs, program.out_types, paths, strict=True):
            if len(spec) > type.ndim:
                raise ValueError(
                    f"{caller}: out_specs {spec} has entries for {len(spec)} axes, and {path} is "
                    f"{type}"
                )
        everything = [*ins, *[PartitionSpec()] * len(captured)]
        whole = explicit(
            program,
            axes,
            dict(over.shape),
            [frozenset(spec.names) for spec in everything],
            [frozenset(spec.names) for spec in outs],
            lambda i: f"{paths[i]}, {program.out_types[i]},",
            not check_vma,
        )
        operation = ShardMap(whole, over, axes, tuple(everything), tuple(outs))
        results = operation(*values, *captured)
        write_all([refs[i] for i in mine.changed], results[count:])
        return tree.unflatten(out_structure, results[:count])

    return mapped


def _axes(mesh: Mesh, names: Collection[Any], caller: str) -> tuple[Any, ...]:
    """Return the axes to map over, in the order of the mesh."""
    if isinstance(names, str):
        raise TypeError(f"{caller}: axis_names must be a set of names, got {names!r}")
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(
                f"{caller}: axis_names has {name!r}, and {mesh} has "
                f"{', '.join(map(repr, mesh.axis_names))}"
            )
    return tuple([name for name in mesh.axis_names if not names or name in names])


def _spec(spec: Any, mesh: Mesh, axes: Sequence[Any], caller: str, argument: str) -> PartitionSpec:
    """Return the specification, which names axes that are mapped over; for None, an empty one."""
    checked = as_spec(PartitionSpec() if spec is None else spec, caller, argument)
    check_names(checked, mesh, caller, argument)
    for part in checked:
        if part is UNCONSTRAINED:
            raise ValueError(f"{caller}: {argument} {checked} must say where every axis is")
    for name in checked.names:
        if name not in axes:
            raise ValueError(
                f"{caller}: {argument} {checked} names {name!r}, which is not among the axis_names "
                f"{', '.join(map(repr, axes))}; arrays are split over it outside"
            )
    return checked


def smap(
    f: Callable[..., Any] | None = None, /, *, in_axes: Any = 0, out_axes: Any, axis_name: Any
) -> Any:
    """Map a function over the parts of its arguments along one axis of the mesh in use.

    Args:
        f: a function of trees of arrays; without it, what is returned is a decorator.
        in_axes: which axis of each argument is split: an integer, None for none, or a tree of these
            that is a prefix of the tuple of arguments.
        out_axes: along which axis the results are put together, likewise.
        axis_name: the axis of the mesh.

    Returns:
        A function of the whole arrays.

    Raises:
        TypeError: ``f`` is not a function.
        ValueError: as for ``shard_map``.

    As ``jax.smap``.

    >>> import stretto as st, stretto.numpy as snp
    >>> with st.sharding.set_mesh(st.make_mesh((1,), ("i",))):
    ...     smap(lambda x: x + st.lax.axis_index("i"), out_axes=0, axis_name="i")(snp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    function = f

    @wraps(f, "smap")
    def mapped(*args: Any) -> Any:
        def specs(axes: Any, of: Any, argument: str) -> Any:
            leaves, structure = tree.flatten(of)
            each = tree.prefix_leaves(axes, of, "smap", argument)
            made = [
                along(axis, getattr(x, "ndim", 0), axis_name)
                for axis, x in zip(each, leaves, strict=True)
            ]
            return tree.unflatten(structure, made)

        ins = specs(in_axes, args, "in_axes")
        outs = tree.map(
            lambda axis: along(axis, 1 + max(axis or 0, 0), axis_name),
            out_axes,
            is_leaf=lambda axis: axis is None,
        )
        return shard_map(function, in_specs=ins, out_specs=outs, axis_names={axis_name})(*args)

    return mapped


def along(axis: int | None, ndim: int, name: Any) -> PartitionSpec:
    """Return the specification of arrays that are split along one axis, or along none."""
    if axis is None:
        return PartitionSpec()
    return PartitionSpec(*[None] * (axis % max(ndim, 1)), name)


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
