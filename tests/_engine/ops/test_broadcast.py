"""Broadcast and sum: the laws, NumPy, and what is refused."""

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as some

from stretto import jit
from stretto import numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type
from stretto._engine.ops import broadcast as ops
from stretto._engine.passes.simplify import simplify
from stretto.laws import b1, bf16, c64, f16, f32, f64, i8, i32, law, u32

LAWS = [
    *(
        law(ops.BroadcastInDim, lambda x: ops.broadcast_in_dim(x, (2, 4, 3), (1, 2)), t(4, 1))
        for t in (f32, f64, bf16, c64, i32, b1)
    ),
    law(ops.BroadcastInDim, lambda x: ops.broadcast_to(x, (2, 3)), f32()),
    law(ops.BroadcastInDim, lambda x: ops.broadcast_to(x, (0, 3)), f32(1, 3)),
    *(
        law(ops.ReduceSum, lambda x: ops.reduce_sum(x, (0, 2)), t(2, 3, 4))
        for t in (f32, f64, bf16, f16, c64, i32, u32, i8)
    ),
    law(ops.ReduceSum, lambda x: ops.reduce_sum(x, (1,)), f32(2, 0)),
    law(ops.ReduceSum, ops.ReduceSum(()), f32(2)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


def array(*shape):
    return np.arange(math.prod(shape), dtype=np.float32).reshape(shape)


shapes = some.lists(some.integers(0, 3), max_size=3).map(tuple)


@hypothesis.given(shapes, some.data())
@hypothesis.settings(max_examples=50)
def test_broadcast_and_sum_are_numpy_s(shape, data):
    x = array(*shape)
    wider = (*shape, 2)
    got = ops.broadcast_in_dim(x, wider, range(len(shape)))
    np.testing.assert_array_equal(got, np.broadcast_to(x[..., None], wider))
    summed = tuple(
        data.draw(some.sets(some.integers(0, max(len(shape) - 1, 0)), max_size=len(shape)))
    )
    np.testing.assert_array_equal(ops.reduce_sum(x, summed), x.sum(axis=summed))


def test_narrow_types_add_up_in_float32():
    x = np.full(4096, 1.0)
    for dtype in ("bfloat16", "float16"):
        value = snp.array(x, dtype)
        assert float(ops.reduce_sum(value, (0,))) == 4096
        assert float(jit(lambda v: ops.reduce_sum(v, (0,)))(value)) == 4096


def test_integer_sums_wrap():
    x = np.full(3, 100, np.int8)
    assert int(ops.reduce_sum(as_value(x), (0,))) == 300 - 256
    four = snp.array([7, 7, 7], "int4")
    assert int(ops.reduce_sum(four, (0,))) == int(jit(lambda v: ops.reduce_sum(v, (0,)))(four)) == 5


def test_nothing_to_do_gives_the_value_itself():
    x = as_value(array(2, 3))
    assert ops.broadcast_to(x, (2, 3)) is x
    assert ops.reduce_sum(x, ()) is x


def test_broadcasting_repeats_without_copying():
    x = ops.broadcast_to(1.0, (1000, 1000))
    assert x.weak_type
    assert x.to_host().strides == (0, 0)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda x: ops.broadcast_to(x, (3, 2)),
            ValueError,
            r"broadcast_to: float32\[2,3\] does not broadcast to shape \(3, 2\)",
        ),
        (lambda x: ops.broadcast_to(x, (3,)), ValueError, "does not broadcast to shape"),
        (
            lambda x: ops.broadcast_in_dim(x, (2, 3, 4), (1, 0)),
            ValueError,
            r"broadcast_in_dim: float32\[2,3\] does not fit shape \(2, 3, 4\) at axes \(1, 0\)",
        ),
        (
            lambda x: ops.ReduceSum((2,))(as_value(x)),
            ValueError,
            r"reduce_sum: axes \(2,\) are not distinct axes of float32\[2,3\]",
        ),
        (
            lambda x: ops.reduce_sum(as_value(x > 0), (0,)),
            TypeError,
            r"reduce_sum: expected numbers, got bool\[2,3\]",
        ),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(array(2, 3))


def test_what_is_no_sharding_is_refused():
    x = np.arange(6).reshape(2, 3)
    for call in (
        lambda: ops.broadcast_in_dim(x, (2, 2, 3), (1, 2), out_sharding="x"),
        lambda: ops.reduce_sum(x, (0,), out_sharding="x"),
    ):
        with pytest.raises(TypeError, match="out_sharding must be a sharding"):
            call()


def test_broadcast_in_dim_refuses_axes_that_do_not_fit_even_where_the_shape_is_reached():
    square = snp.ones((2, 2))
    for dims in ((0,), (1, 0), (0, 0)):
        with pytest.raises(
            ValueError, match=r"broadcast_in_dim: float32\[2,2\] does not fit shape"
        ):
            ops.broadcast_in_dim(square, (2, 2), dims)
    with pytest.raises(ValueError, match=r"broadcast_in_dim: sizes must not be negative, got \(2,"):
        ops.broadcast_in_dim(square, (2, -1), (0, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: ops.broadcast_in_dim(x, 3, (0,)), "broadcast_in_dim: shape must be a sequence"),
        (
            lambda x: ops.broadcast_in_dim(x, (4, 3), 1),
            "broadcast_in_dim: broadcast_dimensions mus",
        ),
        (
            lambda x: ops.broadcast_in_dim(x, (4.5, 3), (1,)),
            "broadcast_in_dim: shape must be an in",
        ),
        (lambda x: ops.reduce_sum(x, 0), "reduce_sum: axes must be a sequence of integers, got 0"),
        (lambda x: ops.reduce_sum(x, "a"), "reduce_sum: axes must be an integer, got 'a'"),
    ],
)
def test_arguments_that_are_not_integers_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        call(snp.ones(3))


N = size_variable("n")


def typed(*shape):
    return array_type(shape, np.dtype(np.float32))


@pytest.mark.parametrize(
    ("shape", "out", "dims", "rows", "kept"),
    [
        ((N, 3), (N, 3), (0, 1), True, [0, 1]),
        ((3,), (N, 3), (1,), True, [None, 0]),  # no rows, and each row is all of it
        ((1, 3), (N, 3), (0, 1), False, [None, 1]),
        ((N,), (2, N), (1,), False, [None, 0]),
        ((1, 4), (2, 4, 3, 4), (2, 3), True, [None, None, None, 1]),
        ((), (2,), (), True, [None]),
    ],
)
def test_rows_and_axes_of_what_is_broadcast(shape, out, dims, rows, kept):
    x, op = typed(*shape), ops.BroadcastInDim(out, dims)
    assert op.by_rows((x,), (typed(*out),)) is rows
    assert op.kept_axes(0, x, typed(*out)) == kept


@pytest.mark.parametrize(
    ("axes", "rows", "kept"), [((0,), False, [1, 2]), ((1,), True, [0, 2]), ((2, 0), False, [1])]
)
def test_rows_and_axes_of_sums(axes, rows, kept):
    x, op = typed(N, 3, 4), ops.ReduceSum(axes)
    out = op.infer(x)
    assert op.by_rows((x,), (out,)) is rows
    assert op.sums_rows((x,)) is not rows
    assert op.kept_axes(0, x, out) == kept


def test_a_sum_that_names_an_axis_not_there():
    for axes in ((2,), (-1,), (0, 0)):
        with pytest.raises(ValueError, match="reduce_sum"):
            ops.ReduceSum(axes).infer(typed(2, 3))


@pytest.mark.parametrize(
    ("shape", "between", "dims", "is_one"),
    [
        ((3,), (3, 1), (0, 1), True),
        ((3, 2), (1, 3, 1, 2), (0, 1, 2, 3), True),
        ((), (1, 1), (0, 1), True),
        ((6,), (3, 2), (0, 1), False),  # it adds no axes of size 1
        ((2, 3), (3, 2), (0, 1), False),
    ],
)
def test_a_broadcast_of_axes_that_were_added_is_one_broadcast(shape, between, dims, is_one):
    out = tuple(n if n > 1 else 4 for n in between)
    f = lambda x: ops.broadcast_in_dim(snp.reshape(x, between), out, dims)
    x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    program = simplify(make_graph(f)(x))
    names = [e.primitive.name for e in program.equations]
    assert (names == ["broadcast_in_dim"]) is is_one
    np.testing.assert_array_equal(evaluate(program, [as_value(x)])[0], f(as_value(x)))
