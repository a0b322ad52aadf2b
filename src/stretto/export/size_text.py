"""Sizes as text, as files of ``jax.export`` have them, and what variables are for given shapes.

A size is an integer or an expression, ``2*b + floordiv(n, 2)``. What variables are follows from the
shapes of arguments: first where a variable stands alone, then where one is left that a size depends
on linearly; all other sizes are held to them.

>>> size = parsed("floordiv(2*b + 7, 2) - max(b, 3)")
>>> size.known({variable: 4 for variable in size.variables()}), text_of(size)
(3, '-max(b - 3, 0) + b')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from stretto._engine.core.errors import SizeError
from stretto._engine.core.sizes import (
    Dimension,
    Factor,
    Floor,
    Positive,
    Size,
    SizeVariable,
    at_least,
    greater,
    is_size,
    lesser,
    size_variable,
)
from stretto.files.names import Damaged

_TOKEN = re.compile(r"\s*(\d{1,19}|[A-Za-z_][A-Za-z0-9_]*|[-+*^(),])")
_FUNCTIONS = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": greater,
    "min": lesser,
}
_DEEPEST, _LONGEST = 30, 200


def parsed(text: str) -> Dimension:
    """Read a size.

    Args:
        text: the integer or the expression.

    Returns:
        The size.

    Raises:
        Damaged: the text is no size.
    """
    at, tokens = 0, []
    text = text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or len(tokens) > 1000:
            raise Damaged(f"a size is no expression: {text[:60]!r}")
        tokens.append(found[1])
        at = found.end()
    try:
        size, rest = _sum(tokens, 0)
    except (IndexError, ZeroDivisionError, SizeError) as error:
        raise Damaged(f"a size is no expression that is known: {text[:60]!r}") from error
    if rest:
        raise Damaged(f"a size is no expression: {text[:60]!r}")
    return size


def _sum(tokens: list[str], depth: int) -> tuple[Any, list[str]]:
    if depth > _DEEPEST:
        raise Damaged("a size is an expression without end")
    negative = tokens[0] == "-"
    total, tokens = _product(tokens[negative:], depth)
    total = -total if negative else total
    while tokens and tokens[0] in "+-":
        sign = tokens[0]
        term, tokens = _product(tokens[1:], depth)
        total = total + term if sign == "+" else total - term
    return total, tokens


def _product(tokens: list[str], depth: int) -> tuple[Any, list[str]]:
    product, tokens = _power(tokens, depth)
    while tokens and tokens[0] == "*":
        factor, tokens = _power(tokens[1:], depth)
        product = _short(product * factor)
    return product, tokens


def _power(tokens: list[str], depth: int) -> tuple[Any, list[str]]:
    base, tokens = _factor(tokens, depth)
    if tokens and tokens[0] == "^":
        power = int(tokens[1])
        if power > 8:
            raise Damaged(f"a size is to the power of {power}")
        tokens = tokens[2:]
        base = _short(base**power) if isinstance(base, int) else _power_of(base, power)
    return base, tokens


def _power_of(base: Size, power: int) -> Dimension:
    product: Any = 1
    for _ in range(power):
        product = _short(product * base)
    return product


def _short(size: Dimension) -> Dimension:
    """Return the size; refuse one that takes long to compute with."""
    if len(size.terms) > _LONGEST if isinstance(size, Size) else abs(size) >= 1 << 64:
        raise Damaged("a size is an expression of more terms than shapes have")
    return size


def _factor(tokens: list[str], depth: int) -> tuple[Any, list[str]]:
    first, rest = tokens[0], tokens[1:]
    if first.isdigit():
        return int(first), rest
    if first == "-":
        value, rest = _factor(rest, depth + 1)
        return -value, rest
    if first == "(":
        value, rest = _sum(rest, depth + 1)
        return value, _after(")", rest)
    if first in _FUNCTIONS and rest[:1] == ["("]:
        one, rest = _sum(rest[1:], depth + 1)
        other, rest = _sum(_after(",", rest), depth + 1)
        return _FUNCTIONS[first](one, other), _after(")", rest)
    if not first.isidentifier():
        raise Damaged(f"a size is no expression at {first!r}")
    return size_variable(first), rest


def _after(token: str, tokens: list[str]) -> list[str]:
    if tokens[0] != token:
        raise Damaged(f"a size is no expression at {tokens[0]!r}")
    return tokens[1:]


def text_of(size: Dimension) -> str:
    """Write a size.

    Args:
        size: an integer, or a size that varies.

    Returns:
        The text, which ``parsed`` reads.
    """
    if not isinstance(size, Size):
        return str(size)
    parts = []
    for monomial, coefficient in size.terms:
        factors = [
            factor_text(f, text_of) + (f"^{power}" if power > 1 else "") for f, power in monomial
        ]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        parts.append(("- " if coefficient < 0 else "+ ") + "*".join(factors))
    text = " ".join(parts)
    return "-" + text[2:] if text.startswith("- ") else text.removeprefix("+ ")


def factor_text(factor: Factor, text: Callable[[Any], str]) -> str:
    """Return JAX's text of a factor, ``text`` writing the sizes inside of it."""
    if isinstance(factor, SizeVariable):
        return factor.name
    if isinstance(factor, Floor):
        return f"floordiv({text(factor.size)}, {factor.by})"
    assert isinstance(factor, Positive)
    return f"max({text(factor.size)}, 0)"


def solved(
    shapes: Sequence[Sequence[Dimension]],
    given: Sequence[Sequence[Dimension]],
    names: Sequence[str],
) -> dict[SizeVariable, Any]:
    """Find what variables are for arrays of given shapes.

    Args:
        shapes: the shapes that arrays are to have.
        given: the shapes that they have.
        names: what the arrays are called, for messages.

    Returns:
        The integer for each variable.

    Raises:
        ValueError: no integers fit; or they do not follow from the shapes.
    """
    known: dict[SizeVariable, Any] = {}
    open_: list[tuple[Size, Any, str]] = []
    for shape, sizes, name in zip(shapes, given, names, strict=True):
        if len(shape) != len(sizes):
            raise ValueError(f"{name} must have {len(shape)} axes, {_words(shape)}, got {sizes}")
        for axis, (wanted, n) in enumerate(zip(shape, sizes, strict=True)):
            where = f"axis {axis} of {name}"
            if isinstance(wanted, Size):
                open_.append((wanted, n, where))
            elif wanted != n:
                raise ValueError(f"{where} must have size {wanted}, got {n}")
    while True:
        found = next((f for entry in open_ if (f := _found(*entry, known)) is not None), None)
        if found is None:
            break
        known.update([found])
    for size, n, where in open_:
        missing = sorted({v.name for v in size.variables() if v not in known})
        if missing:
            raise ValueError(
                f"{where}, {text_of(size)}: what {missing[0]} is does not follow from the shapes "
                f"of the arguments"
            )
        if evaluated(size, known) != n:
            because = ", ".join(
                [f"{v.name}={k}" for v, k in known.items() if v in size.variables()]
            )
            raise ValueError(
                f"{where} must have size {text_of(size)}, which is {evaluated(size, known)} for "
                f"{because}, got {n}"
            )
    return known


def evaluated(n: Dimension, known: Mapping[SizeVariable, Dimension]) -> Dimension:
    """Find what a size is.

    Args:
        n: the size.
        known: what each variable is: an integer, or another size.

    Returns:
        The size with these in the places of variables.
    """
    if not isinstance(n, Size):
        return n
    return n.at(known.__getitem__, lambda n, by: n // by, lambda n: greater(n, 0))


def line(
    size: Size, known: Mapping[SizeVariable, Dimension]
) -> tuple[SizeVariable, Dimension, int] | None:
    """Find the one variable that is not known, if the size depends on it as on a line.

    Args:
        size: the size.
        known: what other variables are.

    Returns:
        The variable, what the size is where it is 0, and the slope; None if there is no such one.
    """
    missing = {v for v in size.variables() if v not in known}
    if len(missing) != 1:
        return None
    (variable,) = missing
    try:
        at = lambda value: evaluated(size, {**known, variable: value})
        start: Any = at(0)
        slope: Any = at(1) - start
        if is_size(slope) or slope == 0:
            return None
        if any([at(k) != start + k * slope for k in (2, 3, 5, 64, 1001)]):
            return None
    except SizeError:
        return None
    return variable, start, slope


def _found(
    size: Size, n: Any, where: str, known: dict[SizeVariable, Any]
) -> tuple[SizeVariable, Any] | None:
    """Return the variable that follows from this size, and what it is."""
    found = line(size, known)
    if found is None:
        return None
    variable, start, slope = found
    try:
        value, rest = divmod(n - start, slope)
    except SizeError:
        return None
    if is_size(rest) or rest or at_least(value) < variable.least:
        raise ValueError(
            f"{where} must have size {text_of(size)} with {variable.name} an integer of "
            f"{variable.least} or more, got {n}"
        )
    return variable, value


def _words(shape: Iterable[Dimension]) -> str:
    return f"({', '.join(map(text_of, shape))})"


def at(shape: Sequence[Dimension], known: dict[SizeVariable, Any]) -> tuple[Any, ...]:
    """Find the integers that sizes are.

    Args:
        shape: the sizes.
        known: the integer for each variable.

    Returns:
        The integers.

    Raises:
        ValueError: a size has a variable of which nothing is known.
    """
    try:
        return tuple([evaluated(n, known) for n in shape])
    except KeyError as error:
        raise ValueError(
            f"what the size {error.args[0]} is does not follow from the arguments"
        ) from None
