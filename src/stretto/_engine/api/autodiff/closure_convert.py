"""``closure_convert``: values that a function captures become arguments of it.

It records the function and evaluates the program with other values in place of the captured ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeVar

from stretto._engine.api.arguments import leaf_names, values_of_tree, without_float0
from stretto._engine.api.graph import types_of
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary, bounded
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.recorder import record
from stretto._engine.core.types import is_inexact
from stretto._engine.higher_order.family import parting
from stretto._engine.higher_order.user_rule import fits
from stretto._engine.ops.convert import convert

R = TypeVar("R")


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
