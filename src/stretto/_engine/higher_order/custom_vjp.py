"""``custom_vjp``: a function whose reverse derivative the user gives.

When the function is differentiated, ``fwd`` runs in its place, and the linear part of the
derivative gets one ``linear_call`` without a forward program: run backwards, that calls ``bwd``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_flat
from stretto._engine.autodiff.linearize import apply_linear
from stretto._engine.autodiff.vmap import to_axis, vmap_flat, vmap_program
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Value
from stretto._engine.core.primitive import NOT_LINEAR, Primitive, Refused
from stretto._engine.core.program import Equation, Program, Var
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import restricted, used_inputs, with_inputs
from stretto._engine.core.types import ArrayType, is_inexact
from stretto._engine.higher_order.custom_function import (
    Arguments,
    CustomFunction,
    P,
    R_co,
    WithRule,
)
from stretto._engine.higher_order.family import ControlFlow, cut, split
from stretto._engine.higher_order.linear_call import (
    ONLY_BACKWARDS,
    LinearCall,
    batched_backward,
    only_backwards,
)
from stretto._engine.higher_order.symbolic_zeros import CustomVJPPrimal, given_or_zero
from stretto._engine.higher_order.user_rule import fit_results, user_rule
from stretto._engine.ops.layout import move_to_front


class _NoForwardRule(Refused):
    """Refuses a forward derivative, with the name of the user's function in the message."""

    def __get__(self, instance: Any, owner: type[Primitive]) -> Any:
        if instance is None:
            return self

        def refuse(*_: Any) -> Any:
            raise only_backwards(instance.program.name)

        return refuse


class CustomVjp(WithRule):
    """A program; ``rule(primals, perturbed)`` gives outputs, residuals and a backward function.

    The latter maps residuals and the outputs' cotangents (``None``: zero) to the cotangents of all
    operands. With ``optimize_remat``, ``fwd`` runs only where residuals are needed.
    """

    optimize_remat: bool = False

    jvp = _NoForwardRule(f"its function has {ONLY_BACKWARDS}")
    transpose = NOT_LINEAR

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """``fwd`` for the values and residuals, and one linear operation for the tangents."""
        perturbed = [t is not None for t in tangents]
        outs, residuals, back = self._forward(primals, perturbed)
        floating = [is_inexact(o.dtype) for o in outs]
        types = tuple(o.type for o, f in zip(outs, floating, strict=True) if f)
        if not types:
            return outs, [None] * len(outs)

        def backward(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            nonzero = iter(cts)
            results = back(residuals, [next(nonzero) if f else None for f in floating])
            return [ct for ct, p in zip(results, perturbed, strict=True) if p]

        moving = [t for t in tangents if t is not None]
        step = LinearCall(self.program.name, types, len(moving), backward, None)
        douts = iter(apply_linear(step, *moving, *residuals))
        return outs, [next(douts) if f else None for f in floating]

    def _forward(
        self, primals: Sequence[Any], perturbed: Sequence[bool]
    ) -> tuple[Any, list[Any], Any]:
        """Return what the rule gives; with ``optimize_remat``, through one ``CustomVjpForward``."""
        if not self.optimize_remat:
            return self.rule(primals, perturbed)

        def both(*xs: Any) -> Any:
            outs, residuals, back = self.rule(xs, perturbed)
            return [*outs, *residuals], back

        types = [p.type for p in primals]
        program, back, captured = record(both, types, name=self.program.name)
        count, args = len(self.program.outputs), [*primals, *captured]
        values = dict(zip(program.inputs, args, strict=True))
        computed = [a for a in dict.fromkeys(program.outputs[count:]) if a not in values]
        extra = [Var(c.type) for c in captured]
        plain = Program(
            [*self.program.inputs, *extra], self.program.equations, self.program.outputs
        )
        outputs = [*program.outputs[:count], *computed]
        forward = Program(program.inputs, program.equations, outputs, program.name)
        results = CustomVjpForward(forward if computed else plain, plain)(*args)
        values |= dict(zip(computed, results[count:], strict=True))
        return results[:count], [values[a] for a in program.outputs[count:]], back

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        values = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
        over = tuple(a is not None for a in axes)
        count = len(self.program.outputs)
        program, _ = vmap_program(self.program, size, over, (True,) * count)
        positions = [0 if o else None for o in over]

        def rule(primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
            back: Any = None

            def one(*xs: Any) -> Any:
                nonlocal back
                outs, residuals, back = self.rule(xs, perturbed)
                return [*outs, *residuals]

            results, out_axes = vmap_flat(one, size, primals, positions)
            outs = [to_axis(o, size, a, 0) for o, a in zip(results[:count], out_axes, strict=False)]
            return outs, results[count:], batched_backward(back, size, over, out_axes[count:])

        return CustomVjp(program, rule, self.optimize_remat)(*values), (0,) * count


class CustomVjpForward(ControlFlow):
    """Computes outputs and residuals by ``program``, or just outputs by ``plain``.

    What ``trimmed`` does decides: ``plain`` is used if no residual is needed.
    """

    program: Program
    plain: Program
    transpose = NOT_LINEAR

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return self.program.out_types

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run the program."""
        return evaluate(self.program, args)

    def lower(self, b: Any, *operands: Any) -> Any:
        return b.program(self.program, operands)

    def inlined(self) -> Program:
        """Return the program: when it is inlined, it has been trimmed to what is needed."""
        return self.program

    def trimmed(self, equation: Equation, needed: Sequence[bool]) -> Equation:
        """Return the plain program, if no residual is needed."""
        count = len(self.plain.outputs)
        if any(needed[count:]):
            return super().trimmed(equation, needed)
        plain = restricted(self.plain, needed[:count])
        used = used_inputs(plain)
        plain = with_inputs(plain, used)
        return cut(equation, CustomVjpForward(plain, plain), used, needed)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return jvp_flat(lambda *xs: evaluate(self.program, xs), primals, tangents)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        values = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
        over = tuple(a is not None for a in axes)
        program, plain = [
            vmap_program(p, size, over, (True,) * len(p.outputs))[0]
            for p in (self.program, self.plain)
        ]
        return CustomVjpForward(program, plain)(*values), (0,) * len(program.outputs)

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """Run the program in place; ``trimmed`` has chosen it."""
        return tuple(at.run(self.program, args))


class custom_vjp(CustomFunction[P, R_co]):
    """A function whose reverse derivative the user gives, by ``f.defvjp(fwd, bwd)``.

    ``fwd`` takes the arguments of ``fun`` and returns its output and residuals, any tree; ``bwd``
    takes the residuals and the output's cotangent, and returns a tuple with one tree an argument.
    ``None`` in it stands for zeros; integers and booleans get ``None`` or zeros of dtype float0.
    Arrays among the residuals are kept; whatever else is there is handed to ``bwd`` as it is. Where
    no derivative is taken only ``fun`` runs; where one is, ``bwd`` runs if the result depends on
    the function's, even if that cotangent is zero: it may return a new state in place of a slope.

    Arguments may be given by name: rules see all of them by position, defaults too. At rest ``fun``
    runs as it stands; transformed it is traced. What it takes from outside may be traced, but not
    differentiated.

    Args:
        fun: the function.
        nondiff_argnums: positions of arguments that are not trees of arrays, or have no
            derivative: ``fwd`` gets them in their places, ``bwd`` first of all, and they have no
            place in what ``bwd`` returns.
        nondiff_argnames: the same, by name.

    Raises:
        TypeError: ``fun`` is not a function; or, in a call, the rules' results do not fit, which
            names the leaf, or a derivative is taken by an argument of ``nondiff_argnums`` or a
            value from outside.
        ValueError: a position is negative, or a name is not an argument's.
        AttributeError: in a call, no rules were given.
        MissingRuleError: a forward derivative is taken.

    >>> import stretto as st, stretto.numpy as snp
    >>> @st.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (snp.clip(ct, -1, 1),))
    >>> float(st.grad(lambda x: 5.0 * clipped(x))(2.0))
    1.0
    """

    kind = "custom_vjp"
    _rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None
    _symbolic = False
    _remat = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Give the rules.

        Args:
            fwd: a function of the arguments that returns output and residuals.
            bwd: a function of residuals and the output's cotangent that returns a tuple with one
                tree for each argument.
            symbolic_zeros: whether each leaf that ``fwd`` gets is a ``CustomVJPPrimal``, with
                ``value`` and ``perturbed`` (whether a derivative is taken by it), and a cotangent
                that ``bwd`` gets may be a ``SymbolicZero`` instead of an array of zeros.
            optimize_remat: whether the forward pass runs ``fun`` instead of ``fwd`` wherever no
                residuals are needed, as inside a ``checkpoint``. ``fwd`` is then traced, and its
                output should equal that of ``fun``.
        """
        self._rules, self._symbolic, self._remat = (fwd, bwd), symbolic_zeros, optimize_remat

    def check_rules(self) -> None:
        """Raise ``AttributeError`` if there are no rules."""
        if self._rules is None:
            raise AttributeError(f"custom_vjp: {self.name} has no rules; give them with defvjp")

    def operation(
        self, arguments: Arguments, program: Program, structure: Any, captured: Sequence[Any]
    ) -> CustomVjp:
        """Return the program with the rules, on flat values."""
        assert self._rules is not None
        fwd, bwd = self._rules
        symbolic, types = self._symbolic, program.out_types
        count, own = arguments.count, len(arguments.types)
        traced = [c is not None for c in captured]
        outside = list(itertools.compress(captured, traced))

        def rule(primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
            arguments.check_perturbed(perturbed, captured)
            leaves = primals[:count]
            if symbolic:
                leaves = [CustomVJPPrimal(x, p) for x, p in zip(leaves, perturbed, strict=False)]
            caller = f"custom_vjp: fwd of {self.name}"

            def call(present: Callable[[Any], Any]) -> Any:
                result = fwd(*arguments.every(primals, leaves))
                if not (isinstance(result, (tuple, list)) and len(result) == 2):
                    raise TypeError(
                        f"{caller} must return a pair (output, residuals), got {result!r}"
                    )
                outs = fit_results(result[0], structure, types, caller, "an output")
                kept, kept_structure = tree.flatten(result[1])
                is_array = [isinstance(x, Value) for x in kept]
                arrays = [present(x) for x in itertools.compress(kept, is_array)]
                return [present(o) for o in outs], kept, kept_structure, is_array, arrays

            outs, kept, kept_structure, is_array, arrays = user_rule(
                caller, captured, primals[own:], call
            )
            rest = [None if a else x for x, a in zip(kept, is_array, strict=True)]
            unmoved = [None] * (len(primals) - count)
            # bwd may use these values as well, and runs elsewhere, so they are residuals, too.
            held = [*primals[count:own], *itertools.compress(primals[own:], traced)]

            def back(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
                own_residuals, static, now = split(residuals, sum(is_array), own - count)
                kept_arrays = iter(own_residuals)
                parts = [next(kept_arrays) if a else x for x, a in zip(rest, is_array, strict=True)]
                cts = [given_or_zero(t, ct, symbolic) for t, ct in zip(types, cts, strict=True)]
                caller = f"custom_vjp: bwd of {self.name}"

                def call(present: Callable[[Any], Any]) -> list[Any]:
                    result = bwd(
                        *arguments.static(static),
                        tree.unflatten(kept_structure, parts),
                        tree.unflatten(structure, cts),
                    )
                    return [present(ct) for ct in arguments.cotangents(result, caller)]

                return [*user_rule(caller, outside, now, call), *unmoved]

            return outs, [*arrays, *held], back

        return CustomVjp(program, rule, self._remat)
