"""``shard_map`` and ``smap``: a function of the parts of arrays, run on each device with its own.

``higher_order/shard_map`` has the operation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

from stretto._engine.api.argument_leaves import leaf_names, values_of_tree, wraps
from stretto._engine.api.jit.ref_arguments import kinds_of
from stretto._engine.api.varying_sizes.lengths import equal_lengths, refuse_split, share_lengths
from stretto._engine.core import tree
from stretto._engine.core.cells import write_all
from stretto._engine.core.config import config, over_axis
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.mesh import UNCONSTRAINED, Mesh, PartitionSpec
from stretto._engine.core.recorder import record
from stretto._engine.core.shardings import NamedSharding, as_spec, check_names, check_split
from stretto._engine.higher_order.refs import Parts, read_refs
from stretto._engine.higher_order.shard_map import ShardMap, explicit


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
