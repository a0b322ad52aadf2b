"""``jax.sharding``."""

from __future__ import annotations

import enum
from typing import Any

from stretto._engine.core.mesh import Mesh
from stretto._engine.core.mesh_in_use import get_mesh
from stretto.compat.jax.naming import names_of
from stretto.compat.jax.refused import RefusedName

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


class _Axes(type):
    def __instancecheck__(cls, x: object) -> bool:
        return type.__instancecheck__(cls, x) or isinstance(x, Mesh)


class AbstractMesh(metaclass=_Axes):
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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self.shape == dict(other.shape)

    def __hash__(self) -> int:
        return hash((self.axis_sizes, self.axis_names))


def _types(self: Any) -> tuple[AxisType, ...]:
    """How axes are followed: by the compiler."""
    return (AxisType.Auto,) * len(self.axis_names)


def _with_types(cls: Any) -> None:
    """Give a class of meshes what says how axes are followed."""
    cls.axis_types = property(_types)
    cls.are_all_axes_auto = property(lambda self: True)
    cls.are_all_axes_explicit = cls.are_all_axes_manual = property(lambda self: False)
    cls.abstract_mesh = property(lambda self: self)


_with_types(AbstractMesh)
_with_types(Mesh)


def _current() -> Mesh | None:
    try:
        return get_mesh()
    except ValueError:
        return None


def get_abstract_mesh() -> AbstractMesh | Mesh:
    """The mesh in use; one without axes where there is none."""
    mesh = _current()
    return AbstractMesh((), ()) if mesh is None else mesh


def __getattr__(name: str) -> Any:
    return _get("set_mesh" if name == "use_mesh" else name)
