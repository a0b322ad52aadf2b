"""Constants computed while writing are those that onnxruntime computes."""

import numpy as np
import pytest

from stretto._engine.lowering.onnx.folding import folded
from stretto._engine.lowering.onnx.graph import Node

X = np.array([[1.5, -2.0, 0.25], [4.0, 0.5, -1.0]], np.float32)
INTS = np.array([[1, -2, 3], [4, 0, -6]], np.int32)


def ints(*values):
    return np.array(values, np.int64)


CALLS = [
    ("Add", (X, X), {}),
    ("Sub", (X, np.float32(1.0)), {}),
    ("Mul", (INTS, INTS), {}),
    ("Div", (X, X), {}),
    ("Neg", (INTS,), {}),
    ("Abs", (X,), {}),
    ("Sqrt", (np.abs(X),), {}),
    ("Exp", (X,), {}),
    ("Reciprocal", (X,), {}),
    ("Max", (X, np.float32(0.0)), {}),
    ("Min", (INTS, INTS.T.copy().reshape(2, 3)), {}),
    ("Less", (X, np.float32(1.0)), {}),
    ("GreaterOrEqual", (INTS, INTS), {}),
    ("Equal", (INTS, INTS.T.copy().reshape(2, 3)), {}),
    ("Where", (X > 0, X, np.float32(7.0)), {}),
    ("Cast", (INTS,), {"to": np.dtype(np.float32)}),
    ("Cast", (INTS,), {"to": np.dtype(np.int8)}),
    ("Reshape", (X, ints(3, -1)), {}),
    ("Unsqueeze", (X, ints(0, 3)), {}),
    ("Squeeze", (X[None, :, None], ints(0, 2)), {}),
    ("Squeeze", (X[None, :, None],), {}),
    ("Transpose", (X,), {"perm": [1, 0]}),
    ("Concat", (X, X), {"axis": 1}),
    ("Expand", (X[:, :1], ints(4, 1, 3)), {}),
    ("Slice", (X, ints(0), ints(3), ints(1), ints(2)), {}),
    ("Slice", (X, ints(-1), ints(np.iinfo(np.int64).min), ints(1), ints(-1)), {}),
    ("Slice", (X, ints(1, 1), ints(9, 3), ints(0, 1)), {}),
    ("Slice", (X, ints(-1), ints(-4), ints(1), ints(-1)), {}),
    ("Slice", (X, ints(-1), ints(-3), ints(1), ints(-1)), {}),
    ("Slice", (X, ints(-1), ints(0), ints(1), ints(-1)), {}),
    ("Slice", (X, ints(-2), ints(-1), ints(1)), {}),
    ("Slice", (X, ints(0, -1), ints(2, -9), ints(0, 1), ints(2, -1)), {}),
    ("Slice", (X, ints(1), ints(1), ints(0)), {}),
    ("Reshape", (X[:0], ints(0, 2)), {"allowzero": 1}),
    ("Cast", (X > 0,), {"to": np.dtype(np.int32)}),
    ("Cast", (X,), {"to": np.dtype(np.float16)}),
    ("Cast", (np.abs(INTS).astype(np.uint8),), {"to": np.dtype(np.int64)}),
    ("Neg", (X.astype(np.float16),), {}),
    ("Add", (X.astype(np.float16), np.float16(1)), {}),
    ("Less", (INTS, np.int32(1)), {}),
    ("LessOrEqual", (INTS, np.int32(1)), {}),
    ("Greater", (X, np.float32(0.5)), {}),
    ("GreaterOrEqual", (X, np.float32(0.5)), {}),
    ("And", (X > 0, X < 2), {}),
    ("Or", (X > 0, X < 2), {}),
    ("Not", (X > 0,), {}),
    ("Min", (X, np.float32(np.nan)), {}),
    ("Concat", (X, X), {"axis": 0}),
    ("Concat", (X, X[:, :1]), {"axis": -1}),
    ("Transpose", (X[None],), {"perm": [2, 0, 1]}),
    ("Expand", (X, ints(1, 1)), {}),
]


@pytest.mark.parametrize(("op", "values", "attributes"), CALLS)
def test_constants_are_what_the_runtime_computes(op, values, attributes):
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    got = folded(Node(op, (), (), attributes), values)
    helper, names = onnx.helper, [f"x{k}" for k in range(len(values))]
    arrays = dict(zip(names, map(np.asarray, values), strict=True))
    given = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in arrays.items()
    ]
    settings = {
        k: helper.np_dtype_to_tensor_dtype(v) if isinstance(v, np.dtype) else v
        for k, v in attributes.items()
    }
    made = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(got.dtype), None)
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **settings)], "g", given, [made])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (expected,) = session.run(None, arrays)
    assert expected.shape == got.shape and expected.dtype == got.dtype
    np.testing.assert_allclose(got, expected, rtol=3e-7)


@pytest.mark.parametrize(
    ("op", "values", "attributes"),
    [
        ("Div", (INTS, INTS), {}),  # zero divisors are the runtime's business
        ("Cast", (X,), {"to": np.dtype(np.int32)}),  # as are floats without an integer
        ("Reshape", (X, ints(0, 3)), {}),  # 0 stands for the size that was there
        ("Slice", (X, ints(2), ints(-9), ints(1), ints(-2)), {}),
        ("Slice", (X, ints(2), ints(-9), ints(1), ints(-1)), {}),
        ("Slice", (X, ints(-1), ints(-9), ints(1), ints(-2)), {}),
        ("Reshape", (X, ints(0, 3)), {"allowzero": 0}),
        ("Softmax", (X,), {}),
    ],
)
def test_what_is_not_computed_here(op, values, attributes):
    assert folded(Node(op, (), (), attributes), values) is None
