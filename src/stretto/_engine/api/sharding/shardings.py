"""Shardings that ``jit`` is given or that are drawn, and arrays made of their parts.

``in_shardings`` and ``out_shardings`` are trees of shardings that are prefixes of the arguments, or
of the result; they become one sharding for each leaf. ``stretto.debug`` has the functions that draw
them as tables of text or hand them to functions. Where an array is made of parts, each process
gives those that its devices have, and every part is checked against the sharding before the runtime
sees it.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stretto._engine import xla
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.integers import integer, shown, sizes_of
from stretto._engine.core.interpreter import Tracer, as_value, state
from stretto._engine.core.mesh import PartitionSpec
from stretto._engine.core.shardings import (
    Index,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    check_split,
)
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType, array_type, as_dtype
from stretto._engine.core.typing import ArrayLike, DTypeLike
from stretto._engine.eager.interpreter import EAGER
from stretto._engine.ops.sharding_constraint import named_here
from stretto._engine.xla.array import Array
from stretto._engine.xla.device import default_device


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding | PartitionSpec,
    data_callback: Callable[[Index], ArrayLike],
    dtype: DTypeLike | None = None,
) -> Array:
    """Make an array with a sharding of parts that a function gives.

    The function is called for the parts on devices of this process alone, and once for a part that
    several of them have.

    Args:
        shape: the shape of the whole array.
        sharding: where its parts are to be; a ``PartitionSpec`` is over the mesh in use.
        data_callback: a function of a slice for each axis, which gives that part: an array, one of
            NumPy's, or for a part without axes a number.
        dtype: the dtype of the parts; by default that of the first. It must be given where this
            process has no part.

    Returns:
        The array.

    Raises:
        TypeError: ``sharding`` is none, ``data_callback`` is not a function or gives no array, or
            parts differ in dtype from the first, or from ``dtype``.
        ValueError: an axis cannot be split so, a part has another shape than its slices, or the
            dtype is not known.

    As ``jax.make_array_from_callback``.

    >>> import numpy as np, stretto as st
    >>> split = st.sharding.NamedSharding(st.make_mesh((1,), ("data",)), st.P("data"))
    >>> rows = np.arange(6.0).reshape(3, 2)
    >>> st.sharding.make_array_from_callback((3, 2), split, lambda index: rows[index]).sharding.spec
    PartitionSpec('data')
    """
    caller = "make_array_from_callback"
    with boundary:
        sizes, where = _whole(shape, sharding, caller)
        if not callable(data_callback):
            raise TypeError(
                f"{caller}: data_callback must be a function of a slice for each axis; got "
                f"{data_callback!r}"
            )
        made: dict[tuple[tuple[int, int], ...], Array] = {}
        parts, names = [], []
        for index in _local(where, where.indices(sizes)):
            key = tuple([(axis.start, axis.stop) for axis in index])
            name = f"data_callback({_shown(index)})"
            if key not in made:
                made[key] = _value(data_callback(index), caller, name)
            parts.append(made[key])
            names.append(name)
        return _together(parts, names, sizes, where, dtype, caller)


def make_array_from_single_device_arrays(
    shape: Sequence[int],
    sharding: Sharding | PartitionSpec,
    arrays: Sequence[Array],
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Make an array with a sharding of parts that are on its devices already.

    The parts are copied, each on its device, so that donating one of the arrays leaves the others.

    Args:
        shape: the shape of the whole array.
        sharding: where its parts are; a ``PartitionSpec`` is over the mesh in use.
        arrays: an array on each of those devices that belong to this process, in any order.
        dtype: the dtype of the parts; by default that of the first. It must be given where this
            process has no part.

    Returns:
        The array.

    Raises:
        TypeError: ``sharding`` is none, ``arrays`` is not a sequence of arrays, or they differ in
            dtype from the first, or from ``dtype``.
        ValueError: an axis cannot be split so; there are more or fewer arrays than devices; an
            array is on several devices, or on none of the sharding's, or on that of another; it
            has another shape than the part; or the dtype is not known.
        DonatedArrayError: an array was donated to a jitted call, or deleted.

    As ``jax.make_array_from_single_device_arrays``.

    >>> import stretto as st, stretto.numpy as snp
    >>> split = st.sharding.NamedSharding(st.make_mesh((1,), ("data",)), st.P("data"))
    >>> st.sharding.make_array_from_single_device_arrays((2,), split, [snp.ones(2)]).sharding.spec
    PartitionSpec('data')
    """
    caller = "make_array_from_single_device_arrays"
    with boundary:
        sizes, where = _whole(shape, sharding, caller)
        if not isinstance(arrays, (list, tuple)):
            raise TypeError(
                f"{caller}: arrays must be a list of arrays, one for each device; got {arrays!r}"
            )
        values = [_array(x, caller, f"arrays[{i}]") for i, x in enumerate(arrays)]
        devices = [device for device in where.device_list if device.is_local]
        if len(values) != len(devices):
            raise ValueError(
                f"{caller}: arrays must have one for each of the {len(devices)} devices of this "
                f"process that {where} is on; got {len(values)}"
            )
        by_device: dict[Any, int] = {}
        for i, x in enumerate(values):
            there = xla.sharded.sharding_of(x)
            device = there.device_list[0]
            if there.num_devices > 1 or device not in devices:
                raise ValueError(
                    f"{caller}: arrays[{i}], {x.type}, must be on one of the devices of {where}, "
                    f"{', '.join(map(str, devices))}; it is on "
                    f"{', '.join(map(str, there.device_list))}: put it there first, "
                    f"stretto.device_put(arrays[{i}], device)"
                )
            if device in by_device:
                raise ValueError(
                    f"{caller}: arrays[{by_device[device]}] and arrays[{i}] are both on {device}, "
                    f"and each device has one part: put each on its own, "
                    f"stretto.device_put(arrays[{i}], device)"
                )
            by_device[device] = i
        order = [by_device[device] for device in devices]
        names = [f"arrays[{i}]" for i in order]
        return _together([values[i] for i in order], names, sizes, where, dtype, caller)


def make_array_from_process_local_data(
    sharding: Sharding | PartitionSpec,
    local_data: ArrayLike,
    global_shape: Sequence[int | None] | None = None,
) -> Array:
    """Make an array with a sharding of what this process has of it.

    Args:
        sharding: where its parts are to be; a ``PartitionSpec`` is over the mesh in use.
        local_data: the parts of this process's devices, side by side. An axis of which
            ``global_shape`` says the size may also be there as a whole: the parts are then taken
            from it.
        global_shape: the shape of the whole array, with None for sizes that follow from
            ``local_data``, as all do by default.

    Returns:
        The array.

    Raises:
        TypeError: ``sharding`` is none, ``local_data`` is no array, or a size is not an integer.
        ValueError: an axis cannot be split so, ``local_data`` has not the size of the parts of this
            process, or these do not lie side by side.

    As ``jax.make_array_from_process_local_data``.

    >>> import numpy as np, stretto as st
    >>> split = st.sharding.NamedSharding(st.make_mesh((1,), ("data",)), st.P("data"))
    >>> st.sharding.make_array_from_process_local_data(split, np.ones((4, 2))).shape
    (4, 2)
    """
    caller = "make_array_from_process_local_data"
    with boundary:
        where = named_here(sharding, caller, "sharding")
        value = _value(local_data, caller, "local_data")
        local = value.type.shape
        asked = _asked_sizes(global_shape, local, caller)
        sizes, parts = local_parts(where, local, asked, caller)
        host, dtype = value.to_host(), value.type.dtype
        type = array_type(where.shard_shape(sizes), dtype)
        found = [Array(host[index], type) for index in parts]
        return _together(found, ["local_data"] * len(found), sizes, where, dtype, caller)


def local_parts(
    sharding: Sharding, local: tuple[int, ...], asked: Sequence[int | None], caller: str
) -> tuple[tuple[int, ...], list[Index]]:
    """Return the shape of an array of which this process has ``local``, and where its parts are.

    Args:
        sharding: where the parts are.
        local: the shape of what this process has.
        asked: the shape of the whole, with None for what follows from ``local``.
        caller: who asks, for messages.

    Returns:
        The shape of the whole; and for each device of this process a slice of ``local`` for each
        axis.

    Raises:
        ValueError: the sizes do not fit.
    """
    ndim = len(local)
    # Each axis has as many elements as it has parts: the index of a part is then its number.
    counts, numbers = _parts_of(sharding, local, caller)
    mine = list(_local(sharding, numbers))
    if not mine:
        raise ValueError(
            f"{caller}: no device of {sharding} belongs to this process, which has no part: make "
            f"the array of none, stretto.sharding.make_array_from_callback(shape, sharding, f, "
            f"dtype)"
        )
    rows = [sorted({number[axis] for number in mine}) for axis in range(ndim)]
    if len(set(mine)) != math.prod([len(row) for row in rows]):
        raise ValueError(
            f"{caller}: the parts of {sharding} on the devices of this process do not lie side by "
            f"side; make the array of them one by one, stretto.sharding.make_array_from_callback"
        )
    sizes, whole = [], []
    for axis, (size, size_asked) in enumerate(zip(local, asked, strict=True)):
        n, parts = len(rows[axis]), counts[axis]
        if size_asked is None and size % n:
            raise ValueError(
                f"{caller}: axis {axis} of local_data, shape {shown(local)}, has size {size}, "
                f"which is not a multiple of the {n} parts along it on the devices of this process"
            )
        total = size // n * parts if size_asked is None else size_asked
        as_parts = total % parts == 0 and size == total // parts * n
        if not as_parts and size != total:
            raise ValueError(
                f"{caller}: axis {axis} of local_data, shape {shown(local)}, has size {size}, and "
                f"must have {n} of the {parts} parts of {total} elements, "
                f"{total * n / parts:g}, or all of them"
            )
        sizes.append(total)
        whole.append(not as_parts)
    shape = tuple(sizes)
    fit(sharding, array_type(shape, as_dtype(bool)), f"{caller}: the array of shape {shown(shape)}")
    part = sharding.shard_shape(shape)
    slices = []
    for number in mine:
        starts = [
            k if all_there else row.index(k)
            for k, all_there, row in zip(number, whole, rows, strict=True)
        ]
        slices.append(tuple([slice(k * n, k * n + n) for k, n in zip(starts, part, strict=True)]))
    return shape, slices


def _parts_of(
    sharding: Sharding, local: tuple[int, ...], caller: str
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Give the number of parts along each axis, and for each device that of its part along each."""
    ndim = len(local)
    spec = getattr(sharding, "spec", ())
    if len(spec) > ndim:
        raise ValueError(
            f"{caller}: local_data has {ndim} axes, shape {shown(local)}, and its sharding has "
            f"entries for {len(spec)}: {spec}; leave the last of them out"
        )
    counts, numbers = sharding.tiling(ndim)
    every = list(itertools.product(*map(range, counts)))
    return counts, [every[number] for number in numbers]


def _asked_sizes(
    sizes: Sequence[int | None] | None, local: tuple[int, ...], caller: str
) -> tuple[int | None, ...]:
    """Return the sizes that are asked for, None for those that are not."""
    if sizes is None:
        return (None,) * len(local)
    listed = [None if n is None else integer(n, caller, "global_shape", 0) for n in sizes]
    if len(listed) != len(local):
        raise ValueError(
            f"{caller}: global_shape must have a size for each axis of local_data, shape "
            f"{shown(local)}; got {tuple(listed)}"
        )
    return tuple(listed)


def _whole(shape: Any, sharding: Any, caller: str) -> tuple[tuple[int, ...], Sharding]:
    """Return the shape of the whole, and the sharding that it can have."""
    sizes = sizes_of(shape, caller)
    where = named_here(sharding, caller, "sharding")
    fit(where, array_type(sizes, as_dtype(bool)), f"{caller}: the array of shape {shown(sizes)}")
    return sizes, where


def _local(sharding: Sharding, each: Sequence[Any]) -> list[Any]:
    """Return the items of a list with one for each device that are for devices of this process."""
    return [x for device, x in zip(sharding.device_list, each, strict=True) if device.is_local]


def _value(x: Any, caller: str, name: str) -> Array:
    """Return the concrete array of what a user gave, also while something is traced."""
    return _array(holding(state, "interpreter", EAGER, as_value, x, caller, name), caller, name)


def _array(x: Any, caller: str, name: str) -> Array:
    """Return the array, if it is one, and not traced."""
    if isinstance(x, Array) and not isinstance(x, Tracer):
        return x
    found = f"the traced {x.type}" if isinstance(x, Tracer) else f"{type(x).__name__}"
    raise TypeError(f"{caller}: {name} must be an array that is not traced; got {found}")


def _together(
    parts: Sequence[Array],
    names: Sequence[str],
    shape: tuple[int, ...],
    sharding: Sharding,
    dtype: DTypeLike | None,
    caller: str,
) -> Array:
    """Return the array of these parts, in the devices' order, once they are what they must be."""
    if dtype is None and not parts:
        raise ValueError(
            f"{caller}: no device of {sharding} belongs to this process, so that dtype must be "
            f"given, the same for all processes"
        )
    wanted = parts[0].type.dtype if dtype is None else as_dtype(dtype)
    size = sharding.shard_shape(shape)
    for part, name in zip(parts, names, strict=True):
        if part.type.shape != size:
            raise ValueError(
                f"{caller}: {name} must have the shape {shown(size)} of a part of "
                f"{shown(shape)} with {sharding}; got {part.type}"
            )
        if part.type.dtype != wanted:
            asked = f"that of {names[0]}" if dtype is None else "dtype"
            raise TypeError(
                f"{caller}: {name} must have the dtype {wanted.name}, {asked}; got {part.type}: "
                f"convert it, x.astype({wanted.name!r})"
            )
    type = array_type(shape, wanted)
    if isinstance(sharding, SingleDeviceSharding) and sharding.device_list == (default_device(),):
        return Array(parts[0].to_host().copy(), type)
    return xla.sharded.of_arrays(parts, type, sharding)


def _shown(index: Index) -> str:
    """Return the slices as Python's indexing has them."""
    return f"[{', '.join([f'{axis.start}:{axis.stop}' for axis in index])}]"


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
