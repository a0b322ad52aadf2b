"""Writes to parts of arrays: what changes nothing, and what reads find behind them."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import Program
from stretto._engine.ops.index.writes import (
    READS,
    WRITES,
    changes_nothing,
    is_write,
    large,
    seen_behind,
    sees_behind,
    small_part,
    update_of,
)

X = np.array([-0.0, 1.5, np.inf, np.nan, -2.0, 0.0, 3.0, 4.0], np.float32)

WRITTEN = {
    "set": lambda x, i: x.at[i].set(5.0),
    "add": lambda x, i: x.at[i].add(5.0),
    "subtract": lambda x, i: x.at[i].subtract(5.0),
    "multiply": lambda x, i: x.at[i].multiply(5.0),
    "min": lambda x, i: x.at[i].min(1.0),
    "max": lambda x, i: x.at[i].max(1.0),
    "clipped": lambda x, i: x.at[i].add(5.0, mode="clip"),
    "slice": lambda x, i: lax.dynamic_update_slice(x, snp.full(1, 5.0, x.dtype), (i,)),
}
READ = {
    "clip": lambda x, j: x[j],
    "fill": lambda x, j: x.at[j].get(mode="fill", fill_value=-7.0),
    "slice": lambda x, j: lax.dynamic_slice(x, (j,), (1,)),
}


def equations(f, *args):
    program = st.make_graph(f)(*args)
    found = [e for e in program.equations if isinstance(e.primitive, READS + WRITES)]
    return program, found


def operands(program, equation, args):
    wanted = Program(program.inputs, program.equations, equation.inputs)
    return evaluate(wanted, args)


ELEMENTS = {
    "float32": X,
    "float16": X.astype(np.float16),
    "bfloat16": X.astype(ml_dtypes.bfloat16),
    "complex64": np.array([complex(-0.0, -0.0), 1.5 - 2j, complex(0, -0.0)], np.complex64),
    "int32": np.array([0, 5, -7, 2**31 - 1], np.int32),
    "uint8": np.array([0, 5, 255], np.uint8),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in WRITTEN
        for dtype in ELEMENTS
        if not (dtype == "complex64" and name in ("min", "max", "multiply"))
    ],
)
def test_what_changes_nothing_changes_no_bit(name, dtype):
    x = ELEMENTS[dtype]
    program, (write,) = equations(WRITTEN[name], x, 2)
    for i in range(len(x)):
        values = operands(program, write, [snp.asarray(x), snp.asarray(i)])
        at = update_of(write.primitive)
        values[at] = changes_nothing(write.primitive, *values)
        got = np.asarray(write.primitive(*values))
        np.testing.assert_array_equal(got.view(np.uint8), x.view(np.uint8))


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("name", WRITTEN)
def test_a_read_behind_a_write_is_known_from_the_array_in_front_of_it(name, read):
    both = lambda x, i, j: READ[read](WRITTEN[name](x, i), j)
    program, (write, reading) = equations(both, X, 2, 3)
    types = [a.type for a in write.inputs]
    known = sees_behind(reading.primitive, write.primitive, types, reading.inputs[1].type.dtype)
    assert known == ((name == "slice") == (read == "slice"))
    if not known:
        return
    for i in (-1, 0, 1, 2, 7, 8, 12):
        for j in (-1, 0, 1, 2, 6, 7, 8, 12):
            args = [snp.asarray(X), snp.asarray(i), snp.asarray(j)]
            x, *rest = operands(program, write, args)
            _, *places = operands(program, reading, args)
            value = reading.primitive(x, *places)
            got = seen_behind(reading.primitive, write.primitive, x, value, places, rest)
            np.testing.assert_array_equal(got, np.ravel(both(*args)).reshape(got.shape))


MODES = [(read, written) for read in ("clip", "fill") for written in ("clip", "drop")]


def check_all(both, x, places):
    """Compare what is known behind each write with what is read, at each two places."""
    program, (write, reading) = equations(both, x, *places[:2])
    for i in places:
        for j in places:
            first, *rest = operands(program, write, [x, i, j])
            _, *at = operands(program, reading, [x, i, j])
            value = reading.primitive(first, *at)
            got = seen_behind(reading.primitive, write.primitive, first, value, at, rest)
            np.testing.assert_array_equal(got, np.ravel(both(x, i, j)).reshape(got.shape))


@pytest.mark.parametrize(("read", "written"), MODES)
def test_places_along_two_axes_are_each_held_to_its_own_bound(read, written):
    def both(x, i, j):
        return x.at[i[0], i[1]].set(9.0, mode=written).at[j[0], j[1]].get(mode=read)

    places = [snp.array(place) for place in ((1, 1), (1, 2), (1, 3), (2, 1), (2, 4))]
    check_all(both, snp.arange(6.0).reshape(2, 3), places)
    check_all(both, snp.arange(6.0).reshape(2, 3), [place[:, None] for place in places[1:4]])


@pytest.mark.parametrize(("read", "written"), MODES)
def test_a_place_in_an_array_and_one_for_each_example(read, written):
    both = lambda x, i, j: x.at[i].set(9.0, mode=written).at[j].get(mode=read)
    check_all(both, snp.arange(4.0), [snp.array([n]) for n in (1, 3, 4)])
    x, places = snp.arange(6.0).reshape(2, 3), [snp.array(n) for n in ([1, 2], [2, 3], [3, 1])]
    check_all(st.vmap(both), x, places)


def test_reads_of_other_windows_are_not_known():
    both = lambda x, i: x.at[i].set(1.0)[i, 0]
    _, (write, reading) = equations(both, snp.ones((4, 3)), 2)
    types = [a.type for a in write.inputs]
    assert not sees_behind(reading.primitive, write.primitive, types, reading.inputs[1].type.dtype)


def test_products_with_complex_numbers_always_change_something():
    program, (write,) = equations(WRITTEN["multiply"], snp.ones(3, "complex64"), 0)
    assert not is_write(write.primitive, program.in_types[0])
    program, (write,) = equations(WRITTEN["multiply"], snp.ones(3), 0)
    assert is_write(write.primitive, program.in_types[0])


def test_small_parts_are_of_arrays_of_a_kibibyte():
    part, quarter, half = (snp.ones(n).type for n in (1, 64, 128))
    assert large(snp.ones(256).type)
    assert not large(snp.ones(255).type)
    assert small_part(part, snp.ones(256).type)
    assert small_part(quarter, snp.ones(256).type)
    assert not small_part(half, snp.ones(256).type)
    assert not small_part(part, snp.ones(9).type)


def known(both, x, *places, place=None):
    """Say whether a read behind a write is known, by the program of both."""
    _, (write, reading) = equations(both, x, *places)
    place = reading.inputs[1].type.dtype if place is None else np.dtype(place)
    return sees_behind(reading.primitive, write.primitive, [a.type for a in write.inputs], place)


MATRIX = snp.ones((4, 3))
UPDATED = {
    "a row": (lambda x, i: lax.dynamic_index_in_dim(written_row(x, i), i), True),
    "a column behind a row": (
        lambda x, i: lax.dynamic_index_in_dim(written_row(x, i), i, 1),
        False,
    ),
    "a part of a row": (
        lambda x, i: lax.dynamic_slice(
            lax.dynamic_update_slice(x, snp.zeros((1, 2)), (i, 0)), (i, 0), (1, 2)
        ),
        False,
    ),
    "two rows": (
        lambda x, i: lax.dynamic_slice(
            lax.dynamic_update_slice(x, snp.zeros((2, 3)), (i, 0)), (i, 0), (2, 3)
        ),
        False,
    ),
    "all": (
        lambda x, i: lax.dynamic_slice(
            lax.dynamic_update_slice(x, snp.zeros((4, 3)), (i, 0)), (i, 0), (4, 3)
        ),
        True,
    ),
}


def written_row(x, i):
    return lax.dynamic_update_index_in_dim(x, snp.zeros(3), i, 0)


@pytest.mark.parametrize("name", UPDATED)
def test_slices_behind_slices_are_of_one_element_or_whole_along_each_axis(name):
    both, want = UPDATED[name]
    assert known(both, MATRIX, 2) is want
    assert not known(both, MATRIX, 2, place="int64")


def test_a_read_is_known_behind_one_window_alone():
    one, two = np.array([2]), np.array([2, 3])
    rows = lambda x, i: x.at[i].set(5.0)[i]
    assert known(rows, MATRIX, one)
    assert known(rows, MATRIX, 2)
    assert not known(rows, MATRIX, two)
    promised = lambda x, i: x.at[i].set(5.0, unique_indices=True)[i]
    assert known(promised, MATRIX, one)
    assert not known(promised, MATRIX, two)
    assert not known(promised, X, two)
    assert not known(rows, MATRIX, one, place="int64")
    assert not known(lambda x, i: x.at[i, :2].set(5.0)[i, :2], MATRIX, 2)
    assert not known(lambda x, i: x.at[i].set(5.0)[:, i], MATRIX, 2)


def test_truth_values_are_known_behind_what_sets_them_alone():
    x = snp.array([True, False, True])
    assert known(lambda x, i: x.at[i].set(False)[i], x, 1)
    for name in ("min", "max"):
        assert not known(lambda x, i, name=name: getattr(x.at[i], name)(False)[i], x, 1)


def test_examples_side_by_side_have_a_window_each():
    x, places = snp.ones((3, 5)), np.array([1, 2, 4])
    assert known(st.vmap(lambda x, i: x.at[i].set(5.0)[i]), x, places)
