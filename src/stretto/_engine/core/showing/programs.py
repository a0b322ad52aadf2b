"""What is shown of a program: its lines, those of programs inside it folded."""

from __future__ import annotations

import itertools

from stretto._engine.core.program import Program, lines_of
from stretto._engine.core.showing.card import Card, Item, Line, line
from stretto._engine.core.showing.words import counted

_MOST = 400
"""The most lines that are shown."""

_Printed = tuple[int, str, str, str]


def card_of(program: Program) -> Card:
    """The program, with the names of operations set apart."""
    lines = lines_of(program)
    first = list(itertools.islice(lines, _MOST))
    body = _folded(first, 0)
    if next(lines, None) is not None:
        body.append(line("... there is more: print(program) shows all of it", "quiet"))
    facts = (
        counted(len(program.inputs), "input"),
        counted(len(program.equations), "equation"),
        counted(len(program.outputs), "output"),
    )
    return Card(f"Program {program.name}", facts, tuple(body))


def _folded(lines: list[_Printed], depth: int) -> list[Item]:
    """The lines of this depth and the next; those that are deeper as cards."""
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
        inner = _folded(lines[start + 1 : end], level + 1)
        body.append(Card(title, (), tuple(inner), open=False))
        start = end
    return body


def _line(printed: _Printed, depth: int) -> Line:
    level, before, name, after = printed
    words = line("  " * (level - depth) + before)
    return (*words, (name, "op"), (after, "")) if name else words
