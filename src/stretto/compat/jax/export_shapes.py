"""Symbolic shapes of exported functions held to those of a call, in JAX's words.

What the variables are follows from the shapes of arguments one by one: a size in which one variable
is left gives it, if it depends on it linearly, and all others are checked. Sizes are written in
JAX's order, the later names first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from stretto._engine.core.sizes import (
    Dimension,
    Size,
    SizeVariable,
    at_least,
)
from stretto.export.size_text import evaluated, factor_text, line

_PAGE = "https://docs.jax.dev/en/latest/export/shape_poly.html"

_SOME = 12
"""Added to the least size, for one at which sizes depend on others as at most sizes."""


class _Axis(NamedTuple):
    path: str
    size: Size
    given: Any

    @property
    def where(self) -> str:
        return f"'{text_of(self.size)}' for dimension {self.path} (= {text_of(self.given)})"


def check_solvable(paths: Sequence[str], shapes: Sequence[Sequence[Dimension]]) -> None:
    """Check that what variables are follows from shapes.

    Args:
        paths: what the arguments are called.
        shapes: their shapes.

    Raises:
        ValueError: it does not.
    """
    known: dict[SizeVariable, Any] = {}
    left = _axes(paths, shapes, shapes)
    while True:
        for axis in left:
            if (found := line(axis.size, known)) is not None:
                known[found[0]] = found[0].least + _SOME
                break
        else:
            break
    left = [axis for axis in left if not known.keys() >= {*axis.size.variables()}]
    if left:
        missing = {v.name for axis in left for v in axis.size.variables() if v not in known}
        names = ", ".join([repr(name) for name in sorted(missing)])
        rest = ", ".join([f"'{text_of(a.size)}' for dimension size {a.path}" for a in left])
        raise ValueError(
            f"Cannot solve for values of dimension variables {{{names}}}. We can only solve linear "
            f"uni-variate constraints. {_specifications(paths, shapes)}. Unprocessed "
            f"specifications: {rest}. Please see "
            f"{_PAGE}#dimension-variables-must-be-solvable-from-the-input-shapes for more details."
        )


def check_shapes(
    paths: Sequence[str],
    shapes: Sequence[Sequence[Dimension]],
    given: Sequence[Sequence[Dimension]],
) -> None:
    """Check that integers for the variables make shapes those that are given.

    Args:
        paths: what the arguments are called.
        shapes: the shapes that they are to have, each of as many axes as that given.
        given: the shapes that they have.

    Raises:
        ValueError: there are none.
    """
    known: dict[SizeVariable, Any] = {}
    obtained: list[str] = []

    def refuse(what: str) -> ValueError:
        found = "".join([f"{text}, " for text in obtained])
        return ValueError(
            f"Input shapes do not match the polymorphic shapes specification. {what}. "
            f"{_specifications(paths, shapes)}. Obtained dimension variables: {found}. Please see "
            f"{_PAGE}#shape-assertion-errors for more details."
        )

    left = _axes(paths, shapes, given)
    while left:
        waiting = []
        for axis in left:
            if known.keys() >= {*axis.size.variables()}:
                value = evaluated(axis.size, known)
                if value != axis.given:
                    raise refuse(
                        f"Found inconsistency between dimension size {axis.path} "
                        f"(= {text_of(axis.given)}) and the specification '{text_of(axis.size)}' "
                        f"(= {text_of(value)})"
                    )
                continue
            found = line(axis.size, known)
            if found is None:
                waiting.append(axis)
                continue
            variable, start, slope = found
            total = axis.given - start
            value, rest = divmod(total, slope)
            if rest != 0:
                by = f"mod({text_of(total)}, {slope})" if isinstance(rest, Size) else rest
                raise refuse(
                    f"Division had remainder {by} when computing the value of '{variable.name}'"
                )
            known[variable] = value
            obtained.append(f"'{variable.name}' = {text_of(value)} from specification {axis.where}")
            if at_least(value) < variable.least:
                raise refuse(
                    f"Expected value >= {variable.least} for dimension variable '{variable.name}'"
                )
        if len(waiting) == len(left):
            check_solvable(paths, shapes)
        left = waiting


def _axes(
    paths: Sequence[str],
    shapes: Sequence[Sequence[Dimension]],
    given: Sequence[Sequence[Dimension]],
) -> list[_Axis]:
    return [
        _Axis(f"{path}.shape[{k}]", size, n)
        for path, shape, sizes in zip(paths, shapes, given, strict=True)
        for k, (size, n) in enumerate(zip(shape, sizes, strict=True))
        if isinstance(size, Size)
    ]


def _specifications(paths: Sequence[str], shapes: Sequence[Sequence[Dimension]]) -> str:
    listed = [
        f"{path}.shape = ({', '.join(map(text_of, shape))}{',' if len(shape) == 1 else ''})"
        for path, shape in zip(paths, shapes, strict=True)
        if any([isinstance(n, Size) for n in shape])
    ]
    return f"Using the following polymorphic shapes specifications: {', '.join(listed)}"


def text_of(size: Any) -> str:
    """Write a size as JAX does.

    Args:
        size: an integer, or a size that varies.

    Returns:
        The text.

    >>> from stretto._engine.core.sizes import size_variable
    >>> a, b = size_variable("a"), size_variable("b")
    >>> text_of(a + 2 * b - 4), text_of(3 * a * a)
    ('2*b + a - 4', '3*a^2')
    """
    if not isinstance(size, Size):
        return str(size)
    parts = []
    for factors, coefficient in _ordered(size.terms):
        if abs(coefficient) != 1 or not factors:
            factors = [str(abs(coefficient)), *factors]
        parts.append(("- " if coefficient < 0 else "+ ") + "*".join(factors))
    text = " ".join(parts)
    return "-" + text[2:] if text.startswith("- ") else text.removeprefix("+ ")


def _ordered(terms: Iterable[tuple[Any, int]]) -> list[tuple[list[str], int]]:
    """Return the terms, those of the highest degree first, and the later names first."""
    found = []
    for monomial, coefficient in terms:
        degree = sum([power for _, power in monomial])
        names = [factor_text(factor, text_of) for factor, _ in monomial]
        written = [
            name + (f"^{power}" if power > 1 else "")
            for name, (_, power) in zip(names, monomial, strict=True)
        ]
        found.append((degree, sorted(names, reverse=True), written, coefficient))
    found.sort(key=lambda term: term[:2], reverse=True)
    return [(written, coefficient) for _, _, written, coefficient in found]
