"""Reductions: the laws, and NumPy."""

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.api.autodiff.derivatives import grad, jvp
from stretto._engine.api.autodiff.jacobians import hessian
from stretto._engine.api.jit.jit import jit
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type
from stretto._engine.ops.reducing.reduce import (
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceOr,
    ReduceProd,
    ReduceXor,
    greatest_below,
    least_above,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_xor,
)
from stretto.laws import b1, bf16, c64, f32, f64, i8, i32, law, u32
from tests.any_size import holds

SPECIAL = np.array(
    [[1, 1, 0, 0], [0, 2, 2, np.nan], [np.inf, -np.inf, 0, 1], [0, -0.0, 0, -0.0]], np.float32
)
NUMBERS = {ReduceMax: reduce_max, ReduceMin: reduce_min, ReduceProd: reduce_prod}
BITS = {ReduceAnd: reduce_and, ReduceOr: reduce_or, ReduceXor: reduce_xor}


def over(reduce, *axes):
    return lambda x: reduce(x, axes)


LAWS = [
    law(ReduceMin, over(reduce_min, 0), b1(2, 2)),
    *(
        law(primitive, over(reduce, *axes), case)
        for primitive, reduce in NUMBERS.items()
        for axes, case in [
            ((0, 2), f32(2, 3, 2)),
            ((1,), bf16(3, 2)),
            ((1,), i32(2, 2)),
            ((1,), u32(2, 2)),
            ((0,), i8(0, 2)),
            ((0,), f32(7)),
            ((1,), f32(3, 0)),
        ]
        if not (case.shape == (3, 0) and primitive is not ReduceProd)
    ),
    *(
        law(primitive, over(reduce, 1), case, derivative=False)
        for primitive, reduce in NUMBERS.items()
        for case in (f32(3, 0), SPECIAL)
    ),
    law(ReduceProd, over(reduce_prod, 1), c64(2, 3)),
    law(ReduceProd, over(reduce_prod, 1), np.array([[1, 0, 3], [0, 2, 0]], np.float32)),
    law(ReduceProd, over(reduce_prod, 0, 2), np.array([[[1.0, 0], [0, 2]], [[3, 4], [0, 5]]])),
    law(ReduceMax, over(reduce_max, 1), b1(2, 3)),
    law(ReduceMin, over(reduce_min, 1), f64(2, 3)),
    *(
        law(primitive, over(reduce, 1), case)
        for primitive, reduce in BITS.items()
        for case in (i32(2, 3), u32(2, 0), b1(3, 4), i8(2, 0))
    ),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@pytest.mark.parametrize("reduce", [reduce_max, reduce_min])
def test_ties_share_the_derivative(reduce):
    x = np.array([2, 5, 2, 5, 5, 2], np.float32)
    want = (x == np.asarray(reduce(x))) / np.float32(3)
    np.testing.assert_allclose(grad(reduce)(x), want)


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_product_with_zeros(zeros):
    x = np.array([3, 0.5, 2, 4, 5], np.float32)
    x[:zeros] = 0
    others = [np.prod(np.delete(x, i)) for i in range(5)]
    np.testing.assert_allclose(grad(reduce_prod)(x), others, rtol=1e-6)
    pairs = [[0 if i == j else np.prod(np.delete(x, (i, j))) for j in range(5)] for i in range(5)]
    np.testing.assert_allclose(hessian(reduce_prod)(x), pairs, rtol=1e-6)


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
def test_nan_has_the_derivative(run):
    """Forward and reverse alike: that of the mean of those that are NaN."""
    x = np.array([[1, np.nan, np.nan], [1, 3, 3]], np.float32)
    want = {reduce_max: [[0, 0.5, 0.5], [0, 0.5, 0.5]], reduce_min: [[0, 0.5, 0.5], [1, 0, 0]]}
    for f, share in want.items():
        of_rows = over(f, 1)
        np.testing.assert_array_equal(run(grad(lambda x, g=of_rows: g(x).sum()))(x), share)
        _, forward = run(lambda x, dx, g=of_rows: jvp(g, (x,), (dx,)))(x, np.ones_like(x))
        np.testing.assert_array_equal(forward, [1, 1])


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float32, np.bool_, ml_dtypes.bfloat16])
def test_of_nothing(dtype):
    empty = np.zeros((0, 2), dtype)
    if dtype is np.bool_:
        least, greatest = False, True
    elif np.dtype(dtype).kind in "iu":
        least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    else:
        least, greatest = -np.inf, np.inf
    for run in (lambda f: f, jit):
        np.testing.assert_array_equal(run(over(reduce_max, 0))(empty), np.full(2, least, dtype))
        np.testing.assert_array_equal(run(over(reduce_min, 0))(empty), np.full(2, greatest, dtype))


def test_float8_without_infinity():
    dtype = ml_dtypes.float8_e4m3fn
    empty = np.zeros((0,), dtype)
    assert float(reduce_max(empty)) == float(ml_dtypes.finfo(dtype).min)
    assert float(jit(reduce_max)(empty)) == float(ml_dtypes.finfo(dtype).min)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32"])
def test_bits_of_nothing_and_of_what_is_less_than_a_bucket(dtype):
    """All are in all of none; and padding changes no bit of the others."""
    ones = np.full((2,), -1).astype(dtype)
    x = np.array([[3, 1], [7, 1], [2, 1]]).astype(dtype)
    for run in (lambda f: f, jit):
        for reduce, nothing in ((reduce_and, ones), (reduce_or, ones * 0), (reduce_xor, ones * 0)):
            got = run(over(reduce, 0))(np.zeros((0, 2), dtype))
            np.testing.assert_array_equal(got, nothing.astype(dtype))
    for reduce in (reduce_and, reduce_or, reduce_xor):
        holds(over(reduce, 0), [x], {(0, 0): 0}, ["values"])


def test_narrow_product_accumulates_in_float32():
    x = np.full(64, 1.0078125, ml_dtypes.bfloat16)
    want = np.float32(1.0078125) ** 64
    assert float(reduce_prod(x)) == float(np.asarray(want, ml_dtypes.bfloat16))


def test_no_axes_is_the_same_object():
    x = reduce_max(np.ones((2, 3), np.float32), 0)
    assert reduce_max(x, ()) is x


def test_refuses():
    with pytest.raises(TypeError, match=r"reduce_max: expected .* got complex64\[2\]"):
        reduce_max(np.ones(2, np.complex64))
    with pytest.raises(TypeError, match=r"reduce_prod: expected .* got bool\[2\]"):
        reduce_prod(np.ones(2, bool))
    with pytest.raises(TypeError, match=r"reduce_and: expected .* got float32\[2\]"):
        reduce_and(np.ones(2, np.float32))
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        reduce_min(np.ones((2, 2), np.float32), 2)


@pytest.mark.parametrize("primitive", [ReduceMax, ReduceMin, ReduceProd])
def test_rows_stay_where_the_first_axis_is_not_reduced(primitive):
    x = array_type((size_variable("n"), 2, 3), np.dtype(np.float32))
    for axes, rows in (((1,), True), ((2, 1), True), ((0,), False), ((1, 0), False)):
        assert primitive(axes).by_rows((x,), (primitive(axes).infer(x),)) is rows


@pytest.mark.parametrize(
    ("name", "least", "greatest"),
    [
        ("float32", -np.inf, np.inf),
        ("bfloat16", -np.inf, np.inf),
        ("float8_e5m2", -np.inf, np.inf),
        ("float8_e4m3fn", -448, 448),  # which has no infinity
        ("int8", -128, 127),
        ("uint16", 0, 65535),
        ("int4", -8, 7),
        ("bool", False, True),
    ],
)
def test_what_is_below_and_above_all_elements(name, least, greatest):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    assert float(greatest_below(dtype)) == least
    assert float(least_above(dtype)) == greatest
