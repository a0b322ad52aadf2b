"""Calls of programs whose sizes vary, with carriers for their arguments: ``SizedCall``.

The operation holds the program of the true sizes. Derivatives and mapped forms are made of that
program; only when it is run is it written for the bucket, in place, by a pass that goes before all
that makes programs faster: ``inline_sized_calls``. With sizes that are mapped, each example has
sizes of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_program
from stretto._engine.autodiff.linearize import apply_linear, linearize_program
from stretto._engine.autodiff.transpose import transpose_program
from stretto._engine.autodiff.vmap import vmap_program
from stretto._engine.core.config import config
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.primitive import names_axis
from stretto._engine.core.program import Equation, Program
from stretto._engine.core.rewriting import (
    changed_inside,
    depending,
    remember,
    restrict,
    written_out,
)
from stretto._engine.core.sizes import Size, SizeVariable
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.family import ControlFlow
from stretto._engine.higher_order.fixed_sizes import (
    Examples,
    asks_for_sizes,
    packed_program,
    padded_program,
    variables_of,
)
from stretto._engine.ops.broadcast import broadcast_in_dim, reduce_sum
from stretto._engine.ops.layout import move_to_front
from stretto._engine.ops.varying_sizes import Bucket, varying


class SizedCall(ControlFlow):
    """Apply a program whose sizes vary, each variable being at most so great.

    Operands: the sizes, an int32 for each variable, then carriers of the program's arguments;
    outputs: carriers of its results. ``batch`` are the sizes of leading axes of examples, the
    outermost first; for each of them ``over`` says which operands have it. All outputs have all.

    With ``rooms``, the innermost are examples that lie one behind the other: in place of carriers
    of all examples there are rows, for types that have rows, with room for so many of each
    variable (see ``packed``). Outputs that are ``summed`` are added up over those examples.
    """

    program: Program
    variables: tuple[SizeVariable, ...]
    most: tuple[int, ...]
    batch: tuple[int, ...] = ()
    over: tuple[tuple[bool, ...], ...] = ()
    rooms: tuple[int, ...] = ()
    summed: tuple[bool, ...] = ()
    only_compiled = True
    rollable = False

    def programs(self) -> list[Program]:
        """Give none that passes may change: they see the program of fixed sizes, in place."""
        return []

    def with_programs(self, change: Callable[[Program], Program]) -> SizedCall:
        """Return the same."""
        return self

    @property
    def effects(self) -> frozenset[Any]:
        """The effects of the program."""
        return self.program.effects

    def parameters(self) -> list[tuple[str, Any]]:
        """Return what is not empty."""
        return [(name, value) for name, value in super().parameters() if value != ()]

    @property
    def bucket(self) -> Bucket:
        """The bounds of the sizes."""
        return Bucket(dict(zip(self.variables, self.most, strict=True)), {})

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """Return carriers of the results; sizes that vary outside of the call still do."""
        outs = self.program.out_types
        summed = self.summed or (False,) * len(outs)
        return tuple([self._carrier(t, added) for t, added in zip(outs, summed, strict=True)])

    def _carrier(self, type: ArrayType, summed: bool) -> ArrayType:
        """Return the type of an output for all examples."""
        bucket, own = self.bucket, set(self.variables)

        def most(n: Any) -> Any:
            every = set(n.variables()) if isinstance(n, Size) else set()
            if every and not every & own:
                return n
            outer = {v: int(v.most) for v in every - own}  # such as one more than those inside
            return Bucket({**bucket.most, **outer}, {}).bound(n) if outer else bucket.bound(n)

        carrier = type.with_shape(tuple(map(most, type.shape)))
        if self.rooms:
            room = self._examples().room(type)
            if room is not None:
                return type.with_shape((*self.batch[:-1], room, *carrier.shape[1:]))
        batch = self.batch[:-1] if summed else self.batch
        return type.with_shape((*batch, *carrier.shape))

    def _examples(self) -> Examples:
        """Return the innermost examples, which lie one behind the other."""
        return Examples(self.batch[-1], self.variables, self.most, self.rooms)

    def fixed(self) -> Program:
        """Return the program of fixed sizes."""
        levels = list(zip(self.batch, self.over, strict=True))
        if self.rooms:
            _, over = levels.pop()
            program = packed_program(self.program, self._examples(), over, self.summed)
        else:
            bounds = dict(zip(self.variables, self.most, strict=True))
            program = padded_program(self.program, self.variables, bounds)
        every = (True,) * len(program.outputs)
        for size, over in levels[::-1]:
            program, _ = vmap_program(program, size, over, every)
        return program

    def inlined(self) -> Program:
        """Return the program of fixed sizes: whoever inlines it has taken all derivatives."""
        return self.fixed()

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run the program of fixed sizes."""
        return evaluate(self.fixed(), args)

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile as a whole."""
        return not config.disable_jit

    def lower(self, b: Any, *operands: Any) -> Any:
        return b.program(self.fixed(), operands)

    def of(self, program: Program, over: Sequence[Sequence[bool]]) -> SizedCall:
        """Return a call of another program of the same sizes, whose operands have these axes."""
        marks = tuple([tuple(o) for o in over])
        return SizedCall(program, self.variables, self.most, self.batch, marks, self.rooms)

    def _apart(self) -> SizedCall:
        """Return the call whose outputs are not added up."""
        return self.of(self.program, self.over)

    def _added(self, outs: Sequence[Any]) -> list[Any]:
        """Return the outputs of that call, added up."""
        axes = (len(self.batch) - 1,)
        return [
            reduce_sum(x, axes) if added and x is not None else x
            for x, added in zip(outs, self.summed, strict=True)
        ]

    def _marks(self, chosen: Sequence[int], more: int = 0) -> list[list[bool]]:
        """Return for each leading axis the sizes' marks, those of the chosen operands, and True."""
        count = len(self.variables)
        return [
            [*over[:count], *[over[count + i] for i in chosen], *[True] * more]
            for over in self.over
        ]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if self.summed:
            outs, douts = self._apart().jvp(primals, tangents)
            return self._added(outs), self._added(douts)
        count = len(self.variables)
        active = tuple([t is not None for t in tangents[count:]])
        program, mask = jvp_program(self.program, active)
        moving = [i for i, a in enumerate(active) if a]
        call = self.of(program, self._marks([*range(len(active)), *moving]))
        outs = call(*primals, *[tangents[count + i] for i in moving])
        nonzero = iter(outs[len(mask) :])
        return outs[: len(mask)], [next(nonzero) if m else None for m in mask]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return a call for the values and residuals, and a linear one for the tangents.

        Residuals that are arguments are passed as they are, and those made of what examples share
        are made once: what examples share stays shared.
        """
        if self.summed:
            outs, douts = self._apart().linearize(primals, tangents)
            return self._added(outs), self._added(douts)
        count = len(self.variables)
        sizes, values = primals[:count], primals[count:]
        active = tuple([t is not None for t in tangents[count:]])
        split = linearize_program(self.program, active)
        primal, wanted = split.primal, len(split.active_out)
        if not any(split.active_out):
            return self.of(primal, self.over)(*primals), [None] * wanted
        positions = {v: i for i, v in enumerate(primal.inputs)}
        own = [positions.get(atom) for atom in primal.outputs[wanted:]]  # type: ignore[call-overload]
        common = self._common(primal, values)[wanted:]
        made = [i is None and x is None for i, x in zip(own, common, strict=True)]
        outs = self.of(restrict(primal, [*[True] * wanted, *made]), self.over)(*primals)
        moving = [i for i, a in enumerate(active) if a]
        marks = self._marks(moving)
        for over, row in zip(self.over, marks, strict=True):
            row += [m if i is None else over[count + i] for i, m in zip(own, made, strict=True)]
        new = iter(outs[wanted:])
        residuals = [
            values[i] if i is not None else next(new) if m else x
            for i, x, m in zip(own, common, made, strict=True)
        ]
        call = self.of(split.linear, marks)
        tangents_in = [tangents[count + i] for i in moving]
        douts = iter(apply_linear(call, *sizes, *tangents_in, *residuals))
        return outs[:wanted], [next(douts) if m else None for m in split.active_out]

    def _common(self, program: Program, values: Sequence[Any]) -> list[Any]:
        """Return the outputs that are the same for all examples; None for others."""
        count = len(self.variables)
        common: list[Any] = [None] * len(program.outputs)
        if not self.batch:
            return common
        own = [any(over[count + i] for over in self.over) for i in range(len(values))]
        for k, depends in enumerate(depending(program, own)):
            if not depends:
                part = restrict(program, [i == k for i in range(len(common))])
                if not any(map(_of_sizes, part.equations)):
                    (common[k],) = evaluate(part, values)
        return common

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        """Return a call of the transposed program; what examples share gets the sum over them."""
        if self.summed:
            return self._apart().transpose(self._repeated(cts), *args)
        count = len(self.variables)
        sizes, values = args[:count], args[count:]
        linear = tuple([isinstance(a, Linear) for a in values])
        active = tuple([ct is not None for ct in cts])
        program, mask = transpose_program(self.program, linear, active)
        known = [i for i, is_linear in enumerate(linear) if not is_linear]
        positions = [i for i, is_linear in enumerate(linear) if is_linear]
        positions = [i for i, there in zip(positions, mask, strict=True) if there]
        call = self.of(program, self._marks(known, sum(active)))
        levels = self.over
        if self.rooms:  # what the innermost examples share is added up inside
            *levels, over = self.over
            summed = tuple([not over[count + i] for i in positions])
            call = dataclasses.replace(call, summed=summed if any(summed) else ())
        given = [ct for ct in cts if ct is not None]
        outs = call(*sizes, *[values[i] for i in known], *given)
        back: list[Any] = [None] * len(args)
        for i, ct in zip(positions, outs, strict=True):
            shared = [k for k, over in enumerate(levels) if not over[count + i]]
            back[count + i] = reduce_sum(ct, shared) if shared else ct
        return back

    def _repeated(self, cts: Sequence[Any]) -> list[Any]:
        """Return the cotangents of sums, for each of what was added up."""
        types = self._apart().infer()
        axis = len(self.batch) - 1
        return [
            broadcast_in_dim(ct, t.shape, [d for d in range(t.ndim) if d != axis])
            if added and ct is not None
            else ct
            for ct, added, t in zip(cts, self.summed, types, strict=True)
        ]

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Return the program for all examples where they share their sizes; else an axis more."""
        values = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
        mapped = tuple([a is not None for a in axes])
        count = len(self.variables)
        if self.batch or any(mapped[:count]):
            if names_axis(self.effects, getattr(size, "name", None)):
                raise MissingRuleError(
                    f"{self.program.name} has a collective along the axis {size.name!r} inside, "  # type: ignore[attr-defined]
                    f"and examples that have sizes of their own: take the collective out of the "
                    f"function that is mapped over a ragged array"
                )
            call = SizedCall(
                self.program,
                self.variables,
                self.most,
                (int(size), *self.batch),
                (mapped, *self.over),
                self.rooms,
                self.summed,
            )
            return call(*values), (0,) * len(self.program.outputs)
        program, mask = vmap_program(self.program, size, mapped[count:])
        outs = self.of(program, ())(*values)
        return outs, tuple([0 if m else None for m in mask])

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """Return the same call, to which sizes that vary outside of it are given, too."""
        count, own = len(self.variables), set(self.variables)
        outer = [v for v in variables_of(self.program) if v not in own]
        if not outer:
            return self(*args)
        assert not self.rooms, "rows are for programs without sizes of others"
        call = SizedCall(
            self.program,
            (*self.variables, *outer),
            (*self.most, *[at.most[v] for v in outer]),
            self.batch,
            tuple([(*o[:count], *[False] * len(outer), *o[count:]) for o in self.over]),
        )
        return call(*args[:count], *[at.values[v] for v in outer], *args[count:])


def _of_sizes(equation: Equation) -> bool:
    """Say if an operation has to do with sizes that vary."""
    types = [a.type for a in (*equation.inputs, *equation.outputs)]
    return any(map(varying, types)) or asks_for_sizes(equation.primitive)


def inline_sized_calls(program: Program) -> Program:
    """Give the program with the operations of such calls, for the sizes of their buckets, in place.

    >>> import stretto as st, stretto.numpy as snp
    >>> words = st.ragged([snp.ones(2), snp.ones(3)])
    >>> sums = st.make_graph(st.vmap(snp.sum))(words)
    >>> [e.primitive.name for e in sums.equations][-1]
    'sized_call'
    >>> [e.primitive.name for e in inline_sized_calls(sums).equations][-1]
    'reduce_sum'
    """
    return remember(program, "inline_sized_calls", _inline_sized_calls)


def _inline_sized_calls(program: Program) -> Program:
    program = changed_inside(program, inline_sized_calls)
    if not any([isinstance(e.primitive, SizedCall) for e in program.equations]):
        return program
    return written_out(
        program,
        lambda e: (
            inline_sized_calls(e.primitive.fixed()) if isinstance(e.primitive, SizedCall) else None
        ),
    )
