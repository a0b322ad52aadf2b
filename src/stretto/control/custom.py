"""Functions with a derivative of the user's own: ``custom_jvp``; and ``stop_gradient``.

Layer 4 (control).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto.control.family import ControlFlow, parting, record_tree, values_of
from stretto.core import tree
from stretto.core.interpreter import as_value
from stretto.core.primitive import NOT_LINEAR, ZERO_DERIVATIVE, Primitive
from stretto.core.program import Program
from stretto.core.types import ArrayType, is_inexact
from stretto.ops.broadcast import move_to_front
from stretto.ops.comparison import zeros_like
from stretto.ops.convert import convert
from stretto.transforms.evaluate import evaluate
from stretto.transforms.vmap import to_axis, vmap_flat, vmap_program

__all__ = ["CustomJvp", "custom_jvp", "stop_gradient"]


class CustomJvp(ControlFlow):
    """A program, and the function that gives its values and tangents."""

    program: Program
    rule: Callable[[Sequence[Any], Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]]
    transpose = NOT_LINEAR

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """The program's output types."""
        return self.program.out_types

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run the program."""
        return evaluate(self.program, args)

    def lower(self, b: Any, *operands: Any) -> Any:
        """The program, in place."""
        return b.program(self.program, operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """The user's rule, with zeros written out."""
        full = [zeros_like(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]
        return self.rule(primals, full)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The program, and the rule, for all examples."""
        values = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
        over = tuple(a is not None for a in axes)
        count = len(self.program.outputs)
        program, _ = vmap_program(self.program, size, over, (True,) * count)
        places = [0 if o else None for o in over]

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            given: list[bool] = []

            def one(*xs: Any) -> Any:
                outs, douts = self.rule(xs[: len(over)], xs[len(over) :])
                given.extend(t is not None for t in douts)
                return [*outs, *(t for t in douts if t is not None)]

            outs, where = vmap_flat(one, size, [*primals, *tangents], [*places, *places])
            whole = [to_axis(o, size, a, 0) for o, a in zip(outs, where, strict=True)]
            moving = iter(whole[count:])
            return whole[:count], [next(moving) if g else None for g in given]

        return CustomJvp(program, rule)(*values), (0,) * count


class custom_jvp:
    """A function whose forward derivative the user gives; the reverse one follows from it.

    ``@f.defjvp`` takes a function of (primals, tangents), tuples like the arguments, that returns
    the output and its tangent, linear in the tangents. Arguments whose positions are in
    ``nondiff_argnums`` are handed to it first, as they are.

    Raises ``AttributeError`` when called without a rule, ``TypeError`` where the rule's results do
    not fit the function's.

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

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        functools.update_wrapper(self, fun)
        self._fun = fun
        self._name = getattr(fun, "__name__", type(fun).__name__)
        self._rule: Callable[..., Any] | None = None
        self._static = tuple(nondiff_argnums)

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the rule: static arguments first, then primals, then tangents."""
        self._rule = rule
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's value."""
        user_rule = self._rule
        if user_rule is None:
            raise AttributeError(f"custom_jvp: {self._name} has no rule; give one by defjvp")
        if kwargs:
            bound = inspect.signature(self._fun).bind(*args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                raise TypeError(
                    f"custom_jvp: {self._name} takes {', '.join(bound.kwargs)} by name only, and a "
                    f"rule sees arguments by position; make it positional"
                )
            args = bound.args
        static = [args[i] for i in self._static]
        moving = tuple(a for i, a in enumerate(args) if i not in self._static)

        def fun(*xs: Any) -> Any:
            given, fixed = iter(xs), iter(static)
            return self._fun(
                *(next(fixed) if i in self._static else next(given) for i in range(len(args)))
            )

        leaves, structure = tree.flatten(moving)
        values = values_of(leaves, self._name)
        count = len(values)
        program, out_structure, captured = record_tree(
            fun, structure, [v.type for v in values], self._name
        )

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            result = user_rule(
                *static,
                tree.unflatten(structure, primals[:count]),
                tree.unflatten(structure, tangents[:count]),
            )
            return self._checked(result, out_structure, program.out_types)

        outs = CustomJvp(program, rule)(*values, *captured)
        return tree.unflatten(out_structure, outs)

    def _checked(self, result: Any, structure: Any, types: Sequence[ArrayType]) -> Any:
        """The rule's outputs and tangents (``None`` where there is none), if they fit."""
        who = f"custom_jvp: the rule of {self._name}"
        if not (isinstance(result, (tuple, list)) and len(result) == 2):
            raise TypeError(f"{who} must return a pair (output, tangent), got {result!r}")
        both = []
        for part, what in zip(result, ("an output", "a tangent"), strict=True):
            leaves, given = tree.flatten(part)
            if given != structure:
                raise TypeError(
                    f"{who} must return {what} like the function's output; they part at "
                    f"{parting(structure, given, 'output')}"
                )
            values: list[Any] = []
            for leaf, t in zip(leaves, types, strict=True):
                if what == "a tangent" and not is_inexact(t.dtype):
                    values.append(None)
                    continue
                value = as_value(leaf, who)
                if value.shape != t.shape or (value.dtype != t.dtype and not value.weak_type):
                    raise TypeError(f"{who} must return {what} of type {t}, got {value.type}")
                values.append(convert(value, t.dtype, t.weak_type))
            both.append(values)
        return both


class StopGradient(Primitive):
    """The operand, with a derivative of zero."""

    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    def infer(self, x: ArrayType) -> ArrayType:
        """The operand's type."""
        return x

    def reference(self, x: np.ndarray) -> np.ndarray:
        """The operand."""
        return x

    def lower(self, b: Any, x: Any) -> Any:
        """Nothing."""
        return x

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The same, wherever the axis is."""
        return self(*args), axes[0]


STOP_GRADIENT = StopGradient()


def stop_gradient(x: Any) -> Any:
    """The tree ``x``, whose derivative is zero.

    >>> import stretto as st
    >>> float(st.grad(lambda x: x * st.lax.stop_gradient(x))(3.0))
    3.0
    """
    return tree.map(lambda leaf: STOP_GRADIENT(as_value(leaf, "stop_gradient")), x)
