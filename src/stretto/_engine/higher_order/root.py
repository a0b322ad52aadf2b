"""Roots found by a function of the user's: ``custom_root``.

One primitive holds the equation as a program, and the solver as another. Its derivative comes from
the equation alone, by the implicit function theorem, so the solver is never differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_flat
from stretto._engine.autodiff.linearize import linearize_flat
from stretto._engine.autodiff.vmap import to_axis, vmap_program
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.primitive import NOT_LINEAR
from stretto._engine.core.program import Program
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.family import ControlFlow, split
from stretto._engine.higher_order.implicit import like, record_like, unknowns
from stretto._engine.ops.arithmetic import negative
from stretto._engine.ops.comparison import zeros_like


class CustomRoot(ControlFlow):
    """The x for which ``function(x)`` is 0, as ``solve(guess)`` gives it, then auxiliary results.

    ``tangent_solve(x, y)`` gives the z that the derivative of the function at x maps to y.
    Operands: the values that the three programs captured, ``consts`` of each, then the guess. Each
    program takes its arguments first, then the values that it captured.
    """

    function: Program
    solve: Program
    tangent_solve: Program
    consts: tuple[int, int, int]
    transpose = NOT_LINEAR

    @property
    def count(self) -> int:
        """The number of arrays that x consists of."""
        return len(self.function.outputs)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """The solver's output types."""
        return self.solve.out_types

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run the solver."""
        _, own, _, guess = split(args, *self.consts)
        return evaluate(self.solve, [*guess, *own])

    def lower(self, b: Any, *operands: Any) -> Any:
        """The solver, in place."""
        _, own, _, guess = split(operands, *self.consts)
        return b.program(self.solve, [*guess, *own])

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        """The work of the solver."""
        return self.solve.work

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """f(x, c) = 0, so df/dx dx + df/dc dc = 0; the guess and auxiliary results have no part."""
        outs = self(*primals)
        captured, _, step, _ = split(primals, *self.consts)
        moving = tangents[: self.consts[0]]
        if all(t is None for t in moving):
            return outs, [None] * len(outs)
        x = outs[: self.count]
        residual = lambda *consts: evaluate(self.function, [*x, *consts])
        _, moved = jvp_flat(residual, captured, moving)
        source = [
            zeros_like(v) if m is None else negative(m) for v, m in zip(x, moved, strict=True)
        ]
        dx = evaluate(self.tangent_solve, [*x, *source, *step])
        return outs, [*dx, *[None] * (len(outs) - self.count)]

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """The solver, in place."""
        _, own, _, guess = split(args, *self.consts)
        return tuple(at.run(self.solve, [*guess, *own]))

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The programs for all examples, each with its own unknowns."""
        wanted = [None if a is None else 0 for a in axes]
        wanted[sum(self.consts) :] = [0] * self.count
        values = [to_axis(x, size, a, w) for x, a, w in zip(args, axes, wanted, strict=True)]
        masks = split([w is not None for w in wanted], *self.consts)
        programs = [
            vmap_program(
                program,
                size,
                ((True,) * (len(program.inputs) - len(mask)) + tuple(mask)),
                (True,) * len(program.outputs),
            )[0]
            for program, mask in zip(
                (self.function, self.solve, self.tangent_solve), masks, strict=False
            )
        ]
        outs = CustomRoot(*programs, self.consts)(*values)
        return outs, (0,) * len(outs)


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """Find the ``x`` for which ``f(x)`` is 0, by a solver that derivatives do not look into.

    The derivative, with respect to the values that ``f`` captures, comes from the implicit function
    theorem. For reverse differentiation, what ``tangent_solve`` does must be linear in ``y`` and
    made of operations that have a transpose, such as ``y / g(1.0)`` for a scalar, or
    ``custom_linear_solve``.

    Args:
        f: a function from a tree like ``initial_guess`` to one of the same structure and types.
        initial_guess: a tree of arrays of floats or complex numbers.
        solve: a function of ``f`` and ``initial_guess`` that returns the root, or with ``has_aux``
            the pair ``(x, aux)``.
        tangent_solve: a function of ``g``, the linear derivative of ``f`` at the root, and ``y``
            that returns the ``z`` for which ``g(z)`` is ``y``.
        has_aux: whether ``solve`` returns more than the root; that has a derivative of zero.

    Returns:
        The root, a tree like ``initial_guess``; with ``has_aux`` the pair ``(x, aux)``.

    Raises:
        TypeError: ``initial_guess`` is not of floats or complex numbers, or ``f`` or a solver
            returns something unlike it.

    >>> import stretto as st
    >>> def newton(f, x):
    ...     return st.lax.fori_loop(0, 9, lambda _, x: x - f(x) / st.grad(f)(x), x)
    >>> def square_root(a):
    ...     return st.lax.custom_root(lambda x: x * x - a, a, newton, lambda g, y: y / g(1.0))
    >>> float(square_root(4.0)), float(st.grad(square_root)(4.0))
    (2.0, 0.25)
    """
    with boundary:
        caller = "custom_root"
        guess, structure = unknowns(caller, initial_guess, "initial_guess")
        types = [v.type for v in guess]
        function, _, captured = record_like(caller, "f(x)", f, structure, types)
        solver, aux, own = record_like(
            caller,
            "solve(f, initial_guess)",
            lambda x: solve(f, x),
            structure,
            types,
            has_aux=has_aux,
        )

        def step(x: Any, y: Any) -> Any:
            equation = lambda *xs: evaluate(function, [*xs, *captured])
            leaves = tree.leaves(x)
            _, linear = linearize_flat(equation, leaves, (True,) * len(leaves))

            def derivative(z: Any) -> Any:
                """The derivative of ``f`` at the solution."""
                dx = like(caller, "the argument of the derivative", z, structure, types)
                outs = iter(evaluate(linear.program, [*dx, *linear.residuals]))
                active = zip(leaves, linear.active_out, strict=True)
                return tree.unflatten(
                    structure, [next(outs) if a else zeros_like(v) for v, a in active]
                )

            return tangent_solve(derivative, y)

        tangent, _, by_tangent = record_like(
            caller, "tangent_solve(g, y)", step, structure, types, arguments=2
        )
        consts = (len(captured), len(own), len(by_tangent))
        root = CustomRoot(function, solver, tangent, consts)
        outs = root(*captured, *own, *by_tangent, *guess)
        x = tree.unflatten(structure, outs[: len(guess)])
        return (x, tree.unflatten(aux, outs[len(guess) :])) if has_aux else x
