"""The axes that gathers and scatters relate: numbers, modes, shapes, refusals, attributes."""

import dataclasses

import numpy as np
import pytest

import stretto as st
from stretto._engine.core.size_guards import varying_sizes
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type
from stretto._engine.lowering.polymorphic import lower_for_file
from stretto._engine.lowering.text import Operand
from stretto._engine.lowering.writer import Writer
from stretto._engine.ops.index.gather_scatter import gather
from stretto._engine.ops.index.geometry import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    access_mode,
    attribute,
    bounds_operand,
    flags,
    index_operand,
    out_shape,
    reading_mode,
    window_sizes,
)
from stretto._engine.ops.index.primitives import ScatterAdd
from stretto._engine.xla import artifacts, pjrt

ROWS = GatherDimensionNumbers((1,), (0,), (0,))  # rows of a matrix
F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def shape(operand, indices, numbers, sizes, dtype=I32):
    return out_shape("gather", array_type(operand, F32), array_type(indices, dtype), numbers, sizes)


def test_numbers_are_integers_and_can_be_keys():
    numbers = GatherDimensionNumbers([np.int64(1)], [0], (np.int8(0),))
    assert numbers == ROWS and hash(numbers) == hash(ROWS)
    assert all(type(n) is int for field in dataclasses.astuple(numbers) for n in field)


def test_a_scatter_writes_what_a_gather_reads():
    numbers = GatherDimensionNumbers((2,), (0,), (0, 1), (3,), (1,))
    assert ScatterDimensionNumbers.of(numbers).gather() == numbers
    assert ScatterDimensionNumbers.of(numbers).update_window_dims == (2,)


def test_the_output_has_windows_at_their_axes_and_indices_at_the_others():
    assert shape((5, 4), (7, 1), ROWS, (1, 4)) == (7, 4)
    assert shape((5, 4), (2, 7, 1), GatherDimensionNumbers((0,), (0,), (0,)), (1, 3)) == (3, 2, 7)
    assert shape((5, 4), (1,), GatherDimensionNumbers((0, 1), (), (0,)), (2, 4)) == (2, 4)
    assert shape((5, 4), (6, 2), GatherDimensionNumbers((), (0, 1), (0, 1)), (1, 1)) == (6,)
    both = GatherDimensionNumbers((1,), (), (1,), (0,), (0,))
    assert shape((3, 5), (3, 1), both, (1, 2)) == (3, 2)
    assert shape((), (2, 0), GatherDimensionNumbers((), (), ()), ()) == (2,)


@pytest.mark.parametrize(
    "operand, indices, numbers, sizes, message",
    [
        ((5, 4), (), ROWS, (1, 4), "indices need a last axis"),
        ((5, 4), (7, 2), ROWS, (1, 4), "index vectors have 2 components, for 1 axes"),
        ((5, 4), (7, 1), ROWS, (1,), "one window size is needed for each axis"),
        ((5, 4), (7, 1), ROWS, (1, 5), "a window is larger than the operand"),
        ((5, 4), (7, 1), ROWS, (1, -1), "a window is larger"),
        ((5, 4), (7, 1), ROWS, (2, 4), "collapsed axes need windows of size 1"),
        ((5, 4), (7, 1), dataclasses.replace(ROWS, collapsed_slice_dims=(2,)), (1, 4),
         r"\(2,\) are not distinct axes of the operand"),
        ((5, 4), (7, 2), dataclasses.replace(ROWS, start_index_map=(0, 0)), (1, 4),
         r"\(0, 0\) are not distinct axes"),
        ((5, 4), (7, 1), dataclasses.replace(ROWS, offset_dims=()), (1, 4),
         "must be increasing, one for each axis not collapsed"),
        ((5, 4), (7, 1), GatherDimensionNumbers((1, 0), (), (0,)), (1, 4), "must be increasing"),
        ((3, 5), (4, 1), GatherDimensionNumbers((1,), (), (1,), (0,), (0,)), (1, 2),
         "batching axes do not pair up in size"),
        ((3, 5), (3, 1), GatherDimensionNumbers((1,), (), (1,), (0,), ()), (1, 2),
         "batching axes do not pair up"),
    ],
)  # fmt: skip
def test_what_does_not_fit(operand, indices, numbers, sizes, message):
    with pytest.raises(ValueError, match=f"gather: .*{message}.*operand float32"):
        shape(operand, indices, numbers, sizes)


def test_indices_are_integers():
    with pytest.raises(TypeError, match=r"gather: indices must be integers, got float32\[7,1\]"):
        shape((5, 4), (7, 1), ROWS, (1, 4), F32)


@pytest.mark.parametrize("operand, indices", [(True, False), (False, True), (True, True)])
def test_a_new_first_axis_of_operand_or_indices_or_both(operand, indices):
    numbers = ROWS.mapped(operand, indices)
    x, i = (3,) * operand, (3,) * indices
    sizes = (*((1,) if operand and indices else x), 1, 4)
    assert shape((*x, 5, 4), (*i, 7, 1), numbers, sizes) == (3, 7, 4)


def test_windows_as_the_updates_have_them():
    def sizes(operand, updates, numbers):
        return window_sizes(array_type(operand, F32), array_type(updates, F32), numbers)

    assert sizes((5, 4), (7, 3), ROWS) == (1, 3)
    both = GatherDimensionNumbers((1,), (), (1,), (0,), (0,))
    assert sizes((3, 5), (3, 2), both) == (1, 2)
    assert sizes((0, 5), (0, 2), both) == (0, 2)


@pytest.mark.parametrize("default, outside", [("clip", "fill"), ("drop", "drop")])
def test_modes_by_any_of_their_names(default, outside):
    mode = lambda name: access_mode("f", name, default)
    assert mode(None) == default
    for name in ("fill", "drop", GatherScatterMode.FILL_OR_DROP, GatherScatterMode.ONE_HOT):
        assert mode(name) == outside
    assert mode("clip") == mode(GatherScatterMode.CLIP) == "clip"
    assert mode("promise_in_bounds") == mode(GatherScatterMode.PROMISE_IN_BOUNDS)
    with pytest.raises(ValueError, match=r"f: mode must be 'clip', .* got 'wrap'"):
        mode("wrap")


def test_a_value_to_fill_with_asks_to_fill():
    assert reading_mode(None, 0) == "fill" and reading_mode(None, None) is None
    assert reading_mode("clip", 0) == "clip"


@pytest.mark.parametrize(
    "dtype, wide",
    [("int8", "int32"), ("uint8", "int32"), ("int16", "int32"), ("int32", "int32"),
     ("uint32", "int64"), ("uint64", "int64"), ("int64", "int64")],
)  # fmt: skip
def test_indices_are_lowered_in_a_signed_type_that_holds_every_bound(dtype, wide):
    b = Writer()
    out = index_operand(b, Operand("%i", array_type((2, 1), np.dtype(dtype))))
    assert out.type.dtype == wide
    assert ("minimum" in "\n".join(b._lines)) == (dtype == "uint64")


def test_the_last_start_in_bounds():
    def bounds(indices):
        b = Writer()
        out = bounds_operand(b, Operand("%i", indices), (5, 9), (1, 4), (0, 1))
        return out, "\n".join(b._lines)

    out, text = bounds(array_type((7, 2), I32))
    assert out.type.shape == (7, 2) and "dense<[4, 5]>" in text
    b = Writer()
    i = Operand("%i", array_type((7, 2), I32))
    assert bounds_operand(b, i, (5, 8), (1, 4), (0, 1)).type == i.type
    assert b._lines == ["%1 = stablehlo.constant dense<4> : tensor<7x2xi32>"]


def test_the_last_start_in_bounds_of_an_axis_whose_size_varies():
    numbers = GatherDimensionNumbers((), (0, 1), (0, 1))
    read = lambda x, i: gather(x, i, numbers, (1, 1), mode="fill")
    x = st.ShapeDtypeStruct((size_variable("b", 4), 3), "float32")
    with varying_sizes():
        program = st.make_graph(read)(x, st.ShapeDtypeStruct((5, 2), "int32"))
    artifact = pjrt.portable_artifact(lower_for_file(program, (), ("cpu",)), "1.13.7")
    functions = artifacts.functions_of_artifact(artifact)
    for n in (4, 7):
        inputs = [f"tensor<{n}x3xf32>", "tensor<5x2xi32>"]
        text = artifacts.functions_at(functions, inputs, ["tensor<5xf32>"]).text
        assert f"dense<[{n - 1}, 2]> : tensor<2xi32>" in text


def test_attributes():
    fields = {"offset_dims": (1, 2), "collapsed_slice_dims": (), "start_index_map": (0,)}
    assert attribute("gather", fields, 1) == (
        "#stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>"
    )
    assert flags(True, False) == "indices_are_sorted = true, unique_indices = false"


@pytest.mark.parametrize("axes", [1, (1.5,), ("a",)])
def test_fields_that_are_not_axes_are_named(axes):
    with pytest.raises(TypeError, match=r"^GatherDimensionNumbers: offset_dims must be"):
        GatherDimensionNumbers(axes, (0,), (0,))
    with pytest.raises(TypeError, match=r"^ScatterDimensionNumbers: update_window_dims must be"):
        ScatterDimensionNumbers(axes, (0,), (0,))


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_windows_of_updates_lie_along_axes_that_they_have(axis):
    types = array_type((4, 3), F32), array_type((1,), I32), array_type((3,), F32)
    ScatterAdd(ScatterDimensionNumbers((0,), (0,), (0,))).infer(*types)
    with pytest.raises(ValueError, match="scatter_add: "):
        ScatterAdd(ScatterDimensionNumbers((axis,), (0,), (0,))).infer(*types)
