"""``onnx``: a function, a module or an ensemble as a model in ONNX's format."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from stretto import export
from stretto._engine.api.exported import Exported, trace
from stretto._engine.core.errors import ExportError
from stretto._engine.core.files import checked_path, write_whole
from stretto._engine.core.integers import integer
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.sizes import Size, SizeVariable, is_size, size_of
from stretto._engine.core.types import ArrayType, array_type, is_complex, real_dtype
from stretto._engine.core.typing import Tree
from stretto._engine.lowering.onnx.graph import Graph, Node, Operand, Pair, Value
from stretto._engine.lowering.onnx.products import Onnx
from stretto._engine.lowering.onnx.spelling import spell

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto

_onnx = LazyModule("onnx")

IR_VERSION = 13
"""The newest that onnxruntime 1.32 reads; operators before opset 24 have an older one."""

_LARGE = 1 << 31
"""The bytes of weights from which on they lie beside the file: a message has at most 2 GiB."""

_SMALL = 1 << 10
"""The bytes of an array below which it stays in the file, where shape inference can read it."""

_PAGE = 1 << 12
"""What arrays beside the file begin at multiples of, so that runtimes can map them."""


def onnx(
    fun: Callable[..., Any],
    *examples: Any,
    dynamic_axes: Tree = None,
    outputs: Mapping[str, Callable[[Any], Tree]] | None = None,
    path: str | os.PathLike[str] | None = None,
    opset: int = 26,
    exact: bool = True,
) -> ModelProto:
    """Write a function, a module or an ensemble as a model in ONNX's format.

    Args:
        fun: what to export; arrays that it has or captures become the model's weights.
        *examples: arguments like those of a call; what has a shape and a dtype is enough. An
            artifact needs none: it has those that it was traced for.
        dynamic_axes: a tree like ``examples`` that names the axes whose size varies, as for
            ``jit``: ``{0: "batch"}``.
        outputs: what to give in place of the result: functions of it, by the outputs' names. Of an
            ensemble's predictions that may be their mean, their entropy, intervals, or each
            member's. A name that an input has gets ``_1`` after it.
        path: where to write the file; weights of 2 GiB and more are written beside it, into one of
            this name with ``.data`` after it.
        opset: the version of the operators, 21 or later.
        exact: whether NaN and the tails of functions are as they are here, where the runtime's
            operators lose them; ``False`` gives fewer nodes. The nodes that keep NaN in recurrent
            layers run only where values are not finite. By default networks take at most 1.1 of
            the time.

    Returns:
        The model, an ``onnx.ModelProto``; inputs and outputs have the names of arguments and of the
        paths in the result's tree.

    Raises:
        ExportError: an operation cannot be said in ONNX; with its name, line and the way out.
        TypeError: ``fun`` or one of ``outputs`` is not callable, a name of ``outputs`` is no text,
            ``opset`` is not an integer, or an example is not an array.
        ValueError: ``opset`` is older than 21, or newer than what the package ``onnx`` knows;
            there is no array in the result; or weights of 2 GiB and more have no ``path``.
        OSError: the file cannot be written.
        ModuleNotFoundError: the package ``onnx`` is not installed.

    Source: the ONNX specification.

    >>> import stretto as st, stretto.numpy as snp
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 2.0}, {"w": 3.0}])
    >>> model = st.export.onnx(
    ...     ensemble,
    ...     snp.ones(4),
    ...     dynamic_axes=({0: "n"},),
    ...     outputs={"mean": st.ensemble.mean, "spread": st.ensemble.variance},
    ... )
    >>> [o.name for o in model.graph.output]
    ['mean', 'spread']
    """
    opset = integer(opset, "export.onnx", "opset")
    if opset < 21:
        raise ValueError(f"export.onnx: opset must be 21 or later, got {opset}")
    _check_installed()
    newest = _onnx.defs.onnx_opset_version()
    if opset > newest:
        raise ValueError(
            f"export.onnx: the installed package onnx knows opsets up to {newest}, got {opset}"
        )
    artifact = fun if isinstance(fun, export.artifact.Artifact) and not examples else None
    if artifact is not None and outputs is None:
        traced = artifact.exported()
    else:
        if artifact is not None:
            examples, dynamic_axes = artifact.examples, artifact.dynamic_axes
        traced = trace(fun, examples, dynamic_axes, outputs, "export.onnx")
    if not traced.outputs:
        raise ValueError(f"export.onnx: {traced.name} has no array in its result, so no output")
    where = None if path is None else Path(checked_path(path, "export.onnx"))
    model = model_of(traced, opset, exact, where)
    if where is not None:
        write_whole(where, lambda file: file.write(model.SerializeToString()), "export.onnx")
    return model


def _check_installed() -> None:
    if importlib.util.find_spec("onnx") is None:
        raise ModuleNotFoundError(
            "export.onnx needs the package onnx: pip install 'stretto[onnx]'", name="onnx"
        )


def model_of(traced: Exported, opset: int, exact: bool, path: Path | None = None) -> ModelProto:
    """Return the model of a traced function; large weights are written beside ``path``."""
    b = Onnx(opset, exact)
    operands: list[Any] = []
    inputs: list[Value] = []
    # What users ask for has its names before anything else has.
    taken, given = [[b.fresh(n) for n in names] for names in (traced.inputs, traced.outputs)]
    for name, type in zip(taken, traced.in_types, strict=True):
        operands.append(_input(b, inputs, name, type))
    for variable in traced.sizes:
        _bind(b, inputs, variable)
    for name, array in traced.weights:
        operands.append(_weight(b, name, array))
    results = b.program(traced.program, operands)
    outputs: list[Value] = []
    for name, result in zip(given, results, strict=True):
        _output(b, outputs, name, result)
    b.graph.inputs, b.graph.outputs = inputs, outputs
    spell(b)
    return _assembled(b, traced, path)


def _input(b: Onnx, inputs: list[Value], name: str, type: ArrayType) -> Operand | Pair:
    """Declare an input; a complex one has its parts along a last axis."""
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


def _weight(b: Onnx, name: str, array: np.ndarray) -> Operand | Pair:
    type = array_type(array.shape, array.dtype)
    if is_complex(array.dtype):
        return b.array(array)
    operand = b.held(array, type)
    if array.size > 1:
        array = np.ascontiguousarray(array)
        operand = Operand(b.fresh(name), type, array.shape, array)
        b.constants[operand.name] = array
    return operand


def _output(b: Onnx, outputs: list[Value], name: str, result: Operand | Pair) -> None:
    if isinstance(result, Pair):
        source, shape = b._pair_name(result), (*result.type.shape, 2)
        dtype = real_dtype(result.type.dtype)
    else:
        whole = b.whole(result)
        source, shape, dtype = b.named(whole), whole.shape, whole.type.dtype
    b.graph.nodes.append(Node("Identity", (source,), (name,), {}))
    outputs.append(Value(name, dtype, shape))


def _tensors(arrays: Mapping[str, np.ndarray], path: Path | None) -> list[TensorProto]:
    """Return the weights for a model; large ones are written beside it, and say where they lie."""
    size = sum(array.nbytes for array in arrays.values())
    made = _onnx.numpy_helper.from_array
    if size < _LARGE:
        return [made(array, name) for name, array in arrays.items()]
    if path is None:
        raise ValueError(
            f"export.onnx: the weights have {size / (1 << 30):.1f} GiB, and a model in memory has "
            f"less than 2: give path=, and they are written beside the file"
        )
    beside = path.with_name(path.name + ".data")
    tensors: list[TensorProto] = []
    written: list[tuple[int, np.ndarray]] = []
    end = 0
    for name, array in arrays.items():
        if array.nbytes < _SMALL:
            tensors.append(made(array, name))
            continue
        start = end + -end % _PAGE
        end = start + array.nbytes
        written.append((start, array))
        dtype = _onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = _onnx.TensorProto(name=name, dims=array.shape, data_type=dtype)
        tensor.data_location = _onnx.TensorProto.EXTERNAL
        for key, value in {
            "location": beside.name,
            "offset": start,
            "length": array.nbytes,
        }.items():
            tensor.external_data.add(key=key, value=str(value))
        tensors.append(tensor)

    def write(file: BinaryIO) -> None:
        for start, array in written:
            file.seek(start)
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    write_whole(beside, write, "export.onnx")
    return tensors


def _assembled(b: Onnx, traced: Exported, path: Path | None) -> ModelProto:
    helper = _onnx.helper
    used = _names_read(b.graph)
    initializers = _tensors({k: x for k, x in b.constants.items() if k in used}, path)
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
        # Its name is that of its first output: older runtimes take no two that are fused unnamed.
        called = next(output for output in node.outputs if output)
        made = helper.make_node(node.op, node.inputs, node.outputs, name=called, domain=node.domain)
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


def _attribute(value: object) -> object:
    if isinstance(value, Graph):
        return _proto(value, value.name, ())
    if isinstance(value, np.dtype):
        return _onnx.helper.np_dtype_to_tensor_dtype(value)
    return value


def _declared(value: Value) -> ValueInfoProto:
    shape = [str(n) if is_size(n) else int(n) for n in value.shape]  # type: ignore[call-overload]
    dtype = _onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    return _onnx.helper.make_tensor_value_info(value.name, dtype, shape)
