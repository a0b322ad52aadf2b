"""Shardings that ``jit`` is given, and shardings drawn as tables of text or handed to functions.

``in_shardings`` and ``out_shardings`` are trees of shardings that are prefixes of the arguments, or
of the result; they become one sharding for each leaf. ``stretto.debug`` has the functions that draw
them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.integers import shown, sizes_of
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.mesh import PartitionSpec
from stretto._engine.core.shardings import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    check_split,
)
from stretto._engine.core.types import ArrayType, array_type, as_dtype
from stretto._engine.ops.sharding_constraint import named_here
from stretto._engine.xla.array import Array
from stretto._engine.xla.device import default_device


class Shardings(NamedTuple):
    """The shardings that ``jit`` was given; None where it was given none."""

    ins: Any = None
    outs: Any = None

    def of_arguments(
        self,
        args: Sequence[Any],
        types: Sequence[ArrayType],
        there: Sequence[Sharding | None],
        caller: str,
        names: Callable[[], Sequence[str]],
    ) -> tuple[Sharding | None, ...]:
        """Return the sharding that each leaf of the arguments is to have.

        ``there`` says where the leaves are, if any has a sharding. Raises ``ValueError`` for a leaf
        that has another sharding than the one asked for, or cannot be split so.
        """
        wanted = tree.prefix_leaves(self.ins, tuple(args), caller, "in_shardings")
        wanted += [None] * (len(types) - len(wanted))  # keyword arguments
        result: list[Sharding | None] = []
        for i, (asked, type) in enumerate(zip(wanted, types, strict=True)):
            has = there[i] if there else None
            if asked is None:
                result.append(has)
                continue
            sharding = named_here(asked, caller, "in_shardings")
            fit(sharding, type, f"{caller}: {names()[i]}, {type},")
            if has is not None and not sharding.is_equivalent_to(has, type.ndim):
                raise ValueError(
                    f"{caller}: {names()[i]}, {type}, has the sharding {has}, and in_shardings "
                    f"asks for {sharding}: put it there first, stretto.device_put({names()[i]}, "
                    f"sharding), or leave it out of in_shardings (None) to have it followed"
                )
            result.append(has or sharding)
        return tuple(result)

    def of_results(
        self, structure: Any, types: Sequence[ArrayType], caller: str
    ) -> tuple[Sharding | None, ...]:
        """Return the sharding that each leaf of the result is to have; empty if none is asked for.

        Raises ``ValueError`` for a result that cannot be split so.
        """
        if self.outs is None:
            return ()
        result = tree.unflatten(structure, range(len(types)))
        wanted = tree.prefix_leaves(self.outs, result, caller, "out_shardings")
        shardings = [
            None if asked is None else named_here(asked, caller, "out_shardings")
            for asked in wanted
        ]
        for sharding, type, path in zip(
            shardings, types, tree.paths(result, "the result"), strict=True
        ):
            if sharding is not None:
                fit(sharding, type, f"{caller}: {path}, {type},")
        return tuple(shardings)


FREE = Shardings()
"""No sharding is asked for."""


def shardings_of(leaves: Sequence[Any]) -> tuple[Sharding | None, ...]:
    """Return the shardings of arrays, or of what describes them; empty if none has one."""
    there = tuple([getattr(x, "_sharding", None) for x in leaves])
    return there if any(there) else ()


def fit(sharding: Sharding, type: ArrayType, what: str) -> None:
    """Raise ``ValueError`` unless an array of this type can have the sharding."""
    if isinstance(sharding, NamedSharding):
        check_split(sharding, type.shape, what)


_COLORS = (24, 94, 22, 53, 88, 18, 58, 23, 90, 130, 30, 60)
"""Backgrounds, of the 256 that terminals have, on which white can be read."""


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding | PartitionSpec,
    *,
    use_color: bool = True,
    scale: float = 1.0,
) -> None:
    """Print which devices have which part of an array of this shape, as a table.

    Args:
        shape: the shape, of one axis, which is drawn from left to right, or of two, the first from
            top to bottom.
        sharding: how it is split; a ``PartitionSpec`` is over the mesh in use.
        use_color: whether each part has a color of its own, on a terminal.
        scale: how large the parts are drawn.

    Raises:
        TypeError: a size is not an integer, or ``sharding`` is none.
        ValueError: there are more axes, or none; an axis cannot be split so; or ``scale`` is not
            positive.

    As ``jax.debug.visualize_sharding``, without ``rich``.

    >>> import stretto as st
    >>> split = st.sharding.NamedSharding(st.make_mesh((1,), ("data",)), st.P("data"))
    >>> st.debug.visualize_sharding((8, 2), split)
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    caller = "visualize_sharding"
    with boundary:
        sizes = sizes_of(shape, caller)
        where = named_here(sharding, caller, "sharding")
        _draw(sizes, where, use_color, scale, caller, "shape")


def visualize_array_sharding(arr: Array, *, use_color: bool = True, scale: float = 1.0) -> None:
    """Print which devices have which part of an array, as a table.

    Args:
        arr: an array of one axis, which is drawn from left to right, or of two, the first from top
            to bottom.
        use_color: whether each part has a color of its own, on a terminal.
        scale: how large the parts are drawn.

    Raises:
        TypeError: ``arr`` is not an array, or is traced.
        ValueError: it has more axes, or none; or ``scale`` is not positive.

    As ``jax.debug.visualize_array_sharding``, without ``rich``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.debug.visualize_array_sharding(snp.ones(4))
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    caller = "visualize_array_sharding"
    with boundary:
        sharding = _sharding_of(arr, caller, "arr")
        _draw(arr.shape, sharding, use_color, scale, caller, "arr, shape")


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], Any]) -> None:
    """Call a function with the sharding of an array, at once.

    Args:
        value: an array; or a tree of them, whose shardings are then in a tree like it.
        callback: the function; what it returns is ignored.

    Raises:
        TypeError: ``callback`` is not a function, a leaf is not an array, or it is traced: return
            it, and look at its ``sharding``.

    As ``jax.debug.inspect_array_sharding``, of arrays that are not traced.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.debug.inspect_array_sharding(snp.ones(4), callback=print)
    SingleDeviceSharding(cpu:0)
    """
    caller = "inspect_array_sharding"
    with boundary:
        if not callable(callback):
            raise TypeError(f"{caller}: callback must be a function, got {callback!r}")
        leaves, structure = tree.flatten(value)
        paths = tree.paths(value, "value")
        found = [_sharding_of(x, caller, p) for x, p in zip(leaves, paths, strict=True)]
        callback(tree.unflatten(structure, found))


def _sharding_of(x: Any, caller: str, name: str) -> Sharding:
    """Return the sharding of an array."""
    if isinstance(x, Tracer):
        raise TypeError(
            f"{caller}: {name}, {x.type}, is traced, and the compiler has not yet chosen where it "
            f"is: return it from the jitted function, and look at the result's x.sharding; or say "
            f"where it is to be, stretto.lax.with_sharding_constraint({name}, sharding)"
        )
    if not isinstance(x, Array):
        raise TypeError(f"{caller}: {name} must be an array, got {type(x).__name__}")
    return getattr(x, "_sharding", None) or SingleDeviceSharding(default_device())


def _draw(
    shape: tuple[int, ...],
    sharding: Sharding,
    use_color: bool,
    scale: float,
    caller: str,
    what: str,
) -> None:
    if not 1 <= len(shape) <= 2:
        raise ValueError(
            f"{caller}: only arrays of one or two axes can be drawn; {what} {shown(shape)} has "
            f"{len(shape)}: print sharding.devices_indices_map(shape), or draw a slice"
        )
    if not scale > 0:
        raise ValueError(f"{caller}: scale must be positive, got {scale!r}")
    fit(sharding, array_type(shape, as_dtype(bool)), f"{caller}: the array of {what}")
    counts, numbers = sharding.tiling(len(shape))
    owners: list[list[Any]] = [[] for _ in range(math.prod(counts))]
    for device, number in zip(sharding.device_list, numbers, strict=True):
        owners[number].append(device)
    columns = counts[-1]
    names = [_named(devices) for devices in owners]
    rows = [names[k : k + columns] for k in range(0, len(names), columns)]
    colored = use_color and sys.stdout.isatty()
    print("\n".join(_table(rows, scale, colored)))


def _named(devices: Sequence[Any]) -> str:
    """Name devices of one platform by their ids: ``CPU 0-3,8``."""
    ids = sorted([device.id for device in devices])
    runs: list[list[int]] = []
    for n in ids:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"{devices[0].platform.upper()} {','.join(words)}"


def _table(rows: Sequence[Sequence[str]], scale: float, colored: bool) -> list[str]:
    """Return the lines of a table of these cells, all of one size."""
    longest = max([len(name) for row in rows for name in row])
    width = max(longest + 2, round((longest + 2) * scale))
    above = max(0, round(scale) - 1)  # empty lines above and below each name
    columns = len(rows[0])

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join(["─" * width] * columns) + right

    def line(cells: Sequence[str], row: int) -> str:
        written = [
            _painted(c.center(width), row * columns + k, colored) for k, c in enumerate(cells)
        ]
        return "│" + "│".join(written) + "│"

    lines = [rule("┌", "┬", "┐")]
    for k, cells in enumerate(rows):
        if k:
            lines.append(rule("├", "┼", "┤"))
        empty = [line([""] * columns, k)] * above
        lines += [*empty, line(cells, k), *empty]
    return [*lines, rule("└", "┴", "┘")]


def _painted(text: str, number: int, colored: bool) -> str:
    """Return the text on the background of the part with this number."""
    if not colored:
        return text
    return f"\x1b[97;48;5;{_COLORS[number % len(_COLORS)]}m{text}\x1b[0m"
