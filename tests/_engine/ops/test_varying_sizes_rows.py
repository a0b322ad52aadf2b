"""Rows of examples, one behind the other, and rectangles."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.varying_sizes import (
    examples_of_rows,
    for_each_row,
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
