"""Slices at places that are computed, gathers, scatters and sorts, as ONNX nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, kind_of, real_dtype
from stretto._engine.lowering.onnx.graph import Operand, Pair
from stretto._engine.lowering.onnx.kernels import stand_in
from stretto._engine.lowering.onnx.writer import Writer

_BOOL = np.dtype(bool)
_I32, _I64 = np.dtype(np.int32), np.dtype(np.int64)


class Indexing(Writer):
    """A writer of what reads and writes at indices."""

    def slice_at(self, x: Any, i: Operand) -> Any:
        """Return ``x[i]`` for a scalar ``i`` in range."""
        out = x.type.with_shape(x.type.shape[1:])
        if isinstance(x, Pair):
            return self._by_parts(lambda v, _: self.slice_at(v, i), out, x)
        x = self.whole(x)
        return Operand(self.node("Gather", [self.named(x), self.named(i)], axis=0), out, out.shape)

    def _starts(
        self, x: ArrayType, sizes: Sequence[Any], starts: Sequence[Operand]
    ) -> list[tuple[int, str]]:
        """Return the axes along which a slice is not the whole, and where it starts: int64, [1]."""
        found = []
        for axis, (n, m, start) in enumerate(zip(x.shape, sizes, starts, strict=True)):
            if n == m:
                continue
            wide = self.cast(start, _I64)
            if wide.value is not None and not is_size(n) and not is_size(m):
                place = min(max(int(wide.value.reshape(())), 0), n - m)
                found.append((axis, self.ints([place])))
                continue
            name = self.node("Reshape", [self.named(wide), self.ints([1])])
            low = self.node("Max", [name, self.ints([0])])
            found.append((axis, self.node("Min", [low, self.size(n - m)])))
        return found

    def dynamic_slice(self, x: Any, starts: Sequence[Operand], sizes: Sequence[Any]) -> Any:
        """Return the slice of these sizes that starts there, moved to fit."""
        out = array_type(tuple(sizes), x.type.dtype)
        if isinstance(x, Pair):
            return self._by_parts(lambda v, _: self.dynamic_slice(v, starts, sizes), out, x)
        places = self._starts(x.type, sizes, starts)
        if not places:
            return x
        x = self.whole(x)
        axes = [axis for axis, _ in places]
        first = [name for _, name in places]
        last = [self.node("Add", [name, self.size(sizes[axis])]) for axis, name in places]
        joined = [n[0] if len(n) == 1 else self.node("Concat", n, axis=0) for n in (first, last)]
        name = self.node("Slice", [self.named(x), *joined, self.ints(axes)])
        return Operand(name, out, out.shape)

    def dynamic_update_slice(self, x: Any, update: Any, starts: Sequence[Operand]) -> Any:
        """Return ``x`` with the update in it, whose start is moved so that it fits."""
        if isinstance(x, Pair):
            parts = [
                self.dynamic_update_slice(getattr(x, name), getattr(update, name), starts)
                for name in ("real", "imag")
            ]
            return Pair(x.type, *parts)
        places = self._starts(x.type, update.type.shape, starts)
        if not places:
            return update.seen_as(x.type, update.shape)
        x, update = self.whole(x), self.whole(update)
        name = self._replaced(self.named(x), self.named(update), x.type, update.type, places)
        return Operand(name, x.type, x.type.shape)

    def _replaced(
        self,
        x: str,
        update: str,
        type: ArrayType,
        new: ArrayType,
        places: Sequence[tuple[int, str]],
    ) -> str:
        """Join what is before and after along an axis, and what is between, which is next."""
        (axis, start), *rest = places
        along = self.ints([axis])
        end = self.node("Add", [start, self.size(new.shape[axis])])
        before = self.node("Slice", [x, self.ints([0]), start, along])
        after = self.node("Slice", [x, end, self.size(type.shape[axis]), along])
        if rest:
            middle = self.node("Slice", [x, start, end, along])
            shape = [*type.shape]
            shape[axis] = new.shape[axis]
            update = self._replaced(middle, update, type.with_shape(tuple(shape)), new, rest)
        return self.node("Concat", [before, update, after], axis=axis)

    # Gathers and scatters

    def _components(self, indices: Operand, count: int) -> list[Operand]:
        """Return each component of the index vectors, int64, in the shape of the batch."""
        shape = indices.type.shape[:-1]
        wide = self.cast(indices, _I64)
        ones = [self.slice(wide, self._along(wide.type, k, k + 1)) for k in range(count)]
        return [self.reshape(one, array_type(shape, _I64)) for one in ones]

    def _places(
        self, type: ArrayType, indices: Operand, numbers: Any, sizes: Sequence[Any], clip: bool
    ) -> tuple[list[int], list[Operand], list[int], Any]:
        """Return axes that are indexed, an index for each, those of windows, and what is inside.

        The last says of each window whether it is within the operand. The indices have the batch's
        axes, then one for each window axis among those indexed.
        """
        batch = indices.type.shape[:-1]
        components = dict(
            zip(numbers.start_index_map, self._components(indices, len(numbers.start_index_map)))
        )
        stepped = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims))
        axes = sorted({*components, *stepped})
        windows = [d for d in axes if d not in numbers.collapsed_slice_dims and d not in stepped]
        shape = (*batch, *[sizes[d] for d in windows])
        out = array_type(shape, _I64)
        inside: Any = None
        found = []
        for d in axes:
            if d in stepped:
                place = self.iota(stepped[d], out)
                found.append(place)
                continue
            start = components[d]
            limit = self._number(type.shape[d] - sizes[d], start.type)
            zero = self.splat(0, start.type)
            flags = array_type(batch, _BOOL)
            here = self.apply(
                "And", [self.compare("GE", start, zero), self.compare("LE", start, limit)], flags
            )
            inside = here if inside is None else self.apply("And", [inside, here], flags)
            if clip:
                start = self.emit("clamp", zero, start, limit, out=start.type)
            place = self.broadcast(start, range(len(batch)), out)
            if d in windows and sizes[d] != 1:
                offset = self.iota(len(batch) + windows.index(d), out)
                place = self.apply("Add", [place, offset], out)
            found.append(place)
        return axes, found, windows, inside

    def _number(self, n: Any, type: ArrayType) -> Operand:
        """Return a size, which may vary, as a constant of this type does: without axes."""
        if not is_size(n):
            return self.splat(int(n), type)
        return Operand(self.node("Squeeze", [self.size(n)]), type, ())

    def gather(
        self,
        x: Any,
        indices: Operand,
        numbers: Any,
        sizes: Sequence[Any],
        out: ArrayType,
        fill: Any = None,
    ) -> Any:
        """Return windows of the operand at index vectors, clipped; or filled outside."""
        if isinstance(x, Pair):
            fills = (None, None) if fill is None else (fill.real, fill.imag)
            part = array_type(out.shape, real_dtype(out.dtype))
            parts = [
                self.gather(v, indices, numbers, sizes, part, f)
                for v, f in zip((x.real, x.imag), fills, strict=True)
            ]
            return Pair(out, *parts)
        if not out.varies and out.size == 0:
            return self.nothing(out)
        batch = indices.type.shape[:-1]
        axes, places, windows, inside = self._places(x.type, indices, numbers, sizes, clip=True)
        rest = [d for d in range(x.type.ndim) if d not in axes]
        # The axes that are not indexed are read from their start on, if not whole.
        if any(sizes[d] != x.type.shape[d] for d in rest):
            parts = [(0, sizes[d] if d in rest else n, 1) for d, n in enumerate(x.type.shape)]
            x = self.slice(x, parts)
        kept = [*windows, *rest]
        shape = (*batch, *[sizes[d] for d in windows], *[sizes[d] for d in rest])
        made = array_type(shape, x.type.dtype)
        if not axes:
            result: Any = self.broadcast(x, range(len(batch), len(shape)), made)
        elif len(axes) == 1 and (not rest or axes[0] == 0 or (not batch and not windows)):
            index = self.whole(places[0])
            name = self.node("Gather", [self.named(self.whole(x)), self.named(index)], axis=axes[0])
            result = Operand(name, made, shape)
        else:
            turned = self.transpose(x, [*axes, *rest]) if axes != [*range(len(axes))] else x
            result = self._gather_many(self.whole(turned), places, made)
        # The window's axes, in the order of the operand, take the places of offsets.
        order = sorted(kept)
        offsets = [d for d in order if d not in numbers.collapsed_slice_dims]
        window_at = dict(zip(offsets, numbers.offset_dims, strict=False))
        target: list[int] = [0] * len(shape)
        for k, d in enumerate(kept):
            target[window_at[d]] = len(batch) + k
        free = [k for k in range(len(shape)) if k not in numbers.offset_dims]
        for k, place in enumerate(free):
            target[place] = k
        result = self.transpose(result, target)
        result = self.typed(result, array_type(out.shape, x.type.dtype))
        if fill is None or inside is None:
            return result
        mask = self.broadcast(inside, free, array_type(out.shape, _BOOL))
        return self.select(mask, result, fill)

    def _vectors(self, places: Sequence[Operand]) -> str:
        """Return the name of the indices as vectors along a last axis."""
        shape = places[0].type.shape
        columns = []
        for place in places:
            column = self.reshape(self.whole(place), array_type((*shape, 1), _I64))
            columns.append(column)
        whole = array_type((*shape, len(places)), _I64)
        return self.named(self.whole(self.concatenate(columns, len(shape), whole)))

    def _gather_many(self, x: Operand, places: Sequence[Operand], out: ArrayType) -> Operand:
        name = self.node("GatherND", [self.named(x), self._vectors(places)])
        return Operand(name, out, out.shape)

    def scatter(
        self,
        update: str,
        x: Any,
        indices: Operand,
        updates: Any,
        numbers: Any,
        sizes: Sequence[Any],
        clip: bool,
    ) -> Any:
        """Return the operand with windows updated: ``set add sub mul min max``."""
        if isinstance(x, Pair):
            if update not in ("set", "add", "sub"):
                self.refuse(f"there is no scatter by {update!r} of complex numbers")
            parts = [
                self.scatter(update, a, indices, u, numbers, sizes, clip)
                for a, u in ((x.real, updates.real), (x.imag, updates.imag))
            ]
            return Pair(x.type, *parts)
        if not updates.type.varies and updates.type.size == 0:
            return x
        type = x.type
        narrow = type.kind == "float" and type.dtype.itemsize < 4
        wide = np.dtype(np.float32) if narrow and update != "set" else type.dtype
        if type.kind == "bool" and update != "set":
            wide = _I32
            update = {"add": "max", "mul": "min"}.get(update, update)
        x, updates = self.cast(x, wide), self.cast(updates, wide)
        if update == "sub":
            updates, update = self.emit("negate", updates, out=updates.type), "add"
        batch = indices.type.shape[:-1]
        axes, places, windows, inside = self._places(type, indices, numbers, sizes, clip)
        rest = [d for d in range(type.ndim) if d not in axes]
        if any(sizes[d] != type.shape[d] for d in rest):
            return self._scatter_part(update, x, indices, updates, numbers, sizes, clip, type)
        # The updates, as the batch's axes, the window's that are indexed, and the rest.
        free = [k for k in range(updates.type.ndim) if k not in numbers.offset_dims]
        order = [d for d in range(type.ndim) if d in windows or d in rest]
        at = dict(zip(order, numbers.offset_dims, strict=True))
        turned = self.transpose(updates, [*free, *[at[d] for d in (*windows, *rest)]])
        if not axes:
            if update != "set" or batch:
                self.refuse(f"a scatter by {update!r} without indices has no counterpart")
            return self.typed(turned, type)
        operand = self.transpose(x, [*axes, *rest])
        grown = operand.type
        shape = grown.shape
        if not clip and inside is not None:
            first = axes.index(numbers.start_index_map[0])
            flags = array_type((*batch, *[sizes[d] for d in windows]), _BOOL)
            mask = self.broadcast(inside, range(len(batch)), flags)
            operand, places = self._with_a_row_behind(operand, places, mask, first)
            grown = operand.type
        reduction = {"set": "none"}.get(update, update)
        names = [
            self.named(self.whole(operand)), self._vectors(places), self.named(self.whole(turned))
        ]  # fmt: skip
        result = Operand(self.node("ScatterND", names, reduction=reduction), grown, grown.shape)
        if grown.shape != shape:
            result = self.slice(result, [(0, n, 1) for n in shape])
        back = np.argsort([*axes, *rest])
        return self.cast(self.transpose(result, [int(k) for k in back]), type.dtype)

    def _with_a_row_behind(
        self, x: Operand, places: Sequence[Operand], mask: Operand, first: int
    ) -> tuple[Operand, list[Operand]]:
        """Return the operand with a row behind the last, where indices outside go."""
        shape, n = x.type.shape, x.type.shape[first]
        behind, zero = [self._number(v, places[first].type) for v in (n, 0)]
        moved = [self.select(mask, p, behind if k == first else zero) for k, p in enumerate(places)]
        ends = [(0, 1) if k == first else (0, 0) for k in range(len(shape))]
        longer = tuple([m + 1 if k == first else m for k, m in enumerate(shape)])
        grown = array_type(longer, x.type.dtype)
        element = self.splat(0, array_type((), x.type.dtype))
        return self._edges(x, element, ends, grown), moved

    def _scatter_part(
        self,
        update: str,
        x: Operand,
        indices: Operand,
        updates: Operand,
        numbers: Any,
        sizes: Sequence[Any],
        clip: bool,
        type: ArrayType,
    ) -> Operand:
        """Update the first part of axes that are not indexed, and put the rest beside it."""
        rest = [d for d in range(type.ndim) if sizes[d] != type.shape[d]]
        indexed = {*numbers.start_index_map, *numbers.operand_batching_dims}
        places = [self.scalar(0, _I64) for _ in range(type.ndim)]
        cut = [
            (0, sizes[d] if d in rest and d not in indexed else n, 1)
            for d, n in enumerate(type.shape)
        ]
        part = self.slice(x, cut)
        new = self.scatter(update, part, indices, updates, numbers, sizes, clip)
        return self.cast(self.dynamic_update_slice(x, new, places), type.dtype)

    # Orders

    def order(self, x: Operand, axis: int, count: Any, largest: bool) -> tuple[Operand, Operand]:
        """Return the first elements in order along an axis, with their indices.

        NaN comes last where the least come first, and first where the greatest do. Equal ones stay
        in order.
        """
        dtype = stand_in("TopK", x.type.dtype)
        if dtype is None:
            values, index = self.order(self.to_signed(x), axis, count, largest)
            return self.from_signed(values), index
        shape = [*x.type.shape]
        shape[axis] = count
        out = array_type(tuple(shape), dtype)
        names = [self.named(self.whole(self.cast(x, dtype))), self.size(count)]
        values, index = self.node("TopK", names, 2, axis=axis, largest=int(largest), sorted=1)
        found = Operand(index, array_type(out.shape, _I64), out.shape)
        return self.cast(Operand(values, out, out.shape), x.type.dtype), found

    def along(self, x: Any, index: Operand, axis: int) -> Any:
        """Return the elements at indices along an axis."""
        out = x.type.with_shape(index.type.shape)
        if isinstance(x, Pair):
            return self._by_parts(lambda v, _: self.along(v, index, axis), out, x)
        x, index = self.whole(x), self.whole(index)
        name = self.node("GatherElements", [self.named(x), self.named(index)], axis=axis)
        return Operand(name, out, out.shape)

    def sort(self, operands: Sequence[Any], axis: int, keys: int) -> list[Any]:
        """Return the operands in the order of the first ``keys`` of them, the first foremost."""
        n = operands[0].type.shape[axis]
        parts = self.parts(operands[:keys])
        if len(parts) == len(operands) == 1:
            return [self.order(parts[0], axis, n, False)[0]]
        total: Operand | None = None
        for key in reversed(parts):
            here = key if total is None else self.along(key, total, axis)
            index = self.order(here, axis, n, False)[1]
            total = index if total is None else self.along(total, index, axis)
        assert total is not None
        return [self.along(x, total, axis) for x in operands]

    def place(self, x: Operand, axis: int, greatest: bool, out: ArrayType) -> Operand:
        """Return the index of the greatest or least element, or of NaN: the first among equals."""
        op = "ArgMax" if greatest else "ArgMin"
        if x.type.kind == "bool":
            x = self.cast(x, _I32)
        dtype = stand_in(op, x.type.dtype)
        if dtype is None:
            return self.place(self.to_signed(x), axis, greatest, out)
        wide = self.whole(self.cast(x, dtype))
        made = array_type(out.shape, _I64)
        name = self.node(op, [self.named(wide)], axis=axis, keepdims=0)
        found = Operand(name, made, out.shape)
        if kind_of(x.type.dtype) == "float" and self.exact:
            nan = self.cast(self.compare("NE", wide, wide), _I32)
            first = self.node("ArgMax", [self.named(nan)], axis=axis, keepdims=0)
            some = self.reduce("maximum", nan, (axis,), 0)
            is_nan = self.compare("GT", some, self.splat(0, some.type))
            found = self.select(is_nan, Operand(first, made, out.shape), found)
        return self.convert(found, out.dtype)

    def cumulative(self, op: str, x: Any, axis: int, reverse: bool) -> Any:
        """Return running sums or products: ``CumSum`` or ``CumProd``."""
        if isinstance(x, Pair):
            return self._by_parts(lambda v, _: self.cumulative(op, v, axis, reverse), x.type, x)
        dtype = x.type.dtype
        wide = stand_in(op, dtype)
        if kind_of(dtype) in ("int", "uint"):
            wide = dtype if dtype in (_I32, _I64) else _I64
        if kind_of(dtype) == "float" and dtype.itemsize < 4:
            wide = np.dtype(np.float32)
        assert wide is not None
        whole = self.whole(self.cast(x, wide))
        place = self.constant(np.array(axis, np.int64))
        name = self.node(op, [self.named(whole), place], reverse=int(reverse))
        return self.cast(Operand(name, whole.type, whole.type.shape), dtype)
