"""How attention's operands lie: views of parts and of other shapes, against NumPy's strides."""

import numpy as np
import pytest

from stretto._engine.lowering.attention import numbers, reshaped, sliced
from stretto._engine.ops.fused_attention import FusedAttention, Geometry, Place, Step
from stretto._engine.ops.product_strides import View, row_major


def view_of(x):
    offset = x.__array_interface__["data"][0] - x.base.__array_interface__["data"][0]
    strides = [0 if n == 1 else s // x.itemsize for n, s in zip(x.shape, x.strides, strict=True)]
    return View(x.shape, tuple(strides), offset // x.itemsize)


BASE = np.arange(2 * 3 * 4 * 6).reshape(2, 3, 4, 6)[:]


@pytest.mark.parametrize(
    ("axes", "shape"),
    [
        ((0, 1, 2, 3), (6, 24)),
        ((0, 1, 2, 3), (2, 3, 4, 2, 3)),
        ((1, 0, 2, 3), (3, 2, 24)),
        ((1, 0, 2, 3), (3, 1, 2, 4, 6)),
        ((3, 2, 1, 0), (2, 3, 2, 2, 3, 2)),
        ((2, 3, 0, 1), (24, 6)),
    ],
)
def test_reshapes_without_a_copy(axes, shape):
    turned = BASE.transpose(axes)
    got = turned.view()
    got.shape = shape  # raises where it needs a copy
    assert reshaped(view_of(turned), shape) == view_of(got)


@pytest.mark.parametrize(("axes", "shape"), [((1, 0, 2, 3), (6, 24)), ((0, 2, 1, 3), (2, 72))])
def test_what_needs_a_copy(axes, shape):
    assert reshaped(view_of(BASE.transpose(axes)), shape) is None


def test_slices():
    turned = BASE.transpose(2, 0, 1, 3)
    parts = [(1, 4, 2), (0, 2, 1), (1, 3, 1), (2, 6, 3)]
    got = turned[tuple([slice(*part) for part in parts])]
    assert sliced(view_of(turned), parts) == view_of(got)


def test_nothing():
    assert reshaped(row_major((0, 3)), (3, 0)) == row_major((3, 0))


# The numbers

ROWS, KEYS, FEATURES, COLUMNS = 3, 5, 7, 11


def place(batch, lying, row, column):
    """Where the axes are in an array whose axes lie so: numbers of the batch's, "r" and "c"."""
    sizes = {**dict(enumerate(batch)), "r": row, "c": column}
    split = tuple((sizes[axis],) for axis in lying)
    at = lambda axis: lying.index(axis) if axis in lying else -1
    batches = tuple(at(axis) for axis in range(len(batch)))
    return Place(split, batches, at("r"), at("c")), row_major(tuple(n for (n,) in split))


def arranged(batch, lyings, steps=()):
    """Return what the kernel is told of arrays that lie so, as ``told`` reads it, or None."""
    shapes = [(ROWS, FEATURES), (KEYS, FEATURES), (KEYS, COLUMNS), (ROWS, COLUMNS)]
    found = [place(batch, lying, *shape) for lying, shape in zip(lyings, shapes, strict=True)]
    places, views = [p for p, _ in found], [v for _, v in found]
    asked, arrays = [], []
    for step, lying in steps:
        where, view = place(batch, lying, ROWS, KEYS) if lying else (None, None)
        asked.append(step._replace(place=where))
        arrays += [view] if lying else []
    sizes = (ROWS, KEYS, FEATURES, COLUMNS, 0.25)
    geometry = Geometry(tuple(batch), *sizes, tuple(asked), True, False, False, tuple(places))
    outs = [view.shape for view in views[3:4]]
    return told(numbers(geometry, views[:3], arrays, outs))


def told(given):
    """Return the numbers by name, as ``kernels/attention.h`` reads them."""
    if given is None:
        return None
    left = list(given)
    take = lambda n: [left.pop(0) for _ in range(n)]
    array = lambda: {"offset": left.pop(0), "batch": take(4), "row": left.pop(0), "column": take(1)}
    names = ["rows", "keys", "features", "columns"]
    names += ["guarded", "steps", "kept", "shared", "scale", "beside", "ragged", "room"]
    read = {"sizes": take(4), "lead": take(4), **dict(zip(names, take(12), strict=True))}
    read["arrays"] = [array() for _ in range(4)]
    read["done"] = [(*take(3), array()) for _ in range(4)]
    read["gradients"] = [array() for _ in range(4 if left else 0)]
    assert not left
    return read


def test_axes_that_lie_side_by_side_in_all_arrays_are_one():
    lying = [0, 1, 2, 3, 4, "r", "c"]
    read = arranged((2, 3, 2, 2, 3), [lying] * 4)
    assert read["sizes"] == [1, 1, 1, 72]
    assert read["lead"] == [0, 0, 0, ROWS]
    strides = [ROWS * FEATURES, KEYS * FEATURES, KEYS * COLUMNS, ROWS * COLUMNS]
    assert [each["batch"] for each in read["arrays"]] == [[0, 0, 0, s] for s in strides]
    assert [each["row"] for each in read["arrays"]] == [FEATURES, FEATURES, COLUMNS, COLUMNS]


def test_axes_of_which_one_array_is_repeated_along_one_stay_two():
    lying = [0, 1, "r", "c"]
    read = arranged((2, 3), [lying, [0, "r", "c"], lying, lying])
    assert read["sizes"] == [1, 1, 2, 3]
    assert read["lead"] == [0, 0, 3 * ROWS, ROWS]
    assert read["arrays"][0]["batch"] == [0, 0, 3 * ROWS * FEATURES, ROWS * FEATURES]
    assert read["arrays"][1]["batch"] == [0, 0, KEYS * FEATURES, 0]


@pytest.mark.parametrize("axes", [4, 5])
def test_four_axes_of_a_batch_are_the_most(axes):
    forward = [*range(axes), "r", "c"]
    turned = [*reversed(range(axes)), "r", "c"]
    read = arranged([2] * axes, [turned, forward, forward, forward])
    if axes == 5:
        assert read is None
        return
    assert read["sizes"] == [2, 2, 2, 2]
    one = ROWS * FEATURES
    assert read["arrays"][0]["batch"] == [one, 2 * one, 4 * one, 8 * one]
    one = KEYS * FEATURES
    assert read["arrays"][1]["batch"] == [8 * one, 4 * one, 2 * one, one]


def test_five_axes_of_which_two_are_one():
    forward, turned = [0, 1, 2, 3, 4, "r", "c"], [4, 3, 2, 0, 1, "r", "c"]
    read = arranged([2] * 5, [turned, forward, forward, forward])
    assert read["sizes"] == [4, 2, 2, 2]


def test_rows_that_are_none_have_no_strides():
    lying = [0, "r", "c"]
    read = arranged((2,), [[0, "c"], lying, lying, [0, "c"]])
    assert [each["row"] for each in read["arrays"]] == [0, FEATURES, COLUMNS, 0]


def test_columns_that_lie_outermost():
    lying = [0, "r", "c"]
    read = arranged((2,), [["c", 0, "r"], lying, lying, lying])
    query = read["arrays"][0]
    assert (query["batch"][-1], query["row"], query["column"]) == (ROWS, 1, [2 * ROWS])


def test_steps_are_told_with_their_arrays_in_order():
    lying = [0, "r", "c"]
    steps = [
        (Step("multiply", 2.0), None),
        (Step("add"), ["r", "c"]),
        (Step("causal", -1.5, 3), None),
        (Step("select", 0.5), [0, "c"]),
    ]
    read = arranged((2,), [lying] * 4, steps)
    bits = lambda x: int(np.float64(x).view(np.int64))
    nothing = {"offset": 0, "batch": [0] * 4, "row": 0, "column": [0]}
    mask = {"offset": 0, "batch": [0, 0, 0, KEYS], "row": 0, "column": [1]}
    assert read["done"] == [
        (0, 0, bits(2.0), nothing),
        (1, 0, 0, nothing | {"row": KEYS, "column": [1]}),
        (3, 3, bits(-1.5), nothing),
        (2, 0, bits(0.5), mask),
    ]
    named = [read[n] for n in ("rows", "keys", "features", "columns", "guarded", "steps", "kept")]
    assert named == [ROWS, KEYS, FEATURES, COLUMNS, 1, 4, 0]
    assert (read["shared"], read["scale"], read["beside"]) == (1, bits(0.25), 2)


def test_steps_that_are_not_there_are_told_as_nothing():
    read = arranged((2,), [[0, "r", "c"]] * 4, [(Step("causal", 1.0, 2), None)])
    nothing = {"offset": 0, "batch": [0] * 4, "row": 0, "column": [0]}
    assert read["steps"] == 1
    assert read["beside"] == 0
    assert read["done"][1:] == [(0, 0, 0, nothing)] * 3


def of_gradient(batch, lyings, kept):
    """Return a geometry, and views: those of ``arranged``, of the result's gradient and theirs."""
    sizes = [(ROWS, FEATURES), (KEYS, FEATURES), (KEYS, COLUMNS), (ROWS, COLUMNS)]
    found = zip(lyings, [*sizes, sizes[3], *sizes[:3]], strict=True)
    places, views = zip(*[place(batch, lying, *shape) for lying, shape in found], strict=True)
    asked = (ROWS, KEYS, FEATURES, COLUMNS, 1.0, (), False, True, kept)
    return Geometry(batch, *asked, places), views


@pytest.mark.parametrize("kept", [True, False])
def test_gradients_are_told_of_those_of_the_result_and_the_operands(kept):
    """The keys' are sums over the second axis of the batch, so it is told last, as shared."""
    own, turned, shared = [0, 1, "r", "c"], [1, 0, "r", "c"], [0, "r", "c"]
    lyings = [own, shared, shared, turned, turned, own, shared, shared]
    geometry, views = of_gradient((2, 3), lyings, kept)
    given = [*views[:3], views[4], *([] if kept else [views[3]])]
    read = told(numbers(geometry, given, [], [view.shape for view in views[5:]]))
    assert read["sizes"] == [1, 1, 2, 3]
    assert read["lead"] == [0, 0, 3 * ROWS, ROWS]
    assert (read["shared"], read["kept"], read["guarded"]) == (3, int(kept), 0)
    q, k, v, out = [each["batch"][2:] for each in read["arrays"]]
    assert q == [3 * ROWS * FEATURES, ROWS * FEATURES]
    assert (k, v) == ([KEYS * FEATURES, 0], [KEYS * COLUMNS, 0])
    assert out == ([0, 0] if kept else [ROWS * COLUMNS, 2 * ROWS * COLUMNS])
    given, d_q, d_k, d_v = [each["batch"][2:] for each in read["gradients"]]
    assert given == [ROWS * COLUMNS, 2 * ROWS * COLUMNS]
    assert (d_q, d_k, d_v) == (q, k, v)


def test_what_is_shared_comes_last_of_the_batch():
    """It is the first axis here, along which keys and values are repeated."""
    own, shared = [0, 1, "r", "c"], [1, "r", "c"]
    lyings = [own, shared, shared, own, own, own, shared, shared]
    geometry, views = of_gradient((2, 3), lyings, kept=True)
    outs = [view.shape for view in views[5:]]
    read = told(numbers(geometry, [*views[:3], views[4]], [], outs))
    assert (read["sizes"], read["shared"]) == ([1, 1, 3, 2], 2)
    assert read["lead"] == [0, 0, ROWS, 3 * ROWS]
    # Without a gradient they stay as they are.
    geometry = geometry._replace(gradient=False, places=geometry.places[:4])
    read = told(numbers(geometry, views[:3], [], [views[3].shape]))
    assert (read["sizes"], read["shared"]) == ([1, 1, 2, 3], 1)


ROOM, LONGEST, HEADS = 40, 9, 2
BITS = {"rows": 1, "keys": 2, "kept": 1 << 10, "ragged": 1 << 11}


def of_examples(forms, *, kept="each", heads=HEADS, varies=("rows", "keys"), gradient=False):
    """Return what the kernel is told of five examples whose arrays are in such forms."""
    sizes = [FEATURES, FEATURES, COLUMNS, COLUMNS, COLUMNS, FEATURES, FEATURES, COLUMNS]
    places, views = [], []
    for form, width in zip(forms, sizes, strict=False):
        shape = (heads, width) if heads else (width,)
        lead = {"rows": (ROOM,), "each": (5, LONGEST), "shared": (LONGEST,)}[form]
        views.append(row_major((*lead, *shape)))
        split = ((0,), *[(n,) for n in shape])
        places.append(Place(split, (1,) if heads else (), 0, len(shape)))
    rows, keys = ("rows" not in varies) * ROWS, ("keys" not in varies) * KEYS
    batch = (heads,) if heads else ()
    geometry = Geometry(
        batch, rows, keys, FEATURES, COLUMNS, 0.25, (), True, gradient, not gradient, tuple(places)
    )
    inputs, outs = list(forms[:3]), [forms[3], kept, kept]
    given, results = views[:3], views[3:4]
    if gradient:
        inputs, outs = [*inputs, kept, forms[4], kept, forms[3]], list(forms[5:])
        given, results = [*given, views[4], views[3]], views[5:]
    fused = FusedAttention(None, geometry).of_examples(None, 5, LONGEST, ROOM, inputs, outs)
    return told(numbers(fused.geometry, given, [], [view.shape for view in results]))


def by_rows(*numbers):
    return sum([4 << n for n in numbers])


def test_examples_one_behind_the_other_are_as_far_apart_as_rows():
    read = of_examples(["rows"] * 4)
    assert read["sizes"] == [5, 1, 1, HEADS]
    assert read["lead"] == [HEADS * LONGEST, 0, 0, LONGEST]
    for each, width in zip(read["arrays"], [FEATURES, FEATURES, COLUMNS, COLUMNS], strict=True):
        assert (each["row"], each["column"]) == (HEADS * width, [1])
        assert each["batch"] == [HEADS * width, 0, 0, width]
    assert read["ragged"] == BITS["rows"] + BITS["keys"] + BITS["ragged"] + by_rows(0, 1, 2, 3)
    assert (read["rows"], read["keys"], read["room"]) == (LONGEST, LONGEST, ROOM)


def test_examples_in_a_rectangle_and_what_they_share():
    read = of_examples(["each", "shared", "rows", "each"], varies=("keys",))
    apart = [each["batch"][0] for each in read["arrays"]]
    assert apart == [LONGEST * HEADS * FEATURES, 0, HEADS * COLUMNS, LONGEST * HEADS * COLUMNS]
    assert read["ragged"] == BITS["keys"] + BITS["ragged"] + by_rows(2)
    assert (read["rows"], read["keys"]) == (ROWS, LONGEST)


def test_one_value_a_row_may_lie_one_behind_the_other():
    read = of_examples(["rows"] * 4, kept="rows", heads=0, varies=("rows",))
    assert read["sizes"] == [5, 1, 1, 1]
    assert read["lead"] == [1, 0, 0, 0]
    bits = BITS["rows"] + BITS["kept"] + BITS["ragged"]
    assert read["ragged"] == bits + by_rows(0, 1, 2, 3)


def test_gradients_of_examples():
    read = of_examples([*["rows"] * 3, "each", *["rows"] * 3, "each"], gradient=True)
    assert read["ragged"] == 3 + BITS["ragged"] + by_rows(0, 1, 2, 4, 5, 6)
    assert read["shared"] == 1
    apart = [each["batch"][0] for each in read["gradients"]]
    assert apart == [HEADS * COLUMNS, *[HEADS * FEATURES] * 2, LONGEST * HEADS * COLUMNS]


def test_nothing_is_told_of_examples_of_one_length():
    read = arranged((2,), [[0, "r", "c"]] * 4)
    assert (read["ragged"], read["room"]) == (0, 0)
