"""Where arguments and results of an exported function lie: splits over a mesh without devices.

A file says over how many devices its function is and how arrays are split; which devices these are
is known when it is called. What a program says inside of itself is left out of the file: the
compiler derives it again, and values do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.errors import ExportError
from stretto._engine.core.mesh import UNCONSTRAINED, Mesh, PartitionSpec, axes_of
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.shardings import NamedSharding
from stretto._engine.ops.sharding_constraint import ShardingConstraint


class Split(NamedTuple):
    """How an array is split over the axes of a mesh.

    Args:
        axes: the names of the axes of the mesh, with their sizes.
        parts: for each axis of the array the axes of the mesh over which it is split.
    """

    axes: tuple[tuple[str, int], ...]
    parts: tuple[tuple[str, ...], ...]

    @property
    def devices(self) -> int:
        """The number of devices."""
        return math.prod([size for _, size in self.axes])


def split_of(sharding: Any) -> Split | None:
    """Describe a sharding without its devices.

    Args:
        sharding: the sharding, or None.

    Returns:
        The split; None where nothing is said but the device, or an axis is left to the compiler.

    Raises:
        ExportError: an axis of the mesh has a name that is no text.
    """
    if not isinstance(sharding, NamedSharding) or UNCONSTRAINED in sharding.spec:
        return None
    mesh = sharding.mesh
    for name in mesh.axis_names:
        if not isinstance(name, str):
            raise ExportError(
                f"export.stablehlo: an axis of the mesh has the name {name!r}, and a file has "
                f"texts: rename it"
            )
    axes = tuple(zip(map(str, mesh.axis_names), mesh.axis_sizes, strict=True))
    return Split(axes, tuple([tuple(map(str, axes_of(part))) for part in sharding.spec]))


def sharding_of(split: Split, devices: Sequence[Any]) -> NamedSharding:
    """Put a split on devices.

    Args:
        split: the split.
        devices: as many devices as it has.

    Returns:
        The sharding.
    """
    array = np.empty(len(devices), object)
    array[:] = devices
    names, sizes = zip(*split.axes, strict=True)
    return NamedSharding(Mesh(array.reshape(sizes), names), PartitionSpec(*split.parts))


def without_constraints(program: Program, found: set[int]) -> Program:
    """Leave out of a program where its values are to lie.

    Args:
        program: the program.
        found: gets the numbers of devices of the meshes.

    Returns:
        The program.
    """
    renamed: dict[Atom, Atom] = {}
    equations = []
    for equation in program.equations:
        inputs = [renamed.get(a, a) if isinstance(a, Var) else a for a in equation.inputs]
        primitive: Any = equation.primitive
        if isinstance(primitive, ShardingConstraint):
            renamed[equation.outputs[0]] = inputs[0]
            found.add(primitive.sharding.mesh.size)
            continue
        if primitive.holds_programs:
            primitive = primitive.with_programs(lambda p: without_constraints(p, found))
        equations.append(Equation(primitive, inputs, equation.outputs, equation.place))
    outputs = [renamed.get(a, a) if isinstance(a, Var) else a for a in program.outputs]
    return Program(program.inputs, equations, outputs, program.name)


def devices_of(splits: Sequence[Split | None], found: set[int]) -> int:
    """Count the devices of a function.

    Args:
        splits: where its arguments and results lie.
        found: the numbers of devices of meshes inside of it.

    Returns:
        Their number; 1 where nothing is said.

    Raises:
        ExportError: meshes have different numbers.
    """
    numbers = {split.devices for split in splits if split is not None} | found
    if len(numbers) > 1:
        raise ExportError(
            f"export.stablehlo: the function is over meshes of {sorted(numbers)} devices, and a "
            f"file is for one number of them"
        )
    return numbers.pop() if numbers else 1
