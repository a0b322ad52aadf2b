"""The program of a PyTorch module as plain data: operations in order, and sizes as text.

A ``Graph`` is what ``capture`` makes of an exported program, and what ``torch_program`` interprets.
It can be compared, hashed and written as JSON, so that modules of one architecture are equal but
for their arrays, and none of them needs PyTorch once it is here.

PyTorch names the sizes that may differ from call to call, computes others from these, ``"2*s0 +
1"``, and writes down what it decided by them, ``"s0 % 3 == 0"``. Such text is read as arithmetic
alone, and never run as Python.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.types import canonical_dtype, named_dtype


@dataclasses.dataclass(frozen=True, slots=True)
class Ref:
    """The value of an input or a node, by its number: inputs first, then nodes."""

    index: int


@dataclasses.dataclass(frozen=True, slots=True)
class DType:
    """A dtype among the arguments of an operation, by NumPy's name."""

    name: str


def dtype_of(name: str) -> np.dtype:
    """Return the dtype of this name, or the one that stands for it where 64-bit types are off."""
    return canonical_dtype(named_dtype(name))


@dataclasses.dataclass(frozen=True, slots=True)
class Subgraph:
    """A graph that an operation calls, by its number."""

    index: int


@dataclasses.dataclass(frozen=True, slots=True)
class TensorType:
    """The dtype that PyTorch found for a value, and its sizes.

    A size that may differ from call to call is a name, and equal names are equal sizes; one that is
    computed from these is an expression, ``"2*s0"``; None is one of which nothing is known.
    """

    dtype: str
    shape: tuple[int | str | None, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Input:
    """An input of a graph.

    Args:
        kind: ``"parameter"``, ``"buffer"``, ``"constant"``, or ``"argument"``.
        name: the dotted name of an array of the module; for an argument, what its user calls it.
        type: its type; None for a number.
    """

    kind: str
    name: str
    type: TensorType | None


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """An operation.

    Args:
        op: its name in PyTorch, ``aten.add.Tensor``.
        args: its arguments: numbers, strings, None, ``Ref``, ``DType``, ``Subgraph``, or tuples.
        kwargs: those by keyword, in order of their names.
        types: the types of its results, one for each tensor; None for what is no tensor.
        place: where in the user's module it is.
    """

    op: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    types: tuple[TensorType | None, ...]
    place: str

    @property
    def type(self) -> TensorType | None:
        """The type of its one result; None where it has several, or gives no tensor."""
        return self.types[0] if len(self.types) == 1 else None


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """An output of a graph.

    Args:
        kind: ``"result"``, ``"buffer"`` for the next value of one, or ``"written"`` for what is
            written into an argument.
        name: the buffer's dotted name, or the argument's; empty for a result.
        value: a ``Ref``, or a constant.
    """

    kind: str
    name: str
    value: Any


@dataclasses.dataclass(frozen=True)
class Graph:
    """A program of PyTorch operations.

    Args:
        inputs: its inputs.
        nodes: its operations, each of which refers to inputs and earlier ones.
        outputs: its outputs.
        subgraphs: the graphs that its operations call.
    """

    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    subgraphs: tuple[Graph, ...] = ()

    def type_at(self, index: int) -> TensorType | None:
        """Return the type of a value, by its number."""
        first = len(self.inputs)
        return self.inputs[index].type if index < first else self.nodes[index - first].type

    def walk(self) -> Iterator[Node]:
        """Yield all nodes, those of subgraphs too."""
        yield from self.nodes
        for graph in self.subgraphs:
            yield from graph.walk()

    @functools.cached_property
    def digest(self) -> str:
        """A hash of what it computes, whatever the places in the user's code are."""
        text = json.dumps(self.to_json(places=False), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Graph) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} operations>"

    @functools.cached_property
    def last_uses(self) -> tuple[tuple[int, ...], ...]:
        """The values that nothing after a node reads, for each node."""
        last: dict[int, int] = {}
        for k, node in enumerate(self.nodes):
            for index in refs((node.args, dict(node.kwargs))):
                last[index] = k
        for index in refs([output.value for output in self.outputs]):
            last.pop(index, None)
        free: list[list[int]] = [[] for _ in self.nodes]
        for index, k in last.items():
            free[k].append(index)
        return tuple([tuple(indices) for indices in free])

    def to_json(self, *, places: bool = True) -> dict[str, Any]:
        """Return the graph in terms of JSON."""
        return {
            "inputs": [[x.kind, x.name, _type_to_json(x.type)] for x in self.inputs],
            "nodes": [
                [
                    node.op,
                    _to_json(node.args),
                    {name: _to_json(value) for name, value in node.kwargs},
                    [_type_to_json(t) for t in node.types],
                    *([node.place] if places else []),
                ]
                for node in self.nodes
            ],
            "outputs": [[x.kind, x.name, _to_json(x.value)] for x in self.outputs],
            "subgraphs": [graph.to_json(places=places) for graph in self.subgraphs],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Graph:
        """Return the graph that ``to_json`` gave this for.

        Raises:
            ValueError: it is not of that form, or refers to what is not there.
        """
        try:
            graph = cls(
                tuple([Input(str(k), str(n), _type_of(t)) for k, n, t in data["inputs"]]),
                tuple([_node_of(*node) for node in data["nodes"]]),
                tuple([Output(str(k), str(n), _from_json(v)) for k, n, v in data["outputs"]]),
                tuple([cls.from_json(part) for part in data["subgraphs"]]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"this is not a graph that was written here: {error!r}") from error
        graph._check()
        return graph

    def _check(self) -> None:
        """Raise ``ValueError`` if an operation refers to a value after it, or to no graph."""
        known = len(self.inputs)
        for k, node in enumerate(self.nodes):
            of_node = node.args, dict(node.kwargs)
            if any([not 0 <= index < known + k for index in refs(of_node)]):
                raise ValueError(f"node {k}, {node.op}, refers to a value that is not before it")
            for x in _leaves(of_node):
                if isinstance(x, Subgraph) and not 0 <= x.index < len(self.subgraphs):
                    raise ValueError(f"node {k}, {node.op}, calls a graph that is not there")
        total = known + len(self.nodes)
        if any([not 0 <= i < total for i in refs([output.value for output in self.outputs])]):
            raise ValueError("an output refers to a value that is not there")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _leaves(part)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def refs(value: Any) -> Iterator[int]:
    """Yield the numbers of the values that arguments refer to."""
    return (x.index for x in _leaves(value) if isinstance(x, Ref))


def replaced(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return an argument with each leaf changed."""
    if isinstance(value, tuple):
        return tuple([replaced(part, change) for part in value])
    return change(value)


# In terms of JSON: what is not a list, a string, a boolean, None or a finite number is an object of
# one entry, which says what it is.


def _to_json(value: Any) -> Any:
    match value:
        case tuple() | list():
            return [_to_json(x) for x in value]
        case bool() | int() | str() | None:
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case complex():
            return {"complex": [_to_json(value.real), _to_json(value.imag)]}
        case Ref():
            return {"value": value.index}
        case DType():
            return {"dtype": value.name}
        case Subgraph():
            return {"graph": value.index}
    raise TypeError(f"a {type(value).__name__} is no part of a graph")


def _from_json(data: Any) -> Any:
    if isinstance(data, list):
        return tuple([_from_json(x) for x in data])
    if not isinstance(data, dict):
        return data
    ((kind, content),) = data.items()
    match kind:
        case "value":
            return Ref(int(content))
        case "dtype":
            return DType(str(content))
        case "graph":
            return Subgraph(int(content))
        case "float":
            return float(content)
        case "complex":
            real, imag = content
            return complex(_from_json(real), _from_json(imag))
    raise ValueError(f"there is no {kind!r} in a graph")


def _type_to_json(type: TensorType | None) -> Any:
    return None if type is None else [type.dtype, list(type.shape)]


def _type_of(data: Any) -> TensorType | None:
    if data is None:
        return None
    dtype, shape = data
    return TensorType(str(dtype), tuple([n if isinstance(n, str) else _size(n) for n in shape]))


def _size(n: Any) -> int | None:
    return None if n is None else int(n)


def _node_of(
    op: Any, args: Any, kwargs: Mapping[str, Any], types: Sequence[Any], place: Any = ""
) -> Node:
    return Node(
        str(op),
        tuple(_from_json(args)),
        tuple([(str(name), _from_json(value)) for name, value in sorted(kwargs.items())]),
        tuple([_type_of(t) for t in types]),
        str(place),
    )


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
}
_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CALLED: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "float": float,
    "int": int,
    "max": max,
    "min": min,
    "round": round,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.log2": math.log2,
    "math.sqrt": math.sqrt,
    "math.trunc": math.trunc,
}
_GREATEST_POWER = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """A condition on sizes that a program takes for granted.

    Args:
        text: the condition, of named sizes.
        place: where in the user's module it was decided; empty where that is not known.
    """

    text: str
    place: str = ""

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if the text is no arithmetic of sizes."""
        _compiled(self.text)


def value_of(text: str, sizes: Mapping[str, Any]) -> Any:
    """Return the value of an expression, given the named sizes.

    Raises:
        KeyError: a size has no value.
        ValueError: the text is no arithmetic of sizes.
    """
    return sizes[text] if text.isidentifier() else _compiled(text)[0](sizes)


def names(text: str) -> frozenset[str]:
    """Return the names of the sizes in an expression.

    Raises:
        ValueError: the text is no arithmetic of sizes.
    """
    return frozenset([text]) if text.isidentifier() else _compiled(text)[1]


def bind(shapes: Iterable[tuple[Sequence[int | str | None], Sequence[Any]]]) -> dict[str, Any]:
    """Return the values of named sizes, from the shapes as they are written and as they are.

    A name that stands nowhere by itself is solved for, where it is one of a linear expression. The
    first place of a name counts.
    """
    found: dict[str, Any] = {}
    composed = []
    for wanted, shape in shapes:
        for text, n in zip(wanted, shape, strict=True):
            if isinstance(text, str):
                if text.isidentifier():
                    found.setdefault(text, n)
                else:
                    composed.append((text, n))
    for text, n in composed:
        unknown = [name for name in names(text) if name not in found]
        if len(unknown) == 1:
            solution = _solved(text, unknown[0], found, n)
            if solution is not None:
                found[unknown[0]] = solution
    return found


def _solved(text: str, name: str, sizes: Mapping[str, Any], n: Any) -> int | None:
    """Return the natural number for which an expression is n, if it is linear."""

    def at(size: int) -> Any:
        return value_of(text, {**sizes, name: size})

    try:
        start = at(0)
        slope = at(1) - start
        solution, rest = divmod(n - start, slope)
        return solution if rest == 0 and solution >= 0 and at(solution) == n else None
    except (ArithmeticError, TypeError):
        return None


@functools.lru_cache(maxsize=4096)
def _compiled(text: str) -> tuple[Callable[[Mapping[str, Any]], Any], frozenset[str]]:
    """Return a function of the named sizes, and their names."""
    try:
        whole = ast.parse(text, mode="eval").body
        found: set[str] = set()
        return _function(whole, found), frozenset(found)
    except (SyntaxError, RecursionError, ValueError) as error:
        raise ValueError(f"{text!r} is no arithmetic of sizes") from error


def _function(node: ast.expr, found: set[str]) -> Callable[[Mapping[str, Any]], Any]:
    match node:
        case ast.Constant(value=bool() | int() | float() as constant):
            return lambda sizes: constant
        case ast.Name(id=name):
            found.add(name)
            return lambda sizes: sizes[name]
        case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int() | float() as power)):
            if abs(power) > _GREATEST_POWER:  # of a file that is damaged, or worse
                raise ValueError(f"a power of {power}")
            of_base = _function(base, found)
            return lambda sizes: of_base(sizes) ** power
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            x, y, binary = _function(left, found), _function(right, found), _BINARY[type(op)]
            return lambda sizes: binary(x(sizes), y(sizes))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            x = _function(operand, found)
            return lambda sizes: -x(sizes)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            x = _function(operand, found)
            return lambda sizes: not x(sizes)
        case ast.BoolOp(op=op, values=operands):
            parts = [_function(part, found) for part in operands]
            over = all if isinstance(op, ast.And) else any
            return lambda sizes: over(part(sizes) for part in parts)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
            x, y, compared = _function(left, found), _function(right, found), _COMPARED[type(op)]
            return lambda sizes: compared(x(sizes), y(sizes))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            which, x, y = (_function(part, found) for part in (test, body, orelse))
            return lambda sizes: x(sizes) if which(sizes) else y(sizes)
        case ast.Call(func=func, args=operands, keywords=[]):
            called = _CALLED.get(ast.unparse(func))
            if called is not None:
                parts = [_function(part, found) for part in operands]
                return lambda sizes: called(*[part(sizes) for part in parts])
    raise ValueError(f"{ast.unparse(node)} is no arithmetic of sizes")
