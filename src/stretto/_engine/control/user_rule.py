"""The call of a rule of the user's own: what it captured, and whether its result fits.

Layer 4 (control). Next, read ``custom_function``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stretto._engine.control.family import parting
from stretto._engine.control.symbolic_zeros import SymbolicZero
from stretto._engine.core import tree
from stretto._engine.core.errors import EscapedTracerError
from stretto._engine.core.holding import holding
from stretto._engine.core.interpreter import Interpreter, as_value, state
from stretto._engine.core.types import ArrayType, is_float0, is_inexact, kind_of
from stretto._engine.ops.convert import convert

__all__ = ["described", "fit", "fits", "fitted", "user_rule"]


class _StandIns(Interpreter):
    """Hands on operations, with present values for tracers whose transformation has done its part.

    A rule may run long after its function did, under another transformation. What it captured then
    means the operand that came of it since.
    """

    __slots__ = ("parent", "recorder", "values")

    def __init__(self, values: Mapping[int, Any]) -> None:
        self.parent = state.interpreter
        self.recorder = self.parent.recorder
        self.values = values

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Hand the operation on, with the values in place of what they stand for."""
        values = self.values
        return self.parent.process(primitive, [values.get(id(a), a) for a in args])


def user_rule(
    caller: str,
    captured: Sequence[Any],
    now: Sequence[Any],
    call: Callable[[Callable[[Any], Any]], Any],
) -> Any:
    """What ``call`` gives, which calls a rule: what was ``captured`` means the values it has now.

    ``None`` among ``captured`` is for what is not traced. ``call`` gets a function to apply to what
    the rule returns.
    """
    values = {id(c): v for c, v in zip(captured, now, strict=True) if c is not None and c is not v}
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
            "pass "
            f"it to the function as an argument. ({error})"
        ) from error


def fitted(
    x: Any,
    structure: Any,
    types: Sequence[ArrayType],
    caller: str,
    what: str,
    tangent: bool = False,
) -> list[Any]:
    """The leaves of what a rule returned as values of these types; ``None`` for a zero tangent.

    Raises ``TypeError`` that says where it does not fit.
    """
    leaves, given = tree.flatten(x)
    if given != structure:
        raise TypeError(
            f"{caller} must return {what} like the function's output; they part at "
            f"{parting(structure, given, 'output')}"
        )
    paths = tree.paths(tree.unflatten(structure, range(len(leaves))), "output")
    return [
        fit(leaf, t, f"{caller} must return {what}", path, tangent)
        for leaf, t, path in zip(leaves, types, paths, strict=True)
    ]


def fit(x: Any, type: ArrayType, caller: str, path: str, tangent: bool) -> Any:
    """One leaf of what a rule returned, as a value of this type; ``None`` for a zero tangent."""
    if tangent:
        if isinstance(x, SymbolicZero) and x.shape == type.shape:
            return None
        if not is_inexact(type.dtype):
            if is_float0(x) and x.shape == type.shape:
                return None
            raise TypeError(
                f"{caller} of dtype float0 and shape {type.shape} for {type} at {path}, got "
                f"{described(x)}"
            )
    value = as_value(x, caller, path)
    if not fits(value, type):
        raise TypeError(f"{caller} of type {type} at {path}, got {value.type}")
    return convert(value, type.dtype, type.weak_type)


def fits(value: Any, type: ArrayType) -> bool:
    """Whether a value is of this type, or a Python number that can take it without loss."""
    if value.shape != type.shape:
        return False
    if value.dtype == type.dtype:
        return True
    return value.weak_type and _RANK[kind_of(value.dtype)] <= _RANK[kind_of(type.dtype)]


_RANK = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}


def described(x: Any) -> str:
    """A value by its type, for messages."""
    return repr(x.type) if hasattr(x, "type") else repr(x)
