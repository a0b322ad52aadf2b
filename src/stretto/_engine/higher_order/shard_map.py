"""A program that runs on each part of its arguments: the operation behind ``shard_map``.

It means nested ``vmap`` over the axes of a mesh, and is run on the mesh's devices, each with its
part; collectives inside move values between them. The program of one part is written so that every
value is either the same along an axis of the mesh or varies along it
(``ops/collective/primitives``): then its transpose is that of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from stretto._engine.autodiff.evaluate import evaluate, record_closed
from stretto._engine.autodiff.jvp import jvp_program
from stretto._engine.autodiff.linearize import apply_linear, linearize_program
from stretto._engine.autodiff.transpose import transpose_program
from stretto._engine.autodiff.vmap import AxisSize, vmap_program
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.mesh import Mesh, PartitionSpec, axes_of
from stretto._engine.core.primitive import NamedAxis, OnMesh, Refused
from stretto._engine.core.program import Equation, Program, Var, literal
from stretto._engine.core.rewriting import restrict, used_inputs, with_inputs
from stretto._engine.core.shardings import NamedSharding, check_split
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.cond import Cond
from stretto._engine.higher_order.family import Call, ControlFlow, cut
from stretto._engine.higher_order.scan import Scan
from stretto._engine.higher_order.while_loop import While
from stretto._engine.ops.arithmetic import MUL
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.collective.primitives import (
    AllGather,
    AllToAll,
    AxisIndex,
    PPermute,
    PSame,
    PSum,
    PSumSame,
    PSumScatter,
    PVary,
)
from stretto._engine.ops.layout import move_to_front, reshape, transpose


class ShardMap(ControlFlow):
    """Apply ``program`` to each part of the operands, split over ``mesh`` as ``ins`` says.

    ``axes`` are those axes of the mesh along which the program works on one part; over others the
    parts may be split further. ``outs`` says how the results are put together. The program was made
    by ``explicit``, or derived from one that was.
    """

    onnx = Refused(
        "it works across devices, of which a file knows none: export what one device does"
    )
    program: Program
    mesh: Mesh
    axes: tuple[Any, ...]
    ins: tuple[PartitionSpec, ...]
    outs: tuple[PartitionSpec, ...]
    only_compiled = True  # on devices

    @property
    def effects(self) -> frozenset[Any]:
        """Return the effects of the program, but for its axes, and that it needs the devices."""
        inner = [e for e in self.program.effects if not _names(e, self.axes)]
        return frozenset((*inner, OnMesh(self.mesh)))

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile as a whole, for the devices."""
        return True

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        for i, (type, spec, part) in enumerate(
            zip(types, self.ins, self.program.in_types, strict=True)
        ):
            sharding = NamedSharding(self.mesh, spec)
            check_split(sharding, type.shape, f"shard_map: operand {i}")
            if sharding.shard_shape(type.shape) != part.shape:
                raise TypeError(f"shard_map: the parts of operand {i} are {type}, expected {part}")
        return tuple(
            [self._whole(t, s) for t, s in zip(self.program.out_types, self.outs, strict=True)]
        )

    def _whole(self, type: ArrayType, spec: PartitionSpec) -> ArrayType:
        entries = _entries(type.shape, spec)
        return type.with_shape(tuple([n * self.mesh.size_of(axes_of(p)) for n, p in entries]))

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run it as what it means: nested maps over the axes."""
        sizes = self.mesh.shape
        program, orders = self.program, [spec.names for spec in self.ins]
        values = [_split(x, spec, sizes) for x, spec in zip(args, self.ins, strict=True)]
        masks = []
        for name in reversed(self.axes):  # the innermost map first
            mapped = tuple([name in order for order in orders])
            program, mask = vmap_program(program, AxisSize(sizes[name], name), mapped)
            masks.append((name, mask))
        # The leading axes of each value in the order of the maps, the outermost first.
        inputs = []
        for x, order in zip(values, orders, strict=True):
            wanted = [order.index(name) for name in self.axes if name in order]
            inputs.append(_leading(x, wanted))
        outs = evaluate(program, inputs)
        results = []
        for i, (x, spec) in enumerate(zip(outs, self.outs, strict=True)):
            there = [name for name, mask in reversed(masks) if mask[i]]
            results.append(_joined(x, there, spec, sizes))
        return results

    def of(
        self, program: Program, ins: Sequence[PartitionSpec], outs: Sequence[PartitionSpec]
    ) -> ShardMap:
        """Return the same map of another program of one part."""
        return ShardMap(program, self.mesh, self.axes, tuple(ins), tuple(outs))

    def trimmed(self, equation: Equation, needed: Sequence[bool]) -> Equation:
        """Return a map of the program restricted to these outputs, with what it reads."""
        program = restrict(self.program, needed)
        used = used_inputs(program)
        if program is self.program and all(used):
            return equation
        smaller = self.of(
            with_inputs(program, used), _kept(self.ins, used), _kept(self.outs, needed)
        )
        return cut(equation, smaller, used, needed)

    def lower(self, b: Any, *operands: Any) -> Any:
        """Return a region that is manual along the axes."""
        ins = [NamedSharding(self.mesh, spec) for spec in self.ins]
        outs = [NamedSharding(self.mesh, spec) for spec in self.outs]
        return b.manual(
            operands,
            ins,
            outs,
            self.axes,
            self.program.in_types,
            lambda *parts: b.program(self.program, parts),
        )

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        active = tuple(t is not None for t in tangents)
        program, mask = jvp_program(self.program, active)
        again = self.of(
            program, [*self.ins, *_kept(self.ins, active)], [*self.outs, *_kept(self.outs, mask)]
        )
        outs = again(*primals, *(t for t in tangents if t is not None))
        nonzero = iter(outs[len(mask) :])
        return outs[: len(mask)], [next(nonzero) if m else None for m in mask]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return a map for the values and residuals, and a linear one for the tangents.

        Residuals are passed with a new first axis, along which the parts that vary are put
        together.
        """
        active = tuple(t is not None for t in tangents)
        parts = linearize_program(self.program, active)
        count = len(parts.active_out)
        varies = varying(parts.primal, [frozenset(s.names) for s in self.ins])[count:]
        specs = [PartitionSpec(tuple([a for a in self.axes if a in names])) for names in varies]
        outs = self.of(_stacking(parts.primal, count), self.ins, [*self.outs, *specs])(*primals)
        douts = iter(())
        if any(parts.active_out):
            moving = [t for t in tangents if t is not None]
            linear = self.of(
                _unstacking(parts.linear, len(moving)),
                [*_kept(self.ins, active), *specs],
                _kept(self.outs, parts.active_out),
            )
            douts = iter(apply_linear(linear, *moving, *outs[count:]))
        return outs[:count], [next(douts) if m else None for m in parts.active_out]

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        linear = tuple(isinstance(a, Linear) for a in args)
        active = tuple(ct is not None for ct in cts)
        program, mask = transpose_program(self.program, linear, active)
        known = _kept(self.ins, [not is_linear for is_linear in linear])
        back = self.of(
            program, [*known, *_kept(self.outs, active)], _kept(_kept(self.ins, linear), mask)
        )
        values = [a for a in args if not isinstance(a, Linear)]
        outs = iter(back(*values, *(ct for ct in cts if ct is not None)))
        found = iter([next(outs) if m else None for m in mask])
        return [next(found) if is_linear else None for is_linear in linear]

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """Return a map of the program of fixed sizes, which all parts share."""
        for types, specs in ((at.types, self.ins), (at.outs, self.outs)):
            for type, spec in zip(types, specs, strict=True):
                if any([is_size(n) and axes_of(part) for n, part in _entries(type.shape, spec)]):
                    raise MissingRuleError(
                        f"shard_map splits no axis of a size that varies: {type} is split as "
                        f"{spec}; leave that axis whole, None, and split another one"
                    )
        program, sizes = at.closed(self.program)
        ins = (*[PartitionSpec()] * len(sizes), *self.ins)
        return self.of(program, ins, self.outs)(*sizes, *args)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        mapped = tuple(a is not None for a in axes)
        program, mask = vmap_program(self.program, size, mapped)
        ins = [_behind(s) if m else s for s, m in zip(self.ins, mapped, strict=True)]
        outs = [_behind(s) if m else s for s, m in zip(self.outs, mask, strict=True)]
        values = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
        return self.of(program, ins, outs)(*values), tuple(0 if m else None for m in mask)


def _names(effect: Any, axes: Iterable[Any]) -> bool:
    return type(effect) is NamedAxis and effect.name in axes


def _kept(values: Sequence[Any], marks: Sequence[bool]) -> list[Any]:
    return [v for v, m in zip(values, marks, strict=True) if m]


def _behind(spec: PartitionSpec) -> PartitionSpec:
    """Return the specification of arrays with a new first axis, which is not split."""
    return PartitionSpec(None, *spec)


def _entries(shape: Sequence[int], spec: PartitionSpec) -> list[tuple[int, Any]]:
    return list(zip(shape, (*spec, *(None,) * (len(shape) - len(spec))), strict=True))


def _stacking(program: Program, count: int) -> Program:
    """Return the program with a new first axis, of size 1, in its outputs after so many."""

    def fun(*args: Any) -> Any:
        outs = evaluate(program, args)
        return [*outs[:count], *(reshape(x, (1, *x.shape)) for x in outs[count:])], None

    return record_closed(fun, program.in_types, program.name)[0]


def _unstacking(program: Program, count: int) -> Program:
    """Return the program with a first axis, of size 1, in its inputs after so many."""
    types = program.in_types
    ones = [t.with_shape((1, *t.shape)) for t in types[count:]]

    def fun(*args: Any) -> Any:
        rest = [reshape(x, t.shape) for x, t in zip(args[count:], types[count:], strict=True)]
        return evaluate(program, [*args[:count], *rest]), None

    return record_closed(fun, [*types[:count], *ones], program.name)[0]


# Which values vary along which axes

_Axes = frozenset[Any]


def varying(program: Program, ins: Sequence[_Axes]) -> list[_Axes]:
    """Return the axes that each output varies along, by name, of a program of ``explicit``."""
    known: dict[Any, _Axes] = dict(zip(program.inputs, ins, strict=True))
    for equation in program.equations:
        primitive: Any = equation.primitive
        axes = frozenset().union(*[known.get(a, frozenset()) for a in equation.inputs])
        if type(primitive) in (PSumSame, PSame):
            axes -= {primitive.axis}
        else:
            axes |= {e.name for e in primitive.effects if type(e) is NamedAxis}
        known.update(dict.fromkeys(equation.outputs, axes))
    return [known.get(a, frozenset()) for a in program.outputs]


def differing(program: Program, ins: Sequence[_Axes]) -> list[_Axes]:
    """Return the axes along which the parts of each output may differ, for inputs that differ so.

    Raises ``ValueError`` where parts might not meet in a collective, for only some of them run it.
    """
    known: dict[Any, _Axes] = dict(zip(program.inputs, ins, strict=True))
    for equation in program.equations:
        args = [known.get(a, frozenset()) for a in equation.inputs]
        outs = _differing(equation.primitive, args, len(equation.outputs))
        known.update(zip(equation.outputs, outs, strict=True))
    return [known.get(a, frozenset()) for a in program.outputs]


def _differing(primitive: Any, args: Sequence[_Axes], count: int) -> list[_Axes]:
    together: _Axes = frozenset().union(*args)
    match primitive:
        case PSum() | AllGather() | PSumSame() | PSame():
            return [together - {primitive.axis}]
        case AxisIndex() | PPermute() | AllToAll() | PSumScatter():
            return [together | {primitive.axis}]
        case Call():
            return differing(primitive.program, args)
        case Scan(consts=consts, carry=carry):
            state = list(args[consts : consts + carry])
            while True:
                outs = differing(primitive.body, [*args[:consts], *state, *args[consts + carry :]])
                wider = [a | b for a, b in zip(state, outs, strict=False)]
                if wider == state:
                    return [*state, *outs[carry:]]
                state = wider
        case Cond(size=None):
            of_each = [differing(branch, args[1:]) for branch in primitive.branches]
            _meet("cond", "whose branch", args[0], primitive.branches)
            return [frozenset().union(args[0], *outs) for outs in zip(*of_each, strict=True)]
        case While(cond_consts=first, body_consts=second):
            state = list(args[first + second :])
            while True:
                (again,) = differing(primitive.cond, [*args[:first], *state])
                outs = differing(primitive.body, [*args[first : first + second], *state])
                wider = [a | b | again for a, b in zip(state, outs, strict=True)]
                if wider == state:
                    _meet("while_loop", "whose condition", again, (primitive.cond, primitive.body))
                    return state
                state = wider
        case _:
            inner = {e.name for e in primitive.effects if type(e) is NamedAxis}
            return [together | inner] * count


def _meet(what: str, which: str, differs: _Axes, programs: Sequence[Program]) -> None:
    """Raise if collectives are run by some parts alone."""
    for program in programs:
        for effect in program.effects:
            if type(effect) is NamedAxis and effect.name in differs:
                raise ValueError(
                    f"shard_map: a {what}, {which} differs between the parts along the axis "
                    f"{effect.name!r}, has a collective along it inside, which then some parts "
                    f"would run and others not: make it the same for all, as by "
                    f"lax.pmax(condition, {effect.name!r}), or take the collective out"
                )


def explicit(
    program: Program,
    axes: Sequence[Any],
    sizes: dict[Any, int],
    ins: Sequence[_Axes],
    outs: Sequence[_Axes],
    name_of: Any,
    trusted: bool,
) -> Program:
    """Return the program of one part with ``PVary`` and the like where values begin or end to vary.

    ``ins`` are the axes along which the inputs are split, ``outs`` those along which the outputs
    are put together. Raises ``ValueError`` for an output whose parts may differ along another axis,
    unless ``trusted`` promises that they do not; ``name_of(i)`` is what the message calls it.
    """
    order = {name: k for k, name in enumerate(axes)}
    differs: dict[Any, _Axes] = dict(zip(program.inputs, ins, strict=True))
    inputs = [Var(v.type) for v in program.inputs]
    now: dict[Any, Any] = dict(zip(program.inputs, inputs, strict=True))
    varies: dict[Any, _Axes] = dict(zip(inputs, ins, strict=True))
    equations: list[Equation] = []

    def applied(primitive: Any, atom: Any, result: _Axes, place: Any) -> Var:
        out = Var(atom.type)
        equations.append(Equation(primitive, (atom,), (out,), place))
        varies[out] = result
        return out

    def widened(atom: Any, wanted: _Axes, place: Any) -> Any:
        has = varies.get(atom, frozenset())
        for axis in sorted(wanted - has, key=order.__getitem__):
            has |= {axis}
            atom = applied(PVary(axis, sizes[axis]), atom, has, place)
        return atom

    def write(program: Program) -> None:
        for equation in program.equations:
            primitive: Any = equation.primitive
            place = equation.place
            called = primitive.program if type(primitive) is Call else None
            if called is not None:  # written here, so that its values are explicit too
                for v, a in zip(called.inputs, equation.inputs, strict=True):
                    now[v], differs[v] = now.get(a, a), differs.get(a, frozenset())
                write(called)
                for v, a in zip(equation.outputs, called.outputs, strict=True):
                    now[v], differs[v] = now.get(a, a), differs.get(a, frozenset())
                continue
            args = [differs.get(a, frozenset()) for a in equation.inputs]
            results = _differing(primitive, args, len(equation.outputs))
            differs.update(zip(equation.outputs, results, strict=True))
            atoms = [now.get(a, a) for a in equation.inputs]
            if type(primitive) is PSum and primitive.axis in order:
                primitive, atoms = _total(primitive, atoms[0], varies.get(atoms[0], frozenset()))
            named = {e.name for e in primitive.effects if _names(e, order)}
            together = frozenset().union(named, *[varies.get(a, frozenset()) for a in atoms])
            atoms = [widened(a, together, place) for a in atoms]
            made = [Var(v.type) for v in equation.outputs]
            if type(primitive) is PSumSame:
                together -= {primitive.axis}
            equations.append(Equation(primitive, atoms, made, place))
            now.update(zip(equation.outputs, made, strict=True))
            varies.update(dict.fromkeys(made, together))

    write(program)
    results = []
    for i, (atom, wanted) in enumerate(zip(program.outputs, outs, strict=True)):
        beyond = differs.get(atom, frozenset()) - wanted
        if beyond and not trusted:
            axis = min(beyond, key=order.__getitem__)
            raise ValueError(
                f"shard_map: {name_of(i)} may differ between the parts along the axis {axis!r}, "
                f"and out_specs says that it is the same: reduce it, as by lax.pmean(x, {axis!r}), "
                f"or name the axis in its out_specs, which puts the parts together; "
                f"check_vma=False takes it to be the same without a proof"
            )
        value = now.get(atom, atom)
        for axis in sorted(varies.get(value, frozenset()) - wanted, key=order.__getitem__):
            rest = varies[value] - {axis}
            value = applied(PSame(axis, sizes[axis]), value, rest, None)
        results.append(widened(value, wanted, None))
    return Program(inputs, equations, results, program.name)


def _total(primitive: PSum, x: Any, varies: _Axes) -> tuple[Any, list[Any]]:
    """Return the operation, and its operands, for a sum along an axis of the mesh."""
    if primitive.axis in varies:
        return PSumSame(primitive.axis, primitive.size), [x]
    # The sum of what all have is a multiple, for which nothing is sent.
    return MUL, [x, literal(primitive.size, x.type)]


# Its meaning, as nested maps


def _split(x: Any, spec: PartitionSpec, sizes: Any) -> Any:
    """Return the parts of a value along new leading axes, one for each axis that splits it."""
    shape: list[int] = []
    leading: list[int] = []
    for n, part in _entries(x.shape, spec):
        names = axes_of(part)
        leading += range(len(shape), len(shape) + len(names))
        inner = math.prod([sizes[name] for name in names])
        shape += [*(sizes[name] for name in names), n // inner]
    return _leading(reshape(x, tuple(shape)), leading)


def _leading(x: Any, axes: Sequence[int]) -> Any:
    """Return the value with these of its axes first, in this order."""
    rest = [d for d in range(x.ndim) if d not in axes]
    order = (*axes, *rest)
    return x if order == tuple(range(x.ndim)) else transpose(x, order)


def _joined(x: Any, there: Sequence[Any], spec: PartitionSpec, sizes: Any) -> Any:
    """Return the whole of a value whose leading axes are the parts along these axes of the mesh."""
    names = list(there)
    for name in spec.names:
        if name not in names:  # the same for all: repeated
            x = broadcast_to(x, (sizes[name], *x.shape))
            names.insert(0, name)
    inner = x.shape[len(names) :]
    order: list[int] = []
    shape: list[int] = []
    for d, (n, part) in enumerate(_entries(inner, spec)):
        taken = axes_of(part)
        order += [*(names.index(name) for name in taken), len(names) + d]
        shape.append(n * math.prod([sizes[name] for name in taken]))
    return reshape(transpose(x, tuple(order)), tuple(shape))
