"""The notation of ``einsum``: from subscripts to a label for each axis.

Both of NumPy's forms, ``"ij,jk->ik"`` and operands followed by lists of labels, become tuples of
integers, one for each axis, in which an ellipsis is written out.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import ArrayType
from stretto._engine.core.typing import Array

Labels: TypeAlias = tuple[int, ...]
_Term: TypeAlias = tuple[Any, ...]
"""Labels as the user wrote them, letters or any hashable values, and at most one ``Ellipsis``."""


class Notation(NamedTuple):
    """The labels of each operand's axes, those of the result, and the size of each label.

    Args:
        inputs: the labels of each operand.
        output: the labels of the result.
        sizes: the size by label.
    """

    inputs: tuple[Labels, ...]
    output: Labels
    sizes: dict[int, int]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each operand, with what broadcasts at full size."""
        return tuple([tuple([self.sizes[label] for label in own]) for own in self.inputs])


def parse(caller: str, arguments: Sequence[Any]) -> tuple[tuple[Array, ...], Notation]:
    """Read the arguments of ``einsum``.

    Args:
        caller: the name of the function, for messages.
        arguments: subscripts and operands, or operands and lists of labels.

    Returns:
        The operands as values, and the labels of their axes.

    Raises:
        ValueError: the notation is not well formed, or does not match the operands.
        TypeError: an operand is not an array or a number, or a label is not hashable.
    """
    subscripts, operands = arguments[0], arguments[1:]
    if not isinstance(subscripts, str):
        count = len(arguments) // 2
        if not count:
            raise ValueError(
                f"{caller}: expected a string of subscripts, or each operand followed by its "
                f"list of labels; got {type(subscripts).__name__}"
            )
        operands = arguments[: 2 * count : 2]
        subscripts = tuple([_listed(caller, labels) for labels in arguments[1 : 2 * count : 2]])
        if len(arguments) % 2:
            subscripts = (*subscripts, "->", _listed(caller, arguments[-1]))
    values = tuple([as_value(x, caller, f"operand {i}") for i, x in enumerate(operands)])
    return values, _notation(caller, subscripts, tuple([x.type for x in values]))


@functools.lru_cache(2048)
def _notation(
    caller: str, subscripts: str | tuple[Any, ...], types: tuple[ArrayType, ...]
) -> Notation:
    if isinstance(subscripts, str):
        terms, wanted = _from_text(caller, subscripts)
    else:
        listed = list(subscripts)
        wanted = listed.pop() if "->" in listed else None
        terms = [term for term in listed if term != "->"]
    if len(terms) != len(types):
        raise ValueError(
            f"{caller}: the subscripts {subscripts!r} are for {len(terms)} operands, got "
            f"{len(types)}"
        )
    wide = max([type.ndim - len(term) + 1 for type, term in zip(types, terms, strict=True)
                if Ellipsis in term], default=0)  # fmt: skip
    # Numbers for the axes that ellipses stand for, then for the user's labels.
    numbers: dict[Any, int] = {("axis", i): i for i in range(wide)}
    inputs = tuple(
        _written_out(caller, i, type, term, wide, numbers)
        for i, (type, term) in enumerate(zip(types, terms, strict=True))
    )
    if wanted is None:
        counted = [label for term in terms for label in term if label is not Ellipsis]
        once = [c for c in counted if counted.count(c) == 1]
        try:
            wanted = (Ellipsis, *sorted(once))
        except TypeError:
            raise TypeError(
                f"{caller}: the result has its labels in order, and {once} have none; give the "
                f"labels of the result as the last argument"
            ) from None
    output = _output(caller, wanted, wide, numbers)
    return Notation(inputs, output, _sizes(caller, types, inputs, numbers))


def _from_text(caller: str, subscripts: str) -> tuple[list[_Term], _Term | None]:
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = [_letters(caller, subscripts, part) for part in left.split(",")]
    return terms, _letters(caller, subscripts, right) if arrow else None


def _letters(caller: str, subscripts: str, part: str) -> _Term:
    before, dots, after = part.partition("...")
    term: _Term = (*before, *([Ellipsis] if dots else ()), *after)
    for letter in term:
        if letter is not Ellipsis and not letter.isalnum():
            raise ValueError(
                f"{caller}: the subscripts {subscripts!r} must be letters or digits, commas, one "
                f"'->' and at most one '...' for each operand; got {letter!r} in {part!r}"
            )
    return term


def _listed(caller: str, labels: Sequence[Any]) -> _Term:
    if not isinstance(labels, (list, tuple)) or sum([x is Ellipsis for x in labels]) > 1:
        raise ValueError(
            f"{caller}: labels must be a list, of integers or other hashable values, with "
            f"at most one Ellipsis; got {labels!r}"
        )
    term = tuple(labels)
    try:
        hash(term)
    except TypeError:
        raise TypeError(
            f"{caller}: labels must be hashable, such as integers or strings; got {labels!r}"
        ) from None
    return term


def _written_out(
    caller: str, i: int, type: ArrayType, term: _Term, wide: int, numbers: dict[Any, int]
) -> Labels:
    """The labels of one operand; ``wide`` is the number of axes that ellipses stand for."""
    dots = term.count(Ellipsis)
    named = len(term) - dots
    if type.ndim < named or (not dots and type.ndim != named):
        more = " or more" if dots else ""
        raise ValueError(
            f"{caller}: the labels {_show(term)} of operand {i} are for {named}{more} axes, but "
            f"it is {type}"
        )
    # Ellipses align from the last axis.
    inside = range(wide - (type.ndim - named), wide)
    out: list[int] = []
    for label in term:
        if label is Ellipsis:
            out.extend(inside)
        else:
            out.append(numbers.setdefault(("label", label), len(numbers)))
    return tuple(out)


def _output(caller: str, term: _Term, wide: int, numbers: dict[Any, int]) -> Labels:
    out: list[int] = []
    for label in term:
        if label is Ellipsis:
            out.extend(range(wide))
        elif ("label", label) not in numbers:
            raise ValueError(f"{caller}: no operand has the output label {label!r}")
        else:
            out.append(numbers["label", label])
    if len(set(out)) != len(out):
        raise ValueError(f"{caller}: the output {_show(term)} names a label twice")
    return tuple(out)


def _sizes(
    caller: str, types: Sequence[ArrayType], inputs: Sequence[Labels], numbers: dict[Any, int]
) -> dict[int, int]:
    """The size of each label; 1 gives way to another size."""
    sizes: dict[int, int] = {}
    for i, (type, labels) in enumerate(zip(types, inputs, strict=True)):
        own: dict[int, int] = {}
        for label, n in zip(labels, type.shape, strict=True):
            if own.setdefault(label, n) != n:
                raise ValueError(
                    f"{caller}: operand {i}, {type}, has the label {_name(label, numbers)} twice, "
                    f"along axes of different sizes, {own[label]} and {n}"
                )
        for label, n in own.items():
            have = sizes.setdefault(label, n)
            if 1 not in (have, n) and have != n:
                raise ValueError(
                    f"{caller}: the label {_name(label, numbers)} has size {have}, and size {n} in "
                    f"operand {i}, {type}"
                )
            sizes[label] = n if have == 1 else have
    return sizes


def _name(label: int, numbers: dict[Any, int]) -> str:
    (kind, name), *_ = [key for key, number in numbers.items() if number == label]
    return repr(name) if kind == "label" else "'...'"


def _show(term: _Term) -> str:
    parts = ["..." if label is Ellipsis else str(label) for label in term]
    letters = all(isinstance(x, str) and len(x) == 1 for x in term if x is not Ellipsis)
    separator = "" if letters else ","
    return repr(separator.join(parts))
