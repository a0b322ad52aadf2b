"""Run exported models by onnxruntime, for tests: skip where it is not installed."""

import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

import stretto.numpy as snp
from stretto import export
from stretto._engine.core import tree
from stretto._engine.core.types import is_complex
from tests.onnx_graphs import flags_are_set_or_not, is_close, spell_and_check_types, spelling

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}
"""What onnxruntime calls the dtypes that arrays of 64 bits come as, where those are off."""


ENDLESS = 60
"""Seconds after which a run is ended with an error, since a loop in the model seems to go on."""


def session(model: Any) -> Any:
    """Return a session of onnxruntime for a model, or for a path, with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    source = str(model) if hasattr(model, "is_file") else model.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def as_input(x: Any) -> np.ndarray:
    """Return an array as an input takes it: complex numbers as pairs."""
    x = np.asarray(x)
    return np.stack([x.real, x.imag], -1) if is_complex(x.dtype) else x


def run(model: Any, arrays: Any) -> list[np.ndarray]:
    """Run a model on arrays, in the order of its inputs."""
    s = session(model)
    fed = {}
    for taken, x in zip(s.get_inputs(), arrays, strict=True):
        dtype = DTYPES.get(taken.type)
        fed[taken.name] = as_input(x).astype(dtype) if dtype else as_input(x)
    options = onnxruntime.RunOptions()
    timer = threading.Timer(ENDLESS, lambda: setattr(options, "terminate", True))
    timer.start()
    try:
        return s.run(None, fed, options)
    finally:
        timer.cancel()


def exported(function: Any, *examples: Any, **options: Any) -> Any:
    """Return a checked model."""
    with spelling(spell_and_check_types):
        model = export.onnx(function, *examples, **options)
    onnx.checker.check_model(model, full_check=True)
    flags_are_set_or_not(model)
    return model


def agrees(function: Any, *examples: Any, rtol: float | None = None, **options: Any) -> Any:
    """Assert that a model gives what the function gives, and return it.

    By default to the digits of float64, where it is that, and else to those of float32.
    """
    model = exported(function, *examples, **options)
    got = run(model, tree.leaves(examples))
    want = [np.asarray(x) for x in tree.leaves(function(*tree.map(snp.asarray, examples)))]
    for g, w in zip(got, want, strict=True):
        if is_complex(w.dtype):
            g = g[..., 0] + 1j * g[..., 1]
        assert g.dtype == w.dtype
        digits = 1e-12 if w.dtype in (np.float64, np.complex128) else 1e-5
        is_close(g, w, rtol or digits, rtol or digits)
    return model


def operators(model: Any) -> Counter:
    """Count the operators of a model."""
    return Counter(node.op_type for node in model.graph.node)
