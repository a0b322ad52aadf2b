"""``custom_gradient``: a function that returns its value together with its derivative.

It is a ``custom_vjp``: the derivative, a Python closure, is recorded as a program, and the values
that it captured are the residuals.

``closure_convert`` makes arguments of the values that a function captures: it records the function,
and evaluates the program with other values in their stead.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from stretto._engine.api.argument_leaves import leaf_names, values_of_tree, without_float0
from stretto._engine.api.graph import types_of
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary, bounded
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import record
from stretto._engine.core.types import float0, is_inexact
from stretto._engine.higher_order.custom_derivatives import custom_vjp
from stretto._engine.higher_order.custom_function import fits
from stretto._engine.higher_order.family import parting
from stretto._engine.ops.convert import convert

P = ParamSpec("P")
R = TypeVar("R")


class _Backward:
    """A recorded derivative: a leaf of the residuals that is not an array."""

    def __init__(self, program: Program, structure: Any, floating: Sequence[bool]) -> None:
        self.program, self.structure, self.floating = program, structure, floating


class _Residuals(NamedTuple):
    backward: _Backward
    captured: list[Any]


def custom_gradient(fun: Callable[P, tuple[R, Callable[..., Any]]]) -> custom_vjp[P, R]:
    """Make a function from one that returns its value and its derivative.

    Args:
        fun: a function that returns a pair: the output, and a function from the output's
            cotangent to the arguments', a tuple with one tree for each (where there is one
            argument, its cotangent will do). That function is traced, for derivatives of
            derivatives too, and may use anything that ``fun`` computed; it need not be the
            derivative.

    Returns:
        A function of the same arguments that returns the output.

    Raises:
        TypeError: in a call, ``fun`` does not return such a pair, or its cotangents do not fit the
            arguments.
        MissingRuleError: a forward derivative is taken.

    >>> import stretto as st, stretto.numpy as snp
    >>> @custom_gradient
    ... def log1pexp(x):
    ...     e = snp.exp(x)
    ...     return snp.log(1 + e), lambda ct: ct * (1 - 1 / (1 + e))
    >>> float(st.grad(log1pexp)(100.0))
    1.0
    """
    caller = f"custom_gradient: {name_of(fun)}"

    function: Callable[..., Any] = fun

    def both(*args: Any) -> tuple[Any, Callable[..., Any]]:
        result = function(*args)
        if not (isinstance(result, (tuple, list)) and len(result) == 2 and callable(result[1])):
            raise TypeError(
                f"{caller} must return a pair (output, function from cotangents to cotangents), "
                f"got {result!r}"
            )
        return result[0], result[1]

    @functools.wraps(fun)
    def value(*args: Any) -> Any:
        return both(*args)[0]

    def fwd(*args: Any) -> tuple[Any, _Residuals]:
        out, back = both(*args)
        outs, structure = values_of_tree(out, caller, "the output")
        floating = [is_inexact(o.dtype) for o in outs]

        def flat(*cts: Any) -> Any:
            floating_cts = iter(cts)
            filled = [
                next(floating_cts) if f else np.zeros(o.shape, float0)
                for o, f in zip(outs, floating, strict=True)
            ]
            result = without_float0(back(tree.unflatten(structure, filled)))
            return values_of_tree(result, caller, "the cotangent")

        types = [o.type for o, f in zip(outs, floating, strict=True) if f]
        program, back_structure, captured = record(flat, types, name="backward")
        return out, _Residuals(_Backward(program, back_structure, floating), captured)

    def bwd(residuals: _Residuals, ct: Any) -> tuple[Any, ...]:
        backward, captured = residuals
        cts = [c for c, f in zip(tree.leaves(ct), backward.floating, strict=True) if f]
        result = tree.unflatten(backward.structure, evaluate(backward.program, [*cts, *captured]))
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    result: Any = custom_vjp(value)
    result.defvjp(fwd, bwd)
    return result


def closure_convert(
    fun: Callable[..., R], *example_args: Any
) -> tuple[Callable[..., R], list[Any]]:
    """Turn differentiable values that a function captures into arguments.

    For functions that are passed to a ``custom_vjp`` function, which can be differentiated with
    respect to arguments only. ``converted(*args, *consts)`` is ``fun(*args)``; ``consts`` are the
    traced floating values that ``fun`` captured. Captured values that are concrete, integers or
    booleans stay inside.

    Args:
        fun: a function of trees of arrays, which is traced once, here.
        *example_args: arrays or ``ShapeDtypeStruct``, of the types of all arguments that the
            converted function will be called with.

    Returns:
        The converted function, and the list ``consts``.

    Raises:
        TypeError: the converted function is called with arguments of other types.

    >>> import stretto as st
    >>> def integral(rate):
    ...     converted, consts = st.closure_convert(lambda x: rate * x, 1.0)
    ...     return converted(3.0, *consts), len(consts)
    >>> value, count = st.grad(integral, has_aux=True)(2.0)
    >>> float(value), count
    (3.0, 1)
    """
    with boundary:
        caller = name_of(fun)
        leaves, structure = tree.flatten(example_args)
        names = leaf_names(fun, example_args)
        types = types_of(leaves, f"closure_convert: {caller}", lambda: names)

        def flat(*values: Any) -> Any:
            result = without_float0(fun(*tree.unflatten(structure, values)))
            return values_of_tree(result, caller, "the result")

        program, out, captured = record(flat, types, names, caller)
        hoisted = [isinstance(c, Tracer) and is_inexact(c.dtype) for c in captured]
        consts = list(itertools.compress(captured, hoisted))

    @bounded
    def converted(*args: Any) -> Any:
        own, extra = args[: len(args) - len(consts)], args[len(args) - len(consts) :]
        if len(args) < len(consts) or tree.structure(own) != structure:
            raise TypeError(
                f"closure_convert: {caller} was converted for {len(example_args)} arguments and "
                f"{len(consts)} captured values; the arguments part from the examples at "
                f"{parting(structure, tree.structure(own), 'args')}"
            )
        values, _ = values_of_tree(own, caller, "args")
        more, _ = values_of_tree(list(extra), caller, "consts")
        expected = [*types, *(c.type for c in consts)]
        paths = [*names, *(f"consts[{i}]" for i in range(len(consts)))]
        for value, t, path in zip([*values, *more], expected, paths, strict=True):
            if not fits(value, t):
                raise TypeError(
                    f"closure_convert: {caller} was converted for {path} of type {t}, got "
                    f"{value.type}"
                )
        fitted = [
            convert(value, t.dtype, t.weak_type)
            for value, t in zip([*values, *more], expected, strict=True)
        ]
        hoisted_values = iter(fitted[len(values) :])
        outside = [next(hoisted_values) if h else c for c, h in zip(captured, hoisted, strict=True)]
        return tree.unflatten(out, evaluate(program, [*fitted[: len(values)], *outside]))

    return converted, consts
