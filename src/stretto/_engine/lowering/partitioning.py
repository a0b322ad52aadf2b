"""How a text says where arrays are: Shardy's meshes and shardings.

Source: the specification of Shardy's dialect.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.mesh import UNCONSTRAINED, Mesh, axes_of
from stretto._engine.core.shardings import NamedSharding, Sharding
from stretto._engine.lowering.text import escaped


class Meshes:
    """The meshes that a text names, in the order in which it first does."""

    def __init__(self) -> None:
        self._names: dict[Mesh, str] = {}

    def sharding(self, sharding: Sharding, ndim: int) -> str:
        """The attribute for a sharding of arrays with so many axes."""
        return f"#sdy.sharding{self._over(sharding, ndim)}"

    def each(self, shardings: Sequence[Sharding], ndims: Sequence[int]) -> str:
        """The attribute for the shardings of several operands or results."""
        listed = ", ".join([self._over(s, n) for s, n in zip(shardings, ndims, strict=True)])
        return f"#sdy.sharding_per_value<[{listed}]>"

    def axes(self, mesh: Mesh, names: Sequence[object]) -> str:
        """The attribute for axes along which a region is manual, in the order of the mesh."""
        written = [text for name, text in _axes(mesh).items() if name in names]
        return f"#sdy<manual_axes{{{', '.join(written)}}}>"

    def _over(self, sharding: Sharding, ndim: int) -> str:
        assert isinstance(sharding, NamedSharding), "on several devices there are no others"
        name = self._names.setdefault(sharding.mesh, f"@mesh_{len(self._names)}")
        axes = _axes(sharding.mesh)
        parts = []
        for part in (*sharding.spec, *(None,) * (ndim - len(sharding.spec))):
            names = ", ".join([axes[axis] for axis in axes_of(part)])
            parts.append("{?}" if part is UNCONSTRAINED else f"{{{names}}}")
        return f"<{name}, [{', '.join(parts)}]>"

    def written(self) -> list[str]:
        """The operations that declare the meshes."""
        lines = []
        for mesh, name in self._names.items():
            axes = zip(_axes(mesh).values(), mesh.axis_sizes, strict=True)
            sizes = ", ".join([f"{axis}={size}" for axis, size in axes])
            lines.append(f"sdy.mesh {name} = <[{sizes}]>")
        return lines


def _axes(mesh: Mesh) -> dict[object, str]:
    """The axes of a mesh as they are written: names that are no text get numbers."""
    return {
        name: f'"{escaped(name) if isinstance(name, str) else f"axis_{k}"}"'
        for k, name in enumerate(mesh.axis_names)
    }


def by_batch(
    operands: Sequence[Sequence[int]], results: Sequence[Sequence[int]], batch_axes: int
) -> str:
    """The rule by which shardings go through an operation on each element of the first axes.

    The shapes of operands and results begin with the same ``batch_axes``; along all further axes
    each device needs the whole.
    """
    sizes = list((*operands, *results)[0][:batch_axes])

    def factors(shape: Sequence[int]) -> str:
        numbers = [*range(batch_axes)]
        for size in shape[batch_axes:]:
            numbers.append(len(sizes))
            sizes.append(size)
        return f"[{', '.join(map(_factor, numbers))}]"

    taken, given = [", ".join(map(factors, shapes)) for shapes in (operands, results)]
    of_sizes = ", ".join([f"{_factor(k)}={size}" for k, size in enumerate(sizes)])
    whole = ", ".join(map(_factor, range(batch_axes, len(sizes))))
    needed = f" need_replication={{{whole}}}" if whole else ""
    return f"#sdy.op_sharding_rule<({taken})->({given}) {{{of_sizes}}}{needed}, custom>"


def _factor(k: int) -> str:
    """The name of a factor, as Shardy writes it: i to z, then z_1, z_2 and so on."""
    letters = "ijklmnopqrstuvwxyz"
    return letters[k] if k < len(letters) else f"z_{k - len(letters) + 1}"
