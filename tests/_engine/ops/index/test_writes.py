"""Writes to parts of arrays: what changes nothing, and what reads find behind them."""

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
    "slice": lambda x, i: lax.dynamic_update_slice(x, snp.array([5.0]), (i,)),
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


@pytest.mark.parametrize("name", WRITTEN)
def test_what_changes_nothing_changes_no_bit(name):
    program, (write,) = equations(WRITTEN[name], X, 2)
    for i in range(len(X)):
        values = operands(program, write, [snp.asarray(X), snp.asarray(i)])
        at = update_of(write.primitive)
        values[at] = changes_nothing(write.primitive, *values)
        got = np.asarray(write.primitive(*values))
        np.testing.assert_array_equal(got.view(np.int32), X.view(np.int32))


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
    for i in (-1, 0, 2, 7, 8, 12):
        for j in (-1, 0, 2, 3, 7, 8, 12):
            args = [snp.asarray(X), snp.asarray(i), snp.asarray(j)]
            x, *rest = operands(program, write, args)
            _, *places = operands(program, reading, args)
            value = reading.primitive(x, *places)
            got = seen_behind(reading.primitive, write.primitive, x, value, places, rest)
            np.testing.assert_array_equal(got, np.ravel(both(*args)).reshape(got.shape))


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
