"""Rows of examples, one behind the other, and rectangles."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops import varying_sizes
from stretto._engine.ops.varying_sizes import (
    clear_rest,
    examples_of_rows,
    for_each_row,
    rows_at,
    starts,
    to_rectangle,
    to_rows,
)

LENGTHS = np.array([2, 3, 1], np.int32)
ROWS = np.arange(16.0, dtype=np.float32).reshape(8, 2)  # six rows, and room for two more


def test_where_rows_are():
    lengths = snp.asarray(LENGTHS)
    np.testing.assert_array_equal(starts(lengths), [0, 2, 5])
    examples = examples_of_rows(lengths, 8)
    np.testing.assert_array_equal(examples, [0, 0, 1, 1, 1, 2, 3, 3])
    of_each = for_each_row(snp.array([[1.0], [2.0], [3.0]]), examples)
    np.testing.assert_array_equal(of_each[:6, 0], [1, 1, 2, 2, 2, 3])


def test_there_and_back():
    def both(rows, lengths):
        rectangle = to_rectangle(rows, lengths, 3)
        return rectangle, to_rows(rectangle, lengths, examples_of_rows(lengths, 8))

    for run in (both, st.jit(both)):
        rectangle, rows = run(snp.asarray(ROWS), snp.asarray(LENGTHS))
        for row, part in zip(rectangle, np.split(ROWS[:6], [2, 5]), strict=True):
            np.testing.assert_array_equal(row[: len(part)], part)
        np.testing.assert_array_equal(rows[:6], ROWS[:6])


@pytest.mark.parametrize("compared", [9, 8, 24, 23])
def test_where_rows_are_by_running_sums(compared, monkeypatch):
    """Of three examples in eight rows there are 9 and 24 comparisons, or else sums."""
    monkeypatch.setattr(varying_sizes, "_COMPARED", compared)
    lengths = snp.array([2, 0, 4])
    np.testing.assert_array_equal(starts(lengths), [0, 2, 2])
    np.testing.assert_array_equal(examples_of_rows(lengths, 8), [0, 0, 2, 2, 2, 2, 3, 3])
    program = st.make_graph(lambda x: examples_of_rows(x, 8))(lengths)
    names = [equation.primitive.name for equation in program.equations]
    assert names.count("cumsum") == (compared < 9) + (compared < 24)


def test_what_is_behind_the_last_example_is_cleared():
    rows = clear_rest(snp.asarray(ROWS), snp.asarray(LENGTHS))
    np.testing.assert_array_equal(rows, np.where(np.arange(8)[:, None] < 6, ROWS, 0))


def test_rows_out_of_range_are_the_last_or_zeros():
    places = snp.array([[1, 9], [-1, 7]])
    clipped = rows_at(snp.asarray(ROWS), places)
    np.testing.assert_array_equal(clipped, ROWS[[[1, 7], [0, 7]]])
    filled = rows_at(snp.asarray(ROWS), places, "fill")
    inside = np.array([[True, False], [False, True]])[..., None]
    np.testing.assert_array_equal(filled, np.where(inside, clipped, 0))
