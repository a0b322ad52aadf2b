"""The axes that a gather or scatter relates: their numbers, checks, and StableHLO attributes."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.integers import integers
from stretto._engine.core.sizes import exceeds, is_size, lesser
from stretto._engine.core.types import ArrayType, array_type, kind_of


class GatherScatterMode(enum.Enum):
    """Say what becomes of windows out of bounds; each mode can be named in lower case too.

    ``FILL_OR_DROP`` reads the fill value, and writes nothing; ``ONE_HOT`` does the same, and asks
    devices other than CPUs to read by a matrix product.
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @classmethod
    def from_any(cls, s: str | GatherScatterMode | None) -> GatherScatterMode:
        """Find the mode of a name.

        Args:
            s: a mode, or its name in lower case; ``"fill"``, ``"drop"`` and None are one mode.

        Returns:
            The mode.

        Raises:
            ValueError: there is no mode of this name.

        >>> from stretto import lax
        >>> lax.GatherScatterMode.from_any("clip").name
        'CLIP'
        """
        access_mode("GatherScatterMode.from_any", s, "fill")
        if s is None or s in ("fill", "drop"):
            return cls.FILL_OR_DROP
        return cls[s.upper()] if isinstance(s, str) else cls[s.name]


def _canonicalize(numbers: Any) -> None:
    """Make each field a tuple of integers."""
    for field in dataclasses.fields(numbers):
        axes = integers(getattr(numbers, field.name), type(numbers).__name__, field.name)
        object.__setattr__(numbers, field.name, axes)


def check_numbers(caller: str, numbers: Any, family: type) -> None:
    """Raise ``TypeError`` unless these dimension numbers are of this class."""
    if not isinstance(numbers, family):
        raise TypeError(f"{caller}: dimension_numbers must be a {family.__name__}, got {numbers!r}")


@dataclasses.dataclass(frozen=True)
class GatherDimensionNumbers:
    """Say which axes of operand, indices and output a gather relates.

    Args:
        offset_dims: the output's axes that run over a window, in increasing order.
        collapsed_slice_dims: the operand's axes of window size 1 that the output leaves out.
        start_index_map: the operand's axis that each component of an index vector is for.
        operand_batching_dims: the operand's axes that go in step with axes of the indices.
        start_indices_batching_dims: those axes of the indices.

    Source: StableHLO, ``gather``; index vectors lie along the last axis of the indices.

    >>> import stretto as st, stretto.numpy as snp
    >>> rows = st.lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> st.lax.gather(snp.array([[1, 2], [3, 4]]), snp.array([[1]]), rows, (1, 2))
    Array([[3, 4]], dtype=int32)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _canonicalize(self)

    def mapped(self, operand: bool, indices: bool) -> GatherDimensionNumbers:
        """Renumber the axes where the operand, the indices, or both have a new first axis.

        Args:
            operand: whether the operand has one.
            indices: whether the indices have one.

        Returns:
            The new numbers.
        """
        x, i = int(operand), int(indices)
        both, only = (0,) if operand and indices else (), (0,) if operand and not indices else ()
        return GatherDimensionNumbers(
            (*only, *(d + 1 for d in self.offset_dims)),
            tuple(d + x for d in self.collapsed_slice_dims),
            tuple(d + x for d in self.start_index_map),
            (*both, *(d + x for d in self.operand_batching_dims)),
            (*both, *(d + i for d in self.start_indices_batching_dims)),
        )


@dataclasses.dataclass(frozen=True)
class ScatterDimensionNumbers:
    """Say which axes of operand, indices and updates a scatter relates.

    The counterpart of ``GatherDimensionNumbers``, field by field, with the updates in the place of
    a gather's output.

    Args:
        update_window_dims: the updates' axes that run over a window, in increasing order.
        inserted_window_dims: the operand's axes of window size 1 that the updates leave out.
        scatter_dims_to_operand_dims: the operand's axis that each component of an index vector is
            for.
        operand_batching_dims: the operand's axes that go in step with axes of the indices.
        scatter_indices_batching_dims: those axes of the indices.

    Source: StableHLO, ``scatter``.

    >>> import stretto as st, stretto.numpy as snp
    >>> rows = st.lax.ScatterDimensionNumbers((1,), (0,), (0,))
    >>> st.lax.scatter(snp.zeros((2, 2)), snp.array([[1]]), snp.array([[3.0, 4.0]]), rows)
    Array([[0., 0.],
           [3., 4.]], dtype=float32)
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _canonicalize(self)

    def gather(self) -> GatherDimensionNumbers:
        """Describe the gather that reads what this scatter writes.

        Returns:
            The numbers of that gather.
        """
        return GatherDimensionNumbers(*dataclasses.astuple(self))

    @staticmethod
    def of(numbers: GatherDimensionNumbers) -> ScatterDimensionNumbers:
        """Describe the scatter that writes what a gather reads.

        Args:
            numbers: the numbers of the gather.

        Returns:
            The numbers of that scatter.
        """
        return ScatterDimensionNumbers(*dataclasses.astuple(numbers))


def access_mode(caller: str, mode: str | GatherScatterMode | None, default: str) -> str:
    """Return the canonical name of a mode: ``fill`` is for reading, ``drop`` for writing."""
    outside = "fill" if default == "clip" else "drop"
    # Other enumerations with these names, such as JAX's, are accepted too.
    mode = getattr(mode, "name", mode)
    names = {
        None: default,
        "CLIP": "clip",
        "FILL_OR_DROP": outside,
        "PROMISE_IN_BOUNDS": "promise_in_bounds",
        "ONE_HOT": outside,
        "one_hot": outside,
        "clip": "clip",
        "fill": outside,
        "drop": outside,
        "promise_in_bounds": "promise_in_bounds",
    }
    if not (mode is None or isinstance(mode, str)) or mode not in names:
        raise ValueError(
            f"{caller}: mode must be 'clip', 'fill', 'drop' or 'promise_in_bounds'; got {mode!r}"
        )
    return names[mode]


def reading_mode(mode: Any, fill_value: Any) -> Any:
    """Return the mode; by default the one that uses the fill value, where there is one."""
    return "fill" if mode is None and fill_value is not None else mode


def window_sizes(
    operand: ArrayType, updates: ArrayType, numbers: GatherDimensionNumbers
) -> tuple[int, ...]:
    """Return the window's size along each axis of the operand, as the updates imply."""
    windows = iter([updates.shape[d] for d in numbers.offset_dims if d < updates.ndim])
    sizes = []
    for d, n in enumerate(operand.shape):
        if d in numbers.operand_batching_dims:
            sizes.append(lesser(n, 1))
        else:
            sizes.append(1 if d in numbers.collapsed_slice_dims else next(windows, n))
    return tuple(sizes)


def _require(holds: bool, caller: str, what: str) -> None:
    if not holds:
        raise ValueError(f"{caller}: {what}")


def _fits(size: Any, m: Any) -> bool:
    """Say whether a window fits an axis; of one element it does where the axis has any."""
    if is_size(m) and size.__class__ is int and size == 1:
        return exceeds(m, 0) or m.bounds()[1] > 0
    return 0 <= size <= m


def out_shape(
    caller: str,
    operand: ArrayType,
    indices: ArrayType,
    numbers: GatherDimensionNumbers,
    sizes: tuple[int, ...],
) -> tuple[int, ...]:
    """Return the shape of a gather's output, or of a scatter's updates; refuses what does not fit.

    Of an axis that may be empty one element can be asked for: there is none to be asked for then.
    """
    if kind_of(indices.dtype) not in ("int", "uint"):
        raise TypeError(f"{caller}: indices must be integers, got {indices}")
    n, map_, drop = numbers, numbers.start_index_map, numbers.collapsed_slice_dims
    context = f"; operand {operand}, indices {indices}, {numbers}, window sizes {sizes}"
    _require(indices.ndim > 0, caller, "indices need a last axis, of index vectors" + context)
    _require(
        len(map_) == indices.shape[-1],
        caller,
        f"index vectors have {indices.shape[-1]} components, for {len(map_)} axes" + context,
    )
    _require(
        len(sizes) == operand.ndim, caller, "one window size is needed for each axis" + context
    )
    _require(
        all(map(_fits, sizes, operand.shape)),
        caller,
        "a window is larger than the operand" + context,
    )
    omitted = (*drop, *n.operand_batching_dims)
    for axes in (omitted, (*map_, *n.operand_batching_dims)):
        _require(
            len(set(axes)) == len(axes) and all(0 <= d < operand.ndim for d in axes),
            caller,
            f"{axes} are not distinct axes of the operand" + context,
        )
    _require(
        all(sizes[d] <= 1 for d in omitted),
        caller,
        "collapsed axes need windows of size 1" + context,
    )
    pairs = list(zip(n.operand_batching_dims, n.start_indices_batching_dims, strict=False))
    _require(
        len(n.operand_batching_dims) == len(n.start_indices_batching_dims)
        and all(
            0 <= b < indices.ndim - 1 and operand.shape[a] == indices.shape[b] for a, b in pairs
        ),
        caller,
        "batching axes do not pair up in size" + context,
    )
    window = iter([size for d, size in enumerate(sizes) if d not in omitted])
    batch = iter(indices.shape[:-1])
    ndim = indices.ndim - 1 + operand.ndim - len(omitted)
    places = n.offset_dims
    _require(
        len(places) == operand.ndim - len(omitted)
        and list(places) == sorted(set(places))
        and all(0 <= d < ndim for d in places),
        caller,
        f"window axes {places} must be increasing, one for each axis not collapsed" + context,
    )
    return tuple(next(window) if d in places else next(batch) for d in range(ndim))


# Lowering of what both share


def index_operand(b: Any, indices: Any) -> Any:
    """Return the indices in a signed dtype that holds every bound."""
    dtype = indices.type.dtype
    if dtype.itemsize < 4 or dtype.name in ("int4", "uint4", "int2", "uint2"):
        return b.convert(indices, np.dtype(np.int32))
    if dtype == np.uint64:
        top = b.splat(np.iinfo(np.int64).max, indices.type)
        indices = b.emit("minimum", indices, top, out=indices.type)
    return b.convert(indices, np.dtype(np.int64)) if dtype.kind == "u" else indices


def bounds_operand(b: Any, indices: Any, shape: Any, sizes: Any, axes: Sequence[int]) -> Any:
    """Return the last start in bounds for each component, in the shape of the indices."""
    each = [shape[d] - sizes[d] for d in axes]
    if any(map(is_size, each)):
        one = array_type((1,), indices.type.dtype)
        parts = [b.reshape(b.scalar(n, one.dtype), one) for n in each]
        joined = b.concatenate(parts, 0, array_type((len(parts),), one.dtype))
        return b.broadcast(joined, (indices.type.ndim - 1,), indices.type)
    bounds = np.asarray(each, indices.type.dtype)
    if len(set(bounds.tolist())) == 1:
        return b.splat(bounds[0], indices.type)
    return b.broadcast(b.array(bounds), (indices.type.ndim - 1,), indices.type)


def attribute(name: str, fields: Mapping[str, Sequence[int]], vector: int) -> str:
    """Return the dimension numbers as StableHLO's attribute."""
    parts = [f"{key} = [{', '.join(map(str, dims))}]" for key, dims in fields.items() if dims]
    return f"#stablehlo.{name}<{', '.join([*parts, f'index_vector_dim = {vector}'])}>"


def flags(indices_are_sorted: bool, unique_indices: bool) -> str:
    """Return the promises about the indices, as attributes."""
    promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    return ", ".join(f"{name} = {str(holds).lower()}" for name, holds in promises.items())
