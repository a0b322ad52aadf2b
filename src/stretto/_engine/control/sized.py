"""Calls of programs whose sizes vary, with carriers for their arguments: ``SizedCall``.

Layer 4 (control). The operation holds the program of the true sizes. Derivatives and mapped forms
are made of that program; only when it is run is it written for the bucket. With sizes that are
mapped, each example has sizes of its own. Next, read ``scan``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.control.family import ControlFlow
from stretto._engine.core.config import config
from stretto._engine.core.effects import names_axis
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.program import Program
from stretto._engine.core.sizes import Size, SizeVariable
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.bucket import Bucket
from stretto._engine.ops.layout import move_to_front
from stretto._engine.transforms.evaluate import evaluate
from stretto._engine.transforms.jvp import jvp_program
from stretto._engine.transforms.linearize import apply_linear, linearize_program
from stretto._engine.transforms.padded import padded_program, variables_of
from stretto._engine.transforms.transpose import transpose_program
from stretto._engine.transforms.vmap import vmap_program

__all__ = ["SizedCall"]


class SizedCall(ControlFlow):
    """Apply a program whose sizes vary, each variable being at most so great.

    Operands: the sizes, an int32 for each variable, then carriers of the program's arguments;
    outputs: carriers of its results. ``batch`` are the sizes of leading axes of examples, the
    outermost first; for each of them ``over`` says which operands have it. All outputs have all.
    """

    program: Program
    variables: tuple[SizeVariable, ...]
    most: tuple[int, ...]
    batch: tuple[int, ...] = ()
    over: tuple[tuple[bool, ...], ...] = ()
    only_compiled = True
    rollable = False

    def programs(self) -> list[Program]:
        """None that passes may change: they see the program of fixed sizes, in place."""
        return []

    def with_programs(self, change: Callable[[Program], Program]) -> SizedCall:
        """The same."""
        return self

    @property
    def effects(self) -> frozenset[Any]:
        """The effects of the program."""
        return self.program.effects

    def parameters(self) -> list[tuple[str, Any]]:
        """What is not empty."""
        return [(name, value) for name, value in super().parameters() if value != ()]

    @property
    def bucket(self) -> Bucket:
        """The bounds of the sizes."""
        return Bucket(dict(zip(self.variables, self.most, strict=True)), {})

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """Carriers of the results; sizes that vary outside of the call still do."""
        bucket, own = self.bucket, set(self.variables)

        def most(n: Any) -> Any:
            inside = own.intersection(n.variables()) if isinstance(n, Size) else own
            return bucket.bound(n) if inside else n

        return tuple(
            [t.with_shape((*self.batch, *map(most, t.shape))) for t in self.program.out_types]
        )

    def fixed(self) -> Program:
        """The program of fixed sizes."""
        bounds = dict(zip(self.variables, self.most, strict=True))
        program = padded_program(self.program, self.variables, bounds)
        every = (True,) * len(program.outputs)
        for size, over in zip(self.batch[::-1], self.over[::-1], strict=True):
            program, _ = vmap_program(program, size, over, every)
        return program

    def inlined(self) -> Program:
        """The program of fixed sizes: whoever inlines it has taken all derivatives."""
        return self.fixed()

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run the program of fixed sizes."""
        return evaluate(self.fixed(), args)

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compiled as a whole."""
        return not config.disable_jit

    def lower(self, b: Any, *operands: Any) -> Any:
        """The program of fixed sizes, in place."""
        return b.program(self.fixed(), operands)

    def of(self, program: Program, over: Sequence[Sequence[bool]]) -> SizedCall:
        """A call of another program of the same sizes, whose operands have these axes."""
        return SizedCall(
            program, self.variables, self.most, self.batch, tuple([tuple(o) for o in over])
        )

    def _marks(self, chosen: Sequence[int], more: int = 0) -> list[list[bool]]:
        """For each leading axis: the sizes' marks, those of the chosen operands, and True."""
        count = len(self.variables)
        return [
            [*over[:count], *[over[count + i] for i in chosen], *[True] * more]
            for over in self.over
        ]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """A call of the program of values and tangents."""
        count = len(self.variables)
        active = tuple([t is not None for t in tangents[count:]])
        program, mask = jvp_program(self.program, active)
        moving = [i for i, a in enumerate(active) if a]
        call = self.of(program, self._marks([*range(len(active)), *moving]))
        outs = call(*primals, *[tangents[count + i] for i in moving])
        nonzero = iter(outs[len(mask) :])
        return outs[: len(mask)], [next(nonzero) if m else None for m in mask]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """A call for the values and residuals, and a linear one for the tangents.

        Residuals that are arguments are passed as they are: what examples share stays shared.
        """
        count = len(self.variables)
        sizes, values = primals[:count], primals[count:]
        active = tuple([t is not None for t in tangents[count:]])
        split = linearize_program(self.program, active)
        primal, wanted = split.primal, len(split.active_out)
        outs = self.of(primal, self.over)(*primals)
        if not any(split.active_out):
            return outs, [None] * wanted
        places = {v: i for i, v in enumerate(primal.inputs)}
        own = [places.get(atom) for atom in primal.outputs[wanted:]]  # type: ignore[call-overload]
        moving = [i for i, a in enumerate(active) if a]
        marks = self._marks(moving)
        for over, row in zip(self.over, marks, strict=True):
            row += [True if i is None else over[count + i] for i in own]
        residuals = [
            out if i is None else values[i] for i, out in zip(own, outs[wanted:], strict=True)
        ]
        call = self.of(split.linear, marks)
        tangents_in = [tangents[count + i] for i in moving]
        douts = iter(apply_linear(call, *sizes, *tangents_in, *residuals))
        return outs[:wanted], [next(douts) if m else None for m in split.active_out]

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        """A call of the transposed program; what examples share gets the sum over them."""
        count = len(self.variables)
        sizes, values = args[:count], args[count:]
        linear = tuple([isinstance(a, Linear) for a in values])
        active = tuple([ct is not None for ct in cts])
        program, mask = transpose_program(self.program, linear, active)
        known = [i for i, is_linear in enumerate(linear) if not is_linear]
        call = self.of(program, self._marks(known, sum(active)))
        given = [ct for ct in cts if ct is not None]
        outs = iter(call(*sizes, *[values[i] for i in known], *given))
        back: list[Any] = [None] * len(args)
        places = [i for i, is_linear in enumerate(linear) if is_linear]
        for i, there in zip(places, mask, strict=True):
            if there:
                ct = next(outs)
                shared = [k for k, over in enumerate(self.over) if not over[count + i]]
                back[count + i] = reduce_sum(ct, shared) if shared else ct
        return back

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The program for all examples where they share their sizes; else an axis more."""
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
            )
            return call(*values), (0,) * len(self.program.outputs)
        program, mask = vmap_program(self.program, size, mapped[count:])
        outs = self.of(program, ())(*values)
        return outs, tuple([0 if m else None for m in mask])

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """The same call, to which sizes that vary outside of it are given, too."""
        count, own = len(self.variables), set(self.variables)
        outer = [v for v in variables_of(self.program) if v not in own]
        if not outer:
            return self(*args)
        call = SizedCall(
            self.program,
            (*self.variables, *outer),
            (*self.most, *[at.most[v] for v in outer]),
            self.batch,
            tuple([(*o[:count], *[False] * len(outer), *o[count:]) for o in self.over]),
        )
        return call(*args[:count], *[at.values[v] for v in outer], *args[count:])
