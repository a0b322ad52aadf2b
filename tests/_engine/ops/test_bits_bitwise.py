"""Bits and truth values: the laws, special values, NumPy, and what is refused."""

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.ops import bits as ops
from stretto.laws import b1, check_special, i8, i32, law, special_pairs, special_values, u32

BITS = {ops.And: ops.bitwise_and, ops.Or: ops.bitwise_or, ops.Xor: ops.bitwise_xor}
SHIFTS = {
    ops.ShiftLeft: ops.shift_left,
    ops.ShiftRightArithmetic: ops.shift_right_arithmetic,
    ops.ShiftRightLogical: ops.shift_right_logical,
}
# vmap treats all dtypes alike
ONCE = {t: {"mapped": False} for t in (u32, i8, b1)}

LAWS = [
    *(
        law(p, f, t(5), t(5), **ONCE.get(t, {}))
        for p, f in BITS.items()
        for t in (i32, u32, i8, b1)
    ),
    *(law(ops.Not, ops.bitwise_not, t(2, 3), **ONCE.get(t, {})) for t in (i32, u32, b1)),
    *(
        law(p, f, t(9), t(9).within(0, 40), **ONCE.get(t, {}))
        for p, f in SHIFTS.items()
        for t in (i32, u32, i8)
    ),
    *(
        law(ops.PopulationCount, ops.population_count, t(9), **ONCE.get(t, {}))
        for t in (i32, u32, i8)
    ),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


def by_name(table):
    return {f.__name__: f for f in table.values()}


@pytest.mark.parametrize("name", ["int4", "uint4", "int8", "uint8", "int32", "uint64"])
def test_special_integers(name):
    """The special values contain shifts by the width and more, and by negative counts."""
    dtype = np.dtype(name)
    check_special(by_name(BITS), *special_pairs(name))
    one = {"not": ops.bitwise_not, "population_count": ops.population_count}
    check_special(one, special_values(name))
    width = ml_dtypes.iinfo(dtype).bits
    low = int(ml_dtypes.iinfo(dtype).min)
    near = [(n - low) % 2**width + low for n in (width - 1, width, width + 1, 0, 1, -1)]
    counts = np.array(near, object).astype(dtype)
    x, y = np.meshgrid(special_values(name), counts)
    check_special(by_name(SHIFTS), x.ravel(), y.ravel())


def test_shifts_beyond_the_width():
    x, y = np.array([-5, 5, -5], np.int8), np.array([8, 100, -1], np.int8)
    np.testing.assert_array_equal(ops.shift_left(x, y), [0, 0, 0])
    np.testing.assert_array_equal(ops.shift_right_logical(x, y), [0, 0, 0])
    np.testing.assert_array_equal(ops.shift_right_arithmetic(x, y), [-1, 0, -1])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ops.bitwise_and(1.5, 1), "and: expected an array of kind bool or int or uint"),
        (lambda: ops.shift_left(True, True), "shift_left: expected an array of kind int or uint"),
        (lambda: ops.population_count(1.0), "population_count: expected an array of kind int or"),
    ],
)
def test_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call()
