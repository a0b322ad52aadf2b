"""Sorts as they are compiled: by comparators and by integer keys, the same order as NumPy's."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
from stretto._engine.core.program import Equation, Program, Var
from stretto._engine.core.types import array_type
from stretto._engine.lowering.stablehlo import lower
from stretto._engine.ops.sort_lowering import canonical_key, lower_sort, order_by_value
from stretto._engine.xla.pjrt import compile_text, to_device, to_host

NUMBERS = [2.0, -0.0, np.nan, 0.0, -np.inf, 1e-30, -3.5, np.inf, -np.nan, 2.0]


def run(build, *arrays, outs=None):
    """What is written by ``build``, compiled and run."""

    class Operation:
        multiple, effects, endless = True, frozenset(), False
        lower = staticmethod(build)

    inputs = [Var(array_type(a.shape, a.dtype)) for a in arrays]
    outputs = [Var(t) for t in (outs or [v.type for v in inputs])]
    program = Program(inputs, [Equation(Operation, inputs, outputs)], outputs)
    buffers = [to_device(a, v.type, True) for a, v in zip(arrays, inputs, strict=True)]
    buffers_out = compile_text(lower(program), program.out_types)(buffers)
    return [to_host(x) for x in buffers_out]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, ml_dtypes.bfloat16])
def test_one_operand_of_floats_negative_zero_first_and_nan_last(dtype):
    x = np.array(NUMBERS).astype(dtype)
    (got,) = run(lambda b, x: lower_sort(b, [x], 0, 1, True), x)
    want = np.sort(x.astype(float))
    np.testing.assert_array_equal(got.astype(float), want)
    assert np.signbit(got[2].astype(float)) and not np.signbit(got[3].astype(float))
    assert got.dtype == dtype


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.bool_])
def test_one_operand_of_other_kinds(dtype):
    x = np.array([[3, 0, 200, 1], [5, 5, 0, 127]]).astype(dtype)
    for axis in (0, 1):
        (got,) = run(lambda b, x, axis=axis: lower_sort(b, [x], axis, 1, False), x)
        np.testing.assert_array_equal(got, np.sort(x, axis))


def test_several_keys_and_what_they_carry_along():
    first, second = np.array([1, 0, 1, 0, 1], np.int32), np.array(NUMBERS[:5], np.float32)
    place = np.arange(5, dtype=np.int32)
    got = run(lambda b, *xs: lower_sort(b, xs, 0, 2, True), first, second, place)
    order = np.lexsort((second, first))
    for a, x in zip(got, (first, second, place), strict=True):
        np.testing.assert_array_equal(a, x[order])


def test_complex_numbers_by_both_parts():
    z = np.array([1 + 2j, 1 - 2j, 0 + 9j, np.nan], np.complex64)
    (got,) = run(lambda b, z: lower_sort(b, [z], 0, 1, True), z)
    np.testing.assert_array_equal(got, np.sort(z))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.bool_])
def test_the_stable_order_of_short_keys(dtype):
    x = np.array([NUMBERS, NUMBERS[::-1]])
    x = np.nan_to_num(x, posinf=9, neginf=-9).astype(dtype) if dtype not in (
        np.float32, np.float16) else x.astype(dtype)  # fmt: skip
    int32 = array_type(x.shape, np.dtype(np.int32))
    for axis in (0, 1):
        (order,) = run(lambda b, x, axis=axis: [order_by_value(b, [x, x], axis)], x, outs=[int32])
        np.testing.assert_array_equal(order, np.argsort(x, axis, kind="stable"))


def test_keys_that_are_too_long_or_carry_nothing_have_none():
    def build(b, x):
        assert order_by_value(b, [x], 0) is None
        wide = b.convert(x, np.dtype(np.float64))
        assert order_by_value(b, [wide, x], 0) is None
        return [x]

    run(build, np.ones(3, np.float32))


def test_keys_have_one_zero_and_one_nan():
    x = np.array([0.0, -0.0, np.nan, -np.nan, 1.5], np.float32)
    (key,) = run(lambda b, x: [canonical_key(b, x)], x)
    bits = key.view(np.int32)
    assert bits[0] == bits[1] == 0 and bits[2] == bits[3] and key[4] == 1.5
    (kept,) = run(lambda b, x: [canonical_key(b, x, zeros=False)], x)
    assert np.signbit(kept[1])


def test_the_public_functions_agree_at_rest_and_compiled():
    x = np.array(NUMBERS, np.float32)
    np.testing.assert_array_equal(st.jit(st.numpy.argsort)(x), st.numpy.argsort(x))
