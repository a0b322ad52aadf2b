"""Write operations, constants, loops, branches and calls of Python, for ``lower`` rules.

Each method appends lines of text and returns the operands that stand for results. Source: the
StableHLO specification.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.program import Var
from stretto._engine.core.sizes import Size, is_size
from stretto._engine.core.types import ArrayType, array_type, bytes_of, kind_of
from stretto._engine.kernels import multiplies
from stretto._engine.lowering import attention, convolutions, gathers
from stretto._engine.lowering.text import (
    TOKEN,
    Decided,
    Element,
    Facts,
    HostCall,
    Operand,
    Product,
    element_text,
    function_type,
    tensor_type,
)
from stretto._engine.ops.convolution.formulation import suits_kernel
from stretto._engine.ops.product_strides import TARGET, View, geometry, row_major

_MOST_WRITTEN = 256
"""The most elements of a constant array that is written into the text; larger ones are passed."""

_LARGE = 1 << 20
"""The bytes from which on zeros that nobody reads are not written."""

_MOST_ELEMENTS = 1024
"""The most operands and results of a kernel that is told where they are (``kernels/module.c``)."""

_NOT_BETWEEN_SCALARS = {"while", "case", "custom_call"}
"""XLA's kernels for reductions cannot have these inside, nor arrays; some end the process."""

_SWAPS = {(1, 0), (0, 2, 1), (0, 1, 3, 2)}
"""The orders of axes that swap the last two alone."""

_FLOAT_BITS = {np.dtype(np.float32): (8, 23), np.dtype(np.float64): (11, 52)}
"""Bits of the exponent and of the mantissa. Narrower floats are divided in float32."""

_EXTREMA = {"maximum": "GT", "minimum": "LT"}
"""The comparison by which the first of two elements is the extremum."""


class Writer:
    """Writes StableHLO: one ``emit`` an operation, and the forms with regions."""

    @property
    def partitioned(self) -> bool:
        """Say whether the text is for several devices."""
        return False

    @property
    def platform(self) -> str:
        """The platform of the devices that the text is for."""
        return "cpu"

    has_kernels = False
    """Whether kernels of our own may be called here: by one CPU, that of this process."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        # The constants of this block, by element and type as written, and by literal.
        self._constants: dict[tuple[Any, Any], Operand] = {}
        self._count = 0
        self._in_loop = False
        self._calls: list[HostCall] = []
        self._arrays: dict[int, np.ndarray] = {}  # large constants that are passed, by id
        self._passed: dict[int, Operand] = {}  # those that the current function is passed
        self._facts = Facts()
        # By name: what the compiler may see as a broadcast, broadcasts, transposes that swap the
        # last two axes, and what was divided.
        self._repetitions: set[str] = set()
        self._broadcasts: set[str] = set()
        self._swapped: set[str] = set()
        self._quotients: set[str] = set()
        # Transposes and broadcasts by name: of what, and how they lie in it.
        self._views: dict[str, tuple[Operand, View]] = {}
        self._reversed: dict[str, tuple[Operand, View]] = {}  # the same for reversed arrays
        self._parts: dict[str, tuple[Operand, View]] = {}  # and for slices and other shapes
        self._in_function = False  # whether this is for a function that is called
        # The result of the last ordered call, for the next one; None where no call is ordered.
        self._token: Operand | None = None
        self._scalars = False  # whether this is for the region of a reduction, a sort or the like
        self._has_scalars_alone = True  # whether all that was written for such a region is allowed
        # The outputs of the equation being lowered, and its location as written.
        self._outputs: Sequence[Var] = ()
        self._location = ""
        # The operands whose memory outputs of programs are to take.
        self._homes: dict[Any, Operand] = {}
        # Elements of arrays in loops: operands that are such, by name; those at which outputs are
        # put; and of what was put there, the array before and after, by name.
        self._elements: dict[str, Element] = {}
        self._stacks: dict[Any, Element] = {}
        self._put: dict[str, tuple[Operand, Operand]] = {}

    @property
    def homes(self) -> list[Operand | None]:
        """The operands whose memory the results of the equation being lowered are to take."""
        stacks = {v: e.array for v in self._outputs if (e := self._stacks.get(v)) is not None}
        return [self._homes.get(v, stacks.get(v)) for v in self._outputs]

    @property
    def outs(self) -> tuple[ArrayType, ...]:
        """The output types of the equation being lowered."""
        return tuple([v.type for v in self._outputs])

    def emit(
        self,
        op: str,
        *operands: Operand,
        attributes: str = "",
        out: ArrayType | None = None,
        dialect: str = "stablehlo",
    ) -> Operand:
        """Write an operation with one result, by default of the type inferred for the equation."""
        return self.operation(f"{dialect}.{op}", operands, attributes, out)

    def operation(
        self,
        op: str,
        operands: Sequence[Operand],
        attributes: str = "",
        out: ArrayType | None = None,
    ) -> Operand:
        """Do what ``emit`` does, for a name that includes the dialect."""
        type = self._outputs[0].type if out is None else out
        self._count += 1
        name = f"%{self._count}"
        names, types = [], []
        reads_others = not operands  # than what the compiler may see as a broadcast
        for x in operands:
            names.append(x.name)
            types.append(x.type)
            if x.name not in self._repetitions:
                reads_others = True
        if op == "stablehlo.broadcast_in_dim":
            self._broadcasts.add(name)
            self._repetitions.add(name)
        elif not reads_others:
            self._repetitions.add(name)
        if self._scalars:
            self._has_scalars_alone &= not type.shape
        else:
            self._facts.results[type] += 1
        attrs = f" {{{attributes}}}" if attributes else ""
        signature = function_type(tuple(types), type)
        self._lines.append(
            f'{name} = "{op}"({", ".join(names)}){attrs} : {signature}{self._location}'
        )
        return Operand(name, type)

    def emit_many(
        self,
        op: str,
        operands: Sequence[Operand],
        outs: Sequence[ArrayType],
        attributes: str = "",
        regions: Sequence[str] = (),
        dialect: str = "stablehlo",
    ) -> list[Operand]:
        """Write an operation with any number of results, and regions, in generic form."""
        if self._scalars:
            self._has_scalars_alone &= op not in _NOT_BETWEEN_SCALARS
            self._has_scalars_alone &= not any([t.shape for t in outs])
        elif op == "reduce":
            self._facts.has_reductions = True
        self._count += 1
        name = f"%{self._count}"
        names = ", ".join(x.name for x in operands)
        kinds = ", ".join(tensor_type(x.type) for x in operands)
        results = ", ".join(map(tensor_type, outs))
        attrs = f" {{{attributes}}}" if attributes else ""
        inner = f" ({', '.join(regions)})" if regions else ""
        bind = f"{name}:{len(outs)} = " if outs else ""
        self._lines.append(
            f'{bind}"{dialect}.{op}"({names}){inner}{attrs} : ({kinds}) -> ({results})'
            f"{self._location}"
        )
        if len(outs) == 1:
            return [Operand(f"{name}#0", outs[0])]
        return [Operand(f"{name}#{i}", t) for i, t in enumerate(outs)]

    def custom_call(
        self,
        target: str,
        operands: Sequence[Operand],
        outs: Sequence[ArrayType],
        config: Mapping[str, str],
        layouts: Sequence[Sequence[Sequence[int]]],
        aliases: Mapping[int, int] = MappingProxyType({}),
        side_effect: bool = False,
        batch_axes: int = 0,
    ) -> list[Operand]:
        """Write a call of a registered function, by XLA's typed foreign function interface.

        ``config`` holds its attributes in MLIR syntax, ``layouts`` the axes of each operand and
        result, the fastest varying first, and ``aliases`` maps results to operands whose memory
        they may use. With a ``side_effect`` the call stays even if nothing reads its results. Along
        so many first ``batch_axes`` it does the same for each element, so that parts of its
        operands have parts of its results.
        """
        orders = [
            ", ".join(f"dense<{list(axes)}> : tensor<{len(axes)}xindex>" for axes in group)
            for group in layouts
        ]
        shared = ", ".join(
            f"#stablehlo.output_operand_alias<output_tuple_indices = {[i] if len(outs) > 1 else []}"
            f", operand_index = {j}, operand_tuple_indices = []>"
            for i, j in aliases.items()
        )
        settings = ", ".join(f"{name} = {value}" for name, value in config.items())
        self._facts.targets.add(target)
        return self.emit_many(
            "custom_call",
            operands,
            outs,
            f'call_target_name = "{target}", api_version = 4 : i32, '
            f"backend_config = {{{settings}}}, operand_layouts = [{orders[0]}], "
            f"result_layouts = [{orders[1]}], output_operand_aliases = [{shared}]"
            + (", has_side_effect = true" if side_effect else "")
            + (self.by_batch(operands, outs, batch_axes) if batch_axes else ""),
        )

    def by_batch(
        self, operands: Sequence[Operand], outs: Sequence[ArrayType], batch_axes: int
    ) -> str:
        """Return the attributes by which a call is done part by part, if there are parts."""
        return ""

    def region(
        self,
        types: Sequence[ArrayType],
        body: Callable[..., Sequence[Operand]],
        dialect: str = "stablehlo",
    ) -> str:
        """Write a region with block arguments of these types.

        ``body`` writes it and returns results.
        """
        outer_lines, outer_constants = self._lines, self._constants
        outer_outputs, outer_token = self._outputs, self._token
        self._lines, self._constants = [], {}
        arguments = []
        for t in types:
            self._count += 1
            arguments.append(Operand(f"%a{self._count}", t))
        results = body(*arguments)
        head = ", ".join(f"{a.name}: {tensor_type(a.type)}" for a in arguments)
        names = ", ".join(r.name for r in results)
        kinds = ", ".join(tensor_type(r.type) for r in results)
        block = f"^bb0({head}):\n" if types else ""
        end = f"{dialect}.return {names} : {kinds}" if results else f"{dialect}.return"
        text = "{\n" + block + "\n".join([*self._lines, end]) + "\n}"
        self._lines, self._constants = outer_lines, outer_constants
        self._outputs, self._token = outer_outputs, outer_token
        return text

    def scalar_region(
        self, types: Sequence[ArrayType], body: Callable[..., Sequence[Operand]]
    ) -> str:
        """Write a region that combines or compares scalars, as that of a reduction or a sort.

        There are no barriers in it, and no calls: XLA takes none there, and ends the process.
        """
        outer, self._scalars = self._scalars, True
        text = self.region(types, body)
        self._scalars = outer
        return text

    def scalar_program(
        self, types: Sequence[ArrayType], body: Callable[..., Sequence[Operand]]
    ) -> str | None:
        """Write such a region for a body that users wrote; None if XLA may not take it."""
        outer, self._has_scalars_alone = self._has_scalars_alone, True
        facts, self._facts = self._facts, Facts()  # no options go by what is in a region of scalars
        text = self.scalar_region(types, body)
        is_allowed, self._has_scalars_alone = self._has_scalars_alone, outer
        self._facts = facts
        return text if is_allowed else None

    def barrier(self, operands: Sequence[Operand]) -> list[Operand]:
        """Return the operands, behind a barrier where there can be one."""
        if self._scalars:
            return [*operands]
        self._facts.has_barriers = True
        self._facts.has_barriers_in_loops |= self._may_be_in_loop
        return self.emit_many("optimization_barrier", operands, [x.type for x in operands])

    def in_memory(self, operand: Operand) -> Operand:
        """Return the operand so that a kernel that reads it reads an array.

        On CPUs one that is a broadcast, or is computed from broadcasts alone, gets a barrier:
        YNNPACK multiplies wrongly by a broadcast on the right (decision 22).
        """
        if operand.name not in self._repetitions or self.platform != "cpu":
            return operand
        key = ("in memory", operand.name)
        known = self._constants.get(key)
        if known is None:
            (known,) = self.barrier([operand])
            self._constants[key] = known
        return known

    @property
    def _may_be_in_loop(self) -> bool:
        """Say whether this is for a loop, or for a function, which one may call."""
        return self._in_loop or self._in_function

    def broadcast(self, x: Operand, dims: Sequence[int], out: ArrayType) -> Operand:
        """Return the operand repeated, its axes being the result's ``dims``."""
        attributes = f"broadcast_dimensions = {self.ints(dims)}"
        result = self.emit("broadcast_in_dim", x, attributes=attributes, out=out)
        if self.has_kernels:
            base, view = self._view(x)
            strides = [0] * out.ndim
            for size, stride, axis in zip(view.shape, view.strides, dims, strict=True):
                strides[axis] = stride if size == out.shape[axis] else 0
            self._views[result.name] = base, View(out.shape, tuple(strides))
            base, view = self._lies(x)
            for size, stride, axis in zip(view.shape, view.strides, dims, strict=True):
                strides[axis] = stride if size == out.shape[axis] else 0
            self._parts[result.name] = base, View(out.shape, tuple(strides), view.offset)
        return result

    def _lies(self, x: Operand) -> tuple[Operand, View]:
        """Return the array in which an operand lies, also as a part or in another shape."""
        return self._parts.get(x.name) or self._view(x)

    def _view(self, x: Operand) -> tuple[Operand, View]:
        """Return the array in which an operand lies, and how."""
        return self._views.get(x.name) or (x, row_major(x.type.shape))

    def reshape(self, x: Operand, out: ArrayType) -> Operand:
        """Return the elements in another shape."""
        result = self.emit("reshape", x, out=out)
        if self.has_kernels:
            base, view = self._lies(x)
            found = attention.reshaped(view, out.shape)
            if found is not None:
                self._parts[result.name] = base, found
        return result

    def bitcast_convert(self, x: Operand, out: ArrayType) -> Operand:
        """Read the bits as those of another dtype."""
        return self.emit("bitcast_convert", x, out=out)

    def iota(self, axis: int, out: ArrayType) -> Operand:
        """Return the index along an axis."""
        return self.emit("iota", attributes=f"iota_dimension = {axis} : i64", out=out)

    def size_value(self, n: Size, out: ArrayType) -> Operand:
        """Return a size as a scalar of a program; to be compiled at once it has to be known."""
        raise MissingRuleError(f"the size {n} is known only where the program is given a bucket")

    def slice(self, x: Operand, parts: Sequence[tuple[int, int, int]]) -> Operand:
        """Return the elements from a start to before an end, with a step, along each axis."""
        starts, ends, steps = (self.ints([part[i] for part in parts]) for i in range(3))
        shape = tuple([-((start - end) // step) for start, end, step in parts])  # rounded up
        result = self.emit(
            "slice",
            x,
            attributes=f"start_indices = {starts}, limit_indices = {ends}, strides = {steps}",
            out=array_type(shape, x.type.dtype),
        )
        if self.has_kernels:
            base, view = self._lies(x)
            self._parts[result.name] = base, attention.sliced(view, parts)
        return result

    def reverse(self, x: Operand, axes: Sequence[int]) -> Operand:
        """Return the operand with its elements along these axes in the opposite order."""
        axes = [a for a in axes if is_size(x.type.shape[a]) or x.type.shape[a] > 1]
        if not axes:
            return x
        result = self.emit("reverse", x, attributes=f"dimensions = {self.ints(axes)}", out=x.type)
        if self.has_kernels:
            base, (shape, strides, _) = self._view(x)
            turned = [-s if a in axes else s for a, s in enumerate(strides)]
            offset = sum([(shape[a] - 1) * strides[a] for a in axes if shape[a]])
            self._reversed[result.name] = base, View(shape, tuple(turned), offset)
        return result

    def concatenate(self, parts: Sequence[Operand], axis: int, out: ArrayType) -> Operand:
        """Join operands along an axis."""
        return self.emit("concatenate", *parts, attributes=f"dimension = {axis} : i64", out=out)

    def pad(
        self, x: Operand, value: Operand, config: Sequence[tuple[int, int, int]], out: ArrayType
    ) -> Operand:
        """Put the value around the elements, or cut some off, and between them."""
        low, high, interior = (self.ints([c[i] for c in config]) for i in range(3))
        attributes = (
            f"edge_padding_low = {low}, edge_padding_high = {high}, interior_padding = {interior}"
        )
        return self.emit("pad", x, value, attributes=attributes, out=out)

    def windows_at(
        self,
        x: Operand,
        indices: Operand,
        numbers: str,
        sizes: Sequence[int],
        indices_are_sorted: bool,
        out: ArrayType,
    ) -> Operand:
        """Return windows of these sizes that start at index vectors, moved to fit."""
        return self.emit(
            "gather",
            x,
            indices,
            attributes=f"dimension_numbers = {numbers}, slice_sizes = {self.ints(sizes)}, "
            f"indices_are_sorted = {str(indices_are_sorted).lower()}",
            out=out,
        )

    def dynamic_slice(self, x: Operand, starts: Sequence[Operand], sizes: Sequence[int]) -> Operand:
        """Return the slice of these sizes that starts there, moved to fit."""
        return self.emit(
            "dynamic_slice",
            x,
            *starts,
            attributes=f"slice_sizes = {self.ints(sizes)}",
            out=array_type(tuple(sizes), x.type.dtype),
        )

    def dynamic_update_slice(
        self, x: Operand, update: Operand, starts: Sequence[Operand]
    ) -> Operand:
        """Return ``x`` with the update in it, whose start is moved so that it fits."""
        return self.emit("dynamic_update_slice", x, update, *starts, out=x.type)

    def transpose(
        self, x: Operand, permutation: Sequence[int], out: ArrayType | None = None
    ) -> Operand:
        """Return the operand with its axes in another order."""
        attributes = f"permutation = {self.ints(permutation)}"
        result = self.emit("transpose", x, attributes=attributes, out=out)
        if tuple(permutation) in _SWAPS:
            self._swapped.add(result.name)
        if self.has_kernels:
            base, (shape, strides, _) = self._view(x)
            places = [(shape[axis], strides[axis]) for axis in permutation]
            shape, strides = (tuple([place[i] for place in places]) for i in range(2))
            self._views[result.name] = base, View(shape, strides)
            base, (shape, strides, offset) = self._lies(x)
            places = [(shape[axis], strides[axis]) for axis in permutation]
            shape, strides = (tuple([place[i] for place in places]) for i in range(2))
            self._parts[result.name] = base, View(shape, strides, offset)
        return result

    def dot_general(
        self,
        x: Operand,
        y: Operand,
        summed: tuple[tuple[int, ...], tuple[int, ...]],
        shared: tuple[tuple[int, ...], tuple[int, ...]],
        config: str,
    ) -> Operand:
        """Return the product of ``x`` and ``y``, with these attributes for its precision."""
        called = None if config else self.called_product(x, y, summed, shared)
        if called is not None:
            return called
        y = self.in_memory(y)
        result = self.emit(
            "dot_general",
            x,
            y,
            attributes=(
                "dot_dimension_numbers = #stablehlo.dot<"
                f"lhs_batching_dimensions = {list(shared[0])}, "
                f"rhs_batching_dimensions = {list(shared[1])}, "
                f"lhs_contracting_dimensions = {list(summed[0])}, "
                f"rhs_contracting_dimensions = {list(summed[1])}>{config}"
            ),
        )
        names = x.name, y.name
        self._facts.products.append(
            Product(
                x.type,
                y.type,
                result.type,
                summed,
                bool(shared[0]),
                (x.name in self._swapped, y.name in self._swapped),
                not self._broadcasts.isdisjoint(names),
                self._may_be_in_loop,
            )
        )
        return result

    def called_product(
        self,
        x: Operand,
        y: Operand,
        summed: tuple[tuple[int, ...], tuple[int, ...]],
        shared: tuple[tuple[int, ...], tuple[int, ...]],
        order: Sequence[int] | None = None,
        added: Sequence[Operand] = (),
        relu: bool = False,
    ) -> Operand | None:
        """Write a product as a call of our kernel, if there is one for it and it is worth that.

        Its axes are put in an ``order``, at most one array is ``added``, and with ``relu`` it is
        cut off at zero.
        """
        (out,) = self.outs
        if not self.has_kernels or self._scalars:
            return None
        if not multiplies(x.type.dtype, y.type.dtype, out.dtype):
            return None
        if relu and out.dtype.kind in "iu":
            return None  # the product alone is a kernel's
        operands = [x, y, *added]
        (base_x, view_x), (base_y, view_y), *others = map(self.lies_in, operands)
        beside = others[0][1] if others else None
        found = geometry(view_x, view_y, summed, shared, order, beside, relu)
        if found is None or not found.is_quicker(x.type.dtype, out.dtype):
            return None
        bases = [base_y, base_x] if found.swapped else [base_x, base_y]
        bases += [base for base, _ in others]
        self._facts.kernel_products += 1
        follows = order is not None and [*order] != sorted(order)
        self._facts.fused_products += bool(follows or added or relu)
        return self._kernel(TARGET, bases, [out], found.numbers, shared=())[0]

    def called_convolution(self, op: Any, x: Operand, kernel: Operand) -> Operand | None:
        """Write a convolution as a call of our kernel, if there is one and it is worth that."""
        (out,) = self.outs
        if not self.has_kernels or self._scalars or op.precision is not None:
            return None
        base, window = self._reversed.get(kernel.name) or self._view(kernel)
        product = convolutions.as_product(op, kernel.type)
        if product is not None:
            return self.called_product(x, kernel if window.offset else base, *product)
        if not suits_kernel(op, x.type, kernel.type, out):
            return None
        for image, view in (self._view(x), (x, row_major(x.type.shape))):
            found = convolutions.geometry(op, view, window, row_major(out.shape))
            if found is not None:
                bases = [image, base]
                return self._kernel(convolutions.TARGET, bases, [out], found, shared=())[0]
        return None

    def called_gather(
        self, op: Any, x: Operand, indices: Operand, beside: Sequence[Operand]
    ) -> Operand | None:
        """Write a gather, or a bag of what it reads, as a call of our kernel, if there is one."""
        if not self.has_kernels or self._scalars:
            return None
        bases, views = zip(*map(self.lies_in, (x, indices, *beside)), strict=True)
        found = gathers.geometry(op, x.type, *views)
        if found is None:
            return None
        self._facts.kernel_gathers += 1
        return self._kernel(gathers.TARGET, bases, self.outs, found, shared=())[0]

    def _kernel(
        self,
        target: str,
        operands: Sequence[Operand],
        outs: Sequence[ArrayType],
        numbers: Sequence[int],
        aliases: Mapping[int, int] = MappingProxyType({}),
        shared: Sequence[tuple[int, int]] | None = None,
    ) -> list[Operand]:
        """Write a call of a kernel, which in a loop over arrays is told which elements it is for.

        Then nothing is copied out of the arrays. Nor is it into them where ``shared`` says that the
        results are those of the equation: pairs of a result and an operand that may share memory.
        """
        read = [self._elements.get(x.name) for x in operands]
        puts = [] if shared is None else self._outputs
        written = [self._stacks.get(v) for v in puts] or [None for _ in outs]
        indices = {e.index.name: e.index for e in (*read, *written) if e is not None}
        if len(indices) != 1 or len(operands) + len(outs) > _MOST_ELEMENTS:
            indices = {}
            read, written = [None for _ in operands], [None for _ in outs]
        config = {"numbers": self.ints(numbers)}
        arrays = [x if e is None else e.array for x, e in zip(operands, read, strict=True)]
        types = [t if e is None else e.array.type for t, e in zip(outs, written, strict=True)]
        places = dict(aliases)
        if indices:
            of = zip((*[x.type for x in operands], *outs), (*read, *written), strict=True)
            steps = [0 if e is None else bytes_of(t) for t, e in of]
            config["steps"] = self.ints([len(operands), *steps])
            for k, i in shared or ():
                e = written[k]
                if e is not None and e.array.name == arrays[i].name:
                    places[k] = i
            for k, e in enumerate(written):
                if e is not None and k not in places:
                    places[k] = len(arrays)
                    arrays.append(e.array)
            arrays += indices.values()
        layouts = [_row_major([x.type for x in arrays]), _row_major(types)]
        results = self.custom_call(target, arrays, types, config, layouts, places)
        for k, e in enumerate(written):
            if e is not None:
                after = results[k]
                results[k] = self.slice_at(after, e.index)
                self._put[results[k].name] = e.array, after
        return results

    def lies_in(self, x: Operand) -> tuple[Operand, View]:
        """Return the array in which an operand lies, and how: from its first element."""
        base, view = self._lies(x)
        return self._view(x) if view.offset else (base, view)

    def called_kernel(
        self,
        target: str,
        operands: Sequence[Operand],
        outs: Sequence[ArrayType],
        numbers: Sequence[int],
        aliases: Mapping[int, int] = MappingProxyType({}),
        shared: Sequence[tuple[int, int]] | None = None,
    ) -> list[Operand] | None:
        """Write a call of one of our kernels, if they may be called, on arrays that lie by rows.

        ``aliases`` maps results to operands whose memory they take. Where results may be written
        into arrays, ``shared`` has those that may lie where an operand does.
        """
        if not self.has_kernels or self._scalars:
            return None
        self._facts.kernel_rows += target == "stretto_rows"
        self._facts.kernel_updates += target == "stretto_update"
        self._facts.kernel_attention += target.startswith("stretto_attention")
        return self._kernel(target, operands, outs, numbers, aliases, shared)

    def unwritten(self, type: ArrayType) -> Operand:
        """Return an array that is all written before it is read: zeros, unless that takes time.

        XLA has no operation for it. Five ResNet-18's gradients are 220 MB, whose zeros take as long
        as a tenth of the step.
        """
        if any([is_size(n) for n in type.shape]) or bytes_of(type) < _LARGE:
            return self.splat(0, type)
        self._count += 1  # no two are equal, or XLA would have one for both, and copy it
        found = self.called_kernel("stretto_unwritten", [], [type], [self._count])
        return self.splat(0, type) if found is None else found[0]

    def called_attention(
        self, geometry: Any, operands: Sequence[Operand], outs: Sequence[ArrayType]
    ) -> list[Operand] | None:
        """Write attention or its gradients as a call of our kernel, if it may be called."""
        if not self.has_kernels or self._scalars:
            return None
        count = len([step for step in geometry.steps if step.place])
        lengths = operands[-2:] if geometry.examples else ()
        operands = operands[: len(operands) - len(lengths)]
        bases, views = map(list, zip(*map(self._lies, operands), strict=True))
        arrays = views[3 : 3 + count]
        given = views[:3]
        if geometry.gradient:
            given += [views[4 + count], *([] if geometry.kept else views[-1:])]
            for n in (3 + count, 5 + count):  # one value a row, in order
                bases[n] = operands[n]
        shapes = [t.shape for t in outs[: 3 if geometry.gradient else 1]]
        found = attention.numbers(geometry, given, arrays, shapes)
        if found is None:
            return None
        target = "stretto_attention_gradient" if geometry.gradient else "stretto_attention"
        return self.called_kernel(target, [*bases, *lengths], outs, found)

    def convolution(self, x: Operand, kernel: Operand, attributes: str) -> Operand:
        """Return the convolution of ``x`` with a kernel."""
        self._facts.has_convolutions_in_loops |= self._may_be_in_loop
        return self.emit("convolution", x, kernel, attributes=attributes)

    def quotient(self, x: Operand, y: Operand) -> Operand:
        """Divide, so that a quotient that is divided again, or by, is one.

        XLA computes ``x / y / z`` as ``x / (y * z)`` and ``x / (y / z)`` as ``x * z / y``, where
        the product may overflow or vanish. It leaves a rounding to the bits that there are, which
        costs nothing, in between.
        """
        x, y = [
            self.reduce_precision(v, *_FLOAT_BITS[v.type.dtype]) if v.name in self._quotients else v
            for v in (x, y)
        ]
        result = self.emit("divide", x, y)
        if result.type.dtype in _FLOAT_BITS:
            self._quotients.add(result.name)
        return result

    def reduce_precision(self, x: Operand, exponent_bits: int, mantissa_bits: int) -> Operand:
        """Round floats to so many bits, in the same dtype."""
        attributes = f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32"
        return self.emit("reduce_precision", x, attributes=attributes, out=x.type)

    @property
    def hides(self) -> bool:
        """Say whether numbers can be hidden from the compiler here, and whether it pays.

        One that splits the work over devices has to know them, barriers last on CPUs alone, and a
        loop with one in it does not become one kernel.
        """
        return self.platform == "cpu" and not (self.partitioned or self._scalars or self._in_loop)

    def hide(self, number: int) -> Operand:
        """Return this number, of which the compiler knows nothing but that it is an int32."""
        key = ("hidden", number)
        known = self._constants.get(key)
        if known is None:
            (known,) = self.barrier([self.scalar(number, np.dtype(np.int32))])
            self._constants[key] = known
        return known

    def splat(self, element: Any, type: ArrayType) -> Operand:
        """Write a constant of this type, all of whose elements are equal."""
        key = (element_text(element, type.dtype), tensor_type(type))
        known = self._constants.get(key)
        if known is None:
            self._count += 1
            name = f"%{self._count}"
            self._lines.append(f"{name} = stablehlo.constant dense<{key[0]}> : {key[1]}")
            if type.shape:
                self._repetitions.add(name)
                self._has_scalars_alone &= not self._scalars
            known = self._constants[key] = Operand(name, type)
        return Operand(known.name, type)

    def infinite(self, sign: int, type: ArrayType) -> Operand:
        """Write infinities of this type and sign: ``splat``, without writing the number again."""
        key = sign, id(type)  # the operand keeps the type
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = self.splat(sign * np.inf, type)
        return known

    def scalar(self, element: Any, dtype: np.dtype) -> Operand:
        """Write a constant of rank 0."""
        return self.splat(element, array_type((), dtype))

    def array(self, values: np.ndarray) -> Operand:
        """Write a constant written element by element.

        A large one becomes an argument of the program.
        """
        self._has_scalars_alone &= not (self._scalars and values.shape)
        if values.size > _MOST_WRITTEN:
            self._arrays[id(values)] = values
            return self._pass(id(values))
        return self._written(values)

    def _written(self, values: np.ndarray) -> Operand:
        """Write a constant element by element."""
        self._count += 1
        type = array_type(values.shape, values.dtype)

        def nested(x: np.ndarray) -> str:
            return (
                f"[{', '.join([nested(row) for row in x])}]"
                if x.ndim
                else element_text(x, values.dtype)
            )

        name, elements = f"%{self._count}", nested(values) if values.size else ""
        self._lines.append(f"{name} = stablehlo.constant dense<{elements}> : {tensor_type(type)}")
        return Operand(name, type)

    def _pass(self, number: int) -> Operand:
        """Return the large constant as an argument of the current function, after its own."""
        operand = self._passed.get(number)
        if operand is None:
            values = self._arrays[number]
            type = array_type(values.shape, values.dtype)
            operand = self._passed[number] = Operand(f"%c{len(self._passed)}", type)
        return operand

    def ints(self, values: Sequence[int]) -> str:
        """Write an array of 64-bit integers, as an attribute."""
        return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"

    def compare(self, direction: str, x: Operand, y: Operand) -> Operand:
        """Write an element-wise comparison: ``EQ NE LT LE GT GE``."""
        return self.emit(
            "compare",
            x,
            y,
            attributes=f"comparison_direction = #stablehlo<comparison_direction {direction}>",
            out=array_type(x.type.shape, np.dtype(bool)),
        )

    def convert(self, x: Operand, dtype: np.dtype) -> Operand:
        """Return the operand in another element type."""
        if x.type.dtype == dtype:
            return x
        return self.emit("convert", x, out=array_type(x.type.shape, dtype))

    def reduce(self, op: str, x: Operand, axes: Sequence[int], start: Any) -> Operand:
        """Write a reduction by one operation; narrow floats accumulate in float32; NaN is kept."""
        narrow = kind_of(x.type.dtype) == "float" and x.type.dtype.itemsize < 4
        if self.partitioned and op in _EXTREMA and kind_of(x.type.dtype) == "float":
            return self._extremum_over_devices(op, x, axes, start)
        wide = self.convert(x, np.dtype(np.float32)) if narrow and op in ("add", "multiply") else x
        dtype = wide.type.dtype
        element = array_type((), dtype)
        init = self.scalar(start, dtype)
        region = self.combiner(op, element)
        shape = tuple(n for d, n in enumerate(x.type.shape) if d not in axes)
        (out,) = self.emit_many(
            "reduce",
            (wide, init),
            (array_type(shape, dtype),),
            f"dimensions = {self.ints(axes)}",
            (region,),
        )
        return self.convert(out, x.type.dtype)

    def _extremum_over_devices(
        self, op: str, x: Operand, axes: Sequence[int], start: Any
    ) -> Operand:
        """Write an extremum of floats as one of integers in the same order.

        Partial results of several devices are combined by one operation, so a choice by comparison
        cannot be between them, and the maximum of floats loses NaN. Of integers, NaN is made the
        greatest, or for a minimum the least.
        """
        shape = tuple(n for d, n in enumerate(x.type.shape) if d not in axes)
        nan = np.copysign(np.array(np.nan, x.type.dtype), 1 if op == "maximum" else -1)
        same = self.splat(nan[()], x.type)
        known = self.emit("select", self.compare("NE", x, x), same, x, out=x.type)
        ordered = self._ordered(known)
        init = self._ordered(self.scalar(start, x.type.dtype))
        element = init.type
        (out,) = self.emit_many(
            "reduce",
            (ordered, init),
            (array_type(shape, element.dtype),),
            f"dimensions = {self.ints(axes)}",
            (self.combiner(op, element),),
        )
        flipped = self._flipped(out)
        return self.emit("bitcast_convert", flipped, out=array_type(shape, x.type.dtype))

    def _ordered(self, x: Operand) -> Operand:
        """Return integers in the order of these floats: their bits, flipped for negative ones."""
        integers = array_type(x.type.shape, np.dtype(f"int{8 * x.type.dtype.itemsize}"))
        return self._flipped(self.emit("bitcast_convert", x, out=integers))

    def _flipped(self, bits: Operand) -> Operand:
        """Return the same integers, with all bits but the sign flipped in the negative ones."""
        most = self.splat(int(np.iinfo(bits.type.dtype).max), bits.type)
        other = self.emit("xor", bits, most, out=bits.type)
        negative = self.compare("LT", bits, self.splat(0, bits.type))
        return self.emit("select", negative, other, bits, out=bits.type)

    def combiner(self, op: str, element: ArrayType) -> str:
        """Return the region of a reduction by one operation of two elements."""
        direction = _EXTREMA.get(op) if kind_of(element.dtype) == "float" else None

        def combine(u: Operand, v: Operand) -> list[Operand]:
            if direction is None:
                return [self.emit(op, u, v, out=element)]
            # By comparison, since the library that XLA hands extrema to loses NaN (decision 22).
            first = self.compare(direction, u, v)
            first = self.emit("or", first, self.compare("NE", u, u), out=first.type)
            return [self.emit("select", first, u, v, out=element)]

        return self.scalar_region((element, element), combine)

    def while_loop(
        self,
        cond: Callable[..., Sequence[Operand]],
        body: Callable[..., Sequence[Operand]],
        operands: Sequence[Operand],
    ) -> list[Operand]:
        """Write StableHLO ``while``: ``cond`` and ``body`` write their regions from the state."""

        def begin(state: Sequence[Operand]) -> Sequence[Operand]:
            if self._token is None:
                return state
            self._token = state[-1]
            return state[:-1]

        state = self._with_token(operands)
        types = [x.type for x in state]
        self._facts.has_loops = True
        outer, self._in_loop = self._in_loop, True
        regions = (
            self.region(types, lambda *state: cond(*begin(state))),
            self.region(types, lambda *state: self._with_token(body(*begin(state)))),
        )
        self._in_loop = outer
        return self._without_token(self.emit_many("while", state, types, regions=regions))

    def decided(self, number: int, dtype: np.dtype) -> Operand:
        """Write an integer; a ``case`` by it has that branch alone."""
        operand = self.scalar(number, dtype)
        return Decided(operand.name, operand.type, number)

    def case(
        self, index: Operand, branches: Sequence[Callable[[], Sequence[Operand]]]
    ) -> list[Operand]:
        """Write StableHLO ``case``: each of the ``branches`` writes its region from the scope.

        Where the index is decided, write that branch here.
        """
        if isinstance(index, Decided):
            return [*branches[index.number]()]
        regions = [self.region((), lambda f=f: self._with_token(f())) for f in branches]
        token = () if self._token is None else (TOKEN,)
        outs = self.emit_many("case", (index,), (*self.outs, *token), regions=regions)
        return self._without_token(outs)

    def _with_token(self, operands: Sequence[Operand]) -> list[Operand]:
        return [*operands] if self._token is None else [*operands, self._token]

    def _without_token(self, results: Sequence[Operand]) -> list[Operand]:
        if self._token is None:
            return [*results]
        self._token = results[-1]
        return [*results[:-1]]

    def host_call(
        self,
        function: Callable[[Sequence[Any]], Sequence[Any]],
        operands: Sequence[Operand],
        observable: bool,
        ordered: bool,
    ) -> list[Operand]:
        """Write a call of a Python function from values to values; return its results.

        The compiler drops it if nothing reads the results, unless it is ``observable``. ``ordered``
        calls happen in the order in which they are written.
        """
        call = HostCall(function, tuple([x.type for x in operands]), ordered)
        self._calls.append(call)
        token = (TOKEN,) if ordered else ()
        outs = (*self.outs, *token)
        inputs = self._with_token(operands) if ordered else operands
        results = self.custom_call(
            f"xla_ffi_python_{self.platform}_callback",
            inputs,
            outs,
            {"index": f"{len(self._calls) - 1} : ui64"},
            [_row_major([x.type for x in inputs]), _row_major(outs)],
            side_effect=observable,
        )
        return self._without_token(results) if ordered else results

    def _starts(self, i: Operand, ndim: int) -> list[Operand]:
        return [i, *[self.scalar(0, i.type.dtype)] * (ndim - 1)]

    def slice_at(self, x: Operand, i: Operand) -> Operand:
        """Return ``x[i]`` for a scalar ``i`` in range."""
        shape = x.type.shape
        sizes = (1, *shape[1:])
        part = self.dynamic_slice(x, self._starts(i, len(shape)), sizes)
        result = self.reshape(part, array_type(shape[1:], x.type.dtype))
        if self.has_kernels:
            self._elements[part.name] = self._elements[result.name] = Element(x, i)
        return result

    def update_at(self, x: Operand, y: Operand, i: Operand) -> Operand:
        """Return ``x`` with ``y`` at ``x[i]``, for a scalar ``i`` in range."""
        known = self._put.get(y.name)
        if known is not None and known[0].name == x.name:
            return known[1]
        part = self.reshape(y, array_type((1, *y.type.shape), y.type.dtype))
        return self.dynamic_update_slice(x, part, self._starts(i, x.type.ndim))


def _row_major(types: Sequence[ArrayType]) -> list[Sequence[int]]:
    return [range(t.ndim)[::-1] for t in types]
