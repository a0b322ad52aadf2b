"""Cards: what is shown of an object, as HTML in notebooks and by rich in terminals.

Loaded when something is first shown. Every kind of object has a function that makes its card, named
where its class is decorated with ``shown``; those of trees and of programs are here.

Pictures of values are small: lines and bars as SVG, matrices as PNG, and bars in characters. They
take NumPy arrays of float64, at most a few thousand elements, and give markup that refers to
nothing outside.

HTML is without scripts, and without anything from outside; its colours are those of the page around
it, so that it fits light and dark ones, and parts fold by ``<details>``. Rich is imported when it
itself asks how an object looks.
"""

from __future__ import annotations

import base64
import dataclasses
import html
import itertools
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.interpreter import Tracer, Value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.program import Program, lines_of

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

# Pictures


INK = "#3584c4"
"""A colour that is legible on white and on black."""

_WIDTH, _HEIGHT = 240, 48
_BLOCKS = "▁▂▃▄▅▆▇█"

# Dark blue to yellow by way of green, of even lightness: legible for the colour-blind, and both
# ends differ from white and from black.
_COLOURS = np.array(
    [(48, 18, 99), (52, 74, 140), (38, 120, 142), (38, 168, 126), (132, 206, 70), (250, 228, 60)]
)
_MISSING = (150, 150, 150)


def curve(values: np.ndarray) -> str:
    """Return the values of a row, from left to right, with gaps where they are not finite."""
    known = np.isfinite(values)
    if not known.any():
        return ""
    low, high = values[known].min(), values[known].max()
    xs = np.linspace(2, _WIDTH - 2, len(values)) if len(values) > 1 else np.array([_WIDTH / 2])
    ys = _HEIGHT - 2 - (_HEIGHT - 4) * _within(values, low, high)
    path, is_start = "", True
    for x, y, here in zip(xs.tolist(), ys.tolist(), known.tolist(), strict=True):
        if here:
            # A line of no length, with round ends, is a dot, should the next value be a gap.
            path += f"M{x:.1f} {y:.1f}h0" if is_start else f"L{x:.1f} {y:.1f}"
        is_start = not here
    return _svg(
        f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="2" stroke-linecap="round"/>'
    )


def bars(values: np.ndarray, count: int = 40) -> str:
    """Say how often values are in each of some ranges of equal width, least to greatest."""
    heights = _counts(values, count)
    if not len(heights):
        return ""
    width = _WIDTH / len(heights)
    tops = np.where(heights > 0, np.maximum((_HEIGHT - 1) * heights / heights.max(), 1), 0)
    path = "".join(
        [
            f"M{k * width:.1f} {_HEIGHT}v-{top:.1f}h{width * 0.85:.1f}V{_HEIGHT}z"
            for k, top in enumerate(tops.tolist())
            if top
        ]
    )
    return _svg(f'<path d="{path}" fill="{INK}"/>')


def sketch(values: np.ndarray, count: int = 24) -> str:
    """Return the same in characters, one for each range: ``▂▅█▅▂``."""
    heights = _counts(values, count)
    if not len(heights):
        return ""
    levels = np.ceil((len(_BLOCKS) - 1) * heights / heights.max()).astype(int)
    return "".join([_BLOCKS[k] for k in levels])


def _counts(values: np.ndarray, count: int) -> np.ndarray:
    """Say how many finite values are in each range; none if there is no such value."""
    values = values[np.isfinite(values)].ravel()
    if not len(values):
        return values
    within = _within(values, values.min(), values.max())
    places = np.minimum((within * count).astype(int), count - 1)
    return np.bincount(places, minlength=count)


def _within(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Say where each value is between the two, from 0 to 1; in the middle where they are equal."""
    # Halved first, as the difference of two large numbers may be infinite.
    span = high / 2 - low / 2
    with np.errstate(invalid="ignore", over="ignore"):
        return (values / 2 - low / 2) / span if span else np.full(values.shape, 0.5)


def matrix(values: np.ndarray) -> str:
    """Give the elements of a matrix as colours, dark for the least; grey for what is not finite."""
    rows, columns = values.shape
    if not values.size:
        return ""
    known = np.isfinite(values)
    low, high = (values[known].min(), values[known].max()) if known.any() else (0.0, 0.0)
    place = np.where(known, _within(np.where(known, values, low), low, high), 0)
    scaled = place * (len(_COLOURS) - 1)
    below = np.minimum(scaled.astype(int), len(_COLOURS) - 2)
    share = (scaled - below)[..., None]
    pixels = np.rint(_COLOURS[below] * (1 - share) + _COLOURS[below + 1] * share)
    pixels[~known] = _MISSING
    scale = min(12, _WIDTH / columns, 160 / rows)
    width, height = max(6, round(columns * scale)), max(6, round(rows * scale))
    data = base64.b64encode(_png(pixels.astype(np.uint8))).decode()
    return (
        f'<img alt="the elements as colours" width="{width}" height="{height}" '
        f'src="data:image/png;base64,{data}"/>'
    )


def _png(pixels: np.ndarray) -> bytes:
    """Return an image of shape (rows, columns, 3). Source: the PNG specification, third edition."""
    rows, columns, _ = pixels.shape
    # Each row begins with the number of its filter: 0, none.
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], 1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in chunks
        ]
    )


def _svg(inside: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none">{inside}</svg>'
    )


# Cards


T = TypeVar("T")

MOST_LINES = 40
"""The most lines that an object prints unasked."""


def size(count: float) -> str:
    """Write a number of bytes: ``3.7 MB``."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:,.1f} {unit}"
    return f"{count:.0f} bytes"


def number(x: float) -> str:
    """Write a real number with four digits."""
    return f"{x:.4g}"


def counted(count: int, noun: str) -> str:
    """Write so many of something: ``1 array``, ``2,000 arrays``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def ends(items: Sequence[T], most: int) -> tuple[Sequence[T], int, Sequence[T]]:
    """Return the first and the last of these, ``most`` in all, and how many are between."""
    left_out = len(items) - most
    if left_out <= 0:
        return items, 0, ()
    last = most // 4
    return items[: most - last], left_out, items[len(items) - last :]


def first_lines(text: str, rest: str, most: int = MOST_LINES) -> str:
    """Return the first lines of a text.

    Where more are left out, a last line says how to see the rest.
    """
    lines = text.split("\n")
    if len(lines) <= most:
        return text
    left_out = len(lines) - most + 1
    return "\n".join([*lines[: most - 1], f"... {left_out:,} more lines: {rest}"])


def one_line(text: str, most: int = 80) -> str:
    """Return the text on one line, cut to so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


Line: TypeAlias = tuple[tuple[str, str], ...]
"""A line of text: pieces, each with what it is, ``"op"`` or ``"quiet"``, or an empty string."""


@dataclasses.dataclass(frozen=True)
class Card:
    """Hold what is shown of an object. All texts are plain: whoever writes them escapes them."""

    title: str
    facts: tuple[str, ...] = ()
    """Short phrases, shown beside the title."""
    body: tuple[Item, ...] = ()
    """Lines and cards, folded away unless ``open``."""
    open: bool = True
    picture: str = ""
    """Markup of the library's own making, such as that of ``curve``."""
    sketch: str = ""
    """The picture in characters, for terminals."""


Item: TypeAlias = "Line | Card"


def line(text: str, kind: str = "") -> Line:
    """Return a line of one piece."""
    return ((text, kind),)


def prune(card: Card, most: int, rest: str = "") -> Card:
    """Return the card with at most about so many lines.

    What is deepest goes first; then, of what is left, all but the first lines. ``rest`` says how to
    see what is left out.
    """
    depth = _depth(card)
    while depth > 1 and _lines(card, depth) > most:
        depth -= 1
    left = [most]
    return _cut(card, depth, left, f": {rest}" if rest else "")


def _depth(card: Card) -> int:
    """Say how many cards are one inside the other."""
    return 1 + max([_depth(x) for x in card.body if isinstance(x, Card)], default=0)


def _lines(card: Card, depth: int) -> int:
    """Say how many lines it has, down to this depth."""
    if not depth:
        return 1
    return 1 + sum([_lines(x, depth - 1) if isinstance(x, Card) else 1 for x in card.body])


def _cut(card: Card, depth: int, left: list[int], rest: str) -> Card:
    """Give the card down to this depth, with so many lines left; ``left`` is what then remains."""
    left[0] -= 1
    if not depth or not card.body:
        return dataclasses.replace(card, body=())
    return dataclasses.replace(card, body=tuple(_keep(card.body, depth, left, rest)))


def _keep(body: Sequence[Item], depth: int, left: list[int], rest: str) -> Iterator[Item]:
    for k, item in enumerate(body):
        if left[0] <= 0:
            yield line(f"... {len(body) - k:,} more{rest}", "quiet")
            return
        if isinstance(item, Card):
            yield _cut(item, depth - 1, left, rest)
        else:
            left[0] -= 1
            yield item


# Cards of objects whose fields are trees of arrays, such as states of optimizers. Their ``repr``
# says of large trees only how much there is.


_FEW_LEAVES, _FEW_ELEMENTS = 12, 60
"""The most leaves, and the most elements of all of them, of what is printed whole."""


def text_of(x: Any) -> str:
    """Write such an object: whole if it is small, else with sizes in place of arrays."""
    show = repr if _is_small(x) else short
    inside = ", ".join([f"{name}={show(value)}" for name, value in _fields(x)])
    return f"{type(x).__name__}({inside})"


def card_of(x: Any) -> Card:
    """Show its fields, and the arrays in each."""
    body: list[Item] = []
    for name, value in _fields(x):
        leaves = tree.leaves(value)
        if len(leaves) == 1 and leaves[0] is value:
            body.append(line(f"{name}: {short(value)}"))
        else:
            lines = zip(tree.paths(value), leaves, strict=True)
            inside = tuple([line(f"{path}  {type_words(leaf)}") for path, leaf in lines])
            body.append(Card(name, (amount(value),), inside, open=False))
    return Card(type(x).__name__, (amount(x),), tuple(body))


def _fields(x: Any) -> list[tuple[str, Any]]:
    if dataclasses.is_dataclass(x):
        return [(f.name, getattr(x, f.name)) for f in dataclasses.fields(x) if f.repr]
    return list(zip(x._fields, x, strict=True))


def _is_small(x: Any) -> bool:
    leaves = tree.leaves(x)
    return len(leaves) <= _FEW_LEAVES and numbers_in(leaves) <= _FEW_ELEMENTS


def short(x: Any) -> str:
    """Return a tree on one line: as it is if it is small, and otherwise how much is in it."""
    if isinstance(x, _ARRAYS):
        return type_words(x) if numbers_in([x]) > 4 else one_line(repr(x))
    has_arrays = any([isinstance(leaf, _ARRAYS) for leaf in tree.leaves(x)])
    return f"<{type(x).__name__} of {amount(x)}>" if has_arrays else one_line(repr(x))


def amount(x: Any) -> str:
    """Say how much is in a tree: ``3 arrays, 1,200 numbers, 4.8 kB``."""
    arrays = [leaf for leaf in tree.leaves(x) if isinstance(leaf, _ARRAYS)]
    count = counted(len(arrays), "array")
    if not arrays:
        return count
    return f"{count}, {counted(numbers_in(arrays), 'number')}, {size(bytes_in(arrays))}"


_ARRAYS = (Value, np.ndarray)


def numbers_in(leaves: Iterable[Any]) -> int:
    """Return the elements of those leaves that are arrays; sizes that vary do not count."""
    return sum([x.size for x in leaves if isinstance(x, _ARRAYS) and isinstance(x.size, int)])


def bytes_in(leaves: Iterable[Any]) -> int:
    """Return the bytes of the same."""
    return sum([numbers_in([x]) * x.dtype.itemsize for x in leaves if isinstance(x, _ARRAYS)])


def type_words(x: Any) -> str:
    """Return the type of an array, or another leaf as it is."""
    if isinstance(x, np.ndarray):
        return f"NumPy {x.dtype}[{','.join(map(str, x.shape))}]"
    is_array = isinstance(x, Value) and not isinstance(x, Tracer)
    return repr(x.type) if is_array else one_line(repr(x))


# Cards of programs: the lines, those of programs inside folded.


_MOST = 400
"""The most lines that are shown."""

_Printed = tuple[int, str, str, str]


def program_card(program: Program) -> Card:
    """Return the program, with the names of operations set apart."""
    lines = lines_of(program)
    first = list(itertools.islice(lines, _MOST))
    body = _fold(first, 0)
    if next(lines, None) is not None:
        body.append(line("... there is more: print(program) shows all of it", "quiet"))
    facts = (
        counted(len(program.inputs), "input"),
        counted(len(program.equations), "equation"),
        counted(len(program.outputs), "output"),
    )
    return Card(f"Program {program.name}", facts, tuple(body))


def _fold(lines: list[_Printed], depth: int) -> list[Item]:
    """Return the lines of this depth and the next; those that are deeper as cards."""
    body: list[Item] = []
    # A program's first line is at its own depth, its equations one deeper, and what they hold
    # two deeper: a line with a name, and below it the lines of another program.
    start = 0
    while start < len(lines):
        level = lines[start][0]
        if level <= depth + 1:
            body.append(_line(lines[start], depth))
            start += 1
            continue
        end = start + 1
        while end < len(lines) and lines[end][0] > level:
            end += 1
        title = lines[start][1].rstrip(":")
        inner = _fold(lines[start + 1 : end], level + 1)
        body.append(Card(title, (), tuple(inner), open=False))
        start = end
    return body


def _line(printed: _Printed, depth: int) -> Line:
    level, before, name, after = printed
    words = line("  " * (level - depth) + before)
    return (*words, (name, "op"), (after, "")) if name else words


# HTML


MOST_ON_PAGE = 600
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
    body = _html_of_card(prune(card, MOST_ON_PAGE))
    return f'<div class="stretto"><style>{style}</style>{body}</div>'


# Of control characters HTML allows these alone; half a surrogate pair cannot be encoded at all.
_FORBIDDEN = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]")


def escape_html(text: str) -> str:
    """Return the text as characters of a page, whatever is in it; cut where it is very long."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}…"
    return html.escape(_FORBIDDEN.sub("\ufffd", text))


def _html_of_card(card: Card) -> str:
    head = f"<b>{escape_html(card.title)}</b>"
    if card.facts:
        head += f' <span class="quiet">{escape_html(" · ".join(card.facts))}</span>'
    figure = f"<figure>{card.picture}</figure>" if card.picture else ""
    if not card.body and not figure:
        return f'<div class="leaf">{head}</div>'
    opened = " open" if card.open else ""
    inside = f"{figure}{''.join(_html_of_items(card.body))}"
    return f"<details{opened}><summary>{head}</summary>{inside}</details>"


def _html_of_items(body: Sequence[Item]) -> Iterable[str]:
    """Write the items, lines that follow one another as one block."""
    for are_cards, items in itertools.groupby(body, lambda item: isinstance(item, Card)):
        if are_cards:
            yield from [_html_of_card(item) for item in items if isinstance(item, Card)]
        else:
            lines = [_html_of_line(item) for item in items if not isinstance(item, Card)]
            yield f"<pre>{chr(10).join(lines)}</pre>"


def _html_of_line(line: Line) -> str:
    return "".join(
        [
            f'<span class="{kind}">{escape_html(text)}</span>' if kind else escape_html(text)
            for text, kind in line
        ]
    )


# Terminals


rich_text, rich_tree = LazyModule("rich.text"), LazyModule("rich.tree")
_STYLES = {"op": "cyan", "quiet": "dim", "": ""}


def renderable_of(card: Card) -> Any:
    """Return what rich prints for the card: a tree, or a line where there is nothing below it."""
    card = prune(card, MOST_LINES - 1)
    root = rich_tree.Tree(_text_of_head(card), guide_style="dim", hide_root=False)
    _fill(root, card)
    return root


def _fill(root: Tree, card: Card) -> None:
    """Hang the body below, lines that follow one another in one piece."""
    block: list[Text] = [rich_text.Text(card.sketch, style="cyan")] if card.sketch else []
    for item in card.body:
        if isinstance(item, Card):
            if block:
                root.add(rich_text.Text("\n").join(block))
                block = []
            _fill(root.add(_text_of_head(item)), item)
        else:
            block.append(_text_of_line(item))
    if block:
        root.add(rich_text.Text("\n").join(block))


def _text_of_head(card: Card) -> Text:
    head = rich_text.Text(card.title, style="bold")
    if card.facts:
        head.append(f" {' · '.join(card.facts)}", style="not bold dim")
    return head


def _text_of_line(line: Line) -> Text:
    text = rich_text.Text(no_wrap=True, overflow="ellipsis")
    for piece, kind in line:
        text.append(piece, style=_STYLES[kind])
    return text
