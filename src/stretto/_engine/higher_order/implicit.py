"""Unknowns defined by an equation: ``custom_linear_solve`` and ``custom_root``.

Either is one primitive, which holds the equation or the matrix as a program, and the user's solver
as another. Its derivative comes from the equation alone, by the implicit function theorem; that of
a linear system is the solution of another such system. So no solver is ever differentiated. The
user's functions take trees of unknowns, and return trees of the same structure and types, which is
checked first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from stretto._engine.autodiff.evaluate import evaluate, record_closed
from stretto._engine.autodiff.jvp import jvp_flat
from stretto._engine.autodiff.linearize import apply_linear, linearize_flat, linearize_program
from stretto._engine.autodiff.transpose import backward
from stretto._engine.autodiff.vmap import to_axis, vmap_program
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.primitive import NOT_LINEAR
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.core.types import ArrayType, is_inexact
from stretto._engine.higher_order.family import ControlFlow, parting, split, values_of
from stretto._engine.ops.arithmetic import negative
from stretto._engine.ops.comparison import full, zeros_like
from stretto._engine.ops.convert import convert


def unknowns(caller: str, x: Any, argument: str) -> tuple[list[Any], Any]:
    """Return the leaves of a tree of unknowns as floating or complex values, none weakly typed."""
    leaves, structure = tree.flatten(x)
    values = values_of(leaves, caller)
    for value, path in zip(values, tree.paths(x, argument), strict=True):
        if not is_inexact(value.dtype):
            raise TypeError(
                f"{caller}: {argument} must hold floating or complex numbers; {path} is "
                f"{value.type}"
            )
    return [convert(v, v.dtype) for v in values], structure


def like(
    caller: str, what: str, result: Any, structure: Any, types: Sequence[ArrayType]
) -> list[Any]:
    """Return the leaves of a function's result, which must have this structure and these types.

    Raises ``TypeError`` about ``what`` if it does not.
    """
    leaves, result_structure = tree.flatten(result)
    if result_structure != structure:
        raise TypeError(
            f"{caller}: {what} must have the structure of the unknowns; they part at "
            f"{parting(structure, result_structure, 'x')}"
        )
    values = values_of(leaves, caller)
    paths = tree.paths(tree.unflatten(structure, range(len(types))), "x")
    for value, t, path in zip(values, types, paths, strict=True):
        if value.shape != t.shape or (value.dtype != t.dtype and not value.weak_type):
            raise TypeError(
                f"{caller}: {what} must be like the unknowns; {path} is {t}, got {value.type}"
            )
    return [convert(v, t.dtype) for v, t in zip(values, types, strict=True)]


def record_like(
    caller: str,
    what: str,
    fun: Callable[..., Any],
    structure: Any,
    types: Sequence[ArrayType],
    arguments: int = 1,
    has_aux: bool = False,
) -> tuple[Program, Any, list[Any]]:
    """Record a function from so many trees of unknowns to one of the same structure and types.

    Returns the program, the structure of the auxiliary result (with ``has_aux``), and the captured
    values.
    """

    def flat(*leaves: Any) -> Any:
        trees = [
            tree.unflatten(structure, leaves[i * len(types) : (i + 1) * len(types)])
            for i in range(arguments)
        ]
        result, aux = fun(*trees), ()
        if has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise TypeError(
                    f"{caller}: with has_aux, {what} must be a pair (x, aux), got "
                    f"{type(result).__name__}"
                )
            result, aux = result
        aux_leaves, aux_structure = tree.flatten(aux)
        values = like(caller, what, result, structure, types)
        return [*values, *values_of(aux_leaves, caller)], aux_structure

    return record(flat, [*types] * arguments, name=caller)


def _record_solver(
    caller: str,
    structure: Any,
    types: Sequence[ArrayType],
    has_aux: bool,
    what: str,
    solve: Callable[..., Any],
    given: Callable[..., Any],
) -> tuple[Program, Any, list[Any]]:
    """Record the user's solver of a system, which is given the system as a function."""
    return record_like(caller, what, lambda b: solve(given, b), structure, types, has_aux=has_aux)


class Implicit(ControlFlow, abstract=True):
    """The x that ``equation`` defines, as ``solve`` gives it, then the solver's auxiliary results.

    Operands: the values that the programs captured, ``consts`` of them, as ``captures`` says; then
    what ``solve`` begins with, as many arrays as x has. Each program takes its arguments first,
    then the values that it captured.
    """

    equation: Program
    solve: Program
    consts: tuple[int, int, int]
    captures: ClassVar[Mapping[str, int]]
    """Maps the name of each program to the group of captured values that it takes, of the three."""

    @property
    def count(self) -> int:
        """The number of arrays that x consists of."""
        return len(self.equation.outputs)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return self.solve.out_types

    def _given(self, operands: Sequence[Any]) -> list[Any]:
        """Return what the solver takes of the operands."""
        _, own, _, given = split(operands, *self.consts)
        return [*given, *own]

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run the solver."""
        return evaluate(self.solve, self._given(args))

    def lower(self, b: Any, *operands: Any) -> Any:
        return b.program(self.solve, self._given(operands))

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        return self.solve.work

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        return tuple(at.run(self.solve, self._given(args)))

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        wanted = [None if a is None else 0 for a in axes]
        wanted[sum(self.consts) :] = [0] * self.count
        values = [to_axis(x, size, a, w) for x, a, w in zip(args, axes, wanted, strict=True)]
        masks = split([w is not None for w in wanted], *self.consts)

        def many(program: Program, consts: Sequence[bool]) -> Program:
            own = (True,) * (len(program.inputs) - len(consts))
            return vmap_program(program, size, (*own, *consts), (True,) * len(program.outputs))[0]

        parameters = {
            name: many(value, masks[self.captures[name]]) if isinstance(value, Program) else value
            for name, value in self.parameters()
        }
        outs = type(self)(**parameters)(*values)
        return outs, (0,) * len(outs)


class CustomLinearSolve(Implicit):
    """The x for which ``equation``, a product with a matrix, is b, as ``solve(b)`` gives it.

    ``vecmat`` is the product with the transposed matrix, and ``transpose_solve`` its solver.
    """

    vecmat: Program | None
    transpose_solve: Program | None
    captures: ClassVar[Mapping[str, int]] = {
        "equation": 0,
        "solve": 1,
        "vecmat": 0,
        "transpose_solve": 2,
    }

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """A dx = db - dA x; auxiliary results have none."""
        outs = self(*primals)
        matrix, right = split(primals, *self.consts)[::3]
        dmatrix, dright = split(tangents, *self.consts)[::3]
        if all(t is None for t in (*dmatrix, *dright)):
            return outs, [None] * len(outs)
        x = outs[: self.count]
        product = lambda *consts: evaluate(self.equation, [*x, *consts])
        _, moved = jvp_flat(product, matrix, dmatrix)
        source = [zeros_like(b) if db is None else db for b, db in zip(right, dright, strict=True)]
        source = [s if m is None else s - m for s, m in zip(source, moved, strict=True)]
        captured = primals[: len(primals) - self.count]
        dx = apply_linear(self, *captured, *source)[: self.count]
        return outs, [*dx, *[None] * (len(outs) - self.count)]

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        """Solve the transposed system for the cotangent."""
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
            self.vecmat, self.transpose_solve, (first, third, second), self.equation, self.solve
        )
        filled = [
            full(t.shape, 0, t.dtype) if ct is None else ct
            for ct, t in zip(cts, self.equation.out_types, strict=False)
        ]
        outs = apply_linear(back, *matrix, *other, *own, *filled)
        moving = zip(right, outs, strict=False)
        known = [None] * sum(self.consts)
        return [*known, *(ct if isinstance(b, Linear) else None for b, ct in moving)]


def _transposed(matvec: Program) -> Program:
    """Return the program of the transposed matrix, for the same constants.

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
        record_solver = functools.partial(_record_solver, caller, structure, types, has_aux)
        solver, aux, own = record_solver("solve(matvec, b)", solve, matvec)
        vecmat = other_solver = None
        other: list[Any] = []
        if symmetric:
            vecmat = product
            other_solver, other = solver, own
        if transpose_solve is not None:
            transposed = vecmat = product if symmetric else _transposed(product)

            def multiply(x: Any) -> Any:
                """Solve by the transposed matrix."""
                leaves = like(caller, "the argument of vecmat", x, structure, types)
                return tree.unflatten(structure, evaluate(transposed, [*leaves, *matrix]))

            other_solver, _, other = record_solver(
                "transpose_solve(vecmat, b)", transpose_solve, multiply
            )
        consts = (len(matrix), len(own), len(other))
        system = CustomLinearSolve(product, solver, consts, vecmat, other_solver)
        outs = system(*matrix, *own, *other, *values)
        x = tree.unflatten(structure, outs[: len(values)])
        return (x, tree.unflatten(aux, outs[len(values) :])) if has_aux else x


class CustomRoot(Implicit):
    """The x for which ``equation`` is 0, as ``solve(guess)`` gives it.

    ``tangent_solve(x, y)`` gives the z that the derivative of the function at x maps to y.
    """

    tangent_solve: Program
    captures: ClassVar[Mapping[str, int]] = {"equation": 0, "solve": 1, "tangent_solve": 2}
    transpose = NOT_LINEAR

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """f(x, c) = 0, so df/dx dx + df/dc dc = 0; the guess and auxiliary results have no part."""
        outs = self(*primals)
        captured, _, step, _ = split(primals, *self.consts)
        moving = tangents[: self.consts[0]]
        if all(t is None for t in moving):
            return outs, [None] * len(outs)
        x = outs[: self.count]
        residual = lambda *consts: evaluate(self.equation, [*x, *consts])
        _, moved = jvp_flat(residual, captured, moving)
        source = [
            zeros_like(v) if m is None else negative(m) for v, m in zip(x, moved, strict=True)
        ]
        dx = evaluate(self.tangent_solve, [*x, *source, *step])
        return outs, [*dx, *[None] * (len(outs) - self.count)]


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
        solver, aux, own = _record_solver(
            caller, structure, types, has_aux, "solve(f, initial_guess)", solve, f
        )

        def step(x: Any, y: Any) -> Any:
            equation = lambda *xs: evaluate(function, [*xs, *captured])
            leaves = tree.leaves(x)
            _, linear = linearize_flat(equation, leaves, (True,) * len(leaves))

            def derivative(z: Any) -> Any:
                """Return the derivative of ``f`` at the solution."""
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
        root = CustomRoot(function, solver, consts, tangent)
        outs = root(*captured, *own, *by_tangent, *guess)
        x = tree.unflatten(structure, outs[: len(guess)])
        return (x, tree.unflatten(aux, outs[len(guess) :])) if has_aux else x
