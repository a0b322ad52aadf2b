"""Views meet, and those that undo each other go; what stands between operators goes behind them."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import export
from stretto._engine.core.sizes import SizeVariable, is_size, size_of
from stretto._engine.lowering.onnx.views import _on_source
from stretto.nn import functional as F
from tests.onnx_graphs import (
    agrees,
    by_hand,
    operators,
    run,
    spelled,
    spelled_without_a_type,
)

pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


X, W, ROWS = normal(4, 8), normal(8, 6), normal(2, 3)

VIEWS = [
    (lambda x: x.reshape(-1).reshape(1, -1, 1).reshape(x.shape), ["Identity"]),
    (lambda x: x.reshape(2, 16).reshape(8, 4), ["Reshape"]),
    (lambda x: x[None, :, None].squeeze(0), ["Reshape"]),
    (lambda x: x.T.T, ["Identity"]),
    (lambda x: x.reshape(2, 2, 8).transpose(1, 2, 0).transpose(2, 0, 1), ["Reshape"]),
    (lambda x: x[:, None].swapaxes(0, 1), ["Reshape"]),
    (lambda x: x.T.reshape(8, 1, 4).swapaxes(0, 1), ["Transpose", "Reshape"]),
    (lambda x: x[:, 2], ["Gather"]),
    (lambda x: x[1], ["Gather"]),
    (lambda x: x[:, 2:3], ["Slice"]),
    (lambda x: snp.max(x, -1, keepdims=True), 5),
    (lambda x: snp.sum(x, -1)[:, None], ["ReduceSum"]),
    (lambda x: snp.sum(x, 0)[None], ["ReduceSum"]),
    (lambda x: snp.tanh(x.reshape(-1)).reshape(x.shape), ["Tanh"]),
    (lambda x: F.relu(x.reshape(-1)).reshape(2, 16), ["Relu", "Reshape"]),
    (lambda x: snp.broadcast_to(x, (3, 4, 8)) + np.ones((3, 1, 1), np.float32), ["Add"]),
    (lambda x: x + np.ones((4, 8), np.float32), ["Add"]),
    (lambda x: (x @ W).reshape(4, 2, 3) + normal(2, 3).round(), 2),
    (lambda x: (x @ W).reshape(4, 2, 3) + ROWS, ["Gemm", "Reshape"]),
    (lambda x: F.relu((x @ W).reshape(4, 2, 3) * ROWS[:, :1]), ["MatMul", "Relu", "Reshape"]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "names"), VIEWS)
def test_what_is_left_of_views(f, names):
    if isinstance(names, int):
        model = export.onnx(f, X)
        assert len(operators(model)) <= names
        return
    assert agrees(f, X) == names


def test_units_before_matrices_go_where_the_other_operand_has_all_axes():
    assert agrees(lambda x, y: x[None] @ y, X, normal(3, 8, 5)).count("MatMul") == 1
    assert "Unsqueeze" not in agrees(lambda x, y: x[None] @ y, X, normal(3, 8, 5))


def test_a_constant_that_repeats_is_kept_once():
    f = lambda x: x * np.broadcast_to(np.arange(8, dtype=np.float32), (4, 8)).copy()
    model = export.onnx(f, X)
    assert [tuple(t.dims) for t in model.graph.initializer] == [(8,)]
    agrees(f, X)


def test_windows_of_members_are_those_of_images():
    x = normal(2, 3, 4, 6, 6)
    f = st.vmap(lambda v: F.max_pool2d(v, 2), in_axes=1, out_axes=1)
    names = agrees(f, x, exact=False)
    assert names.count("MaxPool") == 1
    kernel = [
        list(a.ints)
        for n in export.onnx(f, x, exact=False).graph.node
        for a in n.attribute
        if a.name == "kernel_shape"
    ]
    assert kernel == [[2, 2]]


def test_sizes_that_vary():
    f = lambda x: snp.tanh((x @ W).reshape(x.shape[0], 2, 3) + np.ones((2, 3), np.float32))
    model = export.onnx(f, X, dynamic_axes={0: "batch"})
    assert operators(model) == ["Gemm", "Tanh", "Reshape"]
    for batch in (1, 7):
        x = normal(batch, 8)
        np.testing.assert_allclose(
            run(model, x)[0], np.asarray(f(snp.array(x))), rtol=1e-5, atol=1e-6
        )


N, M = size_of(SizeVariable("n")), size_of(SizeVariable("m"))


@pytest.mark.parametrize(
    ("constant", "source", "view", "expected"),
    [
        ((1, 2, 3), (4, 6), (4, 2, 3), (1, 6)),
        ((1, 2, 1), (4, 6), (4, 2, 3), (1, 6)),
        ((1, 1, 1), (4, 6), (4, 2, 3), (1, 1)),
        ((4, 1, 1), (4, 6), (4, 2, 3), (4, 1)),
        ((1, 6), (4, 2, 3), (4, 6), (1, 2, 3)),
        ((1, 10, 16, 1, 1), (N, 160, 8, 8), (N, 10, 16, 8, 8), (1, 160, 1, 1)),
        ((1, 1, 6), (2 * N, 6), (N, 2, 6), (1, 6)),
        ((1, 1, 6), (N, 6), (M, 2, 6), None),
        ((1, 6), (N, 24), (M, 6), None),
        ((1, 1, 3), (6, 4), (4, 2, 3), (6, 4)),
        ((1, 1, 6), (1, 4, 6), (4, 1, 6), (1, 1, 6)),
        ((1, 256, 256), (2, 1 << 16), (2, 256, 256), (1, 1 << 16)),
        ((1, 257, 256), (2, 257 * 256), (2, 257, 256), None),
        ((2, 1), (2, 3, 1), (2, 3), (2, 1, 1)),
        ((1, 3, 1), (2, 3), (2, 3, 1), (1, 3)),
        ((1, 3), (2, 1, 3, 1), (2, 3), (1, 1, 3, 1)),
    ],
)
def test_a_constant_before_a_view(constant, source, view, expected):
    value = np.arange(np.prod(constant), dtype=np.float32).reshape(constant)
    moved = _on_source(value, source, view)
    assert (None if moved is None else moved.shape) == expected
    if expected is not None and not any(is_size(n) for n in source):
        x = normal(*source)
        np.testing.assert_array_equal((x + moved).reshape(view), x.reshape(view) + value)


# Graphs by hand: what each rule makes of them, and what it leaves

Y3, NARROW = normal(3, 8, 5), normal(5, 6)
IMAGE = normal(2, 3, 4, 6, 6)
STATES = normal(5, 2, 4, 3)
INTS = np.arange(32, dtype=np.int32).reshape(4, 8)
LARGE = normal(257, 256)  # more elements than a constant that is made may have
MANY = normal(1, LARGE.size)


def picked(*bounds, view=("Squeeze", [0])):
    return lambda n, x: n(view[0], n("Slice", x, *bounds), view[1])


def pooled(**attributes):
    return lambda n, x: n("MaxPool", x, **{"kernel_shape": [1, 2, 2], **attributes})


def choice(chosen=None, other=None, again=None):
    """Put units into the maximum that keeps NaN, or into another choice."""

    def build(n, x):
        most = n("ReduceMax", x, [1], keepdims=0) if chosen is None else chosen(n, x)
        nan = n("ReduceMax", n("IsNaN", x), [1], keepdims=0)
        either = n("Where", nan, np.float32(np.nan) if other is None else other, most)
        y = n("Unsqueeze", either, [1])
        return {None: y, "most": (most, y), "either": (either, y), "nan": (nan, y)}[again]

    return build


def both_ways(squeezed=(1, 1), order=(0, 1), axis=2, along=1):
    def build(n, x):
        parts = n("Split", x, outputs=2, axis=along, num_outputs=2)
        axes = [[] if squeezed is None else [[squeezed[k]]] for k in order]
        parts = [n("Squeeze", parts[k], *at) for k, at in zip(order, axes, strict=True)]
        return n("Concat", *parts, axis=axis)

    return build


GRAPHS = [
    # A view after a view, of any size, and of nothing
    (lambda n, x: n("Reshape", n("Unsqueeze", x, [1]), [8, 4]), [X], ["Reshape"]),
    (lambda n, x: n("Squeeze", n("Reshape", x, [1, 4, 8]), [0]), [X], ["Identity"]),
    (lambda n, x: n("Reshape", n("Reshape", x, [8, 0], allowzero=1), [0, 3], allowzero=1),
     [X[:0]], ["Reshape"]),
    (lambda n, x: n("Reshape", n("Reshape", x, [8, 0], allowzero=1), [3, 0], allowzero=1),
     [X[:0]], ["Reshape"]),
    (lambda n, x: n("Unsqueeze", n("Reshape", x, [4]), [0]), [X[:, :1]], ["Reshape"]),
    # Reductions that keep their axes
    (lambda n, x: n("Unsqueeze", n("ReduceSum", x, [1], keepdims=0), [1]), [X], ["ReduceSum"]),
    (lambda n, x: n("Reshape", n("ReduceMax", x, [0], keepdims=0), [1, 8]), [X], ["ReduceMax"]),
    (lambda n, x: n("Unsqueeze", n("ReduceSum", x, [1], keepdims=0), [0]), [X],
     ["ReduceSum", "Unsqueeze"]),
    (lambda n, x: n("Unsqueeze", n("ReduceSum", x, [1], keepdims=1), [0]), [X],
     ["ReduceSum", "Unsqueeze"]),
    (lambda n, x: n("Unsqueeze", n("ReduceSum", x, [1]), [0]), [X], ["ReduceSum", "Unsqueeze"]),
    (lambda n, x: n("Reshape", n("ReduceSum", x, keepdims=0), [1, 1]), [X],
     ["ReduceSum", "Reshape"]),
    (lambda n, x: n("Reshape", n("ArgMax", x, axis=1, keepdims=0), [4, 1]), [X],
     ["ArgMax", "Reshape"]),
    (choice(), [X], ["IsNaN", "ReduceMax", "ReduceMax", "Where"]),
    (choice(chosen=lambda n, x: n("Squeeze", n("Slice", x, [0], [1], [1]), [1])), [X],
     ["Gather", "IsNaN", "ReduceMax", "Where", "Unsqueeze"]),
    (choice(chosen=lambda n, x: X[:, 0]), [X], ["IsNaN", "ReduceMax", "Where", "Unsqueeze"]),
    (choice(other=X[:, 0]), [X], ["ReduceMax", "IsNaN", "ReduceMax", "Where", "Unsqueeze"]),
    (choice(again="most"), [X], ["ReduceMax", "IsNaN", "ReduceMax", "Where", "Unsqueeze"]),
    (choice(again="either"), [X], ["ReduceMax", "IsNaN", "ReduceMax", "Where", "Unsqueeze"]),
    (choice(again="nan"), [X], ["ReduceMax", "IsNaN", "ReduceMax", "Where", "Unsqueeze"]),
    # Transposes
    (lambda n, x: n("Transpose", x, perm=[0, 1]), [X], ["Identity"]),
    (lambda n, x: n("Transpose", n("Transpose", x, perm=[1, 2, 0]), perm=[1, 0, 2]), [Y3],
     ["Transpose"]),
    (lambda n, x: n("Transpose", n("Transpose", x, perm=[1, 2, 0]), perm=[2, 0, 1]), [Y3],
     ["Identity"]),
    (lambda n, x: n("Transpose", x, perm=[1, 0, 2]), [X[:, None]], ["Reshape"]),
    (lambda n, x: n("Transpose", x, perm=[2, 1, 0]), [X[:, None]], ["Transpose"]),
    (lambda n, x: n("Transpose", x, perm=[1, 0, 2]), [X[:0, None]], ["Transpose"]),
    (lambda n, x: n("Reshape", n("Transpose", x, perm=[1, 0]), [8, 1, 4]), [X],
     ["Transpose", "Reshape"]),
    (lambda n, x: n("Reshape", n("Transpose", x, perm=[2, 1, 0]), [8, 4, 1]), [X[:, None]],
     ["Transpose"]),
    (lambda n, x: n("Reshape", n("Transpose", x, perm=[2, 1, 0]), [4, 1, 8]), [X[:, None]],
     ["Transpose", "Reshape"]),
    # Products of matrices with units before them
    (lambda n, x, y: n("MatMul", n("Unsqueeze", x, [0]), y), [X, Y3], ["MatMul"]),
    (lambda n, x, y: n("MatMul", y, n("Reshape", x, [1, 1, 5, 6])), [NARROW, Y3],
     ["Reshape", "MatMul"]),
    (lambda n, x, y: n("MatMul", y, n("Reshape", x, [1, 5, 6])), [NARROW, Y3],
     ["MatMul"]),
    (lambda n, x, y: n("MatMul", n("Unsqueeze", x, [0]), y), [X, W], ["Unsqueeze", "MatMul"]),
    (lambda n, x, y: n("MatMul", n("Unsqueeze", x, [0]), y), [X[0], Y3], ["Unsqueeze", "MatMul"]),
    (lambda n, x, y: n("MatMul", n("Reshape", x, [1, 4, 8]), y), [X.T.copy(), Y3],
     ["Reshape", "MatMul"]),
    (lambda n, x, y: n("MatMul", n("Reshape", n("Squeeze", x, [0]), [1, 4, 8]), y), [X[None], Y3],
     ["MatMul"]),
    # One index along an axis
    (picked([1], [2], [0]), [X], ["Gather"]),
    (picked([3], [4], [1], view=("Squeeze", [1])), [X], ["Gather"]),
    (picked([3], [4], [1], view=("Reshape", [4])), [X], ["Gather"]),
    (picked([1], [2], [0], [2]), [X], ["Slice", "Squeeze"]),
    (picked([-1], [9], [0]), [X], ["Slice", "Squeeze"]),
    (picked([-1], [0], [0], [-1], view=("Reshape", [24])), [X], ["Slice", "Reshape"]),
    (picked([-2], [-1], [0]), [X], ["Slice", "Squeeze"]),
    (picked([1, 2], [2, 3], [0, 1]), [X], ["Slice", "Squeeze"]),
    (picked([1], [3], [0], view=("Reshape", [16])), [X], ["Slice", "Reshape"]),
    (picked([1], [2], [0], view=("Reshape", [8, 1])), [X], ["Slice", "Reshape"]),
    (picked([1], [2], [0], view=("Reshape", [2, 4])), [X], ["Slice", "Reshape"]),
    # What is repeated before it is broadcast
    (lambda n, x, y: n("Add", n("Expand", y, [4, 8]), x), [X, X[0]], ["Add"]),
    (lambda n, x, y: n("Sub", x, n("Expand", y, [4, 8])), [X, X[:, :1]], ["Sub"]),
    (lambda n, x, y: n("Add", n("Expand", x, [3, 4, 8]), y), [X, X[0]], ["Expand", "Add"]),
    (lambda n, x, y: n("Where", n("Greater", x, y), n("Expand", y, [4, 8]), x), [X, X[0]],
     ["Greater", "Where"]),
    (lambda n, x, y: n("MatMul", n("Expand", x, [3, 4, 8]), y), [X, Y3], ["MatMul"]),
    (lambda n, x, y: n("MatMul", n("Expand", x, [3, 4, 8]), y), [X, W], ["Expand", "MatMul"]),
    (lambda n, x, y: n("MatMul", n("Expand", x, [3, 4, 8]), y), [X[:1], Y3], ["Expand", "MatMul"]),
    (lambda n, x, y: n("MatMul", n("Expand", x, [3, 4, 8]), y), [X[0], Y3], ["Expand", "MatMul"]),
    # An operand whose units were left out, where the other operand has axes for them
    (lambda n, x, y: n("Add", n("Squeeze", x, [0]), y), [X[:1], X], ["Add"]),
    (lambda n, x, y: n("Mul", y, n("Reshape", x, [8])), [X[:1], X], ["Mul"]),
    (lambda n, x, y: n("Add", n("Reshape", x, [8]), y), [X[None, :1], X], ["Reshape", "Add"]),
    (lambda n, x, y: n("Add", n("Reshape", x, [8]), y), [X[:, :2], X], ["Reshape", "Add"]),
    (lambda n, x, y: n("Add", n("Squeeze", x, [1]), y), [X[:, :1], X[:, :4]], ["Squeeze", "Add"]),
    # Elements before views
    (lambda n, x: n("Tanh", n("Reshape", x, [2, 16])), [X], ["Tanh", "Reshape"]),
    (lambda n, x: n("Clip", n("Reshape", x, [2, 16]), np.float32(-1), np.float32(1)), [X],
     ["Clip", "Reshape"]),
    (lambda n, x: n("Cast", n("Reshape", x, [2, 16]), to=np.dtype(np.int32)), [X],
     ["Cast", "Reshape"]),
    (lambda n, x: n("Cast", n("Transpose", x, perm=[1, 0]), to=np.dtype(np.int32)), [X],
     ["Cast", "Transpose"]),
    (lambda n, x: n("Softmax", n("Reshape", x, [2, 16]), axis=-1), [X], ["Reshape", "Softmax"]),
    # Parts that are joined again
    (lambda n, x: n("Concat", *n("Split", x, outputs=2, axis=1, num_outputs=2), axis=-1), [X],
     ["Identity"]),
    (lambda n, x: n("Concat", *n("Split", x, outputs=2, axis=1, num_outputs=2), x, axis=1), [X],
     ["Concat"]),
    (lambda n, x: n("Concat", x, *n("Split", x, outputs=2, axis=1, num_outputs=2), x, axis=1), [X],
     ["Concat"]),
    (lambda n, x: n("Concat", *n("Split", x, outputs=2, axis=1, num_outputs=2)[::-1], axis=1), [X],
     ["Split", "Concat"]),
    (lambda n, x: n("Concat", *n("Split", x, outputs=2, axis=1, num_outputs=2), axis=0), [X],
     ["Split", "Concat"]),
    (lambda n, x: n("Concat", x, n("Tanh", x), axis=1), [X], ["Tanh", "Concat"]),
    # Both directions of a network's states
    (both_ways(), [STATES], ["Transpose", "Reshape"]),
    (both_ways(axis=-1), [STATES], ["Transpose", "Reshape"]),
    (both_ways(squeezed=None), [STATES], ["Split", "Squeeze", "Squeeze", "Concat"]),
    (both_ways(axis=1), [STATES], ["Split", "Squeeze", "Squeeze", "Concat"]),
    (both_ways(order=(1, 0)), [STATES], ["Split", "Squeeze", "Squeeze", "Concat"]),
    (both_ways(squeezed=(2, 2), along=2), [STATES.swapaxes(1, 2).copy()],
     ["Split", "Squeeze", "Squeeze", "Concat"]),
    (both_ways(squeezed=(0, 0), along=0), [STATES.swapaxes(0, 1).copy()],
     ["Split", "Squeeze", "Squeeze", "Concat"]),
    # Windows of one element along the first axis
    (pooled(), [IMAGE], ["Reshape", "MaxPool", "Reshape"]),
    (pooled(strides=[1, 2, 1]), [IMAGE], ["Reshape", "MaxPool", "Reshape"]),
    (pooled(dilations=[1, 2, 1]), [IMAGE], ["Reshape", "MaxPool", "Reshape"]),
    (pooled(pads=[0, 1, 0, 0, 0, 1]), [IMAGE], ["Reshape", "MaxPool", "Reshape"]),
    (pooled(strides=[2, 1, 1]), [IMAGE], ["MaxPool"]),
    (pooled(strides=[2, 1, 1], kernel_shape=[2, 1, 1]), [IMAGE], ["MaxPool"]),
    (pooled(dilations=[2, 1, 1]), [IMAGE], ["MaxPool"]),
    (pooled(kernel_shape=[2, 1, 1]), [IMAGE], ["MaxPool"]),
    (pooled(kernel_shape=[1, 2]), [IMAGE[0]], ["MaxPool"]),
    # Constants of products that are viewed
    (lambda n, x: n("Add", n("Reshape", n("MatMul", x, W), [4, 2, 3]), ROWS), [X],
     ["Gemm", "Reshape"]),
    (lambda n, x: n("Mul", ROWS, n("Reshape", n("MatMul", x, W), [4, 2, 3])), [X],
     ["MatMul", "Reshape"]),
    (lambda n, x: n("Sub", n("Reshape", n("MatMul", x, W), [4, 2, 3]), ROWS), [X],
     ["Gemm", "Reshape"]),
    (lambda n, x: n("Sub", ROWS, n("Reshape", n("MatMul", x, W), [4, 2, 3])), [X],
     ["MatMul", "Reshape", "Sub"]),
    (lambda n, x: n("Add", n("Reshape", n("MatMul", x, W), [4, 2, 3]), normal(2, 1, 1, 1)), [X],
     ["MatMul", "Reshape", "Add"]),
    (lambda n, x: n("Add", n("Reshape", n("MatMul", x, W), [4, 2, 3]), ROWS[None, None, :1]), [X],
     ["MatMul", "Reshape", "Add"]),
    (lambda n, x: n("Add", n("Reshape", n("MatMul", x, W), [4, 1, 6]), normal(4, 3, 6)), [X],
     ["MatMul", "Reshape", "Add"]),
    (lambda n, x: n("Add", n("Reshape", x, [4, 2, 4]), np.ones((2, 4), np.float32)), [X],
     ["Reshape", "Add"]),
    (lambda n, x: n("Add", n("Reshape", n("MatMul", x, MANY), [2, 257, 256]), LARGE), [X[:2, :1]],
     ["MatMul", "Reshape", "Add"]),
]  # fmt: skip


@pytest.mark.parametrize(("build", "given", "names"), GRAPHS)
def test_what_graphs_become(build, given, names):
    assert spelled(build, *given) == names


READ_AGAIN = [
    (lambda n, x: (r := n("ReduceSum", x, [1], keepdims=0), n("Unsqueeze", r, [1])), X, 2),
    (lambda n, x: (t := n("Transpose", x, perm=[2, 1, 0]), n("Reshape", t, [8, 4, 1])), X[:, None],
     2),
    (lambda n, x: (c := n("Slice", x, [1], [2], [0]), n("Squeeze", c, [0])), X, 2),
    (lambda n, x: (v := n("Reshape", x, [2, 16]), n("Tanh", v)), X, 2),
    (lambda n, x: (t := n("Transpose", x, perm=[1, 0]), n("Cast", t, to=np.dtype(np.int32))), X, 2),
    (lambda n, x: (p := n("MatMul", x, W), n("Add", n("Reshape", p, [4, 2, 3]), ROWS)), X, 3),
    (lambda n, x: (v := n("Reshape", n("MatMul", x, W), [4, 2, 3]), n("Add", v, ROWS)), X, 3),
]  # fmt: skip


@pytest.mark.parametrize(("build", "given", "count"), READ_AGAIN)
def test_what_is_read_elsewhere_too_stays(build, given, count):
    assert len(spelled(build, given)) == count


@pytest.mark.parametrize(
    ("build", "given", "names"),
    [
        (GRAPHS[0][0], [X], ["Unsqueeze", "Reshape"]),
        (lambda n, x: n("Tanh", n("Reshape", x, [2, 16])), [X], ["Reshape", "Tanh"]),
        (lambda n, x: n("Unsqueeze", n("ReduceSum", x, [1], keepdims=0), [1]), [X],
         ["ReduceSum", "Unsqueeze"]),
        (lambda n, x, y: n("Add", n("Expand", y, [4, 8]), x), [X, X[0]], ["Expand", "Add"]),
        (lambda n, x, y: n("Add", n("Squeeze", x, [0]), y), [X[:1], X], ["Squeeze", "Add"]),
        (lambda n, x, y: n("MatMul", n("Unsqueeze", x, [0]), y), [X, Y3], ["Unsqueeze", "MatMul"]),
        (lambda n, x: n("Add", x, np.ones((4, 8), np.float32)), [X], ["Add"]),
        (picked([1], [2], [0]), [X], ["Slice", "Squeeze"]),
        (pooled(), [IMAGE], ["MaxPool"]),
        (both_ways(), [STATES], ["Split", "Squeeze", "Squeeze", "Concat"]),
    ],
)  # fmt: skip
def test_tensors_of_unknown_shape_stay_as_they_are(build, given, names):
    # The types of inputs and outputs are declared.
    f = lambda n, *xs: n("Sin", build(n, *[n("Sin", x) for x in xs]))
    assert [op for op in spelled(f, *given, known=False) if op != "Sin"] == names


@pytest.mark.parametrize(("build", "given", "_"), GRAPHS)
def test_a_tensor_may_be_of_unknown_type(build, given, _):
    spelled_without_a_type(build, *given)


CONSTANTS = [
    (lambda n, x: n("Add", x, np.ones((4, 8), np.float32) * X[0]), [X], (8,)),
    (lambda n, x: n("Add", x, np.ones((2, 8), np.float32) * X[0]), [X[:2]], (8,)),
    (lambda n, x: n("Add", x, X[:1]), [X], (8,)),
    (lambda n, x: n("Add", x, X[:1]), [X[0]], (1, 8)),
    (lambda n, x: n("Add", x, np.ones((2, 4, 1), np.float32) * X[:2, None]), [X], (2, 1, 8)),
    (lambda n, x: n("Max", x, np.full((4, 8), np.nan, np.float32)), [X], ()),
    (lambda n, x: n("Add", x, np.ones((4, 8), np.float32) * X[0]), [X[:1]], (4, 8)),
    (lambda n, x: n("Add", x, X), [X], (4, 8)),
    (lambda n, x: n("Mul", x, np.arange(8, dtype=np.int32) * np.ones((4, 1), np.int32)), [INTS],
     (8,)),
    (lambda n, x: n("Where", n("Greater", x, X), x, np.full((4, 8), 2, np.float32)), [X], ()),
]  # fmt: skip


@pytest.mark.parametrize(("build", "given", "shape"), CONSTANTS)
def test_constants_are_as_small_as_they_can_be_broadcast_from(build, given, shape):
    spelled(build, *given)
    model, _ = by_hand(build, *given)
    assert shape in [tuple(t.dims) for t in model.graph.initializer]


def test_a_constant_that_stays_hides_no_operand_that_repeats():
    f = lambda n, x: n("Add", n("Expand", x, [4, 8]), X)
    assert spelled(f, X[0]) == ["Add"]


@pytest.mark.parametrize(
    ("build", "shapes", "names"),
    [
        (lambda n, x: n("Reshape", n("Unsqueeze", x, [1], shape=("n", 1, 8)), [-1, 2, 4],
                        shape=("n", 2, 4)), [("n", 8)], ["Reshape"]),
        (lambda n, x: n("Unsqueeze", n("Reshape", x, [-1, 2, 4], shape=("n", 2, 4)), [0],
                        shape=(1, "n", 2, 4)), [("n", 8)], ["Reshape", "Unsqueeze"]),
        (lambda n, x: n("Transpose", x, perm=[1, 0, 2]), [("n", 1, 8)], ["Transpose"]),
        (pooled(), [("n", 3, 4, 6, 6)], ["Reshape", "MaxPool", "Reshape"]),
        (pooled(), [("n", "m", 4, 6, 6)], ["MaxPool"]),
        (pooled(shape=(2, 3, "n", 5, 5)), [(2, 3, "n", 6, 6)], ["MaxPool"]),
        (pooled(shape=(2, "n", 4, 5, 5)), [(2, "n", 4, 6, 6)], ["MaxPool"]),
        (
            pooled(shape=(2, 3, 4, "n", 5)),
            [(2, 3, 4, "n", 6)],
            ["Reshape", "MaxPool", "Reshape"],
        ),
        (both_ways(), [("n", 2, 4, 3)], ["Transpose", "Reshape"]),
        (both_ways(), [("n", 2, "m", 3)], ["Split", "Squeeze", "Squeeze", "Concat"]),
    ],
)  # fmt: skip
def test_views_of_any_size(build, shapes, names):
    given = [normal(*[{"n": 4, "m": 3}.get(n, n) for n in shape]) for shape in shapes]
    assert spelled(build, *given, shapes=shapes) == names


def repeated(axis=3, times=2, out=None, again=False):
    """Repeat elements along an axis of an image, which are put behind it first."""

    def build(n, x, shape=(2, 3, 4, 5)):
        units = (*shape[:axis], 1, *shape[axis:])
        wide = [times if d == axis else m for d, m in enumerate(units)]
        whole = [m * times if d == axis - 1 else m for d, m in enumerate(shape)]
        y = n("Expand", n("Reshape", x, units), wide)
        z = n("Reshape", y, whole if out is None else out)
        return (y, z) if again else z

    return build


def enlarged(n, x):
    first = repeated(3, 2)(n, x)
    return repeated(4, 3)(n, first, (2, 3, 8, 5))


PIXELS = normal(2, 3, 4, 5)

REPEATS = [
    (repeated(), PIXELS, ["Resize"]),
    (repeated(4, 3), PIXELS, ["Resize"]),
    (repeated(out=[2, 3, 8, 1, 5]), PIXELS, ["Resize", "Reshape"]),
    (repeated(out=[1, 2, 3, 8, 5]), PIXELS, ["Resize", "Reshape"]),
    (enlarged, PIXELS, ["Resize"]),
    (lambda n, x: repeated(3)(n, x, (2, 3, 4)), PIXELS[..., 0], ["Resize"]),
    (repeated(2), PIXELS, ["Reshape", "Expand", "Reshape"]),
    (repeated(1), PIXELS, ["Reshape", "Expand", "Reshape"]),
    (repeated(out=[6, 8, 5]), PIXELS, ["Reshape", "Expand", "Reshape"]),
    (repeated(out=[2, 3, 4, 10]), PIXELS, ["Reshape", "Expand", "Reshape"]),
    (lambda n, x: n("Reshape", n("Expand", x, [2, 3, 4, 2, 5]), [2, 3, 8, 5]),
     PIXELS[:, :, :, None], ["Reshape", "Resize"]),
    (repeated(again=True), PIXELS, ["Reshape", "Expand", "Reshape"]),
    (repeated(), PIXELS.astype(np.float64), ["Reshape", "Expand", "Reshape"]),
    (lambda n, x: repeated(3)(n, x, (2, 3, 4, 5, 1)), PIXELS, ["Reshape", "Expand", "Reshape"]),
    (lambda n, x: repeated(2)(n, x, (6, 20)), PIXELS, ["Reshape", "Expand", "Reshape"]),
    (lambda n, x: n("Reshape", n("Expand", n("Unsqueeze", x, [0, 4]), [2, 2, 3, 4, 2, 5]),
                    [4, 3, 8, 5]), PIXELS, ["Unsqueeze", "Expand", "Reshape"]),
]  # fmt: skip


@pytest.mark.parametrize(("build", "given", "names"), REPEATS)
def test_elements_that_are_repeated(build, given, names):
    assert spelled(build, given) == names


def test_what_is_enlarged_is_read_at_half_its_size_too():
    f = lambda n, x: (first := repeated()(n, x), repeated(4, 3)(n, first, (2, 3, 8, 5)))
    assert spelled(f, PIXELS) == ["Resize", "Resize"]


def lifted(x=(2, 1, 3, 4), y=(2, 4, 5), out=(2, 1, 3, 5), again=False, batch=(2,)):
    """Multiply matrices, of which one had units in front, and put units there again."""

    def build(n, a, b):
        p = n("MatMul", n("Reshape", a, [*batch, 3, 4]), n("Reshape", b, [*batch, 4, 5]))
        z = n("Reshape", p, out)
        return (p, z) if again else z

    return build, (normal(*x), normal(*y))


LIFTED = [
    (lifted(), ["Reshape", "MatMul"]),
    (lifted(x=(2, 3, 4), y=(2, 1, 4, 5)), ["Reshape", "MatMul"]),
    (lifted(x=(2, 3, 4), y=(1, 2, 4, 5), out=(1, 2, 3, 5)), ["MatMul"]),
    (lifted(x=(2, 3, 4)), ["MatMul", "Reshape"]),
    (lifted(out=(2, 3, 1, 5)), ["Reshape", "MatMul", "Reshape"]),
    (lifted(out=(2, 3, 5, 1)), ["Reshape", "MatMul", "Reshape"]),
    (lifted(again=True), ["Reshape", "MatMul", "Reshape"]),
    (lifted(x=(1, 3, 4), y=(1, 4, 5), out=(1, 1, 3, 5), batch=(1,)), ["MatMul", "Reshape"]),
    (lifted(x=(1, 3, 4), y=(4, 5), out=(1, 3, 5), batch=()), ["Reshape", "MatMul", "Reshape"]),
    (
        (
            lambda n, x, y: n("Reshape", n("MatMul", n("Reshape", x, [1, 3, 4]), y), [2, 1, 3, 5]),
            (normal(12), normal(2, 4, 5)),
        ),
        ["Reshape", "MatMul", "Reshape"],
    ),
]


@pytest.mark.parametrize(("case", "names"), LIFTED)
def test_units_before_the_matrices_of_a_product(case, names):
    build, given = case
    assert spelled(build, *given) == names
