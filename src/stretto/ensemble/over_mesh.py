"""Members, and examples, over the devices of a mesh: which axis splits which.

What runs on members runs on each device with the members that it has, as one region of
``shard_map``: so their program is planned for as many as there are on one device, and none of them
moves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from stretto._engine import api
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.mesh import Mesh, PartitionSpec
from stretto._engine.core.shardings import NamedSharding
from stretto._engine.core.typing import Tree
from stretto.ensemble.groups import Group

if TYPE_CHECKING:
    from stretto.ensemble.sequence import MemberSequence


S = TypeVar("S", bound="MemberSequence")

_USUAL = "members", "data"
_SPLIT = "optimizer", "parameters"


@dataclasses.dataclass(frozen=True)
class OverMesh:
    """A mesh, and those of its axes that split members and the examples of a batch."""

    mesh: Mesh
    members: Any
    """The axis that splits members; ``None`` if every device has all of them."""
    data: Any
    """The axis that splits the examples of a batch in training; ``None`` if none does."""
    split: str | None = None
    """All else that ``data`` splits in training: ``"optimizer"`` state or ``"parameters"`` too."""

    @property
    def parts(self) -> int:
        """The number of parts that members are split into."""
        return 1 if self.members is None else self.mesh.shape[self.members]

    @property
    def data_parts(self) -> int:
        """The number of parts that the examples of a batch are split into."""
        return 1 if self.data is None else self.mesh.shape[self.data]

    @property
    def rows(self) -> PartitionSpec:
        """The split of arrays with the members along axis 0."""
        return PartitionSpec(self.members)

    @property
    def axes(self) -> tuple[Any, ...]:
        """The axes that split anything."""
        return tuple([axis for axis in (self.members, self.data) if axis is not None])

    def of_batch(self, each: bool) -> PartitionSpec:
        """Say how a batch is split; with ``each`` it has the members along axis 0."""
        return PartitionSpec(self.members, self.data) if each else PartitionSpec(self.data)

    def put(self, x: Tree, spec: PartitionSpec) -> Tree:
        """Put a tree of arrays on the devices."""
        return api.sharding.placement.device_put(x, NamedSharding(self.mesh, spec))

    def put_groups(self, groups: Sequence[Group], arrays: Sequence[Any]) -> list[list[Any]]:
        """Put the arrays of each group: split over the members, or whole where these share them."""
        return [
            [
                self.put(x, PartitionSpec() if shared else self.rows)
                for x, shared in zip(column, group.shared, strict=True)
            ]
            for group, column in zip(groups, arrays, strict=True)
        ]

    def check(self, groups: Iterable[Group], caller: str) -> None:
        """Raise ``ValueError`` for members that cannot be split evenly."""
        for group in groups:
            if group.size % self.parts:
                least = -(-group.size // self.parts) * self.parts
                raise ValueError(
                    f"{caller}: {group.size} members of one architecture cannot be split evenly "
                    f"over the axis {self.members!r} of {self.mesh}, {self.parts} parts; train "
                    f"{least} or {least - self.parts}, or make a mesh whose axis divides them"
                )

    def splits(self, groups: Iterable[Group]) -> bool:
        """Say whether the members of these groups can be split evenly."""
        return not any([group.size % self.parts for group in groups])


def over_mesh(
    mesh: Mesh | None, members: Hashable, data: Hashable, split: str | None, caller: str
) -> OverMesh:
    """Say how a mesh is used: by the axes named, or by those called "members" and "data".

    Raises ``ValueError`` if it has not the axes, or none of them; ``TypeError`` if it is no mesh.
    """
    over = config.mesh if mesh is None else mesh
    if over is None:
        raise ValueError(
            f"{caller}: mesh must be given, or one must be in use: stretto.sharding.set_mesh(mesh)"
        )
    if not isinstance(over, Mesh):
        raise TypeError(f"{caller}: mesh must be a Mesh, as of stretto.make_mesh; got {over!r}")
    found = []
    for argument, name, usual in zip(("members", "data"), (members, data), _USUAL, strict=True):
        if name is None:
            name = usual if usual in over.axis_names else None
        elif name not in over.axis_names:
            raise ValueError(
                f"{caller}: {argument} must be an axis of {over}, which has "
                f"{', '.join(map(repr, over.axis_names))}; got {name!r}"
            )
        found.append(name)
    if found == [None, None] or found[0] == found[1]:
        raise ValueError(
            f"{caller}: say which axis of {over} splits the members, and which the data: "
            f"members=, data=, two different ones; those called 'members' and 'data' are found"
        )
    if split not in (None, *_SPLIT):
        raise ValueError(f"{caller}: split must be None, or one of {_SPLIT}; got {split!r}")
    if split and found[1] is None:
        raise ValueError(f"{caller}: split={split!r} needs an axis for data, and {over} has none")
    return OverMesh(over, found[0], found[1], split)


def map_members(
    f: Callable[..., Any],
    in_axes: Tree,
    out_axes: Tree,
    size: int,
    chunk_size: int | str | None,
    over: OverMesh | None,
) -> Callable[..., Any]:
    """Apply ``vmap`` over the members; if they are over a mesh, over those of each device.

    Axes are 0 for what has the members along axis 0, and ``None`` for what is the same for all.
    """
    if over is None or over.members is None:
        return vmap(f, in_axes, out_axes, axis_size=size, chunk_size=chunk_size)
    local = vmap(f, in_axes, out_axes, axis_size=size // over.parts, chunk_size=chunk_size)
    specs = [_specs(axes, over) for axes in (in_axes, out_axes)]
    return api.sharding.shard_map.shard_map(
        local, mesh=over.mesh, in_specs=specs[0], out_specs=specs[1], axis_names={over.members}
    )


def _specs(axes: Tree, over: OverMesh) -> Tree:
    """Return the specifications for a tree of axes."""
    return tree.map(
        lambda axis: PartitionSpec() if axis is None else over.rows,
        axes,
        is_leaf=lambda axis: axis is None,
    )


def shard(
    ensemble: S,
    mesh: Mesh | None = None,
    members: Hashable = None,
    data: Hashable = None,
    split: str | None = None,
) -> S:
    """Put the members on the devices of a mesh, as many on each.

    Each device runs, trains and plans for the members that it has, and none moves. What they
    share is on all devices. Members that are taken out or added later stay so if their number
    can still be split evenly; else the compiler splits what it can.

    Args:
        ensemble: the ensemble.
        mesh: the mesh; by default the one in use (``set_mesh``).
        members: the axis of the mesh that splits the members; by default the one called
            "members", if there is one; else every device has them all.
        data: the axis that splits the examples of a batch in training, of which each device
            computes its part; by default the one called "data", if there is one.
        split: what that axis splits in training as well, along the first axis of each array
            that can be split evenly, for optimizers that work element by element:
            "optimizer", their states (stage 1 of ZeRO); "parameters", these too (stage 3).

    Returns:
        A new ensemble.

    Raises:
        TypeError: it is not a mesh.
        ValueError: there is no mesh, it has not the axes, or members of one architecture cannot
            be split evenly.

    >>> import stretto as st, stretto.numpy as snp
    >>> ensemble = st.Ensemble(lambda p, x: p * x, [2.0, 3.0])
    >>> ensemble.shard(st.make_mesh((1,), ("members",)))(snp.ones(2))
    Array([[2., 2.],
           [3., 3.]], dtype=float32)
    """
    layout = ensemble._layout
    over = over_mesh(mesh, members, data, split, "Ensemble.shard")
    over.check(layout.groups, "Ensemble.shard")
    arrays = over.put_groups(layout.groups, ensemble._arrays)
    return ensemble._of(layout.over_devices(over), arrays)
