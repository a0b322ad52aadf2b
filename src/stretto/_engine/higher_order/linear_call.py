"""``linear_call``: an operation that is linear in some arguments, with its own transpose.

The user gives the transpose as a function. ``custom_vjp`` also leaves one of these in the linear
part of a derivative; that one has no forward program, and can only be run backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_program
from stretto._engine.autodiff.linearize import apply_linear
from stretto._engine.autodiff.vmap import to_axis, vmap_flat, vmap_program
from stretto._engine.core import tree
from stretto._engine.core.errors import ForwardModeError, MissingRuleError
from stretto._engine.core.interpreter import Linear, state
from stretto._engine.core.program import Program, Var
from stretto._engine.core.types import ArrayType, is_inexact
from stretto._engine.higher_order.family import (
    ControlFlow,
    or_zeros,
    parting,
    record_tree,
    values_of,
)
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.layout import move_to_front

Backward = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
"""Maps the other operands, and the outputs' cotangents, to cotangents of the linear operands."""


class LinearCall(ControlFlow):
    """Apply a program linear in its first ``linear`` inputs; ``backward`` transposes it.

    Without a program it can only be run backwards.
    """

    of: str
    outs: tuple[ArrayType, ...]
    linear: int
    backward: Backward
    program: Program | None

    @property
    def backward_at_zero(self) -> bool:  # type: ignore[override]
        """True if only ``backward`` is known: it may give anything for zeros, such as a state."""
        return self.program is None

    def parameters(self) -> list[tuple[str, Any]]:
        """Return all but the Python function, which tells nothing in print."""
        return [(name, x) for name, x in super().parameters() if name not in ("backward", "outs")]

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return self.outs

    def _forward(self) -> Program:
        if self.program is None:
            raise only_backwards(self.of)
        return self.program

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run the program."""
        return evaluate(self._forward(), args)

    def lower(self, b: Any, *operands: Any) -> Any:
        return b.program(self._forward(), operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """d f(r, x) = f(r, dx) + ∂f/∂r dr."""
        outs, residuals = self(*primals), primals[self.linear :]
        moving, by_residual = tangents[: self.linear], tangents[self.linear :]
        total: list[Any] = [None] * len(outs)
        if any(t is not None for t in moving):
            filled = [or_zeros(t, p.type) for t, p in zip(moving, primals, strict=False)]
            total = list(apply_linear(self, *filled, *residuals))
        if any(t is not None for t in by_residual):
            active = (*(False,) * self.linear, *(t is not None for t in by_residual))
            program, mask = jvp_program(self._forward(), active)
            nonzero = [t for t in by_residual if t is not None]
            more = iter(evaluate(program, [*primals, *nonzero])[len(outs) :])
            for i, m in enumerate(mask):
                if m:
                    t = next(more)
                    total[i] = t if total[i] is None else total[i] + t
        return outs, total

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        """Return the cotangents that ``backward`` returns."""
        residuals = args[self.linear :]
        if any(isinstance(r, Linear) for r in residuals):
            raise MissingRuleError(
                f"{self.of} is transposed by an argument in which it is not linear: only its "
                f"linear arguments may depend on those of the transposed function"
            )
        back = self.backward(residuals, cts)
        linear = [ct if isinstance(a, Linear) else None for a, ct in zip(args, back, strict=False)]
        return [*linear, *[None] * len(residuals)]

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Return the call for all examples; operands that they share get the sum of cotangents."""
        values = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
        over = [a is not None for a in axes]
        program = None
        if self.program is not None:
            every = (True,) * len(self.outs)
            program, _ = vmap_program(self.program, size, tuple(over), every)
        in_axes = [0 if o else None for o in over[self.linear :]]
        backward = batched_backward(self.backward, size, over[: self.linear], in_axes)
        types = tuple(t.with_shape((size, *t.shape)) for t in self.outs)
        outs = LinearCall(self.of, types, self.linear, backward, program)(*values)
        return outs, (0,) * len(outs)

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """Write the program in place, if there is one."""
        return (
            super().padded(at, *args) if self.program is None else tuple(at.run(self.program, args))
        )


ONLY_BACKWARDS = (
    "no forward derivative (forward-mode autodiff: jvp, jacfwd, hessian): use grad, vjp or jacrev, "
    "or give the function its rule with custom_jvp, which serves both"
)


def only_backwards(name: str) -> ForwardModeError:
    """Return the error for a forward derivative of a function that only has a reverse one."""
    return ForwardModeError(f"{name} is a custom_vjp function, which has {ONLY_BACKWARDS}")


def batched_backward(
    backward: Backward, size: int, linear: Sequence[bool], residuals: Sequence[int | None]
) -> Backward:
    """Return the backward function for ``size`` examples, from that for one.

    Cotangents of outputs have their examples along axis 0, residuals along the axes ``residuals``.
    ``linear`` says which linear operands are mapped; the others are shared by all examples, and get
    the sum of the examples' cotangents.
    """

    def batched(values: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        nonzero: list[bool] = []

        def one(*xs: Any) -> Any:
            nonlocal nonzero
            each = iter(xs[len(values) :])
            back = backward(xs[: len(values)], [None if c is None else next(each) for c in cts])
            nonzero = [ct is not None for ct in back]
            return [ct for ct in back if ct is not None]

        moving = [ct for ct in cts if ct is not None]
        outs, axes = vmap_flat(one, size, [*values, *moving], [*residuals, *[0] * len(moving)])
        results = iter(zip(outs, axes, strict=True))
        total = []
        for is_mapped, is_nonzero in zip(linear, nonzero, strict=True):
            if not is_nonzero:
                total.append(None)
                continue
            ct, axis = next(results)
            if is_mapped:
                total.append(to_axis(ct, size, axis, 0))
            else:
                total.append(ct * size if axis is None else reduce_sum(ct, (axis,)))
        return total

    return batched


def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """Compute ``fun(residual_args, linear_args)``, whose transpose is given.

    Both functions are taken at their word. Derivatives by ``residual_args`` are those of ``fun``.

    Args:
        fun: a function that is linear in its second argument.
        fun_transpose: called as ``fun_transpose(residual_args, ct)``, with a tree like the output;
            it returns a tree like ``linear_args``.
        residual_args: a tree of arrays.
        linear_args: a tree of floating or complex arrays.

    Returns:
        What ``fun`` returns: a tree of floating or complex arrays.

    Raises:
        TypeError: the transpose's result is not like ``linear_args``, or anything linear is neither
            floating nor complex.

    >>> import stretto as st
    >>> from stretto.lax import linear_call
    >>> divide = lambda x, by: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, by, x)
    >>> float(st.grad(divide)(3.0, 4.0))
    0.25
    """
    caller = "linear_call"
    both = tree.structure((linear_args, residual_args))
    values = values_of(tree.leaves(linear_args), caller)
    known = values_of(tree.leaves(residual_args), caller)
    types, fixed = [v.type for v in values], [v.type for v in known]
    forward, out, first = record_tree(lambda x, r: fun(r, x), both, [*types, *fixed], caller)
    outs = forward.out_types
    for t in (*types, *outs):
        if not is_inexact(t.dtype):
            raise TypeError(f"{caller}: what is linear must be floating or complex, got {t}")
    both = tree.structure((tree.unflatten(out, range(len(outs))), residual_args))
    back, back_structure, second = record_tree(
        lambda ct, r: fun_transpose(r, ct), both, [*outs, *fixed], f"transpose_{caller}"
    )
    _check_transpose(back, back_structure, tree.structure(linear_args), types)
    # Both take the residual arguments, then what either captured.
    forward = _program([*forward.inputs, *_vars(second)], forward)
    own = len(outs) + len(known)
    back = _program([*back.inputs[:own], *_vars(first), *back.inputs[own:]], back)
    operands = [*values, *known, *first, *second]
    return tree.unflatten(out, _both_ways(forward, back, len(values))(*operands))


def with_transpose(fun: Callable[[Any], Any], fun_transpose: Callable[[Any], Any], x: Any) -> Any:
    """Compute ``fun(x)``, linear in this one array, whose transpose is given.

    At rest nothing is transposed, and recording both ways would take longer than computing.
    """
    if state.interpreter.at_rest or not is_inexact(x.dtype):
        return fun(x)
    return linear_call(lambda _, x: fun(x), lambda _, ct: fun_transpose(ct), None, x)


def _vars(values: Sequence[Any]) -> list[Var]:
    return [Var(v.type) for v in values]


def _program(inputs: Sequence[Var], program: Program) -> Program:
    return Program(inputs, program.equations, program.outputs, program.name)


def _both_ways(forward: Program, back: Program, linear: int) -> LinearCall:
    """Return the operation that applies ``forward``, and whose transpose applies ``back``."""
    count = len(forward.outputs)

    def backward(residuals: Sequence[Any], cts: Sequence[Any]) -> Sequence[Any]:
        filled = [or_zeros(ct, t) for ct, t in zip(cts, forward.out_types, strict=True)]
        return _both_ways(back, forward, count)(*filled, *residuals)

    return LinearCall("linear_call", forward.out_types, linear, backward, forward)


def _check_transpose(
    program: Program, result_structure: Any, structure: Any, types: Sequence[ArrayType]
) -> None:
    caller = "linear_call: fun_transpose must return a tree like linear_args"
    if result_structure != structure:
        difference = parting(structure, result_structure, "linear_args")
        raise TypeError(f"{caller}; they part at {difference}")
    paths = tree.paths(tree.unflatten(structure, range(len(types))), "linear_args")
    for got, expected, path in zip(program.out_types, types, paths, strict=True):
        if (got.shape, got.dtype) != (expected.shape, expected.dtype):
            raise TypeError(f"{caller}: {path} is {expected}, got {got}")
