"""Cards as HTML, for notebooks: without scripts, and without anything from outside.

Colours are those of the page around it, so that it fits light and dark ones; parts fold by
``<details>``.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterable, Sequence

from stretto._engine.core.showing.cards import Card, Item, Line, pruned
from stretto._engine.core.showing.pictures import INK

MOST = 600
"""The most lines of a card."""

_LONGEST = 2000
"""The most characters of one piece of text."""

# One colour is legible on white and on black; everything else is the page's own.
_STYLE = """
.stretto{font:13px/1.45 var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace)}
.stretto details{margin-left:1.2em}.stretto>details{margin-left:0}
.stretto summary{cursor:pointer;margin-left:0}
.stretto .leaf{margin-left:1.2em}.stretto>.leaf{margin-left:0}
.stretto pre{margin:0 0 0 1.2em;padding:0;background:none;color:inherit;font:inherit;
white-space:pre;overflow-x:auto}
.stretto b{font-weight:600}.stretto .quiet{opacity:.65}.stretto .op{color:INK}
.stretto figure{margin:4px 0 4px 1.2em}.stretto svg,.stretto img{display:block;max-width:100%}
.stretto img{image-rendering:pixelated}
""".replace("INK", INK)


def html_of(card: Card) -> str:
    """Return the card as a piece of a page."""
    style = " ".join(_STYLE.split())
    return f'<div class="stretto"><style>{style}</style>{_card(pruned(card, MOST))}</div>'


# Of control characters HTML allows these alone; half a surrogate pair cannot be encoded at all.
_FORBIDDEN = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]")


def escaped(text: str) -> str:
    """Return the text as characters of a page, whatever is in it; cut where it is very long."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}…"
    return html.escape(_FORBIDDEN.sub("\ufffd", text))


def _card(card: Card) -> str:
    head = f"<b>{escaped(card.title)}</b>"
    if card.facts:
        head += f' <span class="quiet">{escaped(" · ".join(card.facts))}</span>'
    figure = f"<figure>{card.picture}</figure>" if card.picture else ""
    if not card.body and not figure:
        return f'<div class="leaf">{head}</div>'
    opened = " open" if card.open else ""
    inside = f"{figure}{''.join(_items(card.body))}"
    return f"<details{opened}><summary>{head}</summary>{inside}</details>"


def _items(body: Sequence[Item]) -> Iterable[str]:
    """Lines that follow one another are one block."""
    for are_cards, items in itertools.groupby(body, lambda item: isinstance(item, Card)):
        if are_cards:
            yield from [_card(item) for item in items if isinstance(item, Card)]
        else:
            lines = [_line(item) for item in items if not isinstance(item, Card)]
            yield f"<pre>{chr(10).join(lines)}</pre>"


def _line(line: Line) -> str:
    return "".join(
        [
            f'<span class="{kind}">{escaped(text)}</span>' if kind else escaped(text)
            for text, kind in line
        ]
    )
