"""Views meet, and those that undo each other go; what stands between operators goes behind them."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import export
from stretto._engine.core.sizes import SizeVariable, is_size, size_of
from stretto._engine.lowering.onnx.views import _on_source
from stretto.nn import functional as F
from tests.onnx_graphs import agrees, operators, run

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
        ((1, 1, 3), (6, 4), (4, 2, 3), (6, 4)),
        ((1, 1, 6), (1, 4, 6), (4, 1, 6), (1, 1, 6)),
    ],
)
def test_a_constant_before_a_view(constant, source, view, expected):
    value = np.arange(np.prod(constant), dtype=np.float32).reshape(constant)
    moved = _on_source(value, source, view)
    assert (None if moved is None else moved.shape) == expected
    if expected is not None and not any(is_size(n) for n in source):
        x = normal(*source)
        np.testing.assert_array_equal((x + moved).reshape(view), x.reshape(view) + value)
