"""``Card``: what is shown of an object, whatever it is shown on.

Every kind of object has a function that makes its card, named where its class is decorated with
``shown``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TypeAlias

Line: TypeAlias = tuple[tuple[str, str], ...]
"""A line of text: pieces, each with what it is, ``"op"`` or ``"quiet"``, or an empty string."""


@dataclasses.dataclass(frozen=True)
class Card:
    """What is shown of an object. All texts are plain: whoever writes them escapes them."""

    title: str
    facts: tuple[str, ...] = ()
    """Short phrases, shown beside the title."""
    body: tuple[Item, ...] = ()
    """Lines and cards, folded away unless ``open``."""
    open: bool = True
    picture: str = ""
    """Markup of the library's own making: see ``pictures``."""
    sketch: str = ""
    """The picture in characters, for terminals."""


Item: TypeAlias = "Line | Card"


def line(text: str, kind: str = "") -> Line:
    """A line of one piece."""
    return ((text, kind),)


def pruned(card: Card, most: int, rest: str = "") -> Card:
    """The card with at most about so many lines.

    What is deepest goes first; then, of what is left, all but the first lines. ``rest`` says how to
    see what is left out.
    """
    depth = _depth(card)
    while depth > 1 and _lines(card, depth) > most:
        depth -= 1
    left = [most]
    return _cut(card, depth, left, f": {rest}" if rest else "")


def _depth(card: Card) -> int:
    """How many cards are one inside the other."""
    return 1 + max([_depth(x) for x in card.body if isinstance(x, Card)], default=0)


def _lines(card: Card, depth: int) -> int:
    """How many lines it has, down to this depth."""
    if not depth:
        return 1
    return 1 + sum([_lines(x, depth - 1) if isinstance(x, Card) else 1 for x in card.body])


def _cut(card: Card, depth: int, left: list[int], rest: str) -> Card:
    """The card down to this depth, with so many lines left; ``left`` is what then remains."""
    left[0] -= 1
    if not depth or not card.body:
        return dataclasses.replace(card, body=())
    return dataclasses.replace(card, body=tuple(_kept(card.body, depth, left, rest)))


def _kept(body: Sequence[Item], depth: int, left: list[int], rest: str) -> Iterator[Item]:
    for k, item in enumerate(body):
        if left[0] <= 0:
            yield line(f"... {len(body) - k:,} more{rest}", "quiet")
            return
        if isinstance(item, Card):
            yield _cut(item, depth - 1, left, rest)
        else:
            left[0] -= 1
            yield item
