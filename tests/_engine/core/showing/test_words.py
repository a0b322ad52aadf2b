"""Sizes and counts in words, and texts that stay short."""

import pytest

from stretto._engine.core.showing.words import (
    MOST_LINES,
    counted,
    ends,
    first_lines,
    number,
    one_line,
    size,
)


def test_sizes():
    assert [size(n) for n in (0, 999, 1500, 2.5e6, 12e9)] == [
        "0 bytes",
        "999 bytes",
        "1.5 kB",
        "2.5 MB",
        "12.0 GB",
    ]


def test_numbers_and_counts():
    assert [number(x) for x in (0.0, 1 / 3, 12345.0)] == ["0", "0.3333", "1.234e+04"]
    assert counted(1, "array") == "1 array" and counted(2000, "array") == "2,000 arrays"


@pytest.mark.parametrize("count", [0, 1, 5, 6, 7, 100])
def test_ends_are_all_or_so_many(count):
    first, left_out, last = ends(list(range(count)), 6)
    shown = [*first, *last]
    assert len(shown) == min(count, 6) and left_out == count - len(shown)
    assert shown[:1] == list(range(count))[:1] and shown[-1:] == list(range(count))[-1:]


def test_lines_say_how_many_are_left_out():
    assert first_lines("a\nb", "print it", 2) == "a\nb"
    assert first_lines("a\nb\nc", "print it", 2) == "a\n... 2 more lines: print it"
    assert first_lines("\n" * 1000, "print it").count("\n") == MOST_LINES - 1


def test_one_line():
    assert one_line("a\n  b") == "a b"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"
