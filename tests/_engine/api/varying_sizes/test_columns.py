"""Lists, series and columns of tables as arrays."""

import datetime as dt

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.varying_sizes.columns import as_column, grouped
from tests.frames import Frame, Series, Unknown

column = lambda x: as_column(x, "f", "x")
groups = lambda table, by="id", columns="x": grouped(table, by, columns, "f")


@pytest.mark.parametrize(
    ("x", "dtype", "shape"),
    [
        ([1, 2], np.int32, (2,)),
        ([1, 2.5], np.float32, (2,)),
        (((1.0, 2.0), (3.0, 4.0)), np.float32, (2, 2)),
        ([True], np.bool_, (1,)),
        ([1j], np.complex64, (1,)),
        ([snp.ones(2), snp.ones(2)], np.float32, (2, 2)),
        (Series([1, 2], np.int64), np.int32, (2,)),
        (Series([1, 2.0], object), np.float32, (2,)),
        (Series([], object), np.float32, (0,)),
        (np.ones(3, ml_dtypes.bfloat16), ml_dtypes.bfloat16, (3,)),
        (snp.ones(3), np.float32, (3,)),
    ],
)
def test_numbers(x, dtype, shape):
    value = column(x)
    assert value.dtype == dtype and value.shape == shape


@pytest.mark.parametrize(
    ("x", "kind", "match"),
    [
        (["a", "b"], TypeError, r"f: x must hold numbers, got 'a' .* number the strings first"),
        (Series([1, "a"], object), TypeError, "got 'a' in dtype object: number the strings"),
        ([1.0, None], TypeError, "got None in dtype object: leave missing values out"),
        (Series([1, Unknown()], object), TypeError, "leave missing values out"),
        (Series([dt.date(2020, 1, 2)], "M8[D]"), TypeError, r"date\(2020.* convert times"),
        (Series([{}], object), TypeError, "got {} in dtype object: convert it"),
        ([2**80], TypeError, "convert it to a dtype of numbers"),
        (
            [2**40, 1],
            OverflowError,
            r"integers from 1 to 1099511627776, int64\[2\], which do not fit in int32",
        ),
        ([[1], [2, 3]], ValueError, "list of lists that differ in shape.* pad them"),
        (Series([1, 2])._elements.view(np.ma.MaskedArray), TypeError, "mask"),
        ("ab", TypeError, "must be an array or a number; got builtins.str"),
    ],
)
def test_what_is_refused(x, kind, match):
    with pytest.raises(kind, match=match):
        column(x)


def test_lists_of_different_lengths_in_a_series():
    x = np.empty(2, object)
    x[:] = [[1], [2, 3]]
    with pytest.raises(TypeError, match="flatten or pad what is in it"):
        column(x)


def test_large_integers_with_64_bits():
    with st.enable_x64():
        assert column([2**40]).dtype == np.int64


@pytest.mark.parametrize(
    "ids",
    [
        [7, 3, 7, 5],
        ["c", "a", "c", "b"],
        np.array(["c", "a", "c", "b"], object),
        np.array(["2020-03", "2020-01", "2020-03", "2020-02"], "M8[M]"),
        snp.array([2.5, 0.5, 2.5, 1.5]),
        Series([b"c", b"a", b"c", b"b"]),
        [(1, 2)[i] for i in (0, 0, 0, 0)],
    ],
)
def test_rows_of_one_id_are_together_and_in_their_order(ids):
    rows, counts, weak = groups({"id": ids, "x": [10, 11, 12, 13]})
    if len(counts) == 1:
        assert rows.tolist() == [10, 11, 12, 13] and counts.tolist() == [4]
    else:
        assert rows.tolist() == [11, 13, 10, 12] and counts.tolist() == [1, 1, 2]
    assert rows.dtype == np.int32 and not weak


def test_several_columns_are_the_last_axis():
    table = {"id": [1, 0], "x": [1, 2], "y": [True, False], "z": np.array([0.5, 1.5])}
    rows, _, _ = groups(table, columns=["x", "y", "z"])
    np.testing.assert_array_equal(rows, [[2, 0, 1.5], [1, 1, 0.5]])
    assert rows.dtype == np.float32
    assert groups(table, columns=["x"])[0].shape == (2, 1)
    assert groups(table, columns=("x", "x"))[0].shape == (2, 2)
    wide = {"id": [1, 0], "x": np.ones((2, 3)), "y": np.ones((2, 3))}
    assert groups(wide)[0].shape == (2, 3) and groups(wide, columns=["x", "y"])[0].shape == (
        2,
        3,
        2,
    )


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (
            lambda: groups({"i": [1], "x": [2]}),
            ValueError,
            "by is 'id', and the table has 'i', 'x'",
        ),
        (lambda: groups(Frame({"id": [1]})), ValueError, "columns is 'x', and the table has 'id'"),
        (lambda: groups({"id": [1], "x": [2]}, columns=["x", 3]), ValueError, "columns is 3, and"),
        (lambda: groups({"id": [1]}, columns=[]), ValueError, "a list of names, got none"),
        (lambda: groups([1, 2]), TypeError, "a DataFrame or a dictionary of columns; got list"),
        (lambda: groups({"id": [], "x": []}), ValueError, r"one row or more; got shape \(0,\)"),
        (lambda: groups({"id": [[1]], "x": [1]}), ValueError, r"one row or more; got shape \(1, 1"),
        (
            lambda: groups({"id": ["a", None], "x": [1, 2]}),
            ValueError,
            r"no id in row 1 \(1 in all",
        ),
        (lambda: groups({"id": [np.nan, 1], "x": [1, 2]}), ValueError, "no id in row 0"),
        (
            lambda: groups({"id": Series([1, Unknown()], object), "x": [1, 2]}),
            ValueError,
            "no id in row 1",
        ),
        (
            lambda: groups({"id": np.array(["NaT", "2020"], "M8[ns]"), "x": [1, 2]}),
            ValueError,
            "no id in row 0",
        ),
        (
            lambda: groups({"id": np.array([1, "a"], object), "x": [1, 2]}),
            TypeError,
            "cannot be sorted",
        ),
        (
            lambda: groups({"id": [1, 2], "x": ["a", "b"]}),
            TypeError,
            "column 'x' must hold numbers",
        ),
        (lambda: groups({"id": [1, 2], "x": [1]}), ValueError, r"2 ids in 'id', and column 'x' is"),
        (
            lambda: groups({"id": [1, 2], "x": [1, 2], "y": np.ones((2, 2))}, columns=["x", "y"]),
            ValueError,
            r"column 'y' is float32\[2,2\]",
        ),
    ],
)
def test_tables_that_are_refused(call, kind, match):
    with pytest.raises(kind, match=match):
        call()
