"""What a function is exported as, for tests: its operators, and what onnxruntime computes."""

import contextlib

import numpy as np
import pytest

from stretto import export
from stretto._engine.core import tree
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
