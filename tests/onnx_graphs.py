"""What a function is exported as, for tests: its operators, and what onnxruntime computes."""

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest

from stretto import export
from stretto._engine.core import tree
from stretto._engine.core.sizes import SizeVariable, size_of
from stretto._engine.core.types import array_type
from stretto._engine.lowering.onnx.graph import Operand
from stretto._engine.lowering.onnx.products import Onnx
from stretto._engine.lowering.onnx.spelling import spell
from stretto.export import onnx_model


@contextlib.contextmanager
def unspelled():
    """Leave graphs as they were written."""
    before = onnx_model.spell
    onnx_model.spell = lambda b: None
    try:
        yield
    finally:
        onnx_model.spell = before


def graphs(graph):
    """Give a graph and those inside of it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs(attribute.g)


def operators(model):
    """Return the operators of the outermost graph, in order."""
    return [node.op_type for node in model.graph.node]


def run(model, *arrays, as_it_is=False):
    """Run a model on arrays, in the order of its inputs; ``as_it_is`` has nothing fused."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    if as_it_is:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [taken.name for taken in session.get_inputs()]
    return session.run(None, dict(zip(names, map(np.asarray, arrays), strict=True)))


def agrees(f, *arrays, rtol=2e-5, **settings):
    """Export a function, assert that its file gives its values, and return the operators."""
    model = export.onnx(f, *arrays, **settings)
    with np.errstate(all="ignore"):
        expected = tree.leaves(f(*arrays))
    for got, value in zip(run(model, *arrays), expected, strict=True):
        value = np.asarray(value)
        assert got.dtype == value.dtype and got.shape == value.shape
        finite = np.abs(value[np.isfinite(value)]) if value.dtype.kind == "f" else np.zeros(0)
        atol = rtol * float(finite.max(initial=0.0))
        np.testing.assert_allclose(got, value, rtol=rtol, atol=atol)
    return operators(model)


# Graphs written by hand


def _sized(shape):
    return tuple([size_of(SizeVariable(n)) if isinstance(n, str) else n for n in shape])


def _inputs(b, arrays, shapes):
    """Declare arrays as inputs; a name in place of a size is one that varies."""
    operands = []
    for k, x in enumerate(arrays):
        shape = _sized(x.shape if shapes is None else shapes[k])
        operands.append(onnx_model._input(b, b.graph.inputs, f"x{k}", array_type(shape, x.dtype)))
    for name in dict.fromkeys(n for shape in shapes or () for n in shape if isinstance(n, str)):
        onnx_model._bind(b, b.graph.inputs, SizeVariable(name))
    return operands


def _model(b):
    return onnx_model._assembled(b, SimpleNamespace(name="main", guards=()), None)


def _several(made):
    return [*made] if isinstance(made, (list, tuple)) else [made]


def written(build, *arrays, shapes=None, exact=True, opset=26):
    """Return the model of the operands that ``build(b, *operands)`` has a writer write."""
    b = Onnx(opset, exact)
    for k, result in enumerate(_several(build(b, *_inputs(b, arrays, shapes)))):
        onnx_model._output(b, b.graph.outputs, f"y{k}", result)
    return _model(b)


def _inferred(b, shapes):
    """Give the types of tensors, which a writer knows, as inference finds them."""
    onnx = pytest.importorskip("onnx")
    graph = onnx.shape_inference.infer_shapes(_model(b), data_prop=True).graph
    sizes = {str(n): n for value in b.graph.inputs for n in value.shape}
    for info in [*graph.input, *graph.value_info]:
        kind = info.type.tensor_type
        shape = shapes.get(info.name)
        if shape is None and kind.HasField("shape"):
            dims = kind.shape.dim
            shape = [
                d.dim_value if d.HasField("dim_value") else sizes.get(d.dim_param) for d in dims
            ]
        if shape is not None and None not in shape:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            b.types[info.name] = np.dtype(dtype), tuple(shape)


def by_hand(build, *arrays, shapes=None, exact=True, known=True):
    """Return the model of nodes that are spelled, and that of the same as they are.

    ``build(node, *names)`` returns a tensor or several: ``node(op, *inputs, **attributes)`` writes
    a node, of tensors and of constants; ``shape`` says what inference does not find. ``known`` says
    whether the types of tensors are.
    """
    b = Onnx(26, exact)
    operands = _inputs(b, arrays, shapes)
    told = {}

    def node(op, *inputs, outputs=1, shape=None, **attributes):
        names = [x if isinstance(x, str) else b.constant(np.asarray(x)) for x in inputs]
        made = b.node(op, names, outputs, **attributes)
        if shape is not None:
            told[made] = _sized(shape)
        return made

    made = _several(build(node, *[x.name for x in operands]))
    _inferred(b, told)
    for k, name in enumerate(made):
        value = b.constants.get(name)
        dtype, shape = b.types[name] if value is None else (value.dtype, value.shape)
        operand = Operand(name, array_type(shape, dtype), shape)
        onnx_model._output(b, b.graph.outputs, f"y{k}", operand)
    if not known:
        b.types = {}
    plain = _model(b)
    spell(b)
    return _model(b), plain


def spelled(build, *arrays, feeds=(), rtol=2e-5, **settings):
    """Return the operators that nodes become, and assert that they compute the same.

    ``feeds`` are more arrays to compare with; the rest is that of ``by_hand``.
    """
    model, plain = by_hand(build, *arrays, **settings)
    for fed in (arrays, *feeds):
        expected = run(plain, *fed, as_it_is=True)
        for got, value in zip(run(model, *fed, as_it_is=True), expected, strict=True):
            assert got.dtype == value.dtype and got.shape == value.shape
            np.testing.assert_allclose(got, value, rtol=rtol, atol=rtol)
    return operators(model)
