"""Reshape, transpose and axes: the laws, NumPy, and what is refused."""

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as some

from stretto._engine.api.graph import make_graph
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type
from stretto._engine.ops import layout as ops
from stretto._engine.ops.broadcast import broadcast_to
from stretto.laws import b1, bf16, c64, f32, f64, i32, law

LAWS = [
    *(
        law(ops.Reshape, lambda x: ops.reshape(x, (3, 2)), t(2, 3))
        for t in (f32, f64, bf16, c64, i32, b1)
    ),
    law(ops.Reshape, lambda x: ops.reshape(x, (1, 1)), f32()),
    law(ops.Reshape, lambda x: ops.reshape(x, (0, 5)), f32(2, 0)),
    *(
        law(ops.Transpose, lambda x: ops.transpose(x, (1, 2, 0)), t(2, 3, 4))
        for t in (f32, f64, bf16, c64, i32, b1)
    ),
    law(ops.Transpose, ops.transpose, f32(2, 0)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


def array(*shape):
    return np.arange(math.prod(shape), dtype=np.float32).reshape(shape)


shapes = some.lists(some.integers(0, 3), max_size=3).map(tuple)


@hypothesis.given(shapes, some.data())
@hypothesis.settings(max_examples=50)
def test_reshape_and_transpose_are_numpy_s(shape, data):
    x = array(*shape)
    axes = data.draw(some.permutations(range(len(shape))))
    np.testing.assert_array_equal(ops.transpose(x, axes), x.transpose(axes))
    np.testing.assert_array_equal(ops.transpose(x), x.transpose())
    np.testing.assert_array_equal(ops.reshape(x, -1 if x.size else (0,)), x.reshape(-1))


def test_nothing_to_do_gives_the_value_itself():
    x = as_value(array(2, 3))
    assert ops.reshape(x, (2, 3)) is x
    assert ops.reshape(x, (2, -1)) is x
    assert ops.transpose(x, (0, 1)) is x
    assert ops.squeeze(x) is x


def test_constants_stay_literals():
    def f():
        x = broadcast_to(1.0, (2, 3))
        return ops.transpose(ops.reshape(x, (3, 2)), (1, 0))

    program = make_graph(f)()
    assert program.equations == ()
    assert program.outputs[0].type is array_type((2, 3), np.dtype(np.float32), True)


def test_expand_and_squeeze():
    x = array(2, 3)
    assert ops.expand_dims(x, 0).shape == (1, 2, 3)
    assert ops.expand_dims(x, -1).shape == (2, 3, 1)
    assert ops.expand_dims(x, (0, -1)).shape == (1, 2, 3, 1)
    assert ops.squeeze(ops.expand_dims(x, (0, 2)), 0).shape == (2, 1, 3)
    assert ops.squeeze(array(1, 2, 1)).shape == (2,)


def test_move_axis():
    x = array(2, 3, 4)
    np.testing.assert_array_equal(ops.move_axis(as_value(x), 0, 2), np.moveaxis(x, 0, 2))
    np.testing.assert_array_equal(ops.move_to_front(as_value(x), 1), np.moveaxis(x, 1, 0))


def test_axes():
    assert ops.canonical_axes(None, 2, "f") == (0, 1)
    assert ops.canonical_axes(-1, 2, "f") == (1,)
    assert ops.canonical_axes([0, -1], 3, "f") == (0, 2)
    assert ops.canonical_axis(np.int64(-1), 2, "f") == 1


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda x: ops.canonical_axis(2, 2, "f"),
            ValueError,
            "f: axis 2 is out of bounds for an arr",
        ),
        (lambda x: ops.canonical_axes((0, -2), 2, "f"), ValueError, "names an axis twice"),
        (lambda x: ops.canonical_axis(1.5, 2, "f"), TypeError, "float"),
        (
            lambda x: ops.reshape(x, (4, 2)),
            ValueError,
            r"reshape: float32\[2,3\] \(6 elements\) does not fit shape \(4, 2\)",
        ),
        (lambda x: ops.reshape(x, (4, -1)), ValueError, r"does not fit shape \(4, -1\)"),
        (lambda x: ops.reshape(x, (-1, -1)), ValueError, r"does not fit shape \(-1, -1\)"),
        (
            lambda x: ops.transpose(x, (0,)),
            ValueError,
            r"transpose: axes \(0,\) must name all 2 axes of float32\[2,3\]",
        ),
        (lambda x: ops.transpose(x, (0, 0)), ValueError, "names an axis twice"),
        (
            lambda x: ops.squeeze(x, 0),
            ValueError,
            r"squeeze: axis 0 of float32\[2,3\] has a size other than 1",
        ),
        (lambda x: ops.expand_dims(x, 3), ValueError, "expand_dims: axis 3 is out of bounds"),
        (lambda x: ops.Reshape((5,))(as_value(x)), ValueError, "6 elements. does not fit shape"),
        (
            lambda x: ops.Transpose((1,))(as_value(x)),
            ValueError,
            "is not a permutation of the 2 axes",
        ),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(array(2, 3))


def test_axes_are_put_in_order_before_a_reshape():
    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(ops.reshape(x, (3, 2), (1, 0)), x.T.reshape(3, 2))
    with pytest.raises(TypeError, match="out_sharding must be a sharding"):
        ops.reshape(x, (6,), out_sharding="x")


def test_permutations_are_refused_under_the_name_of_the_function():
    x = np.ones((2, 3))
    with pytest.raises(TypeError, match=r"^transpose: the axes must be a sequence of integers"):
        ops.transpose(x, 3)
    with pytest.raises(TypeError, match=r"^reshape: dimensions must be a sequence of integers"):
        ops.reshape(x, (6,), 3)
    with pytest.raises(ValueError, match=r"^reshape: axes \(0,\) must name all 2 axes"):
        ops.reshape(x, (6,), (0,))
    with pytest.raises(ValueError, match=r"^reshape: axis 5 is out of bounds"):
        ops.reshape(x, (6,), (0, 5))


N = size_variable("n")


@pytest.mark.parametrize(
    ("shape", "out", "rows", "kept"),
    [
        ((N, 2, 3), (N, 6), True, (0, None)),
        ((N, 6), (N, 2, 3), True, (0, None, None)),
        ((N, 2, 3), (2 * N, 3), False, (None, 2)),
        ((2, N, 3), (2, N, 1, 3), True, (0, 1, None, 2)),
        ((N, 4), (N, 4), True, (0, 1)),
        ((1,), (), False, ()),
        ((), (1,), False, (None,)),
        ((4, 6), (24,), False, (None,)),
        ((2, 3, 5), (2, 15), True, (0, None)),
        ((2, 3, 5), (6, 5), False, (None, 2)),
    ],
)
def test_rows_and_axes_that_reshaping_keeps(shape, out, rows, kept):
    types = [array_type(s, np.dtype(np.float32)) for s in (shape, out)]
    op = ops.Reshape(out)
    assert op.kept_axes(0, *types) == kept
    if out:
        assert op.by_rows(types[:1], types[1:]) is rows


def test_transposing_keeps_rows_that_stay_in_front():
    type = array_type((N, 2, 3), np.dtype(np.float32))
    for order, rows in (((0, 2, 1), True), ((1, 0, 2), False), ((2, 1, 0), False)):
        op = ops.Transpose(order)
        assert op.by_rows((type,), (op.infer(type),)) is rows
        assert op.kept_axes(0, type, op.infer(type)) == order


@pytest.mark.parametrize("sizes", [(-2, -3), (-1, -1), (-1, -1, 6), (-6,), (7,), (0, -1), (4, -1)])
def test_sizes_that_do_not_fit_or_are_negative(sizes):
    with pytest.raises(
        ValueError, match=r"reshape: float32\[2,3\] \(6 elements\) does not fit sha"
    ):
        ops.reshape(array(2, 3), sizes)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ((2, 3), (6,), True),
        ((2, 3), (3, 2), True),
        ((2, 3), (5,), False),
        ((2, 3), (2, 4), False),
        ((), (1, 1), True),
        ((N, 4), (N, 2, 2), True),
        ((N, 1, 3), (N, 3), True),
        ((N, 2), (2 * N,), True),
        ((2, N), (2 * N,), False),
        ((2, N), (N, 2), False),
        ((N, 2), (2, N), False),
        ((2, 2, N), (4, N), True),
        ((2, N, 3), (2, 3 * N), True),
        ((2, 3, N), (6, N), True),
        ((3, 2, N), (3, 2 * N), False),
        ((N, N), (N * N,), False),
        ((N, 2), (N,), False),
    ],
    ids=str,
)
def test_shapes_that_order_elements_alike_whatever_the_size(one, other, alike):
    """Where a size that varies is the first of the axes that become one, or are made of one."""
    assert ops.in_order(one, other) is alike
    assert ops.in_order(other, one) is alike
