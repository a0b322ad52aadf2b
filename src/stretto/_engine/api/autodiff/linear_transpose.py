"""``linear_transpose``: run a linear function backwards, without a point to linearize at.

It is ``autodiff/transpose`` alone, plus errors that name the operation that is not linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from stretto._engine.api.argument_leaves import leaf_names, values_of_tree
from stretto._engine.api.graph import types_of
from stretto._engine.autodiff.transpose import backward
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary, bounded
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.program import Equation, Program
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.core.types import ArrayType, is_inexact
from stretto._engine.higher_order.custom_function import fits
from stretto._engine.higher_order.family import ControlFlow, parting
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Transpose a linear function: from cotangents of its result to those of its arguments.

    For a function with matrix A, x ↦ A x, it is ct ↦ Aᵀ ct; complex numbers are not conjugated. It
    costs what ``fun`` costs, and unlike ``vjp`` needs no values. That ``fun`` is linear is taken
    for granted: a constant that it adds is ignored.

    Args:
        fun: a linear function. Arguments and results must all be floating or complex, or all be
            integers.
        *primals: trees of arrays or ``ShapeDtypeStruct``, for the types of the arguments alone.

    Returns:
        A function that takes a tree like the result and returns a tuple with one tree for each
        argument.

    Raises:
        TypeError: ``fun`` is not linear, which names the operation, or types are mixed; or, in a
            call, the cotangent does not fit.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = st.ShapeDtypeStruct((3,), snp.float32)
    >>> st.linear_transpose(lambda x: 2.0 * x.sum(), x)(1.0)
    (Array([2., 2., 2.], dtype=float32),)
    """
    with boundary:
        caller = name_of(fun)
        leaves, structure = tree.flatten(primals)
        names = leaf_names(fun, primals)
        types = types_of(leaves, f"linear_transpose: {caller}", lambda: names)

        def flat(*values: Any) -> Any:
            return values_of_tree(fun(*tree.unflatten(structure, values)), caller, "the result")

        program, out, captured = record(flat, types, names, caller)
        outs = program.out_types
        if len({is_inexact(t.dtype) for t in (*types, *outs)}) > 1:
            raise TypeError(
                f"linear_transpose: arguments and results of {caller} must all be floating or "
                f"complex, or all be integers; got {_listed(types)} to {_listed(outs)}; capture "
                f"what is not linear from outside"
            )
        program = drop_dead(program)
        linear = [i < len(types) for i in range(len(program.inputs))]
        if any(is_inexact(t.dtype) for t in types):
            rounded = _rounded(program, linear)
            if rounded is not None:
                raise TypeError(_refusal(caller, rounded))

    @bounded
    def transposed(ct: Any) -> tuple[Any, ...]:
        values, ct_structure = values_of_tree(ct, "linear_transpose", "ct")
        if ct_structure != out:
            raise TypeError(
                "linear_transpose: the cotangent must have the structure of the result of "
                f"{caller}; they part at {parting(out, ct_structure, 'result')}"
            )
        cts = [_fit(value, t, caller) for value, t in zip(values, outs, strict=True)]
        try:
            back = backward(program, linear, captured, cts)
        except (AttributeError, MissingRuleError, TypeError, ValueError) as error:
            culprit = _not_linear(program, linear)
            if culprit is None:
                raise
            raise TypeError(_refusal(caller, culprit)) from error
        filled = [
            full(t.shape, 0, t.dtype, t.weak_type) if g is None else g
            for g, t in zip(back, types, strict=True)
        ]
        return tree.unflatten(structure, filled)

    return transposed


def _listed(types: Sequence[ArrayType]) -> str:
    return ", ".join(map(repr, types)) or "nothing"


def _fit(value: Any, type: ArrayType, caller: str) -> Any:
    if not fits(value, type):
        raise TypeError(
            f"linear_transpose: a cotangent of {caller} must have its result's type, {type}; got "
            f"{value.type}"
        )
    return convert(value, type.dtype, type.weak_type)


class _Culprit(NamedTuple):
    equation: Equation
    why: str


def _refusal(caller: str, culprit: _Culprit) -> str:
    name, position = culprit.equation.primitive.name, culprit.equation.position
    return (
        f"linear_transpose: {caller} cannot be transposed: {name} at {position} is not linear "
        f"in what depends on the arguments{culprit.why}; stretto.vjp gives the derivative at a "
        f"point"
    )


def _dependent(program: Program, linear: Sequence[bool]) -> Iterator[tuple[Equation, set[Any]]]:
    """Give the equations that depend on linear inputs, each with all earlier variables that do."""
    varying: set[Any] = {v for v, m in zip(program.inputs, linear, strict=True) if m}
    for equation in program.equations:
        if any([a in varying for a in equation.inputs]):
            yield equation, varying
            varying.update(equation.outputs)


def _called(equation: Equation) -> Program | None:
    primitive = equation.primitive
    return primitive.called() if isinstance(primitive, ControlFlow) else None


def _rounded(program: Program, linear: Sequence[bool]) -> _Culprit | None:
    """Give the first operation that turns something depending on floating inputs into integers."""
    for equation, varying in _dependent(program, linear):
        if not equation.primitive.holds_programs:
            if not all(is_inexact(v.type.dtype) for v in equation.outputs):
                return _Culprit(equation, "")
            continue
        called = _called(equation)
        if called is not None:
            culprit = _rounded(called, [a in varying for a in equation.inputs])
            if culprit is not None:
                return culprit
    return None


def _not_linear(program: Program, linear: Sequence[bool]) -> _Culprit | None:
    """Return the first operation that cannot be transposed in what depends on the linear inputs."""
    for equation, varying in _dependent(program, linear):
        why = _trial(equation, varying)
        if why is None:
            continue
        called = _called(equation)
        inside = called and _not_linear(called, [a in varying for a in equation.inputs])
        return inside or _Culprit(equation, why)
    return None


def _trial(equation: Equation, varying: set[Any]) -> str | None:
    """Try the transpose rule on tracers: None if it works, otherwise why not."""
    known = [a.type for a in equation.inputs if a not in varying]

    def apply(*values: Any) -> Any:
        rest = iter(values)
        args = [Linear(a.type) if a in varying else next(rest) for a in equation.inputs]
        cts = list(rest)
        primitive = equation.primitive
        primitive.transpose(cts if primitive.multiple else cts[0], *args)
        return [], None

    try:
        record(apply, [*known, *(v.type for v in equation.outputs)])
    except MissingRuleError as error:
        return f" ({error})"
    except (AttributeError, TypeError, ValueError):
        return ""
    return None
