"""``onnx``: a function, a module or an ensemble as a model in ONNX's format."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.api.exported import Exported, trace
from stretto._engine.core.errors import ExportError
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.sizes import Size, SizeVariable, is_size, size_of
from stretto._engine.core.types import ArrayType, array_type, is_complex, real_dtype
from stretto._engine.lowering.onnx.graph import Graph, Node, Operand, Pair, Value
from stretto._engine.lowering.onnx.products import Onnx
from stretto._engine.lowering.onnx.spelling import spell

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

_onnx = LazyModule("onnx")

IR_VERSION = 13
"""The newest that onnxruntime 1.32 reads, for the newest operators; older opsets have an older one."""

_LARGE = 1 << 31
"""The bytes of weights from which on they lie beside the file: a message has at most 2 GiB."""


def onnx(
    fun: Callable[..., Any],
    *examples: Any,
    dynamic_axes: Any = None,
    path: str | os.PathLike[str] | None = None,
    opset: int = 26,
    exact: bool = True,
) -> ModelProto:
    """Write a function, a module or an ensemble as a model in ONNX's format.

    Args:
        fun: what to export; arrays that it has or captures become the model's weights.
        *examples: arguments like those of a call; what has a shape and a dtype is enough.
        dynamic_axes: a tree like ``examples`` that names the axes whose size varies, as for
            ``jit``: ``{0: "batch"}``.
        path: where to write the file; weights of 2 GiB and more are written beside it.
        opset: the version of the operators, 21 or later.
        exact: whether NaN and the tails of functions are as they are here, where the runtime's
            operators lose them; ``False`` gives fewer and faster nodes. The nodes that keep NaN run
            only where values are not finite, where that is faster: by default recurrent networks
            take 1.05 of the time, and small ones that pool or have GELU 1.4.

    Returns:
        The model, an ``onnx.ModelProto``; inputs and outputs have the names of arguments and of the
        paths in the result's tree.

    Raises:
        ExportError: an operation cannot be said in ONNX; with its name, line and the way out.
        TypeError: ``fun`` is not callable, or an example is not an array.
        ValueError: ``opset`` is older than 21.
        ModuleNotFoundError: the package ``onnx`` is not installed.
    """
    if opset < 21:
        raise ValueError(f"export.onnx: opset must be 21 or later, got {opset}")
    _check_installed()
    traced = trace(fun, examples, dynamic_axes, "export.onnx")
    model = model_of(traced, opset, exact)
    if path is not None:
        save(model, path)
    return model


def _check_installed() -> None:
    if importlib.util.find_spec("onnx") is None:
        raise ModuleNotFoundError(
            "export.onnx needs the package onnx: pip install 'stretto[onnx]'", name="onnx"
        )


def save(model: ModelProto, path: str | os.PathLike[str]) -> None:
    """Write a model; large weights beside it."""
    size = sum(t.ByteSize() for t in model.graph.initializer)
    where = Path(path)
    if size < _LARGE:
        _onnx.save(model, str(where))
        return
    _onnx.save(
        model,
        str(where),
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=where.name + ".data",
        size_threshold=1024,
    )


def model_of(traced: Exported, opset: int, exact: bool) -> ModelProto:
    """Return the model of a traced function."""
    b = Onnx(opset, exact)
    operands: list[Any] = []
    inputs: list[Value] = []
    for name, type in zip(traced.inputs, traced.in_types, strict=True):
        operands.append(_input(b, inputs, name, type))
    for variable in traced.sizes:
        _bind(b, inputs, variable)
    for name, array in traced.weights:
        operands.append(_weight(b, name, array))
    results = b.program(traced.program, operands)
    outputs: list[Value] = []
    for name, result in zip(traced.outputs, results, strict=True):
        _output(b, outputs, name, result)
    b.graph.inputs, b.graph.outputs = inputs, outputs
    spell(b)
    return _assembled(b, traced)


def _input(b: Onnx, inputs: list[Value], name: str, type: ArrayType) -> Any:
    """Declare an input; a complex one has its parts along a last axis."""
    name = b.fresh(name)
    if not is_complex(type.dtype):
        inputs.append(Value(name, type.dtype, type.shape))
        return Operand(name, type, type.shape)
    part = array_type(type.shape, real_dtype(type.dtype))
    inputs.append(Value(name, part.dtype, (*type.shape, 2)))
    halves = [b.node("Gather", [name, b.constant(np.array(k))], axis=-1) for k in (0, 1)]
    return Pair(type, *[Operand(half, part, part.shape) for half in halves])


def _bind(b: Onnx, inputs: Sequence[Value], variable: SizeVariable) -> None:
    """Read a size off the first input that has it as an axis."""
    for value in inputs:
        for axis, n in enumerate(value.shape):
            if isinstance(n, Size) and n.terms == size_of(variable).terms:
                b.sizes[variable] = b.node("Shape", [value.name], start=axis, end=axis + 1)
                return
    raise ExportError(f"export.onnx: no input has an axis of size {variable}")


def _weight(b: Onnx, name: str, array: np.ndarray) -> Any:
    type = array_type(array.shape, array.dtype)
    if is_complex(array.dtype):
        return b.array(array)
    operand = b.held(array, type)
    if array.size > 1:
        operand = Operand(b.fresh(name), type, array.shape, np.ascontiguousarray(array))
        b.constants[operand.name] = operand.value
    return operand


def _output(b: Onnx, outputs: list[Value], name: str, result: Any) -> None:
    name = b.fresh(name)
    if isinstance(result, Pair):
        source, shape = b._pair_name(result), (*result.type.shape, 2)
        dtype = real_dtype(result.type.dtype)
    else:
        whole = b.whole(result)
        source, shape, dtype = b.named(whole), whole.shape, whole.type.dtype
    b.graph.nodes.append(Node("Identity", (source,), (name,), {}))
    outputs.append(Value(name, dtype, shape))


def _assembled(b: Onnx, traced: Exported) -> ModelProto:
    helper = _onnx.helper
    used = _names_read(b.graph)
    initializers = [
        _onnx.numpy_helper.from_array(array, name)
        for name, array in b.constants.items()
        if name in used
    ]
    graph = _proto(b.graph, traced.name, initializers)
    model = helper.make_model(
        graph,
        producer_name="stretto",
        ir_version=IR_VERSION if b.opset >= 24 else 10,
        opset_imports=[helper.make_opsetid("", b.opset)],
    )
    for guard in traced.guards:
        entry = model.metadata_props.add()
        entry.key = f"stretto.holds.{len(model.metadata_props)}"
        relation = "<" if guard.holds else ">="
        entry.value = f"{guard.size} {relation} {guard.less_than}"
    return model


def _names_read(graph: Graph) -> set[str]:
    names: set[str] = set()
    for node in graph.nodes:
        names.update(node.inputs)
        for value in node.attributes.values():
            if isinstance(value, Graph):
                names |= _names_read(value)
    return names


def _proto(graph: Graph, name: str, initializers: Sequence[Any]) -> GraphProto:
    helper = _onnx.helper
    nodes = []
    for node in graph.nodes:
        attributes = {key: _attribute(value) for key, value in node.attributes.items()}
        made = helper.make_node(node.op, node.inputs, node.outputs, domain=node.domain)
        for key, value in attributes.items():
            made.attribute.append(helper.make_attribute(key, value))
        nodes.append(made)
    return helper.make_graph(
        nodes,
        re.sub(r"\W", "_", name) or "main",
        [_declared(v) for v in graph.inputs],
        [_declared(v) for v in graph.outputs],
        initializers,
    )


def _attribute(value: Any) -> Any:
    if isinstance(value, Graph):
        return _proto(value, value.name, ())
    if isinstance(value, np.dtype):
        return _onnx.helper.np_dtype_to_tensor_dtype(value)
    return value


def _declared(value: Value) -> Any:
    shape = [str(n) if is_size(n) else int(n) for n in value.shape]  # type: ignore[call-overload]
    dtype = _onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    return _onnx.helper.make_tensor_value_info(value.name, dtype, shape)
