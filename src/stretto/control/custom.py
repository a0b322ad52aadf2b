"""Functions with a derivative of the user's own: ``custom_jvp``; and ``stop_gradient``.

Layer 4 (control).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto.control.family import ControlFlow, record_tree, values_of
from stretto.core import tree
from stretto.core.interpreter import as_value
from stretto.core.primitive import NOT_LINEAR, ZERO_DERIVATIVE, Primitive
from stretto.core.program import Program
from stretto.core.types import ArrayType
from stretto.ops.broadcast import move_to_front
from stretto.ops.comparison import zeros_like
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
            def one(*xs: Any) -> Any:
                outs, douts = self.rule(xs[: len(over)], xs[len(over) :])
                return [*outs, *douts]

            outs, where = vmap_flat(one, size, [*primals, *tangents], [*places, *places])
            whole = [to_axis(o, size, a, 0) for o, a in zip(outs, where, strict=True)]
            return whole[:count], whole[count:]

        return CustomJvp(program, rule)(*values), (0,) * count


class custom_jvp:  # noqa: N801 (a decorator)
    """A function whose forward derivative the user gives; the reverse one follows from it.

    ``@f.defjvp`` takes a function of (primals, tangents), tuples like the arguments, that returns
    the output and its tangent, linear in the tangents.

    Raises ``AttributeError`` when differentiated, or called under a transformation, without a rule.

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
        self._rule: Callable[..., Any] | None = None
        self._static = tuple(nondiff_argnums)

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the rule: static arguments first, then primals, then tangents."""
        self._rule = rule
        return rule

    def __call__(self, *args: Any) -> Any:
        """The function's value."""
        if self._rule is None:
            raise AttributeError(
                f"custom_jvp: {self._fun.__name__} has no rule; give one by defjvp"
            )
        user_rule = self._rule
        static = [args[i] for i in self._static]
        moving = tuple(a for i, a in enumerate(args) if i not in self._static)

        def fun(*xs: Any) -> Any:
            given, fixed = iter(xs), iter(static)
            return self._fun(
                *(next(fixed) if i in self._static else next(given) for i in range(len(args)))
            )

        leaves, structure = tree.flatten(moving)
        values = values_of(leaves, self._fun.__name__)
        count = len(values)
        program, out_structure, captured = record_tree(
            fun, structure, [v.type for v in values], self._fun.__name__
        )

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            out, dout = user_rule(
                *static,
                tree.unflatten(structure, primals[:count]),
                tree.unflatten(structure, tangents[:count]),
            )
            outs, given = tree.flatten(out)
            douts, dgiven = tree.flatten(dout)
            if given != out_structure or dgiven != out_structure:
                raise TypeError(
                    f"custom_jvp: the rule of {self._fun.__name__} must return an output and a "
                    f"tangent of structure {out_structure}; got {given} and {dgiven}"
                )
            return values_of(outs, "custom_jvp"), values_of(douts, "custom_jvp")

        outs = CustomJvp(program, rule)(*values, *captured)
        return tree.unflatten(out_structure, outs)


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


def stop_gradient(x: Any) -> Any:
    """The tree ``x``, whose derivative is zero.

    >>> import stretto as st
    >>> float(st.grad(lambda x: x * st.lax.stop_gradient(x))(3.0))
    3.0
    """
    return tree.map(lambda leaf: StopGradient()(as_value(leaf, "stop_gradient")), x)
