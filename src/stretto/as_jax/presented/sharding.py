"""``jax.sharding``."""

from __future__ import annotations

import enum
from typing import Any

from stretto._engine.core.mesh import Mesh
from stretto._engine.core.mesh_in_use import get_mesh
from stretto.as_jax.naming import names_of
from stretto.as_jax.refused import RefusedName

__all__ = ["AbstractMesh", "AxisType", "get_abstract_mesh"]

_TYPES = "shardings are not part of types here: use NamedSharding and with_sharding_constraint"

auto_axes = RefusedName("jax.sharding.auto_axes", _TYPES)
explicit_axes = RefusedName("jax.sharding.explicit_axes", _TYPES)
reshard = RefusedName("jax.sharding.reshard", _TYPES)

_get, __dir__ = names_of("stretto.sharding")


class AxisType(enum.Enum):
    """How an axis of a mesh is followed; Stretto's are ``Auto``."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()


class AbstractMesh:
    """The axes of a mesh, without devices.

    Args:
        axis_sizes: their sizes.
        axis_names: their names.
        axis_types: ignored.
    """

    def __init__(self, axis_sizes: Any, axis_names: Any, axis_types: Any = None) -> None:
        del axis_types
        self.axis_sizes, self.axis_names = tuple(axis_sizes), tuple(axis_names)

    @property
    def shape(self) -> dict[Any, int]:
        """The sizes by name."""
        return dict(zip(self.axis_names, self.axis_sizes))

    @property
    def empty(self) -> bool:
        """Whether it has no axes."""
        return not self.axis_names

    @property
    def axis_types(self) -> tuple[AxisType, ...]:
        """How axes are followed."""
        return (AxisType.Auto,) * len(self.axis_names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self.shape == other.shape

    def __hash__(self) -> int:
        return hash((self.axis_sizes, self.axis_names))


def _current() -> Mesh | None:
    try:
        return get_mesh()
    except ValueError:
        return None


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh in use; none where there is no mesh."""
    mesh = _current()
    if mesh is None:
        return AbstractMesh((), ())
    return AbstractMesh(tuple(mesh.shape.values()), mesh.axis_names)


def __getattr__(name: str) -> Any:
    return _get("set_mesh" if name == "use_mesh" else name)
