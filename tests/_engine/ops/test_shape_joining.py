"""Concatenate: the laws, and NumPy."""

import numpy as np
import pytest

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type
from stretto._engine.ops.shape import Concatenate, concatenate
from stretto.laws import b1, bf16, c64, f32, i8, i32, law


def joined(*xs):
    return concatenate(xs, 1)


LAWS = [
    law(Concatenate, joined, f32(2, 3), f32(2, 1), f32(2, 0)),
    law(Concatenate, joined, c64(2, 1), c64(2, 2)),
    law(Concatenate, joined, bf16(2, 1), f32(2, 2), b1(2, 1)),
    law(Concatenate, joined, i32(2, 1), i8(2, 2)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_concatenate_promotes():
    out = concatenate([np.array([True]), np.array([2], np.int8), np.array([1.5], np.float32)])
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, [1, 2, 1.5])


def test_concatenate_refuses():
    with pytest.raises(ValueError, match=r"at least one array"):
        concatenate([])
    with pytest.raises(ValueError, match=r"but for axis 0; got float32\[2,3\] .* float32\[2,4\]"):
        concatenate([np.ones((2, 3), np.float32), np.ones((2, 4), np.float32)])
    with pytest.raises(ValueError, match="axis 0 is out of bounds"):
        concatenate([np.float32(1)])
    with pytest.raises(TypeError, match=r"stretto\.numpy\.array"):
        concatenate([[1, 2]])
    with pytest.raises(TypeError, match=r"^concatenate: operands must be a sequence of arrays"):
        concatenate(3)


def test_one_array_is_the_same_object():
    x = as_value(np.ones((2, 3), np.float32))
    assert concatenate([x]) is x


F32 = np.dtype(np.float32)


def test_rows_and_axes_of_what_is_joined():
    x = array_type((size_variable("n"), 2), F32)
    for axis, kept in ((0, [None, 1]), (1, [0, None])):
        out = Concatenate(axis).infer(x, x)
        assert Concatenate(axis).by_rows((x, x), (out,)) is (axis == 1)
        assert Concatenate(axis).kept_axes(1, x, out) == kept


def test_what_is_joined_is_weak_where_all_are():
    weak, strong = (array_type((2,), F32, w) for w in (True, False))
    for types in ((weak, weak), (weak, strong), (strong, weak), (strong, strong)):
        assert Concatenate(0).infer(*types).weak_type is (strong not in types)


@pytest.mark.parametrize(
    ("axis", "types", "error"),
    [
        (2, ((2, 3),), ValueError),
        (-1, ((2, 3),), ValueError),
        (1, ((2, 3), (2,)), ValueError),
        (1, ((2, 3), (2, 3, 1)), ValueError),
        (1, ((2, 3), (2, 3), (4, 3)), ValueError),
    ],
)
def test_operands_that_cannot_be_joined(axis, types, error):
    with pytest.raises(error, match="concatenate: "):
        Concatenate(axis).infer(*[array_type(shape, F32) for shape in types])


def test_operands_of_two_dtypes_are_named():
    x, y = array_type((2,), F32), array_type((2,), np.dtype(np.int32))
    with pytest.raises(TypeError, match=r"float32\[2\] \(operand 0\) and int32\[2\] \(operand 2\)"):
        Concatenate(0).infer(x, x, y)
