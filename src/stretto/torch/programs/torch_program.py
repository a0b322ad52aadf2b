"""A graph with its signature and constants, which an imported module runs in one mode; and its run.

Programs are static: equal ones are equal, and hash alike, so that modules of one architecture can
be stacked.

Each operation is run by the function that the table has for it. Sizes are those of the arguments at
hand, so a graph is interpreted anew for each signature, and transformations see nothing but
ordinary operations. Every result is brought to the dtype that PyTorch found, and its sizes are
checked.

A program is compiled for the sizes of its arguments, so how many elements a result has must follow
from these. Operations whose results depend on values otherwise are refused with the ways out, in
PyTorch's words, as they go into its module.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.ops.convert import convert
from stretto.torch.programs.signature import Signature
from stretto.torch.programs.torch_graph import (
    DType,
    Graph,
    Node,
    Ref,
    Subgraph,
    TensorType,
    bind,
    dtype_of,
    names,
    value_of,
)
from stretto.torch.table import TABLE

_MASK = (
    "keep all elements and choose among them: torch.where(mask, x, 0), a sum as (x * mask).sum(), "
    "a mean as that divided by mask.sum(), or torch.topk for a number of elements that is known"
)
_FIXED = "If the mask never changes, index by the places where it is true, found in __init__"
_NUMBER = (
    "it makes a number of Python of a tensor's value (.item(), float(), int(), .tolist()): keep it "
    "a tensor, or make the number an argument or a buffer, which becomes part of the program"
)
_COUNTS = "give the number of classes, or count by (x[:, None] == torch.arange(n)).sum(0)"

_INDEX = f"a boolean index keeps as many elements as are true; {_MASK}. {_FIXED}"

_OF_VALUES = {
    "aten.index.Tensor": _INDEX,
    "aten._unsafe_index.Tensor": _INDEX,
    "aten.nonzero.default": f"it gives as many places as are not zero; {_MASK}",
    "aten.masked_select.default": f"it keeps as many elements as are true; {_MASK}",
    "aten.bincount.default": f"it gives as many counts as the greatest value says; {_COUNTS}",
    "aten.one_hot.default": "it has as many classes as the greatest value says; give num_classes",
    "aten.repeat_interleave.Tensor": "it repeats as often as the values say: give "
    "repeat_interleave the total, output_size=, or numbers of Python, or pad to the most that "
    "there may be",
    "aten._local_scalar_dense.default": _NUMBER,
    "aten.item.default": _NUMBER,
}
"""The reason why an operation is not compiled, for those that can depend on values."""

_INDEXED = ("aten.index.Tensor", "aten._unsafe_index.Tensor")
_COPIES = (
    "aten.alias.default",
    "aten.clone.default",
    "aten.detach.default",
    "aten.lift_fresh_copy.default",
)


def dependent(graph: Graph, known: Container[str]) -> Iterator[tuple[Node, str]]:
    """Yield the operations whose sizes or numbers depend on values, each with the way out.

    Of those that are ``known``, since they have a function here, these are the ones for which
    PyTorch found sizes that only a run can tell, and no operation before has, or took such a size
    to be one that the module asks for; by a constant index they are known after all.
    """
    constant = {k for k, x in enumerate(graph.inputs) if x.kind == "constant"}
    types = [x.type for x in graph.inputs]
    found = {name for x in graph.inputs for name in _open_sizes(x.type)}
    for k, node in enumerate(graph.nodes, len(graph.inputs)):
        if node.op in _COPIES and _is_in(constant, node.args[0]):
            constant.add(k)
        words = _OF_VALUES.get(node.op)
        indices = node.args[1] if node.op in _INDEXED else None
        if indices and all([i is None or _is_in(constant, i) for i in indices]):
            words = None
        masked = any([_is_mask(types, i) for i in indices or ()])
        new = {name for type in node.types for name in _open_sizes(type)} - found
        if words and (node.op not in known or new or masked):
            yield node, words
        found |= new
        types.append(node.type)
    for part in graph.subgraphs:
        yield from dependent(part, known)


def _is_in(indices: Container[int], value: Any) -> bool:
    return isinstance(value, Ref) and value.index in indices


def _is_mask(types: list[TensorType | None], index: Any) -> bool:
    type = types[index.index] if isinstance(index, Ref) else None
    return type is not None and type.dtype == "bool"


def _open_sizes(type: TensorType | None) -> list[str]:
    """Return the sizes that PyTorch numbers u0, u1, ..., since values tell them."""
    names = [n for n in type.shape if isinstance(n, str)] if type else []
    return [name for name in names if name[0] == "u" and name[1:].isdecimal()]


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
    """Return the values of a graph's outputs for these of its inputs.

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


def _checked(node: Node, value: Any, wanted: TensorType | None, sizes: Mapping[str, Any]) -> Any:
    """Return a result in the dtype that PyTorch found for it, if it is a tensor's."""
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
    """Return a size that PyTorch found; where it depends on values, the one that is found here."""
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


_SINGLE = "single."
"""The beginning of the names of constants that the program for one example has."""


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """Runs what an imported module computes.

    Args:
        graph: the operations.
        signature: how it is called.
        constants: the arrays that are neither parameters nor buffers, by name.
        single: the program for one example, where it differs; its constants are among these.
    """

    graph: Graph
    signature: Signature
    constants: Mapping[str, np.ndarray]
    single: Program | None = None

    @functools.cached_property
    def digest(self) -> str:
        """A hash of all of it."""
        whole = hashlib.sha256(self.graph.digest.encode())
        whole.update(json.dumps(self.signature.to_json(places=False), sort_keys=True).encode())
        for name, array in sorted(self.constants.items()):
            whole.update(f"{name} {array.dtype} {array.shape} ".encode())
            whole.update(array.tobytes())
        if self.single is not None:
            whole.update(self.single.digest.encode())
        return whole.hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Program) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Program of {len(self.graph.nodes)} operations, {self.digest[:8]}>"

    def check(self, caller: str) -> None:
        """Raise ``NotImplementedError`` if an operation has no function here; it names all."""
        check(self.graph, caller)
        if self.single is not None:
            self.single.check(caller)

    def with_single(self, other: Program) -> Program:
        """Return the program that runs another for calls with one example."""
        inputs = [
            dataclasses.replace(x, name=f"{_SINGLE}{x.name}") if x.kind == "constant" else x
            for x in other.graph.inputs
        ]
        named = {f"{_SINGLE}{name}": array for name, array in other.constants.items()}
        constants = {**self.constants, **named}
        graph = dataclasses.replace(other.graph, inputs=tuple(inputs))
        single = Program(graph, other.signature, constants)
        return Program(self.graph, self.signature, constants, single)

    def __call__(
        self,
        caller: str,
        array_of: Callable[[str], Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """Return the results of a call, and the buffers that it updates, by name.

        ``array_of`` gives parameters and buffers by name. Raises what ``Signature.leaves`` does.
        """
        if self.single is not None:
            try:
                leaves = self.single._leaves(caller, args, kwargs)
            except (TypeError, ValueError):  # which this program words better
                pass
            else:
                return self.single._run(leaves, array_of)
        return self._run(self._leaves(caller, args, kwargs), array_of)

    def _leaves(self, caller: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        wanted = [x for x in self.graph.inputs if x.kind == "argument"]
        return self.signature.leaves(caller, wanted, args, kwargs)

    def _run(
        self, leaves: Sequence[Any], array_of: Callable[[str], Any]
    ) -> tuple[Any, dict[str, Any]]:
        given = iter(leaves)
        values: list[Any] = []
        for x in self.graph.inputs:
            if x.kind == "argument":
                value = next(given)
            elif x.kind == "constant":
                array = self.constants[x.name]
                value = snp.asarray(array, dtype_of(array.dtype.name))
            else:
                value = array_of(x.name)
            values.append(value)
        outputs = run(self.graph, values)
        kinds = self.graph.outputs
        results = [v for v, about in zip(outputs, kinds, strict=True) if about.kind == "result"]
        updates = {
            about.name: value
            for value, about in zip(outputs, kinds, strict=True)
            if about.kind == "buffer"
        }
        return self.signature.results.filled(iter(results)), updates

    def to_json(self) -> dict[str, Any]:
        """Return graph and signature in terms of JSON; the constants are saved beside them."""
        return {
            "graph": self.graph.to_json(),
            "signature": self.signature.to_json(),
            "single": self.single and self.single.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], constants: Mapping[str, np.ndarray]) -> Program:
        """Return the program that ``to_json`` gave this for.

        Raises:
            ValueError: it is not of that form, or lacks constants.
        """
        if not isinstance(data, Mapping) or not {"graph", "signature", "single"} <= data.keys():
            raise ValueError("this is not a program that was written here")
        graph, signature = Graph.from_json(data["graph"]), Signature.from_json(data["signature"])
        lacking = [x.name for x in graph.inputs if x.kind == "constant" and x.name not in constants]
        if lacking:
            raise ValueError(f"the program's constants are not there: {', '.join(lacking)}")
        single = data["single"] and cls.from_json(data["single"], constants)
        return cls(graph, signature, constants, single)


def differs_for_one(graph: Graph, signature: Signature) -> bool:
    """Say whether a program for two or more examples may not be that for one.

    Its conditions exclude one, or it squeezes an axis away that has one then.
    """
    texts = [n for x in graph.inputs if x.type for n in x.type.shape if isinstance(n, str)]
    ones = {name: 1 for text in texts for name in names(text)}
    try:
        excluded = [not value_of(condition.text, ones) for condition in signature.conditions]
    except ArithmeticError:
        return True
    return any(excluded) or any([_squeezes_one(graph, node, ones) for node in graph.nodes])


def _squeezes_one(graph: Graph, node: Node, ones: Mapping[str, int]) -> bool:
    if node.op not in SQUEEZES:
        return False
    type = graph.type_at(node.args[0].index)
    if type is None or not type.shape:  # a number has axis 0 for PyTorch
        return False
    axes = node.args[1] if len(node.args) > 1 else range(len(type.shape))
    sizes = [type.shape[axis] for axis in ([axes] if isinstance(axes, int) else axes)]
    written = [n for n in sizes if isinstance(n, str) and names(n) <= ones.keys()]
    return any([value_of(text, ones) == 1 for text in written])
