"""Call a user's rule: what its captured tracers mean now, and whether its result is right.

A rule is a Python function that may have captured tracers of a trace that has ended by the time it
runs; here they get their present values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stretto._engine.core import tree
from stretto._engine.core.config import settings
from stretto._engine.core.errors import EscapedTracerError
from stretto._engine.core.interpreter import Interpreter, as_value, state
from stretto._engine.core.position import place
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType, is_float0, is_inexact, kind_of
from stretto._engine.higher_order.family import parting
from stretto._engine.higher_order.symbolic_zeros import SymbolicZero
from stretto._engine.ops.convert import convert


class _StandIns(Interpreter):
    """Hands on operations, with captured tracers replaced by the values that they have now.

    A rule may run long after its function was traced, under another transformation. A tracer that
    it captured stands for an operand of the recorded operation, and that has a new value by then.
    """

    __slots__ = ("parent", "recorder", "values")

    def __init__(self, values: Mapping[int, Any]) -> None:
        self.parent = state.interpreter
        self.recorder = self.parent.recorder
        self.values = values

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Hand the operation on, with values in place of the tracers that stand for them."""
        values = self.values
        return self.parent.process(primitive, [values.get(id(a), a) for a in args])


def user_rule(
    caller: str,
    captured: Sequence[Any],
    now: Sequence[Any],
    call: Callable[[Callable[[Any], Any]], Any],
) -> Any:
    """Return the result of ``call``, which calls a rule; ``captured`` tracers now mean ``now``.

    ``None`` among ``captured`` stands for values that are not traced. ``call`` gets a function that
    it must apply to whatever the rule returns, since that may be a captured tracer.
    """
    values = {id(c): v for c, v in zip(captured, now, strict=True) if c is not None and c is not v}
    recorder = state.interpreter.recorder
    if settings.key.debugged and recorder is not None and recorder.locate is not place:
        again = user_rule, caller, captured, now, call
        return holding(recorder, "locate", place, *again)  # at the lines of the rule
    try:
        if not values:
            return call(lambda x: x)
        both = {**state.stand_ins, **values}
        under = "interpreter", _StandIns(values)
        present = lambda x: values.get(id(x), x)
        return holding(state, "stand_ins", both, holding, state, *under, call, present)
    except EscapedTracerError as error:
        raise EscapedTracerError(
            f"{caller} uses a traced value from outside that the function itself does not use; "
            f"pass it to the function as an argument. ({error})"
        ) from error


def fit_results(
    x: Any,
    structure: Any,
    types: Sequence[ArrayType],
    caller: str,
    what: str,
    tangent: bool = False,
) -> list[Any]:
    """Return a rule's results as values of these types; ``None`` for a zero tangent.

    Raises ``TypeError``, which says what is wrong where.
    """
    leaves, x_structure = tree.flatten(x)
    if x_structure != structure:
        raise TypeError(
            f"{caller} must return {what} like the function's output; they part at "
            f"{parting(structure, x_structure, 'output')}"
        )
    paths = tree.paths(tree.unflatten(structure, range(len(leaves))), "output")
    return [
        fit(leaf, t, f"{caller} must return {what}", path, tangent)
        for leaf, t, path in zip(leaves, types, paths, strict=True)
    ]


def fit(x: Any, type: ArrayType, caller: str, path: str, tangent: bool) -> Any:
    """Return one leaf of a rule's result as a value of this type; ``None`` for a zero tangent."""
    if tangent:
        if isinstance(x, SymbolicZero) and x.shape == type.shape:
            return None
        if not is_inexact(type.dtype):
            if is_float0(x) and x.shape == type.shape:
                return None
            raise TypeError(
                f"{caller} of dtype float0 and shape {type.shape} for {type} at {path}, got "
                f"{describe(x)}"
            )
    value = as_value(x, caller, path)
    if not fits(value, type):
        raise TypeError(f"{caller} of type {type} at {path}, got {value.type}")
    return convert(value, type.dtype, type.weak_type)


def fits(value: Any, type: ArrayType) -> bool:
    """Say if a value is of this type, or a Python number that can take it without loss."""
    if value.shape != type.shape:
        return False
    if value.dtype == type.dtype:
        return True
    return value.weak_type and _RANK[kind_of(value.dtype)] <= _RANK[kind_of(type.dtype)]


_RANK = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}


def describe(x: Any) -> str:
    """Return a value as messages show it: by its type if it has one."""
    return repr(x.type) if hasattr(x, "type") else repr(x)
