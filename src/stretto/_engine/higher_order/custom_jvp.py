"""``custom_jvp``: a function whose forward derivative the user gives.

The reverse derivative follows from it: the rule is linear in the tangents, so ``linearize`` can
record it and ``transpose`` can run it backwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from stretto._engine.autodiff.linearize import apply_linear
from stretto._engine.autodiff.vmap import to_axis, vmap_flat, vmap_program
from stretto._engine.core import tree
from stretto._engine.core.program import Program
from stretto._engine.core.rewriting import depending
from stretto._engine.core.types import is_float0
from stretto._engine.higher_order.call import Call
from stretto._engine.higher_order.custom_function import (
    Arguments,
    CustomFunction,
    P,
    R_co,
    WithRule,
)
from stretto._engine.higher_order.family import or_zeros
from stretto._engine.higher_order.symbolic_zeros import SymbolicZero, given_or_zero
from stretto._engine.higher_order.user_rule import fit_results, user_rule
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
                jvp(tree.map(_plain, dx), out, *primals)
                for jvp, dx in zip(jvps, tangents, strict=True)
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


def _plain(t: Any) -> Any:
    """Give the tangent, as an array of zeros if it is symbolic, for a rule that expects arrays."""
    return given_or_zero(t, None, False) if isinstance(t, SymbolicZero) else t


def _sum(one: Any, other: Any) -> Any:
    return one if is_float0(one) else one + other
