"""Meshes of devices with named axes, and how the axes of an array are laid along them.

A mesh and a specification are data: comparing, hashing and printing them asks no device anything.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from stretto._engine.core.lazy import LazyMethod


class _Unconstrained:
    """Says of an axis of an array that its place on the mesh is left to the compiler."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED: Final = _Unconstrained()


class PartitionSpec:
    """Say how the axes of an array are split over the axes of a mesh.

    It has an entry for each axis of the array: the name of the axis of the mesh that it is split
    over, a tuple of names, outermost first, or None for an axis that is not split. Axes of the
    array past the last entry are not split either; each part is repeated along the axes of the mesh
    that no entry names. ``PartitionSpec.UNCONSTRAINED`` leaves an axis to the compiler, in
    constraints.

    Args:
        *parts: the entries.

    Raises:
        TypeError: an entry is none of these.
        ValueError: a name occurs twice.

    >>> from stretto.sharding import PartitionSpec as P
    >>> P("data", None, ("x", "y"))
    PartitionSpec('data', None, ('x', 'y'))
    """

    __slots__ = ("_parts",)

    UNCONSTRAINED: Final = UNCONSTRAINED

    _parts: tuple[Any, ...]

    def __init__(self, *parts: Any) -> None:
        self._parts = tuple([_entry(part) for part in parts])
        names = self.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"PartitionSpec: an axis of a mesh splits one axis of an array, and {twice!r} "
                f"occurs twice in {self!r}"
            )

    @property
    def names(self) -> tuple[Any, ...]:
        """The axes of the mesh that it names, in order."""
        return tuple([name for part in self._parts for name in axes_of(part)])

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __getitem__(self, i: Any) -> Any:
        return self._parts[i]

    def index(self, part: Any, *between: int) -> int:
        """Find an entry.

        Args:
            part: the entry.
            *between: where to begin, and where to end.

        Returns:
            The first position where it is.

        Raises:
            ValueError: there is no such entry.
        """
        return self._parts.index(part, *between)

    def count(self, part: Any) -> int:
        """Count entries that are equal to one.

        Args:
            part: the entry.

        Returns:
            How often it occurs.
        """
        return self._parts.count(part)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return self._parts == other._parts
        return self._parts == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts)

    def __add__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*self, *other)

    def __radd__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*other, *self)

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self._parts))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionSpec, self._parts


P = PartitionSpec


def _entry(part: Any) -> Any:
    """Return an entry of a specification; a tuple of one name is that name, an empty one None."""
    if part is None or part is UNCONSTRAINED:
        return part
    if isinstance(part, (tuple, list)):
        if any([name is None or isinstance(name, (tuple, list)) for name in part]):
            raise TypeError(f"PartitionSpec: an entry must be a tuple of names, got {part!r}")
        return part[0] if len(part) == 1 else tuple(part) or None
    try:
        hash(part)
    except TypeError:
        raise TypeError(
            f"PartitionSpec: an entry must be the name of an axis of a mesh, a tuple of names, or "
            f"None; got {part!r}"
        ) from None
    return part


def axes_of(part: Any) -> tuple[Any, ...]:
    """Return the axes of the mesh in one entry of a specification, outermost first."""
    if part is None or part is UNCONSTRAINED:
        return ()
    return part if isinstance(part, tuple) else (part,)


class Mesh:
    """Devices along named axes: what arrays are split over.

    As a context manager it is the mesh in use, as under ``set_mesh``.

    Args:
        devices: an array of devices, an axis for each name; a device alone for a mesh of one.
        axis_names: the names, one for each axis of ``devices``; a name alone for one axis.

    Raises:
        TypeError: a name is not hashable.
        ValueError: there are not as many names as axes, a name or a device occurs twice, or there
            is no device.

    >>> import numpy as np, stretto as st
    >>> from stretto.sharding import Mesh
    >>> Mesh(np.array(st.devices()[:1]), ("data",))
    Mesh('data': 1)
    """

    __slots__ = ("_hash", "axis_names", "device_list", "devices")

    __enter__ = LazyMethod("stretto._engine.core.shardings", "enter")
    __exit__ = LazyMethod("stretto._engine.core.shardings", "leave")

    devices: np.ndarray
    axis_names: tuple[Any, ...]
    device_list: tuple[Any, ...]
    """The devices, row by row."""

    def __init__(self, devices: Any, axis_names: Any) -> None:
        array = np.array(devices, dtype=object)
        names = tuple(axis_names) if isinstance(axis_names, (tuple, list)) else (axis_names,)
        if len(names) != array.ndim:
            raise ValueError(
                f"Mesh: axis_names must have a name for each of the {array.ndim} axes of devices, "
                f"which have shape {array.shape}; got {names!r}"
            )
        if None in names or len(set(names)) < len(names):
            raise ValueError(f"Mesh: axis_names must differ, and not be None; got {names!r}")
        ids = [_identity(device) for device in array.flat]
        if not ids or len(set(ids)) < len(ids):
            raise ValueError(
                f"Mesh: devices must be at least one, and each at most once; got "
                f"{[str(device) for device in array.flat]}"
            )
        array.flags.writeable = False
        self.devices, self.axis_names, self.device_list = array, names, tuple(array.flat)
        self._hash = hash((names, array.shape, tuple(ids)))

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """The size of each axis by name, in order."""
        return OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.devices.shape

    @property
    def size(self) -> int:
        """The number of devices."""
        return self.devices.size

    @property
    def device_ids(self) -> np.ndarray:
        """The ids of the devices, an array of the mesh's shape."""
        ids = [device.id for device in self.devices.flat]
        return np.array(ids).reshape(self.devices.shape)

    @property
    def empty(self) -> bool:
        """Say whether it has no device: never."""
        return False

    @property
    def is_multi_process(self) -> bool:
        """Say whether its devices belong to more than one process."""
        return len({device.process_index for device in self.devices.flat}) > 1

    def size_of(self, names: Sequence[Any]) -> int:
        """Count the devices along some axes together.

        Args:
            names: the axes.

        Returns:
            The product of their sizes.
        """
        sizes = self.shape
        return math.prod([sizes[name] for name in names])

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Mesh)
            and self._hash == other._hash
            and self.axis_names == other.axis_names
            and self.devices.shape == other.devices.shape
            and self.device_list == other.device_list
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Mesh, (self.devices, self.axis_names)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        return f"Mesh({sizes})"


def _identity(device: Any) -> Any:
    """Return what tells devices apart; raises for what is no device."""
    try:
        return device.platform, device.id
    except AttributeError:
        raise TypeError(
            f"Mesh: devices must be devices, as of stretto.devices(); got {device!r}"
        ) from None
