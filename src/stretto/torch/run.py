"""What runs a graph: each operation by the function that the table has for it.

Sizes are those of the arguments at hand, so a graph is interpreted anew for each signature, and
transformations see nothing but ordinary operations. Every result is brought to the dtype that
PyTorch found, and its sizes are checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import canonical_dtype, named_dtype
from stretto._engine.ops.convert import convert
from stretto.torch.graph import DType, Graph, Node, Ref, Subgraph, TensorType
from stretto.torch.sizes import bind, value_of
from stretto.torch.table import TABLE
from stretto.torch.values import dependent

__all__ = ["SQUEEZES", "check", "run"]

SQUEEZES = frozenset(["aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims"])
"""Operations whose result has fewer axes where sizes are 1."""


def check(graph: Graph, caller: str) -> None:
    """Raise ``NotImplementedError`` for operations that cannot run here; it names all of them.

    They have no function in the table, or sizes that depend on values.
    """
    of_values = {
        node.op: f"{node.op}, in {node.place}: {way}" for node, way in dependent(graph, TABLE)
    }
    missing: dict[str, str] = {}
    for node in graph.walk():
        if node.op not in TABLE and node.op not in of_values:
            missing.setdefault(node.op, f"{node.op}, in {node.place}")
    refused = []
    if missing:
        refused.append(
            f"{len(missing)} of PyTorch's operations in this module have no function here: "
            f"{'; '.join(missing.values())}. docs/pytorch-operations.md lists those that have"
        )
    if of_values:
        refused.append(
            f"{len(of_values)} of PyTorch's operations in this module cannot be compiled, as sizes "
            f"or numbers of Python depend on values: {'; '.join(of_values.values())}"
        )
    if refused:
        raise NotImplementedError(f"{caller}: {'. '.join(refused)}")


def run(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """The values of a graph's outputs for these of its inputs.

    Raises:
        RuntimeError: a result has not the shape that PyTorch found.
        ValueError: it has not, since the sizes of the inputs are such that PyTorch would find
            another.
    """
    values = [*inputs]
    typed = [(x.type.shape, v.shape) for x, v in zip(graph.inputs, values, strict=True) if x.type]
    sizes = bind(typed)
    for node, free in zip(graph.nodes, graph.last_uses, strict=True):
        try:
            result = _applied(graph, node, values, sizes)
        except Exception as error:
            error.add_note(f"This was {node.op} in {node.place} of an imported PyTorch module.")
            raise
        values.append(result)
        for index in free:
            values[index] = None
    return [_resolved(graph, output.value, values) for output in graph.outputs]


def _applied(graph: Graph, node: Node, values: Sequence[Any], sizes: Mapping[str, Any]) -> Any:
    args = [_resolved(graph, x, values) for x in node.args]
    kwargs = {name: _resolved(graph, x, values) for name, x in node.kwargs}
    result = TABLE[node.op](*args, **kwargs)
    if isinstance(result, (tuple, list)):
        typed = zip(result, node.types, strict=True)
        return tuple([_checked(node, part, wanted, sizes) for part, wanted in typed])
    return _checked(node, result, node.types[0] if node.types else None, sizes)


def _resolved(graph: Graph, x: Any, values: Sequence[Any]) -> Any:
    match x:
        case Ref():
            return values[x.index]
        case tuple():
            return tuple([_resolved(graph, part, values) for part in x])
        case DType():
            return dtype_of(x.name)
        case Subgraph():
            called = graph.subgraphs[x.index]
            return lambda *inputs: run(called, inputs)
    return x


def dtype_of(name: str) -> np.dtype:
    """The dtype of this name, or the one that stands for it where 64-bit types are off."""
    return canonical_dtype(named_dtype(name))


def _checked(node: Node, value: Any, wanted: TensorType | None, sizes: Mapping[str, Any]) -> Any:
    """A result in the dtype that PyTorch found for it, if it is a tensor's."""
    if wanted is None or value is None:
        return value
    array = value if isinstance(value, Value) else as_value(value, node.op)
    shape = array.shape
    if len(shape) != len(wanted.shape) or any(
        [n is not None and _size(n, m, sizes) != m for n, m in zip(wanted.shape, shape)]
    ):
        _refuse_shape(node, wanted, shape, sizes)
    dtype = dtype_of(wanted.dtype)
    return array if array.dtype == dtype else convert(array, dtype)


def _size(written: int | str, found: Any, sizes: Mapping[str, Any]) -> Any:
    """A size that PyTorch found; where it depends on values, the one that is found here."""
    if isinstance(written, int):
        return written
    try:
        return value_of(written, sizes)
    except KeyError:
        return found


def _refuse_shape(
    node: Node, wanted: TensorType, shape: Sequence[Any], sizes: Mapping[str, Any]
) -> NoReturn:
    expected = tuple([n if n is None else _size(n, n, sizes) for n in wanted.shape])
    if all([isinstance(n, int) for n in wanted.shape]) and not sizes:
        raise RuntimeError(
            f"{node.op}: the result should have the shape {expected}, and has {shape}: this is a "
            f"fault of the table"
        )
    raise ValueError(
        f"{node.op}: the program goes on with a result of the shape {expected}, and for these "
        f"sizes of the arguments it has {shape}: import the module anew with an example of these "
        f"sizes"
    )
