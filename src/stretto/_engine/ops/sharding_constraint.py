"""Say in a program where arrays lie on a mesh of devices.

A constraint is an operation that computes nothing: the compiler puts its result where the sharding
says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.mesh import UNCONSTRAINED, PartitionSpec
from stretto._engine.core.primitive import CARRIED, OnMesh, Primitive
from stretto._engine.core.shardings import NamedSharding, Sharding, check_names, check_split
from stretto._engine.core.types import ArrayType


class ShardingConstraint(Primitive):
    """The operand, put where the sharding says."""

    name = "sharding_constraint"
    only_compiled = True  # nothing else can put it there
    padded = CARRIED
    sharding: NamedSharding
    keeps_zeros = True

    @property
    def effects(self) -> frozenset[Any]:
        return frozenset((OnMesh(self.sharding.mesh),))

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        return True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        return range(out.ndim)

    def infer(self, x: ArrayType) -> ArrayType:
        """Return the operand's type, whose axes must split evenly."""
        check_split(self.sharding, x.shape, f"with_sharding_constraint: x, {x},")
        return x

    def reference(self, x: np.ndarray) -> np.ndarray:
        return x

    def lower(self, b: Any, x: Any) -> Any:
        return b.constrain(x, self.sharding)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Put the tangent where the value lies."""
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Any) -> tuple[Any]:
        """The cotangent lies where the value does."""
        return (self(ct),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        (axis,) = axes
        assert axis is not None
        spec = tuple(self.sharding.spec)
        spec += (None,) * (axis - len(spec))
        with_axis = PartitionSpec(*spec[:axis], UNCONSTRAINED, *spec[axis:])
        return ShardingConstraint(NamedSharding(self.sharding.mesh, with_axis))(*args), axis


def named_here(sharding: Any, caller: str, argument: str) -> Any:
    """Return the sharding; for a specification, that over the mesh in use (``set_mesh``).

    Raises ``TypeError`` for anything else, ``ValueError`` where there is no mesh in use, or it has
    not the axes.
    """
    if isinstance(sharding, PartitionSpec):
        mesh = config.mesh
        if mesh is None:
            raise ValueError(
                f"{caller}: {argument} is {sharding}, and no mesh is in use: pass "
                f"NamedSharding(mesh, {sharding}), or call it under stretto.sharding.set_mesh(mesh)"
            )
        check_names(sharding, mesh, caller, argument)
        return NamedSharding(mesh, sharding)
    if isinstance(sharding, Sharding):
        return sharding
    raise TypeError(
        f"{caller}: {argument} must be a sharding, such as NamedSharding(mesh, P('data')), or a "
        f"PartitionSpec; got {sharding!r}"
    )


def constrained(value: Any, sharding: Any, caller: str, argument: str, what: str) -> Any:
    """Return the value, lying where the sharding says; ``what`` is what messages call it.

    A mesh without axes says nothing.

    Raises ``TypeError`` for what is no sharding over a mesh, ``ValueError`` for one that an array
    of this shape cannot have, or where there is no mesh in use.
    """
    named = named_here(sharding, caller, argument)
    if not isinstance(named, NamedSharding):
        raise TypeError(
            f"{caller}: {argument} must be over a mesh, NamedSharding(mesh, spec); got "
            f"{sharding!r}, for which there is device_put"
        )
    if not named.mesh.axis_names:
        return value
    check_split(named, value.shape, f"{caller}: {what}, {value.type},")
    return ShardingConstraint(named)(value)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Have the leaves of a tree lie where shardings say, from here on in a program.

    The values are the same. The compiler moves the parts if they are elsewhere, and derives where
    other values lie from this.

    Args:
        x: a tree of arrays.
        shardings: a ``NamedSharding``, a ``PartitionSpec`` over the mesh in use, or None for no
            constraint; or a tree of these that is a prefix of ``x``.

    Returns:
        The same values.

    Raises:
        TypeError: a leaf of ``x`` is not an array, or a sharding is none.
        ValueError: an axis cannot be split so, or there is no mesh in use.

    >>> import stretto as st, stretto.numpy as snp
    >>> split = st.sharding.NamedSharding(st.make_mesh((1,), ("data",)), st.P("data"))
    >>> st.jit(lambda x: st.lax.with_sharding_constraint(x * 2, split))(snp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    caller = "with_sharding_constraint"
    leaves, structure = tree.flatten(x)
    wanted = tree.prefix_leaves(shardings, x, caller, "shardings")
    paths = tree.paths(x, "x")
    results = []
    for leaf, sharding, path in zip(leaves, wanted, paths, strict=True):
        value = as_value(leaf, caller, path)
        if sharding is not None:
            value = constrained(value, sharding, caller, "shardings", path)
        results.append(value)
    return tree.unflatten(structure, results)
