"""Functions whose derivatives the user gives: ``custom_jvp`` and ``custom_vjp``.

With ``custom_jvp`` the reverse derivative follows from the forward one: the rule is linear in the
tangents, so ``linearize`` can record it and ``transpose`` can run it backwards.

With ``custom_vjp``, when the function is differentiated, ``fwd`` runs in its place, and the linear
part of the derivative gets one ``linear_call`` without a forward program: run backwards, that calls
``bwd``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_flat
from stretto._engine.autodiff.linearize import apply_linear
from stretto._engine.autodiff.vmap import to_axis, vmap_flat, vmap_program
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Value
from stretto._engine.core.primitive import NOT_LINEAR, Primitive, Refused
from stretto._engine.core.program import Equation, Program, Var
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import depending, restrict, used_inputs, with_inputs
from stretto._engine.core.types import ArrayType, is_float0, is_inexact
from stretto._engine.higher_order.custom_function import (
    Arguments,
    CustomFunction,
    CustomVJPPrimal,
    P,
    R_co,
    SymbolicZero,
    WithRule,
    fit_results,
    given_or_zero,
    user_rule,
    zero_tangent,
)
from stretto._engine.higher_order.family import Call, ControlFlow, cut, or_zeros, split
from stretto._engine.higher_order.linear_call import (
    ONLY_BACKWARDS,
    LinearCall,
    batched_backward,
    only_backwards,
)
from stretto._engine.ops.layout import move_to_front

F = TypeVar("F", bound=Callable[..., Any])


class CustomJvp(WithRule):
    """A program; ``rule(primals, tangents)`` gives outputs and tangents (``None``: zero)."""

    takes_masked = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self.rule(primals, tangents)

    def linear_parts(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the operation itself, applied to the tangents."""
        moving = depending(self.program, [t is not None for t in tangents])
        known = [None] * len(moving) if all(moving) else self(*primals)
        outs = [
            or_zeros(None if m else x, t)
            for x, m, t in zip(known, moving, self.program.out_types, strict=True)
        ]
        douts = apply_linear(
            self, *[p if t is None else t for p, t in zip(primals, tangents, strict=True)]
        )
        return outs, [t if m else None for t, m in zip(douts, moving, strict=True)]

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        return Call(self.program).transpose(cts, *args)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        values = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
        over = tuple(a is not None for a in axes)
        count = len(self.program.outputs)
        program, _ = vmap_program(self.program, size, over, (True,) * count)
        in_axes = [0 if o else None for o in over]

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            moving = [t for t in tangents if t is not None]
            mask: list[bool] = []

            def one(*xs: Any) -> Any:
                nonlocal mask
                each = iter(xs[len(over) :])
                dxs = [None if t is None else next(each) for t in tangents]
                outs, douts = self.rule(xs[: len(over)], dxs)
                mask = [t is not None for t in douts]
                return [*outs, *(t for t in douts if t is not None)]

            moving_axes = [p for p, t in zip(in_axes, tangents, strict=True) if t is not None]
            outs, out_axes = vmap_flat(one, size, [*primals, *moving], [*in_axes, *moving_axes])
            whole = [to_axis(o, size, a, 0) for o, a in zip(outs, out_axes, strict=True)]
            douts = iter(whole[count:])
            return whole[:count], [next(douts) if m else None for m in mask]

        return CustomJvp(program, rule)(*values), (0,) * count


class custom_jvp(CustomFunction[P, R_co]):
    """A function whose forward derivative the user gives; the reverse one follows from it.

    ``@f.defjvp`` takes a function of (primals, tangents), tuples like the arguments, that returns
    the output and its tangent, linear in the tangents. Tangents of integers and booleans are zeros
    of dtype float0, and have to be for such outputs. ``f.defjvps`` takes one function an argument.

    Arguments may be given by name: rules see all of them by position, defaults too. At rest ``fun``
    runs as it stands; transformed it is traced. What it takes from outside may be traced, but not
    differentiated.

    Args:
        fun: the function.
        nondiff_argnums: positions of arguments that are not trees of arrays, or have no
            derivative; rules get them first, as they are.
        nondiff_argnames: the same, by name.

    Raises:
        TypeError: ``fun`` is not a function; or, in a call, the rule's results do not fit the
            function's, which names the leaf, or a derivative is taken by an argument of
            ``nondiff_argnums`` or a value from outside.
        ValueError: a position is negative, or a name is not an argument's.
        AttributeError: in a call, no rule was given.

    >>> import stretto as st, stretto.numpy as snp
    >>> @st.custom_jvp
    ... def f(x):
    ...     return snp.sin(x)
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     return f(*primals), 2.0 * tangents[0]
    >>> float(st.grad(f)(0.0))
    2.0
    """

    kind = "custom_jvp"
    _rule: Callable[..., Any] | None = None
    _symbolic = False

    def defjvp(self, jvp: F, symbolic_zeros: bool = False) -> F:
        """Give the rule.

        Args:
            jvp: a function of the static arguments, then primals, then tangents, which returns
                the output and its tangent.
            symbolic_zeros: whether a tangent that is zero is a ``SymbolicZero``, and may be
                returned as one, instead of an array of zeros.

        Returns:
            The rule, so that this serves as a decorator.
        """
        self._rule, self._symbolic = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Give a rule for each argument; the output's tangent is the sum of what they return.

        Nothing is computed for an argument whose tangent is zero.

        Args:
            *jvps: for each argument a function of its tangent, the output, and all primals;
                None stands for a derivative of zero.

        Raises:
            TypeError: some arguments are static: then use ``defjvp``; or, in a call, there is
                another number of rules than of arguments.

        >>> import stretto as st
        >>> f = st.custom_jvp(lambda x, y: x * y)
        >>> f.defjvps(lambda dx, out, x, y: dx * y, None)
        >>> [float(g) for g in st.grad(f, (0, 1))(2.0, 3.0)]
        [3.0, 0.0]
        """
        if self._static:
            raise TypeError(
                f"custom_jvp: defjvps of {self.name} cannot be used with nondiff_argnums; use "
                f"defjvp"
            )

        fun: Any = self

        def rule(primals: Any, tangents: Any) -> Any:
            if len(jvps) != len(primals):
                raise TypeError(
                    f"custom_jvp: {self.name} has {len(primals)} arguments, but defjvps was given "
                    f"{len(jvps)} rules; None stands for a derivative of zero"
                )
            out = fun(*primals)
            terms = [
                jvp(tree.map(_plain, dx, x), out, *primals)
                for jvp, dx, x in zip(jvps, tangents, primals, strict=True)
                if jvp is not None and not all(isinstance(t, SymbolicZero) for t in tree.leaves(dx))
            ]
            if not terms:
                return out, tree.map(lambda o: given_or_zero(o, None, True), out)
            return out, functools.reduce(lambda s, t: tree.map(_sum, s, t), terms)

        self.defjvp(rule, symbolic_zeros=True)

    def check_rules(self) -> None:
        """Raise ``AttributeError`` if there is no rule."""
        if self._rule is None:
            raise AttributeError(f"custom_jvp: {self.name} has no rule; give one with defjvp")

    def operation(
        self, arguments: Arguments, program: Program, structure: Any, captured: Sequence[Any]
    ) -> CustomJvp:
        """Return the program with the rule, on flat values."""
        jvp, symbolic, own = self._rule, self._symbolic, len(arguments.types)
        caller, count = f"custom_jvp: the rule of {self.name}", arguments.count
        assert jvp is not None

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            arguments.check_perturbed([t is not None for t in tangents], captured)
            moving = [
                given_or_zero(p, t, symbolic)
                for p, t in zip(primals[:count], tangents[:count], strict=True)
            ]

            def call(present: Callable[[Any], Any]) -> tuple[list[Any], list[Any]]:
                result = jvp(
                    *arguments.static(primals[count:own]),
                    arguments.trees(primals[:count]),
                    arguments.trees(moving),
                )
                if not (isinstance(result, (tuple, list)) and len(result) == 2):
                    raise TypeError(
                        f"{caller} must return a pair (output, tangent), got {result!r}"
                    )
                types = program.out_types
                out = fit_results(result[0], structure, types, caller, "an output")
                dout = fit_results(result[1], structure, types, caller, "a tangent", tangent=True)
                return [present(o) for o in out], [present(t) for t in dout]

            return user_rule(caller, captured, primals[own:], call)

        return CustomJvp(program, rule)


def _plain(t: Any, x: Any) -> Any:
    """Give the tangent of a value, as zeros if it is symbolic, for a rule that expects arrays."""
    return zero_tangent(x) if isinstance(t, SymbolicZero) else t


def _sum(one: Any, other: Any) -> Any:
    return one if is_float0(one) else one + other


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
        """Run ``fwd`` for values and residuals; record one linear operation for the tangents."""
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
        plain = restrict(self.plain, needed[:count])
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
