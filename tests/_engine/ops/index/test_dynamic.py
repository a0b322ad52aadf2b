"""Slices at places known when the program runs: the laws, and NumPy."""

import itertools

import numpy as np
import pytest

from stretto import lax
from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.api.graph import make_graph
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.types import array_type
from stretto._engine.ops.index.dynamic import (
    DynamicSlice,
    DynamicUpdateSlice,
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
)
from stretto.laws import bf16, c64, f32, i32, law
from tests.any_size import holds


def at(*starts):
    return [np.asarray(i, np.int32) for i in starts]


def read(x, *starts):
    return dynamic_slice(x, starts, (2, 3))


def written(x, update, *starts):
    return dynamic_update_slice(x, update, starts)


def swapped(x, update, i):
    return dynamic_update_index_in_dim(x, update, i, 1) + dynamic_index_in_dim(x, i, 1)


LAWS = [
    law(DynamicSlice, read, f32(4, 5), *at(1, 1)),
    law(DynamicSlice, read, f32(4, 5), *at(-1, 9)),
    law(DynamicSlice, read, f32(2, 5), *at(3, 2)),
    law(DynamicSlice, read, c64(4, 3), *at(7, -2)),
    law(DynamicSlice, read, bf16(2, 3), *at(0, 1)),
    law(DynamicSlice, lambda x, *s: dynamic_slice(x, s, (0, 3)), i32(4, 5), *at(1, 1)),
    law(DynamicSlice, lambda x: dynamic_slice(x, (), ()), f32()),
    law(DynamicSlice, lambda x, v: dynamic_slice(x, v, (2, 3)), f32(4, 5), np.array([1, 9])),
    law(DynamicUpdateSlice, written, f32(4, 5), f32(2, 3), *at(1, 1)),
    law(DynamicUpdateSlice, written, f32(4, 5), f32(2, 3), *at(-1, 9)),
    law(DynamicUpdateSlice, written, f32(2, 5), f32(2, 2), *at(3, 2)),
    law(DynamicUpdateSlice, written, c64(4, 3), c64(1, 1), *at(7, -2)),
    law(DynamicUpdateSlice, written, f32(4, 5), f32(4, 5), *at(0, 1)),
    law(DynamicUpdateSlice, written, i32(4, 5), i32(0, 5), *at(0, 1)),
    law(DynamicUpdateSlice, written, f32(), f32()),
    law(DynamicUpdateSlice, swapped, f32(4, 5), f32(4), *at(1)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8, np.uint32])
def test_starts_count_from_the_end_then_fit(dtype):
    x = np.arange(5)
    for start, size in itertools.product(range(-8, 9), range(6)):
        if np.dtype(dtype).kind == "u" and start < 0:
            continue
        low = max(0, min(start + 5 if start < 0 else start, 5 - size))
        for i in (start, np.asarray(start, dtype)):
            np.testing.assert_array_equal(
                dynamic_slice_in_dim(x, i, size), np.arange(low, low + size)
            )


def test_narrow_starts_reach_far():
    x = np.arange(1000)
    assert int(jit(lambda i: dynamic_index_in_dim(x, i, keepdims=False))(np.int8(-100))) == 900


def test_update_of_python_number():
    x = np.zeros(3, np.float32)
    out = dynamic_update_index_in_dim(x, 2, 1, 0)
    assert (out.dtype, out.tolist()) == (np.float32, [0, 2, 0])


def test_mapped_starts_are_one_gather_and_one_scatter():
    x, i = np.ones((4, 6), np.float32), np.arange(4, dtype=np.int32)
    program = make_graph(vmap(lambda x, i: dynamic_slice_in_dim(x, i, 2)))(x, i)
    assert [e.primitive.name for e in program.equations].count("gather") == 1
    write = vmap(lambda x, u, i: dynamic_update_slice(x, u, (i,)))
    program = make_graph(write)(x, x[:, :2], i)
    assert [e.primitive.name for e in program.equations if e.primitive.name[:2] == "sc"] == [
        "scatter"
    ]


def test_refuses():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(
        ValueError, match=r"slice of sizes \(3, 3\) does not fit into float32\[2,3\]"
    ):
        dynamic_slice(x, (0, 0), (3, 3))
    with pytest.raises(ValueError, match=r"update of shape \(2,\) does not fit"):
        dynamic_update_slice(x, x[:, 0], (0, 0))
    with pytest.raises(TypeError, match=r"expected 2 start indices, .* got 1"):
        dynamic_slice(x, (0,), (1, 1))
    with pytest.raises(TypeError, match=r"an integer scalar, got float32\[\]"):
        dynamic_slice(x, (np.float32(0), 0), (1, 1))
    with pytest.raises(TypeError, match=r"update of dtype float32, got int32\[1,1\]"):
        dynamic_update_slice(x, np.ones((1, 1), np.int32), (0, 0))


@pytest.mark.parametrize("start", [-2, np.int32(-2)], ids=["known", "traced"])
def test_negative_starts_count_from_the_end_only_where_allowed(start):
    x, update = np.arange(10, dtype=np.float32).reshape(2, 5), np.zeros((1, 1), np.float32)
    for run in (lambda f: f, jit):
        f = run(lambda i, x=x: dynamic_slice(x, (i, i), (1, 2), allow_negative_indices=False))
        assert f(start).tolist() == [[0, 1]]
        f = run(
            lambda i, x=x: dynamic_slice(x, (i, i), (1, 2), allow_negative_indices=(False, True))
        )
        assert f(start).tolist() == [[3, 4]]
        f = run(lambda i: dynamic_update_slice(x, update + 7, (i, i), allow_negative_indices=False))
        assert f(start)[0, 0] == 7
    assert dynamic_slice_in_dim(x, start, 1, 1, allow_negative_indices=False)[0, 0] == 0
    assert dynamic_index_in_dim(x, start, 1, False, allow_negative_indices=False)[0] == 0
    with pytest.raises(ValueError, match="one for each axis"):
        dynamic_slice(x, (start, start), (1, 1), allow_negative_indices=(True,))


@pytest.mark.parametrize("starts", [0, None])
def test_start_indices_that_are_no_sequence_are_named(starts):
    with pytest.raises(TypeError, match=r"^dynamic_slice: start_indices must be a sequence"):
        dynamic_slice(np.ones((2, 3)), starts, (1, 1))


@pytest.mark.parametrize(("size", "scattered"), [(1024, True), (1025, False)])
def test_cotangents_of_small_slices_are_scattered_into_the_sum(size, scattered):
    def f(x, i, j):
        first, second = (lax.dynamic_slice_in_dim(x, k, size) for k in (i, j))
        return (first**2).sum() + (second**3).sum()

    program = make_graph(grad(f))(np.zeros(2000, np.float32), 0, 1)
    assert ("scatter_add" in [e.primitive.name for e in program.equations]) is scattered


def test_what_is_updated_is_weak_where_both_are():
    f32, start = np.dtype(np.float32), array_type((), np.dtype(np.int32))
    for weak_x, weak_update in itertools.product((False, True), repeat=2):
        x, update = array_type((3,), f32, weak_x), array_type((2,), f32, weak_update)
        got = DynamicUpdateSlice().infer(x, update, start)
        assert got is array_type((3,), f32, weak_x and weak_update)


@pytest.mark.parametrize(
    "starts", [("int32",), ("int32",) * 3, ("int32", "int64"), ("int32", "float32"), ()]
)
def test_starts_that_do_not_fit_are_named(starts):
    x = array_type((2, 3), np.dtype(np.float32))
    types = [array_type((), np.dtype(name)) for name in starts]
    with pytest.raises(TypeError, match=r"dynamic_slice: expected one start index for each axis"):
        DynamicSlice((1, 1)).infer(x, *types)
    words = r"dynamic_update_slice: expected one start index for each axis"
    with pytest.raises(TypeError, match=words):
        DynamicUpdateSlice().infer(x, x, *types)
    line = array_type((1,), np.dtype(np.int32))
    with pytest.raises(TypeError, match=r"dynamic_slice: expected one start index for each axis"):
        DynamicSlice((1, 1)).infer(x, line, line)


@pytest.mark.parametrize("sizes", [(3, 3), (2, 4), (-1, 3), (2,), (2, 3, 1)])
def test_sizes_that_do_not_fit_are_named(sizes):
    x, start = array_type((2, 3), np.dtype(np.float32)), array_type((), np.dtype(np.int32))
    with pytest.raises(ValueError, match=r"dynamic_slice: the slice of sizes .* does not fit"):
        DynamicSlice(sizes).infer(x, start, start)
    assert DynamicSlice((0, 3)).infer(x, start, start).shape == (0, 3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_starts_are_of_at_least_32_bits(dtype):
    """So that every size fits; unsigned ones are not counted from the end."""
    x, start = np.arange(300, dtype=np.float32), np.ones((), dtype)
    program = make_graph(lambda x, i: dynamic_slice(x, (i,), (2,)))(x, start)
    assert program.equations[-1].inputs[1].type.dtype.itemsize == 4
    names = [e.primitive.name for e in program.equations]
    assert ("select" in names) is (dtype != "uint32")
    assert dynamic_slice(x, (start,), (2,)).tolist() == [1, 2]


def test_starts_known_beyond_32_bits_are_moved_to_fit():
    x = np.arange(5)
    assert dynamic_slice(x, (2**40,), (2,)).tolist() == [3, 4]
    assert dynamic_slice(x, (-(2**40),), (2,)).tolist() == [0, 1]


@pytest.mark.parametrize("starts", [np.zeros(1, np.int32), np.zeros(3, np.int32), np.zeros((2, 1))])
def test_vectors_of_starts_have_one_for_each_axis(starts):
    with pytest.raises(TypeError, match="expected 2 start indices, one for each axis of float32"):
        dynamic_slice(np.ones((2, 3), np.float32), starts, (1, 1))


def test_a_part_written_along_one_axis_begins_the_others():
    x, part = np.zeros((3, 4), np.float32), np.ones((1, 2), np.float32)
    got = np.asarray(lax.dynamic_update_slice_in_dim(x, part, 1, 0))
    np.testing.assert_array_equal(np.argwhere(got), [[1, 0], [1, 1]])
    got = np.asarray(lax.dynamic_update_slice_in_dim(x, part, 2, -1))
    np.testing.assert_array_equal(np.argwhere(got), [[0, 2], [0, 3]])


@pytest.mark.parametrize("shape", [(3, 5), (4, 4), (3,)])
def test_types_of_updates_that_do_not_fit(shape):
    """A program that says so is wrong, whatever the function in front has checked."""
    x, place = array_type((3, 4), np.dtype("float32")), array_type((), np.dtype("int32"))
    update = array_type(shape, x.dtype)
    with pytest.raises(ValueError, match=r"the update of shape .* does not fit into float32"):
        DynamicUpdateSlice().infer(x, update, place, place)


@pytest.mark.parametrize("starts", [(-1, 0), (0, -1), (0, 1), (1, 2), (3, 1)])
def test_starts_of_any_size_are_moved_to_fit(starts):
    """Also along an axis of a known size, where one start is left, two, or only the first."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    part = np.full((2, 3), 50, np.float32)
    along = {"allow_negative_indices": False}
    for sizes in ((2, 3), (1, 4), (3, 2)):
        known = lambda x, *s, sizes=sizes: dynamic_slice(x, s, sizes, **along)
        holds(known, [x, *at(*starts)], {(0, 0): 0}, ["values"])
    whole = lambda x, *s: dynamic_slice(x, s, (x.shape[0], 3), **along)
    holds(whole, [x, *at(*starts)], {(0, 0): 0}, ["values"])
    put = lambda x, u, *s: dynamic_update_slice(x, u, s, **along)
    for axes in ({(0, 0): 0}, {(0, 0): 0, (1, 0): 0}, {(0, 1): 0}):
        rows = x.shape[0] if (1, 0) in axes else 2
        update = np.resize(part, (rows, 3))
        holds(put, [x, update, *at(*starts)], axes, ["values"])
