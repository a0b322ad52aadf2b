"""Linear systems solved by a function of the user's: ``custom_linear_solve``.

One primitive holds the matrix as a program, its transpose, and a solver for each. Its derivative is
the solution of another such system, so the solver itself is never differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.autodiff.closed import record_closed
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_flat
from stretto._engine.autodiff.linearize import apply_linear, linearize_program
from stretto._engine.autodiff.transpose import backward
from stretto._engine.autodiff.vmap import to_axis, vmap_program
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.program import Program
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.family import ControlFlow, split
from stretto._engine.higher_order.implicit import like, record_like, unknowns
from stretto._engine.ops.comparison import full, zeros_like


class CustomLinearSolve(ControlFlow):
    """The x for which ``matvec(x)`` is b, as ``solve(b)`` gives it, then its auxiliary results.

    Operands: the values that ``matvec`` and its transpose ``vecmat`` captured, ``consts[0]`` of
    them; those of ``solve``, and of ``transpose_solve``; then b. Each program takes b or x first,
    then the values that it captured.
    """

    matvec: Program
    solve: Program
    vecmat: Program | None
    transpose_solve: Program | None
    consts: tuple[int, int, int]

    @property
    def count(self) -> int:
        """The number of arrays that b consists of; x has as many."""
        return len(self.matvec.outputs)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """The solver's output types."""
        return self.solve.out_types

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run the solver."""
        _, own, _, b = split(args, *self.consts)
        return evaluate(self.solve, [*b, *own])

    def lower(self, b: Any, *operands: Any) -> Any:
        """The solver, in place."""
        _, own, _, right = split(operands, *self.consts)
        return b.program(self.solve, [*right, *own])

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        """The work of the solver."""
        return self.solve.work

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """A dx = db - dA x; auxiliary results have none."""
        outs = self(*primals)
        matrix, right = split(primals, *self.consts)[::3]
        dmatrix, dright = split(tangents, *self.consts)[::3]
        if all(t is None for t in (*dmatrix, *dright)):
            return outs, [None] * len(outs)
        x = outs[: self.count]
        product = lambda *consts: evaluate(self.matvec, [*x, *consts])
        _, moved = jvp_flat(product, matrix, dmatrix)
        source = [zeros_like(b) if db is None else db for b, db in zip(right, dright, strict=True)]
        source = [s if m is None else s - m for s, m in zip(source, moved, strict=True)]
        captured = primals[: len(primals) - self.count]
        dx = apply_linear(self, *captured, *source)[: self.count]
        return outs, [*dx, *[None] * (len(outs) - self.count)]

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        """The transposed system, solved for the cotangent."""
        if self.vecmat is None or self.transpose_solve is None:
            raise MissingRuleError(
                "custom_linear_solve: reverse differentiation needs transpose_solve=..., or "
                "symmetric=True where the matrix is its own transpose"
            )
        matrix, own, other, right = split(args, *self.consts)
        if any(isinstance(a, Linear) for a in (*matrix, *own, *other)):
            raise MissingRuleError("custom_linear_solve is linear in b only")
        first, second, third = self.consts
        back = CustomLinearSolve(
            self.vecmat, self.transpose_solve, self.matvec, self.solve, (first, third, second)
        )
        filled = [
            full(t.shape, 0, t.dtype) if ct is None else ct
            for ct, t in zip(cts, self.matvec.out_types, strict=False)
        ]
        outs = apply_linear(back, *matrix, *other, *own, *filled)
        moving = zip(right, outs, strict=False)
        known = [None] * sum(self.consts)
        return [*known, *(ct if isinstance(b, Linear) else None for b, ct in moving)]

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """The solver, in place."""
        _, own, _, right = split(args, *self.consts)
        return tuple(at.run(self.solve, [*right, *own]))

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The programs for all examples; b and x have one for each."""
        wanted = [None if a is None else 0 for a in axes]
        wanted[sum(self.consts) :] = [0] * self.count
        values = [to_axis(x, size, a, w) for x, a, w in zip(args, axes, wanted, strict=True)]
        masks = split([w is not None for w in wanted], *self.consts)

        def many(program: Program, consts: Sequence[bool]) -> Program:
            mapped = ((True,) * self.count, tuple(consts))
            force = (True,) * len(program.outputs)
            return vmap_program(program, size, (*mapped[0], *mapped[1]), force)[0]

        matvec, solve = many(self.matvec, masks[0]), many(self.solve, masks[1])
        vecmat = None if self.vecmat is None else many(self.vecmat, masks[0])
        other = None if self.transpose_solve is None else many(self.transpose_solve, masks[2])
        outs = CustomLinearSolve(matvec, solve, vecmat, other, self.consts)(*values)
        return outs, (0,) * len(outs)


def _transposed(matvec: Program) -> Program:
    """The program of the transposed matrix, for the same constants.

    The program is linearized at x = 0: one half computes, from the constants, what the matrix
    consists of; the other is linear, and is run backwards.
    """
    count = len(matvec.outputs)
    consts = matvec.in_types[count:]
    own = (True,) * count
    parts = linearize_program(matvec, (*own, *(False,) * len(consts)), own)
    linear = (*own, *(False,) * len(parts.residual_types))

    def fun(*args: Any) -> Any:
        zeros = [full(t.shape, 0, t.dtype) for t in matvec.in_types[:count]]
        residuals = evaluate(parts.primal, [*zeros, *args[count:]])[count:]
        back = backward(parts.linear, linear, residuals, args[:count])
        filled = zip(back, zeros, strict=True)
        return [zero if ct is None else ct for ct, zero in filled], None

    program, _ = record_closed(fun, [*matvec.out_types, *consts], f"transpose_{matvec.name}")
    return drop_dead(program)


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve ``matvec(x) == b`` for ``x``, by a solver that derivatives do not look into.

    Derivatives, with respect to ``b`` and to what ``matvec`` captures, are solutions of systems
    with the same matrix, or with its transpose.

    Args:
        matvec: a linear function from a tree like ``b`` to one of the same structure and types.
        b: the right-hand side, a tree of arrays of floats or complex numbers.
        solve: a function of ``matvec`` and ``b`` that returns the solution.
        transpose_solve: the same for the transposed matrix, a function of ``vecmat`` and ``b``;
            reverse differentiation needs it, unless ``symmetric``.
        symmetric: whether the matrix is its own transpose, so that ``solve`` serves for both.
        has_aux: whether the solvers return pairs ``(x, aux)``; ``aux`` has a derivative of zero.

    Returns:
        The solution, a tree like ``b``; with ``has_aux`` the pair ``(x, aux)``.

    Raises:
        TypeError: ``b`` is not of floats or complex numbers, or ``matvec`` or a solver returns
            something unlike it.

    >>> import stretto as st
    >>> diagonal = st.numpy.array([2.0, 4.0])
    >>> divide = lambda matvec, b: b / matvec(st.numpy.ones(2))
    >>> st.lax.custom_linear_solve(
    ...     lambda x: diagonal * x, st.numpy.array([2.0, 2.0]), divide, symmetric=True
    ... )
    Array([1. , 0.5], dtype=float32)
    """
    with boundary:
        caller = "custom_linear_solve"
        values, structure = unknowns(caller, b, "b")
        types = [v.type for v in values]
        product, _, matrix = record_like(caller, "matvec(x)", matvec, structure, types)
        solver, aux, own = record_like(
            caller,
            "solve(matvec, b)",
            lambda b: solve(matvec, b),
            structure,
            types,
            has_aux=has_aux,
        )
        vecmat = other_solver = None
        other: list[Any] = []
        if symmetric:
            vecmat = product
            other_solver, other = solver, own
        if transpose_solve is not None:
            transposed = vecmat = product if symmetric else _transposed(product)

            def multiply(x: Any) -> Any:
                """By the transposed matrix."""
                leaves = like(caller, "the argument of vecmat", x, structure, types)
                return tree.unflatten(structure, evaluate(transposed, [*leaves, *matrix]))

            other_solver, _, other = record_like(
                caller,
                "transpose_solve(vecmat, b)",
                lambda b: transpose_solve(multiply, b),
                structure,
                types,
                has_aux=has_aux,
            )
        consts = (len(matrix), len(own), len(other))
        system = CustomLinearSolve(product, solver, vecmat, other_solver, consts)
        outs = system(*matrix, *own, *other, *values)
        x = tree.unflatten(structure, outs[: len(values)])
        return (x, tree.unflatten(aux, outs[len(values) :])) if has_aux else x
