"""Cards in a terminal, by rich.

The only module here that imports rich, when rich itself asks how an object looks.
"""

from __future__ import annotations

from typing import Any

from rich.text import Text
from rich.tree import Tree

from stretto._engine.core.showing.cards import MOST_LINES, Card, Line, pruned

_STYLES = {"op": "cyan", "quiet": "dim", "": ""}


def renderable_of(card: Card) -> Any:
    """Return what rich prints for the card: a tree, or a line where there is nothing below it."""
    return _tree(pruned(card, MOST_LINES - 1))


def _tree(card: Card) -> Tree:
    tree = Tree(_head(card), guide_style="dim", hide_root=False)
    _fill(tree, card)
    return tree


def _fill(tree: Tree, card: Card) -> None:
    """Hang the body below; of lines those that follow one another in one piece."""
    block: list[Text] = [Text(card.sketch, style="cyan")] if card.sketch else []
    for item in card.body:
        if isinstance(item, Card):
            if block:
                tree.add(Text("\n").join(block))
                block = []
            _fill(tree.add(_head(item)), item)
        else:
            block.append(_line(item))
    if block:
        tree.add(Text("\n").join(block))


def _head(card: Card) -> Text:
    head = Text(card.title, style="bold")
    if card.facts:
        head.append(f" {' · '.join(card.facts)}", style="not bold dim")
    return head


def _line(line: Line) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    for piece, kind in line:
        text.append(piece, style=_STYLES[kind])
    return text
