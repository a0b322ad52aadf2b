"""What operations defined by an equation share: unknowns, and functions of unknowns.

The user's functions take trees of unknowns and return trees of the same structure and types, which
is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.core import tree
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import record
from stretto._engine.core.types import ArrayType, is_inexact
from stretto._engine.higher_order.family import parting, values_of
from stretto._engine.ops.convert import convert


def unknowns(caller: str, x: Any, argument: str) -> tuple[list[Any], Any]:
    """The leaves of a tree of unknowns as floating or complex values, none weakly typed."""
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
    """The leaves of a function's result, which must have this structure and these types.

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
