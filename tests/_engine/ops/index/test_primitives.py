"""What gathers fill with, which scatters write no element twice, and what scatters refuse."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.size_guards import varying_sizes
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.fixed_sizes import padded_program, variables_of
from stretto._engine.lowering.polymorphic import lower_for_file
from stretto._engine.ops.index.geometry import GatherDimensionNumbers, ScatterDimensionNumbers
from stretto._engine.ops.index.primitives import (
    Gather,
    ScatterAdd,
    ScatterSet,
    ScatterSub,
    fill_bytes,
    fill_element,
    or_zeros,
)
from tests import gpus
from tests.any_size import holds

gpu = gpus.gpu

ELEMENTS = ScatterDimensionNumbers((), (0,), (0,))
F32 = array_type((4,), np.dtype(np.float32))


@pytest.mark.parametrize(
    "dtype, value",
    [("int8", -128), ("uint8", 255), ("int64", -(2**63)), ("uint64", 2**64 - 1), ("bool", True)],
)
def test_what_is_read_out_of_bounds_by_default(dtype, value):
    assert fill_element(np.dtype(dtype), fill_bytes(np.dtype(dtype), None)) == value


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16, np.complex64])
def test_floats_out_of_bounds_are_nan(dtype):
    assert np.isnan(fill_element(np.dtype(dtype), fill_bytes(np.dtype(dtype), None)))


def test_a_gathers_work_is_what_it_reads():
    table, places = array_type((1000, 8), np.dtype(np.float32)), array_type((5, 1), np.dtype("i4"))
    rows = Gather(GatherDimensionNumbers((1,), (0,), (0,)), (1, 8))
    assert rows.work((table, places), (rows.infer(table, places),)) == 4 * 5 * 8


def test_elements_to_fill_with_are_kept_to_the_bit():
    for dtype, value in [("float64", 0.1), ("float32", -0.0), ("uint64", 2**64 - 3)]:
        element = fill_element(np.dtype(dtype), fill_bytes(np.dtype(dtype), value))
        assert element == value and np.signbit(element) == np.signbit(np.float64(value))


@pytest.mark.parametrize(
    "kind, operand, updates, message",
    [
        (ScatterAdd, F32, array_type((3,), np.dtype(np.float32)),
         r"scatter_add: expected updates of type float32\[2\], got float32\[3\]"),
        (ScatterSet, F32, array_type((2,), np.dtype(np.int32)), "scatter: expected updates"),
        (ScatterSub, array_type((4,), np.dtype(bool)), array_type((2,), np.dtype(bool)),
         r"scatter_sub: not defined for bool\[4\]"),
    ],
)  # fmt: skip
def test_refusals(kind, operand, updates, message):
    indices = array_type((2, 1), np.dtype(np.int32))
    with pytest.raises(TypeError, match=message):
        kind(ELEMENTS).infer(operand, indices, updates)


def test_when_no_element_is_written_twice():
    indices = lambda *shape: np.zeros((*shape, 1), np.int32)
    assert ScatterSet(ELEMENTS).distinct(indices(1))
    assert ScatterSet(ELEMENTS).distinct(indices(0))
    assert not ScatterSet(ELEMENTS).distinct(indices(2))
    assert ScatterSet(ELEMENTS, unique_indices=True).distinct(indices(2))
    # Clamped ones may meet though they were not one.
    assert not ScatterSet(ELEMENTS, "clip", unique_indices=True).distinct(indices(2))
    in_step = ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    assert ScatterSet(in_step).distinct(indices(5, 1))
    assert not ScatterSet(in_step).distinct(indices(5, 2))


def test_the_tangent_of_an_element_is_that_of_what_it_was_set_by():
    x, indices = np.zeros(4, np.float32), np.array([[1], [1], [3], [9]], np.int32)
    f = lambda x, u: ScatterSet(ELEMENTS)(x, snp.array(indices), u)
    updates = snp.array([1.0, 2.0, 3.0, 4.0])
    for g in (f, st.jit(f)):
        out, pull = st.vjp(g, snp.array(x), updates)
        np.testing.assert_array_equal(out, [0, 2, 0, 3])
        to_x, to_updates = pull(snp.array([1.0, 10.0, 100.0, 1000.0]))
        np.testing.assert_array_equal(to_x, [1, 0, 100, 0])
        np.testing.assert_array_equal(to_updates, [0, 10, 1000, 0])


def test_zeros_for_no_tangent():
    x = snp.ones(3)
    assert not np.any(np.asarray(or_zeros(None, x))) and or_zeros(x, None) is x


def test_cotangents_go_to_the_updates_that_set_an_element():
    """Of two updates of one element the last sets it; the other gets nothing."""
    indices, ct = snp.array([[1], [1], [0]]), snp.array([1.0, 2.0, 3.0])
    put = lambda x, updates: st.lax.scatter(x, indices, updates, ELEMENTS)
    x = snp.zeros(3)
    both = st.linear_transpose(put, x, x)(ct)
    np.testing.assert_array_equal(both, [[0, 0, 3], [0, 2, 1]])
    np.testing.assert_array_equal(st.linear_transpose(lambda u: put(x, u), x)(ct)[0], [0, 2, 1])


@pytest.mark.parametrize(
    ("places", "unique", "numbered"), [(4, False, True), (4, True, False), (1, False, False)]
)
def test_for_gpus_updates_that_may_meet_are_numbered(places, unique, numbered):
    def put(x, i, updates):
        return st.lax.scatter(x, i, updates, ELEMENTS, unique_indices=unique)

    updates = snp.ones(places)
    program = st.make_graph(put)(snp.zeros(3), snp.zeros((places, 1), "int32"), updates)
    for platform, expected in (("cuda", numbered), ("cpu", False)):
        text = lower_for_file(program, (), (platform,))
        assert ("stablehlo.maximum" in text) is expected


def test_on_gpus_updates_are_numbered_so_that_the_last_one_sets_an_element(gpu):
    put = st.jit(lambda x, i, updates: st.lax.scatter(x, i, updates, ELEMENTS))
    values = snp.zeros(3), snp.array([[1], [1], [5], [0]]), snp.array([1.0, 2.0, 3.0, 4.0])
    on_gpu = [st.device_put(x, gpu) for x in values]
    assert "stablehlo.maximum" in put.lower(*on_gpu).as_text()
    assert "stablehlo.maximum" not in put.lower(*values).as_text()
    np.testing.assert_array_equal(put(*on_gpu), [4, 2, 0])


def promises(f, *args, kind=(Gather, ScatterAdd)):
    """Return what the last gather or scatter of the program is promised: sorted, and unique."""
    found = [e.primitive for e in st.make_graph(f)(*args).equations]
    last = [p for p in found if isinstance(p, kind)][-1]
    return last.indices_are_sorted, last.unique_indices


READ = Gather(GatherDimensionNumbers((), (0,), (0,)), (1,), "clip", b"", True, True)
WRITE = ScatterAdd(ELEMENTS, "drop", True, True)
AT = np.array([[1], [2]], np.int32)


@pytest.mark.parametrize(
    ("axes", "kept"),
    [((0, None), (True, True)), ((None, 0), (False, False)), ((0, 0), (False, True))],
)
def test_promises_about_indices_of_which_examples_have_their_own(axes, kept):
    """Rows of indices one behind the other are not sorted; those into one array may meet."""
    x, i = (snp.stack([v, v]) if a == 0 else snp.array(v) for v, a in
            zip((np.ones(4, np.float32), AT), axes, strict=True))  # fmt: skip
    assert promises(st.vmap(READ, in_axes=axes), x, i) == kept


@pytest.mark.parametrize(
    ("axes", "kept"),
    [((0, None, 0), (True, True)), ((None, 0, None), (False, True)), ((0, 0, 0), (False, True))],
)
def test_promises_about_indices_of_writes_of_examples(axes, kept):
    """Each example has an array of its own."""
    args = (np.ones(4, np.float32), AT, np.ones(2, np.float32))
    args = [snp.stack([v, v]) if a == 0 else snp.array(v) for v, a in zip(args, axes, strict=True)]
    assert promises(st.vmap(WRITE, in_axes=axes), *args) == kept


@pytest.mark.parametrize("given", [(True, False), (False, True)])
def test_cotangents_go_by_the_same_promises(given):
    x, updates, at = snp.ones(4), snp.ones(2), snp.array(AT)
    read = Gather(READ.dimension_numbers, (1,), "clip", b"", *given)
    assert promises(st.grad(lambda x: (read(x, at) ** 2).sum()), x, kind=ScatterAdd) == given
    write = ScatterAdd(ELEMENTS, "drop", *given)
    back = st.grad(lambda u: (write(x, at, u) ** 2).sum())
    assert promises(back, updates, kind=Gather) == given


@pytest.mark.parametrize(("mode", "unique"), [("drop", "true"), ("clip", "false")])
def test_indices_that_are_clamped_are_not_unique_to_the_compiler(mode, unique):
    write = ScatterAdd(ELEMENTS, mode, False, True)
    text = st.jit(write).lower(snp.ones(4), AT, snp.ones(2)).as_text()
    assert f"indices_are_sorted = false, unique_indices = {unique}" in text
    sorted_ = ScatterAdd(ELEMENTS, mode, True, False)
    text = st.jit(sorted_).lower(snp.ones(4), AT, snp.ones(2)).as_text()
    assert "indices_are_sorted = true, unique_indices = false" in text


def test_functions_promise_nothing_unless_they_are_told():
    numbers = READ.dimension_numbers
    x, updates = snp.ones(4), snp.ones(2)
    calls = {
        "gather": lambda **given: st.lax.gather(x, AT, numbers, (1,), **given),
        "scatter_add": lambda **given: st.lax.scatter_add(x, AT, updates, ELEMENTS, **given),
        "segment_sum": lambda **given: st.lax.segment_sum(updates, AT[:, 0], 4, **given),
    }
    for name, call in calls.items():
        assert promises(call) == (False, False), name
        assert promises(lambda c=call: c(indices_are_sorted=True)) == (True, False), name
        assert promises(lambda c=call: c(unique_indices=True)) == (False, True), name


PLACES = np.array([-9, -1, 0, 2, 3, 4, 50], np.int32)
"""Of an axis of three: before it, counted from its end, in it, and behind it."""


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
def test_reads_of_an_axis_of_any_size_end_at_the_true_one(mode):
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    places = PLACES[(PLACES >= 0) & (PLACES < 3)] if mode == "promise_in_bounds" else PLACES
    for negative in (True, False):
        read = lambda x, i, negative=negative: x.at[i].get(
            mode=mode, fill_value=-7.0, wrap_negative_indices=negative
        )
        for axes in ({(0, 0): 0}, {(0, 1): 0}, {(0, 0): 0, (1, 0): 1}):
            holds(read, [x, places], axes, ["values"])


@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("name", ["set", "add", "multiply", "min", "max"])
def test_writes_to_an_axis_of_any_size_end_at_the_true_one(name, mode):
    x = np.arange(6, dtype=np.float32).reshape(3, 2) - 2
    unequal = PLACES[[0, 4]] if name == "set" else PLACES  # the last of equal ones sets it
    updates = np.linspace(-3, 4, 2 * len(unequal), dtype=np.float32).reshape(-1, 2)
    write = lambda x, i, u: getattr(x.at[i], name)(u, mode=mode, wrap_negative_indices=False)
    for axes in (
        {(0, 0): 0},
        {(0, 0): 0, (1, 0): 1, (2, 0): 1},
        {(1, 0): 1, (2, 0): 1},
        {(0, 1): 0, (2, 1): 0},
    ):
        holds(write, [x, unequal, updates], axes, ["values"])


IN_ORDER = {
    "read": lambda x, i: x.at[i].get(indices_are_sorted=True, mode="fill"),
    "added": lambda x, i: x.at[i].add(1.0, indices_are_sorted=True),
}


@pytest.mark.parametrize("name", IN_ORDER)
@pytest.mark.parametrize(
    ("rows", "places", "in_order"), [("n", 4, True), (5, "n", False), ("n", "n", False)]
)
def test_places_beside_padding_are_in_no_order(name, rows, places, in_order):
    """What is promised of places is not known of those that a bucket has besides."""
    n = size_variable("n", 4)
    x = st.ShapeDtypeStruct((n if rows == "n" else rows,), "float32")
    i = st.ShapeDtypeStruct((n if places == "n" else places,), "int32")
    with varying_sizes():
        program = st.make_graph(IN_ORDER[name])(x, i)
    variables = variables_of(program)
    fixed = padded_program(program, variables, dict.fromkeys(variables, 8))
    kinds = (Gather, ScatterAdd)
    (found,) = [e.primitive for e in fixed.equations if isinstance(e.primitive, kinds)]
    assert found.indices_are_sorted is in_order


def test_cotangents_of_several_reads_are_added_where_they_were_read():
    x, i, j = snp.arange(100.0), snp.array([1, 4]), snp.array([4, 7])
    gradient = st.grad(lambda x: snp.sum(x[i] ** 2) + snp.sum(x[j] ** 3))
    np.testing.assert_array_equal(np.flatnonzero(gradient(x)), [1, 4, 7])
    program = st.make_graph(gradient)(x)
    whole = [e.primitive.name for e in program.equations if e.outputs[0].type == x.type]
    assert whole.count("scatter_add") == 2 and "add" not in whole
