"""Programs to StableHLO text: the builder that is passed to primitives' ``lower`` rules.

Text is the fastest way into XLA: writing it takes less time than building MLIR operations through
Python bindings, and XLA parses it in C++.

``Collectives`` writes what is for several devices: where arrays are, manual regions, in which
operations are those of one device with its parts of the arrays, and collectives. ``Builder`` writes
programs, and the functions that they call. Sources: the specifications of StableHLO and of Shardy's
dialect.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, MappingProxyType
from typing import Any

import numpy as np

from stretto._engine import higher_order
from stretto._engine.core.config import config
from stretto._engine.core.mesh import UNCONSTRAINED, Mesh, axes_of
from stretto._engine.core.position import Place, join_scopes, line_at, lines_of
from stretto._engine.core.primitive import ORDERED
from stretto._engine.core.program import Program, form, literal_key
from stretto._engine.core.recorder import record
from stretto._engine.core.shardings import NamedSharding, Placement, Sharding
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.kernels import in_parts, kernels
from stretto._engine.lowering.text import (
    TOKEN,
    Element,
    Operand,
    Text,
    escape,
    identifier,
    tensor_type,
)
from stretto._engine.lowering.writer import Writer
from stretto._engine.ops.fused_updates import FusedUpdates
from stretto._engine.passes.fuse_updates import gather_updates
from stretto._engine.passes.prepare import as_written


class Collectives(Writer):
    """A writer of text for the devices of a placement, if there is one."""

    def __init__(self, placement: Placement | None = None) -> None:
        super().__init__()
        self._placement = placement
        self._meshes = Meshes() if placement else None
        self._manual: Mesh | None = None  # the mesh of the manual region that is being written
        self._may_call = False  # whether there may be kernels where an array is all on one device
        self._channels = 0

    @property
    def partitioned(self) -> bool:
        """Say whether the text is for several devices."""
        return self._placement is not None and len(self._placement.devices) > 1

    @property
    def platform(self) -> str:
        """The platform of the devices that the text is for."""
        return "cpu" if self._placement is None else self._placement.devices[0].platform

    def constrain(self, x: Operand, sharding: NamedSharding) -> Operand:
        """Return the operand, which the compiler puts where the sharding says."""
        if not self.partitioned or self._meshes is None:
            return x
        where = self._meshes.sharding(sharding, x.type.ndim)
        return self.operation("sdy.sharding_constraint", (x,), f"sharding = {where}", x.type)

    def sharding_note(self, sharding: Sharding | None, type: ArrayType) -> list[str]:
        """Return the attribute for where an argument or result is, if the text says so."""
        if sharding is None or not self.partitioned or self._meshes is None:
            return []
        return [f"sdy.sharding = {self._meshes.sharding(sharding, type.ndim)}"]

    def by_batch(
        self, operands: Sequence[Operand], outs: Sequence[ArrayType], batch_axes: int
    ) -> str:
        """Return the attributes by which a call is done part by part, if there are parts."""
        if not self.partitioned:
            return ""
        rule = rule_by_batch([x.type.shape for x in operands], [t.shape for t in outs], batch_axes)
        count = f'mhlo.frontend_attributes = {{num_batch_dims = "{batch_axes}"}}'
        return f", {count}, sdy.sharding_rule = {rule}"

    def manual(
        self,
        operands: Sequence[Operand],
        ins: Sequence[NamedSharding],
        outs: Sequence[NamedSharding],
        axes: Sequence[Any],
        parts: Sequence[ArrayType],
        body: Callable[..., Sequence[Operand]],
    ) -> list[Operand]:
        """Write a region in which ``body`` works on the parts of one device along these axes.

        ``parts`` are the types of the operands' parts. The results have the types of the equation.
        """
        outer, self._manual = self._manual, (ins or outs)[0].mesh
        if not self.partitioned or self._meshes is None:
            results = [*body(*operands)]
            self._manual = outer
            return results
        could, self.has_kernels = (
            self.has_kernels,
            self._may_call and {*axes} == {*(ins or outs)[0].mesh.axis_names},
        )
        region = self.region(parts, body, "sdy")
        self._manual, self.has_kernels = outer, could
        taken = self._meshes.each(ins, [x.type.ndim for x in operands])
        given = self._meshes.each(outs, [t.ndim for t in self.outs])
        attributes = (
            f"in_shardings = {taken}, out_shardings = {given}, "
            f"manual_axes = {self._meshes.axes((ins or outs)[0].mesh, axes)}"
        )
        return self.emit_many(
            "manual_computation", operands, self.outs, attributes, (region,), dialect="sdy"
        )

    # Collectives along an axis of the mesh; of one device alone they are no operations.

    def _groups(self, *axes: Any) -> np.ndarray:
        """Return groups of devices that differ along these axes alone, a row for each."""
        mesh = self._manual
        assert mesh is not None, "a collective outside of a manual region"
        numbers = np.arange(mesh.size).reshape(mesh.devices.shape)
        last = range(-len(axes), 0)
        moved = np.moveaxis(numbers, [mesh.axis_names.index(axis) for axis in axes], last)
        return moved.reshape(-1, mesh.size_of(axes))

    def _between(self, *axes: Any) -> str:
        """Return the attributes that every collective along the axes has."""
        groups = self._groups(*axes)
        shape = "x".join(map(str, groups.shape))
        return f"replica_groups = dense<{groups.tolist()}> : tensor<{shape}xi64>, {self._channel()}"

    def _channel(self) -> str:
        self._channels += 1
        return f"channel_handle = #stablehlo.channel_handle<handle = {self._channels}, type = 1>"

    def all_reduce(self, operands: Sequence[Operand], axes: Sequence[Any]) -> Sequence[Operand]:
        """Return the sum of each operand, all of one dtype, over the devices along the axes."""
        if not self.partitioned:
            return operands
        attributes = f"{self._between(*axes)}, use_global_device_ids"
        if len(operands) == 1:
            return [self._added("all_reduce", operands[0], attributes, operands[0].type)]
        # As one vector: Shardy cannot pass on a collective of several operands.
        dtype = operands[0].type.dtype
        sizes = [math.prod(x.type.shape) for x in operands]
        flat = [
            self.emit("reshape", x, out=array_type((size,), dtype))
            for x, size in zip(operands, sizes, strict=True)
        ]
        whole = array_type((sum(sizes),), dtype)
        joined = self.emit("concatenate", *flat, attributes="dimension = 0 : i64", out=whole)
        total = self._added("all_reduce", joined, attributes, whole)
        results, start = [], 0
        for x, size in zip(operands, sizes, strict=True):
            first, last = self.ints([start]), self.ints([start + size])
            part = self.emit(
                "slice",
                total,
                attributes=f"start_indices = {first}, limit_indices = {last}, "
                f"strides = {self.ints([1])}",
                out=array_type((size,), dtype),
            )
            results.append(self.emit("reshape", part, out=x.type))
            start += size
        return results

    def reduce_scatter(self, x: Operand, axis: Any) -> Operand:
        """Return this device's entry, along axis 0, of the sum over the devices along the axis."""
        one = array_type((1, *x.type.shape[1:]), x.type.dtype)
        if self.partitioned:
            attributes = (
                f"scatter_dimension = 0 : i64, {self._between(axis)}, use_global_device_ids"
            )
            x = self._added("reduce_scatter", x, attributes, one)
        return self.emit("reshape", x, out=array_type(one.shape[1:], one.dtype))

    def _added(self, op: str, x: Operand, attributes: str, out: ArrayType) -> Operand:
        """Write a collective that adds."""
        region = self.combiner("add", array_type((), x.type.dtype))
        (result,) = self.emit_many(op, (x,), (out,), attributes, (region,))
        return result

    def all_gather(self, x: Operand, axis: Any, size: int) -> Operand:
        """Return the operands of all devices along the axis, along a new axis 0."""
        one = self.emit("reshape", x, out=array_type((1, *x.type.shape), x.type.dtype))
        if not self.partitioned:
            return one
        return self.emit(
            "all_gather",
            one,
            attributes=f"all_gather_dim = 0 : i64, {self._between(axis)}, use_global_device_ids",
            out=array_type((size, *x.type.shape), x.type.dtype),
        )

    def all_to_all(self, x: Operand, axis: Any, size: int) -> Operand:
        """Return the entries along axis 0, each from another device along the axis."""
        if not self.partitioned:
            return x
        return self.emit(
            "all_to_all",
            x,
            attributes=(
                f"split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = {size} : "
                f"i64, {self._between(axis)}"
            ),
            out=x.type,
        )

    def permute(self, x: Operand, axis: Any, pairs: Sequence[tuple[int, int]]) -> Operand:
        """Return the operand of another device along the axis; zeros where none is sent."""
        if not self.partitioned:
            return x if (0, 0) in pairs else self.splat(0, x.type)
        sent = [[int(row[a]), int(row[b])] for row in self._groups(axis) for a, b in pairs]
        listed = (
            f"dense<{sent}> : tensor<{len(sent)}x2xi64>" if sent else "dense<> : tensor<0x2xi64>"
        )
        return self.emit(
            "collective_permute",
            x,
            attributes=f"source_target_pairs = {listed}, {self._channel()}",
            out=x.type,
        )

    def index_along(self, axis: Any) -> Operand:
        """Return the index of this device along the axis, an int32."""
        index = array_type((), np.dtype(np.int32))
        if not self.partitioned:
            return self.splat(0, index)
        mesh = self._manual
        assert mesh is not None, "a collective outside of a manual region"
        at = mesh.axis_names.index(axis)
        inner = int(np.prod(mesh.devices.shape[at + 1 :]))
        number = self.emit("partition_id", out=array_type((), np.dtype(np.uint32)))
        unsigned = number.type
        outer = self.emit("divide", number, self.splat(inner, unsigned), out=unsigned)
        size = self.splat(mesh.devices.shape[at], unsigned)
        return self.convert(self.emit("remainder", outer, size, out=unsigned), index.dtype)


# Shardy's meshes and shardings


class Meshes:
    """The meshes that a text names, in the order in which it first does."""

    def __init__(self) -> None:
        self._names: dict[Mesh, str] = {}

    def sharding(self, sharding: Sharding, ndim: int) -> str:
        """Return the attribute for a sharding of arrays with so many axes."""
        return f"#sdy.sharding{self._over(sharding, ndim)}"

    def each(self, shardings: Sequence[Sharding], ndims: Sequence[int]) -> str:
        """Return the attribute for the shardings of several operands or results."""
        listed = ", ".join([self._over(s, n) for s, n in zip(shardings, ndims, strict=True)])
        return f"#sdy.sharding_per_value<[{listed}]>"

    def axes(self, mesh: Mesh, names: Sequence[object]) -> str:
        """Return the attribute for axes along which a region is manual, in the mesh's order."""
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
        """Return the operations that declare the meshes."""
        lines = []
        for mesh, name in self._names.items():
            axes = zip(_axes(mesh).values(), mesh.axis_sizes, strict=True)
            sizes = ", ".join([f"{axis}={size}" for axis, size in axes])
            lines.append(f"sdy.mesh {name} = <[{sizes}]>")
        return lines


def _axes(mesh: Mesh) -> dict[object, str]:
    """Return the axes of a mesh as they are written: names that are no text get numbers."""
    return {
        name: f'"{escape(name) if isinstance(name, str) else f"axis_{k}"}"'
        for k, name in enumerate(mesh.axis_names)
    }


def rule_by_batch(
    operands: Sequence[Sequence[int]], results: Sequence[Sequence[int]], batch_axes: int
) -> str:
    """Return the rule by which shardings go through an operation on each element of the first axes.

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
    """Return the name of a factor, as Shardy writes it: i to z, then z_1, z_2 and so on."""
    letters = "ijklmnopqrstuvwxyz"
    return letters[k] if k < len(letters) else f"z_{k - len(letters) + 1}"


class _Operands(dict[Any, Operand]):
    """The operand for each variable of a program; those of literals are made when first read."""

    __slots__ = ("literal",)

    def __init__(self, literal: Callable[[Any], Operand]) -> None:
        self.literal = literal

    def __missing__(self, atom: Any) -> Operand:
        return self.literal(atom)


_NAME = re.compile(r"@(\w+)")
"""The name of a function, of a module's own or of a custom call's."""


class Builder(Collectives):
    """Writes programs, and the functions that they call."""

    mark = ""
    """The end of the names of functions."""
    plans = True
    """Whether ensembles are written in the form that is fastest on this machine."""

    def __init__(self, placement: Placement | None = None) -> None:
        super().__init__(placement)
        self._may_call = (
            self.plans and kernels is not None and config.kernels and self.platform == "cpu"
        )
        self.has_kernels = self._may_call and not self.partitioned
        self._functions: dict[Any, tuple[str, Sequence[int]]] = {}
        self._bodies: list[str] = []
        self._modules: set[str] = set()  # the mains of the modules that are called
        self._places: dict[tuple[int, int], tuple[str, CodeType]] = {}
        self._names: dict[tuple[str, str], str] = {}
        # The source line of the equation being lowered, as it is written, and its named scopes.
        self._place = self._scope = ""

    def inline(self, fun: Callable[..., Any], *operands: Operand, as_is: bool = False) -> Operand:
        """Trace a function of values, and write its operations here, applied to these operands.

        No pass makes others of them where they are written ``as_is``.
        """
        return self.inline_many(lambda *xs: [fun(*xs)], *operands, as_is=as_is)[0]

    def inline_many(
        self, fun: Callable[..., Any], *operands: Operand, as_is: bool = False
    ) -> list[Operand]:
        """Do the same for a function with several results."""
        program, _, captured = record(lambda *xs: (fun(*xs), None), [x.type for x in operands])
        if captured:
            raise AssertionError(f"{fun} captured a value while being lowered")
        return self.program(program, operands, at_hand=True, as_is=as_is)

    def program(
        self,
        program: Program,
        operands: Sequence[Operand],
        at_hand: bool = False,
        as_is: bool = False,
        aliases: Mapping[int, int] = MappingProxyType({}),
        stacks: Mapping[int, tuple[Operand, Operand]] = MappingProxyType({}),
    ) -> list[Operand]:
        """Write the equations of a program here; return its outputs.

        With ``at_hand`` they get the source line of the equation being lowered, not their own.
        ``aliases`` maps inputs to outputs that are put into their memory; without, what is known
        of the equation's own results is passed on. ``stacks`` maps outputs to the array and the
        index at which ``update_at`` is going to put them.
        """
        if self.has_kernels and not (as_is or self._scalars):
            program = as_written(program, self._may_be_in_loop)
            aliases = aliases or self._aliases_of(program, operands)
            self._homes.update({program.outputs[k]: operands[i] for i, k in aliases.items()})
            self._stacks.update({program.outputs[k]: Element(*at) for k, at in stacks.items()})
        known = _Operands(self._literal)
        known.update(zip(program.inputs, operands, strict=True))
        read = known.__getitem__
        outer = self._outputs, self._place, self._scope, self._location
        before: Any = ()  # the place of the previous equation; most equations share it
        # In a function that is called, every operation has a name, which the compiler appends to
        # that of the call; elsewhere only operations in a named scope have one. Where there are
        # several devices, XLA keeps the lines of operations with names alone.
        always = self._in_function or self.partitioned
        for equation in program.equations:
            primitive, place, outputs = equation.primitive, equation.place, equation.outputs
            if place != before or self._scope or always:
                if not at_hand:
                    self._place = self._alias_of(place)
                self._scope = join_scopes(outer[2], place[2]) if place else outer[2]
                named = self._scope or always
                self._location = self._located(
                    join_scopes(self._scope, primitive.name) if named else ""
                )
                before = place
            self._outputs = outputs
            result = primitive.lower(self, *map(read, equation.inputs))
            if primitive.multiple:
                known.update(zip(outputs, result, strict=True))
            else:
                known[outputs[0]] = result
        self._outputs, self._place, self._scope, self._location = outer
        for k in stacks:
            self._stacks.pop(program.outputs[k], None)
        return [*map(read, program.outputs)]

    def in_place(self, program: Program) -> tuple[Program, set[tuple[int, int]]]:
        """Return a loop's body with its updates gathered, and where they may put their results.

        The latter are pairs of an output and an input whose memory it may take.
        """
        if not self.has_kernels:
            return program, set()
        program = gather_updates(as_written(program))
        outputs = {v: k for k, v in enumerate(program.outputs)}
        inputs = {v: i for i, v in enumerate(program.inputs)}
        found = set()
        for e in program.equations:
            if isinstance(e.primitive, FusedUpdates):
                pairs = [(e.outputs[k], e.inputs[i]) for k, i in e.primitive.shared]
                found.update([(outputs[v], inputs[a]) for v, a in pairs if a in inputs])
        return program, found

    def _literal(self, atom: Any) -> Operand:
        """Return the constant for a literal."""
        key = literal_key(atom)
        operand = self._constants.get(key)
        if operand is None:
            operand = self._constants[key] = self.splat(atom.value, atom.type)
        return operand

    def call(
        self, program: Program, operands: Sequence[Operand], apart: bool = False
    ) -> list[Operand]:
        """Write a call of the function for this program, which is written once for all calls.

        Programs with the same name that do the same share a function, with the lines of the first.
        With ``apart`` the compiler must not inline the call, so it starts when all operands exist;
        but on GPUs, where XLA makes a kernel of each operation in such a function, it may.
        In a region of scalars the program is written in place of the call.
        """
        if self._scalars:
            return self.program(program, operands)
        aliases = self._aliases_of(program, operands)
        key = program.name, form(program), tuple(aliases.items())
        if key not in self._functions:
            name = f"{identifier(program.name)}_{len(self._functions)}{self.mark}"
            self._functions[key] = name, ()
            outer, self._passed = self._passed, {}
            self._bodies.append(self._function(program, name, "private", aliases))
            self._functions[key] = name, tuple(self._passed)
            self._passed = outer
        name, passed = self._functions[key]
        self._count += 1
        result = f"%{self._count}"
        ordered = ORDERED in program.effects
        inputs = [*(self._with_token(operands) if ordered else operands), *map(self._pass, passed)]
        outs = [*program.out_types, TOKEN] if ordered else program.out_types
        names = ", ".join(x.name for x in inputs)
        kinds = ", ".join(tensor_type(x.type) for x in inputs)
        bind = f"{result}:{len(outs)} = " if outs else ""
        kept = apart and self.platform == "cpu"
        attrs = ' {mhlo.frontend_attributes = {inlineable = "false"}}' if kept else ""
        if kept and self._may_be_in_loop:
            sizes = [t.size for t in (*[x.type for x in inputs], *outs) if t.kind != "complex"]
            self._facts.largest_call_in_loops = max(*sizes, self._facts.largest_call_in_loops, 0)
        self._lines.append(
            f"{bind}func.call @{name}({names}){attrs} : ({kinds}) -> "
            f"({', '.join(map(tensor_type, outs))})"
            f"{self._located(join_scopes(self._scope, program.name))}"
        )
        results = [Operand(f"{result}#{i}", t) for i, t in enumerate(outs)]
        return self._without_token(results) if ordered else results

    def _aliases_of(self, program: Program, operands: Sequence[Operand]) -> dict[int, int]:
        """Return the operands whose memory results are to take, if they are the equation's.

        Of single numbers nobody asks: a function is written once for all that are called with such.
        """
        if not self._homes or len(program.outputs) != len(self._outputs):
            return {}
        places = {x.name: i for i, x in enumerate(operands) if x.type.shape}
        homes = [(k, home) for k, home in enumerate(self.homes) if home is not None]
        return {places[home.name]: k for k, home in homes if home.name in places}

    def call_module(
        self,
        functions: str,
        main: str,
        targets: Sequence[str],
        operands: Sequence[Operand],
        takes: Sequence[str],
        gives: Sequence[str],
    ) -> list[Operand]:
        """Write a call of ``main``, one of these functions of a module, which are written once.

        They have names that no others have, and make custom calls of ``targets``. Of the types that
        it takes and gives less may be known than of the operands and of the equation's results.
        """
        self._has_scalars_alone = False
        if main not in self._modules:
            self._modules.add(main)
            ours = {name: in_parts(name) if self.plans else name for name in targets}
            self._bodies.append(_NAME.sub(lambda m: f"@{ours.get(m[1], m[1])}", functions))
            self._facts.targets.update(ours.values())
        # What it has in it is not known: the compiler is asked to expect anything.
        self._facts.has_loops = self._facts.has_reductions = True
        names = [
            self._retyped(x.name, tensor_type(x.type), taken)
            for x, taken in zip(operands, takes, strict=True)
        ]
        self._count += 1
        result = f"%{self._count}"
        bind = f"{result}:{len(gives)} = " if gives else ""
        self._lines.append(
            f"{bind}func.call @{main}({', '.join(names)}) : ({', '.join(takes)}) -> "
            f"({', '.join(gives)}){self._location}"
        )
        return [
            Operand(self._retyped(f"{result}#{i}", given, tensor_type(type)), type)
            for i, (given, type) in enumerate(zip(gives, self.outs, strict=True))
        ]

    def _retyped(self, name: str, has: str, wanted: str) -> str:
        """Return a value under another type, of which more is known, or less."""
        if has == wanted:
            return name
        self._count += 1
        self._lines.append(f"%{self._count} = stablehlo.convert {name} : ({has}) -> {wanted}")
        return f"%{self._count}"

    # The frame

    def _function(
        self, program: Program, name: str, visibility: str, aliases: Mapping[int, int]
    ) -> str:
        outer = self._lines, self._constants, self._outputs, self._token
        outer_location = self._place, self._scope, self._location, self._in_function
        self._lines, self._constants, self._token = [], {}, None
        self._place = self._scope = self._location = ""
        self._in_function = visibility == "private"
        arguments = [Operand(f"%arg{i}", t) for i, t in enumerate(program.in_types)]
        ordered = ORDERED in program.effects
        if ordered and visibility == "private":
            self._token = Operand("%token", TOKEN)
        elif ordered:
            self._token = self.splat(0, TOKEN)
        parameters = arguments if visibility == "public" else self._with_token(arguments)
        results = self.program(program, arguments, aliases=aliases)
        if visibility == "private":
            results = self._with_token(results)
        shared = aliases if visibility == "public" else {}
        notes = {i: [f"tf.aliasing_output = {k} : i32"] for i, k in shared.items()}
        out_notes: Sequence[str] = ()
        if self._placement is not None and visibility == "public":
            for i, sharding in enumerate(self._placement.ins):
                notes.setdefault(i, []).extend(self.sharding_note(sharding, arguments[i].type))
            outs = zip(self._placement.outs, results, strict=True)
            out_notes = [_in_braces(self.sharding_note(sharding, r.type)) for sharding, r in outs]
        head = ", ".join(
            f"{a.name}: {tensor_type(a.type)}{_in_braces(notes.get(i, ()))}"
            for i, a in enumerate([*parameters, *self._passed.values()])
        )
        kinds = ", ".join([tensor_type(r.type) for r in results])
        names = ", ".join([r.name for r in results])
        end = f"return {names} : {kinds}" if results else "return"
        body = "\n".join([*self._lines, end])
        self._lines, self._constants, self._outputs, self._token = outer
        self._place, self._scope, self._location, self._in_function = outer_location
        if out_notes:
            kinds_of = zip(results, out_notes, strict=True)
            outputs = ", ".join([f"{tensor_type(r.type)}{note}" for r, note in kinds_of])
        else:
            outputs = kinds
        return f"func.func {visibility} @{name}({head}) -> ({outputs}) {{\n{body}\n}}"

    def _alias_of(self, place: Place | None) -> str:
        """Return the alias for a line of the user's source; empty if there is none."""
        if place is None:
            return ""
        code, offset, _ = place
        key = (id(code), offset)  # by id, since hashing a code object reads all of it
        entry = self._places.get(key)
        if entry is None:
            entry = self._places[key] = (f"#u{len(self._places)}", code)
        return entry[0]

    def _located(self, name: str) -> str:
        """Return the location to write after an operation here.

        ``name`` is empty if it has none.
        """
        if not name:
            return f" loc({self._place})" if self._place else ""
        key = (name, self._place)
        alias = self._names.setdefault(key, f"#n{len(self._names)}")
        return f" loc({alias})"

    def module(self, program: Program, aliases: Mapping[int, int]) -> Text:
        """Return the whole module, ``main`` first."""
        main = self._function(program, "main", "public", aliases)
        lines_of_user = []
        lines: dict[int, list[int]] = {}  # by code object: finding one line means finding all
        for (of_code, offset), (alias, code) in self._places.items():
            if of_code not in lines:
                lines[of_code] = lines_of(code)
            line = line_at(lines[of_code], offset)
            lines_of_user.append(f'{alias} = loc("{escape(code.co_filename)}":{line}:0)')
        names = [
            f'{alias} = loc("{escape(name)}"{place and f"({place})"})'
            for (name, place), alias in self._names.items()
        ]
        head = f"module @{identifier(program.name)}"
        declared: Sequence[str] = ()
        if self._placement is not None and self._meshes is not None and self.partitioned:
            count = len(self._placement.devices)
            head += (
                f" attributes {{mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : i32}}"
            )
            declared = self._meshes.written()
        self._facts.name = identifier(program.name)
        self._facts.may_take_long = higher_order.family.may_take_long(program)
        body = "\n".join([f"{head} {{", *declared, main, *self._bodies, "}\n"])
        return Text(
            body,
            "".join([f"{line}\n" for line in lines_of_user]),
            "".join([f"{line}\n" for line in names]),
            self._facts,
            tuple(self._calls),
            tuple([self._arrays[number] for number in self._passed]),
        )


def _in_braces(notes: Sequence[str]) -> str:
    """Return attributes as they are written behind a type."""
    return f" {{{', '.join(notes)}}}" if notes else ""


def lower(
    program: Program,
    aliases: Mapping[int, int] = MappingProxyType({}),
    placement: Placement | None = None,
) -> Text:
    """Return the StableHLO text of a program.

    ``aliases`` maps inputs to outputs of the same type that may be put into their memory. With a
    ``placement`` the text is for its devices, and says where inputs and outputs are.
    """
    return Builder(placement).module(program, aliases)
