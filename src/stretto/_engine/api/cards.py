"""Cards, which notebooks and terminals show, of jitted functions, reports, and ragged arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core.cards import (
    Card,
    Item,
    bars,
    counted,
    ends,
    first_lines,
    line,
    one_line,
    size,
    sketch,
)
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.types import is_float0

if TYPE_CHECKING:  # they name this module
    from stretto._engine.api.jit.jit import Jitted
    from stretto._engine.api.varying_sizes.ragged import Ragged
    from stretto._engine.api.varying_sizes.sizes import Buckets

_MOST = 20
"""The most signatures, lengths or buckets that are shown."""


def card_of_jitted(jitted: Jitted[..., Any]) -> Card:
    """Return the signatures that a function was traced for, and how each is run."""
    entries = list(jitted._entries.items())
    settings = [
        f"{name} {', '.join(map(str, (*chosen.numbers, *chosen.names)))}"
        for name, chosen in (("static", jitted._static), ("donated", jitted._donated))
        if chosen
    ]
    body: list[Item] = []
    first, left_out, last = ends(entries, _MOST)
    for k, (_, entry) in enumerate((*first, *last)):
        if left_out and k == len(first):
            body.append(line(f"... {left_out:,} more", "quiet"))
        how = "compiled" if entry.is_compiled else "traced"
        if entry.is_interpreted:
            how = "interpreted"
        operations = counted(len(entry.program.equations), "operation")
        kind = one_line(f"({entry.signature()})", 160)
        body.append(((kind, ""), (f"  {how}, {operations}", "quiet")))
    count = counted(len(entries), "signature") if entries else "not called yet"
    of_buckets = getattr(jitted, "_programs", None)  # of one whose axes have any size
    if of_buckets is not None:
        settings.append(f"compiled for {counted(len(of_buckets), 'bucket')}")
    return Card(f"jitted {jitted._name}", (count, *settings), tuple(body))


def card_of_report(report: Any) -> Card:
    """Return that of a report that prints itself, folding what is indented below a line."""
    first, *rest = str(report).split("\n")
    body: list[Item] = []
    start = 0
    while start < len(rest):
        end = start + 1
        while end < len(rest) and rest[end].startswith("  "):
            end += 1
        inside = tuple([line(text.removeprefix("  ")) for text in rest[start + 1 : end]])
        body.append(Card(rest[start], (), inside) if inside else line(rest[start]))
        start = end
    return Card(first, (), tuple(body))


def text_of_report(report: Any) -> str:
    """Return the ``repr`` of a report: its text, cut where it is long."""
    return first_lines(str(report), "print it, for all of it")


def card_of_ragged(ragged: Ragged) -> Card:
    """Show the number of arrays, and their lengths."""
    lengths: Any = ragged._lengths
    inner = ",".join(map(str, ("*", *ragged._inner)))
    facts = [f"{ragged.dtype.name}[{len(ragged)},{inner}]"]
    if isinstance(lengths, Tracer) or is_float0(lengths):
        return Card("Ragged", (*facts, repr(ragged).rsplit(", ", 1)[1].rstrip(")")))
    if any([x.is_deleted() for x in (lengths, ragged._values) if hasattr(x, "is_deleted")]):
        return Card("Ragged", (*facts, "deleted or donated"))
    known = np.asarray(ragged._known())
    facts += [counted(int(known.sum()), "element"), size(ragged.nbytes)]
    if not len(known):
        return Card("Ragged", tuple(facts))
    first, left_out, last = ends(known.tolist(), _MOST)
    middle = [f"... {left_out:,} more ..."] if left_out else []
    words = ", ".join([*map(str, first), *middle, *map(str, last)])
    numbers = known.astype(np.float64)
    body = (
        line(f"lengths from {known.min()} to {known.max()}, mean {known.mean():.4g}", "quiet"),
        line(words),
    )
    picture = bars(numbers, 20)
    return Card("Ragged", tuple(facts), body, picture=picture, sketch=sketch(numbers))


def card_of_buckets(buckets: Buckets) -> Card:
    """Return the first of the buckets."""
    if buckets._last is not None:
        first, left_out, last = ends(buckets._sizes, _MOST)
        words = ", ".join([*map(str, first), *([f"... {left_out:,} more"] * bool(left_out))])
        words = ", ".join([words, *map(str, last)])
    else:
        sizes = [buckets.size(1)]
        while len(sizes) < _MOST:
            sizes.append(buckets.size(sizes[-1] + 1))
        words = f"{', '.join(map(str, sizes))}, ..."
    return Card(one_line(repr(buckets)), (), (line(f"sizes {words}"),))
