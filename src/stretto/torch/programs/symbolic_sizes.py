"""Sizes of an imported program as text: ``"2*s0 + 1"``, and conditions on them, ``"s0 % 3 == 0"``.

PyTorch names the sizes that may differ from call to call, computes others from these, and writes
down what it decided by them. Such text is read as arithmetic alone, and never run as Python.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
}
_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CALLED: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "float": float,
    "int": int,
    "max": max,
    "min": min,
    "round": round,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.log2": math.log2,
    "math.sqrt": math.sqrt,
    "math.trunc": math.trunc,
}
_GREATEST_POWER = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """What a program takes for granted about sizes.

    Args:
        text: the condition, of named sizes.
        place: where in the user's module it was decided; empty where that is not known.
    """

    text: str
    place: str = ""

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if the text is no arithmetic of sizes."""
        _compiled(self.text)


def value_of(text: str, sizes: Mapping[str, Any]) -> Any:
    """The value of an expression, given the named sizes.

    Raises:
        KeyError: a size has no value.
        ValueError: the text is no arithmetic of sizes.
    """
    return sizes[text] if text.isidentifier() else _compiled(text)[0](sizes)


def names(text: str) -> frozenset[str]:
    """The names of the sizes in an expression.

    Raises:
        ValueError: the text is no arithmetic of sizes.
    """
    return frozenset([text]) if text.isidentifier() else _compiled(text)[1]


def bind(shapes: Iterable[tuple[Sequence[int | str | None], Sequence[Any]]]) -> dict[str, Any]:
    """The values of named sizes, from the shapes as they are written and as they are.

    A name that stands nowhere by itself is solved for, where it is one of a linear expression. The
    first place of a name counts.
    """
    found: dict[str, Any] = {}
    composed = []
    for wanted, shape in shapes:
        for text, n in zip(wanted, shape, strict=True):
            if isinstance(text, str):
                if text.isidentifier():
                    found.setdefault(text, n)
                else:
                    composed.append((text, n))
    for text, n in composed:
        unknown = [name for name in names(text) if name not in found]
        if len(unknown) == 1:
            solution = _solved(text, unknown[0], found, n)
            if solution is not None:
                found[unknown[0]] = solution
    return found


def _solved(text: str, name: str, sizes: Mapping[str, Any], n: Any) -> int | None:
    """The natural number for which an expression is n, if it is linear."""

    def at(size: int) -> Any:
        return value_of(text, {**sizes, name: size})

    try:
        start = at(0)
        slope = at(1) - start
        solution, rest = divmod(n - start, slope)
        return solution if rest == 0 and solution >= 0 and at(solution) == n else None
    except (ArithmeticError, TypeError):
        return None


@functools.lru_cache(maxsize=4096)
def _compiled(text: str) -> tuple[Callable[[Mapping[str, Any]], Any], frozenset[str]]:
    """A function of the named sizes, and their names."""
    try:
        whole = ast.parse(text, mode="eval").body
        found: set[str] = set()
        return _function(whole, found), frozenset(found)
    except (SyntaxError, RecursionError, ValueError) as error:
        raise ValueError(f"{text!r} is no arithmetic of sizes") from error


def _function(node: ast.expr, found: set[str]) -> Callable[[Mapping[str, Any]], Any]:
    match node:
        case ast.Constant(value=bool() | int() | float() as constant):
            return lambda sizes: constant
        case ast.Name(id=name):
            found.add(name)
            return lambda sizes: sizes[name]
        case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int() | float() as power)):
            if abs(power) > _GREATEST_POWER:  # of a file that is damaged, or worse
                raise ValueError(f"a power of {power}")
            of_base = _function(base, found)
            return lambda sizes: of_base(sizes) ** power
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            x, y, binary = _function(left, found), _function(right, found), _BINARY[type(op)]
            return lambda sizes: binary(x(sizes), y(sizes))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            x = _function(operand, found)
            return lambda sizes: -x(sizes)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            x = _function(operand, found)
            return lambda sizes: not x(sizes)
        case ast.BoolOp(op=op, values=operands):
            parts = [_function(part, found) for part in operands]
            over = all if isinstance(op, ast.And) else any
            return lambda sizes: over(part(sizes) for part in parts)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
            x, y, compared = _function(left, found), _function(right, found), _COMPARED[type(op)]
            return lambda sizes: compared(x(sizes), y(sizes))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            which, x, y = (_function(part, found) for part in (test, body, orelse))
            return lambda sizes: x(sizes) if which(sizes) else y(sizes)
        case ast.Call(func=func, args=operands, keywords=[]):
            called = _CALLED.get(ast.unparse(func))
            if called is not None:
                parts = [_function(part, found) for part in operands]
                return lambda sizes: called(*[part(sizes) for part in parts])
    raise ValueError(f"{ast.unparse(node)} is no arithmetic of sizes")
